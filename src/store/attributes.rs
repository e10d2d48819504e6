//! Merchant product attributes that an account has declared.

use sqlx::{Executor, FromRow, Postgres};

use crate::domain::Fault;
use crate::domain::attributes::{Declaration, DeclarationInput};
use crate::domain::validation::Declarations;
use crate::store::{Store, StoreError};

/// Most attributes that an account may declare: every write of a product reads them all.
pub const MAX_ATTRIBUTES: i64 = 1_000;

#[derive(FromRow)]
struct Row {
    field_name: String,
    display_name: Option<String>,
    description: Option<String>,
    is_language_specific: bool,
    format: String,
    object_type: String,
    tags: Vec<String>,
}

impl Row {
    /// What was checked when it was stored is checked once more, instead of trusted.
    fn declaration(self) -> Option<Declaration> {
        let input = DeclarationInput {
            field_name: Some(self.field_name),
            display_name: self.display_name,
            description: self.description,
            is_language_specific: Some(self.is_language_specific),
            format: Some(self.format),
            object_type: Some(self.object_type),
            tags: self.tags,
        };
        input.check().ok()
    }
}

const SELECT: &str = "select field_name, display_name, description, is_language_specific, format, object_type, tags
    from merchant_product_attributes where account_id = $1 order by field_name";

/// All declarations of an account.
pub(super) async fn declarations(
    connection: impl Executor<'_, Database = Postgres>,
    account: i64,
) -> Result<Declarations, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(SELECT).bind(account).fetch_all(connection).await?;
    let declared = rows.into_iter().filter_map(Row::declaration);
    Ok(declared.map(|declaration| (declaration.field_name.clone(), declaration)).collect())
}

impl Store {
    /// All declarations of an account, by field name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn attributes(&self, account: i64) -> Result<Vec<Declaration>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(SELECT).bind(account).fetch_all(self.pool()).await?;
        Ok(rows.into_iter().filter_map(Row::declaration).collect())
    }

    /// Declares an attribute.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the field name is taken, [`StoreError::Unprocessable`] beyond [`MAX_ATTRIBUTES`].
    pub async fn declare_attribute(&self, account: i64, new: &Declaration) -> Result<(), StoreError> {
        let made = sqlx::query(
            "insert into merchant_product_attributes (account_id, field_name, display_name, description,
                                                      is_language_specific, format, object_type, tags)
             select $1, $2, $3, $4, $5, $6, $7, $8
             where (select count(*) from merchant_product_attributes where account_id = $1) < $9
             on conflict do nothing",
        )
        .bind(account)
        .bind(&new.field_name)
        .bind(&new.display_name)
        .bind(&new.description)
        .bind(new.is_language_specific)
        .bind(new.format.name())
        .bind(new.object_type.name())
        .bind(&new.tags)
        .bind(MAX_ATTRIBUTES)
        .execute(self.pool())
        .await?;
        if made.rows_affected() == 0 {
            if !self.is_declared(account, &new.field_name).await? {
                let message = format!("an account has at most {MAX_ATTRIBUTES} attributes");
                return Err(StoreError::Unprocessable(vec![Fault::at("fieldName", "TOO_MANY_ATTRIBUTES", message)]));
            }
            let message = format!("the attribute {} is declared already", new.field_name);
            let faults = vec![Fault::at("fieldName", "ATTRIBUTE_EXISTS", message)];
            return Err(StoreError::Conflict { faults, current_version: None });
        }
        Ok(())
    }

    async fn is_declared(&self, account: i64, field_name: &str) -> Result<bool, StoreError> {
        let declared = sqlx::query_scalar(
            "select exists (select from merchant_product_attributes where account_id = $1 and field_name = $2)",
        )
        .bind(account)
        .bind(field_name)
        .fetch_one(self.pool())
        .await?;
        Ok(declared)
    }
}
