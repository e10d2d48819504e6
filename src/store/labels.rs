//! Labels that an account has defined for its assignments.

use sqlx_macros::FromRow;

use crate::domain::Fault;
use crate::store::accounts::Caller;
use crate::store::{Store, StoreError, Tx, assignments, with_retries};

/// Assignments from which a label that leaves is taken at once.
const SHED_AT_ONCE: usize = 1_000;

/// Most labels that an account may define.
pub const MAX_LABELS: i64 = 1_000;

/// Most labels that are attached to one assignment: every list shows them all.
pub const MAX_LABELS_OF_ASSIGNMENT: usize = 50;

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
        let mut tx = self.begin().await?;
        let made = sqlx::query(
            "insert into assignment_labels (account_id, label, color)
             select $1, $2, $3 where (select count(*) from assignment_labels where account_id = $1) < $4
             on conflict do nothing",
        )
        .bind(account)
        .bind(&new.label)
        .bind(&new.color)
        .bind(MAX_LABELS)
        .execute(&mut *tx)
        .await?;
        if made.rows_affected() == 1 {
            tx.commit().await?;
            return Ok(true);
        }
        let known: Option<(String, bool)> =
            sqlx::query_as("select color, leaving from assignment_labels where account_id = $1 and label = $2")
                .bind(account)
                .bind(&new.label)
                .fetch_optional(&mut *tx)
                .await?;
        let Some((color, leaving)) = known else {
            let message = format!("an account has at most {MAX_LABELS} labels");
            return Err(StoreError::Unprocessable(vec![Fault::at("label", "TOO_MANY_LABELS", message)]));
        };
        if leaving {
            return Err(still_leaving(&new.label));
        }
        if color.eq_ignore_ascii_case(&new.color) {
            return Ok(false);
        }
        let message = format!("the label {} is defined already, with the colour {color}", new.label);
        let faults = vec![Fault::at("label", "LABEL_EXISTS", message)];
        Err(StoreError::Conflict { faults, current_version: None })
    }

    /// Gives a label another name, another colour, or both. Assignments that carry it are worked through by
    /// [`Store::shed_label`].
    ///
    /// # Errors
    /// Not found; conflict when the new name is taken.
    pub async fn change_label(
        &self,
        caller: &Caller,
        label: &str,
        name: Option<&str>,
        color: Option<&str>,
    ) -> Result<Label, StoreError> {
        let mut tx = self.begin().await?;
        let found: Option<Label> = sqlx::query_as(
            "select label, color from assignment_labels where account_id = $1 and label = $2 and not leaving for update",
        )
        .bind(caller.account)
        .bind(label)
        .fetch_optional(&mut *tx)
        .await?;
        let found = found.ok_or_else(|| unknown(label))?;
        let color = color.map_or(found.color, str::to_owned);
        match name.filter(|name| *name != label) {
            None => {
                sqlx::query("update assignment_labels set color = $3 where account_id = $1 and label = $2")
                    .bind(caller.account)
                    .bind(label)
                    .bind(&color)
                    .execute(&mut *tx)
                    .await?;
            }
            Some(name) => {
                let made = sqlx::query(
                    "insert into assignment_labels (account_id, label, color) values ($1, $2, $3) on conflict do nothing",
                )
                .bind(caller.account)
                .bind(name)
                .bind(&color)
                .execute(&mut *tx)
                .await?;
                if made.rows_affected() == 0 {
                    return Err(exists(name));
                }
                leave(&mut tx, caller, label, Some(name)).await?;
            }
        }
        tx.commit().await?;
        Ok(Label { label: name.unwrap_or(label).to_owned(), color })
    }

    /// Says that there is such a label.
    ///
    /// # Errors
    /// Not found.
    pub async fn require_label(&self, account: i64, label: &str) -> Result<(), StoreError> {
        let found: Option<i32> =
            sqlx::query_scalar("select 1 from assignment_labels where account_id = $1 and label = $2 and not leaving")
                .bind(account)
                .bind(label)
                .fetch_optional(self.pool())
                .await?;
        found.map(|_| ()).ok_or_else(|| unknown(label))
    }

    /// Removes a label. Assignments that carry it are worked through by [`Store::shed_label`].
    ///
    /// # Errors
    /// Not found.
    pub async fn remove_label(&self, caller: &Caller, label: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        if !leave(&mut tx, caller, label, None).await? {
            return Err(unknown(label));
        }
        Ok(tx.commit().await?)
    }

    /// Takes a label that leaves from some assignments that carry it, and answers whether there was anything to do: of
    /// this account, or of any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn shed_label(&self, account: Option<i64>) -> Result<bool, StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let leaving: Option<(i64, String, Option<String>, Option<String>)> = sqlx::query_as(
                "select account_id, label, becomes, left_by from assignment_labels left_one
                 where leaving and ($1 is null or account_id = $1)
                       -- One that others still become is carried by more and more.
                       and not exists (select from assignment_labels earlier
                                       where earlier.account_id = left_one.account_id and earlier.leaving
                                             and earlier.becomes = left_one.label)
                 limit 1 for update skip locked",
            )
            .bind(account)
            .fetch_optional(&mut *tx)
            .await?;
            let Some((account, label, becomes, left_by)) = leaving else { return Ok(false) };
            let carriers = assignments::lock_carriers(&mut tx, account, &label, SHED_AT_ONCE).await?;
            if carriers.is_empty() {
                sqlx::query("delete from assignment_labels where account_id = $1 and label = $2")
                    .bind(account)
                    .bind(&label)
                    .execute(&mut *tx)
                    .await?;
            }
            let add: Vec<String> = becomes.into_iter().collect();
            let actor = left_by.unwrap_or_default();
            assignments::relabel(&mut tx, account, &actor, &carriers, &add, &[label]).await?;
            tx.commit().await?;
            Ok(true)
        })
        .await
    }

    /// All labels of an account, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn labels(&self, account: i64) -> Result<Vec<Label>, StoreError> {
        let labels = sqlx::query_as(
            "select label, color from assignment_labels where account_id = $1 and not leaving order by label",
        )
        .bind(account)
        .fetch_all(self.pool())
        .await?;
        Ok(labels)
    }
}

fn unknown(label: &str) -> StoreError {
    StoreError::not_found(Fault::at("label", "UNKNOWN_LABEL", format!("there is no label \"{label}\"")))
}

fn exists(label: &str) -> StoreError {
    let message = format!("the label {label} is defined already");
    StoreError::Conflict { faults: vec![Fault::at("label", "LABEL_EXISTS", message)], current_version: None }
}

fn still_leaving(label: &str) -> StoreError {
    let message = format!("the label {label} is still being taken from assignments; define it when that is done");
    StoreError::Conflict { faults: vec![Fault::at("label", "LABEL_LEAVING", message)], current_version: None }
}

/// Marks a label as leaving, and answers whether there is such a label.
async fn leave(tx: &mut Tx, caller: &Caller, label: &str, becomes: Option<&str>) -> Result<bool, StoreError> {
    let left = sqlx::query(
        "update assignment_labels set leaving = true, becomes = $3, left_by = $4
         where account_id = $1 and label = $2 and not leaving",
    )
    .bind(caller.account)
    .bind(label)
    .bind(becomes)
    .bind(&caller.user)
    .execute(&mut **tx)
    .await?;
    Ok(left.rows_affected() == 1)
}

/// Refuses labels that are not defined, naming each; those that are stay so until the transaction ends.
pub(super) async fn require_defined(tx: &mut Tx, account: i64, names: &[String]) -> Result<(), StoreError> {
    let defined: Vec<String> = sqlx::query_scalar(
        "select label from assignment_labels where account_id = $1 and label = any($2) and not leaving for share",
    )
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
