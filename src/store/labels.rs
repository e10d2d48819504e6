//! Labels that an account has defined for its assignments.

use sqlx::FromRow;

use crate::domain::Fault;
use crate::store::{Store, StoreError, Tx};

/// Most labels that an account may define, and so the most that an assignment can carry.
pub const MAX_LABELS: i64 = 1_000;

/// A defined label.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Label {
    /// Its name.
    pub label: String,
    /// Its colour, `#RRGGBB`.
    pub color: String,
}

impl Store {
    /// Defines a label and answers whether it is new; defining it again with the same colour changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is defined with another colour, [`StoreError::Unprocessable`] beyond [`MAX_LABELS`].
    pub async fn define_label(&self, account: i64, new: &Label) -> Result<bool, StoreError> {
        let made = sqlx::query(
            "insert into assignment_labels (account_id, label, color)
             select $1, $2, $3 where (select count(*) from assignment_labels where account_id = $1) < $4
             on conflict do nothing",
        )
        .bind(account)
        .bind(&new.label)
        .bind(&new.color)
        .bind(MAX_LABELS)
        .execute(self.pool())
        .await?;
        if made.rows_affected() == 1 {
            return Ok(true);
        }
        let color: Option<String> =
            sqlx::query_scalar("select color from assignment_labels where account_id = $1 and label = $2")
                .bind(account)
                .bind(&new.label)
                .fetch_optional(self.pool())
                .await?;
        let Some(color) = color else {
            let message = format!("an account has at most {MAX_LABELS} labels");
            return Err(StoreError::Unprocessable(vec![Fault::at("label", "TOO_MANY_LABELS", message)]));
        };
        if color.eq_ignore_ascii_case(&new.color) {
            return Ok(false);
        }
        let message = format!("the label {} is defined already, with the colour {color}", new.label);
        let faults = vec![Fault::at("label", "LABEL_EXISTS", message)];
        Err(StoreError::Conflict { faults, current_version: None })
    }

    /// All labels of an account, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn labels(&self, account: i64) -> Result<Vec<Label>, StoreError> {
        let labels = sqlx::query_as("select label, color from assignment_labels where account_id = $1 order by label")
            .bind(account)
            .fetch_all(self.pool())
            .await?;
        Ok(labels)
    }
}

/// Refuses labels that are not defined, naming each.
pub(super) async fn require_defined(tx: &mut Tx, account: i64, names: &[String]) -> Result<(), StoreError> {
    let defined: Vec<String> =
        sqlx::query_scalar("select label from assignment_labels where account_id = $1 and label = any($2)")
            .bind(account)
            .bind(names)
            .fetch_all(&mut **tx)
            .await?;
    let faults: Vec<Fault> = names
        .iter()
        .enumerate()
        .filter(|(_, name)| !defined.contains(name))
        .map(|(index, name)| {
            let message = format!("the label \"{name}\" is not defined; define it first");
            Fault::at(format!("labels[{index}]"), "UNDEFINED_LABEL", message)
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(StoreError::Unprocessable(faults)) }
}
