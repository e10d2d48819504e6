//! Merchant product attributes that an account has declared.

use sqlx::{Executor, Postgres};
use sqlx_macros::FromRow;

use crate::domain::Fault;
use crate::domain::attributes::{Declaration, DeclarationInput};
use crate::domain::validation::Declarations;
use crate::store::{Store, StoreError, Tx};

/// Most attributes that an account may declare: every write of a product reads them all.
pub const MAX_ATTRIBUTES: i64 = 1_000;

/// Bytes that a declaration weighs beside what it tells people.
const DECLARATION_BYTES: i64 = 512;

/// The class of the locks that keep a declaration from being removed while a product is written that uses it.
const DECLARATIONS_LOCK: i32 = 0x6174_7472;

/// The lock of an account; two accounts may share one, and then only wait for each other.
fn lock_key(account: i64) -> i32 {
    account as i32
}

fn unknown(field_name: &str) -> StoreError {
    let message = format!("there is no attribute \"{field_name}\"");
    StoreError::not_found(Fault::at("fieldName", "UNKNOWN_ATTRIBUTE", message))
}

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
pub(super) async fn declared(
    connection: impl Executor<'_, Database = Postgres>,
    account: i64,
) -> Result<Declarations, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(SELECT).bind(account).fetch_all(connection).await?;
    let declared = rows.into_iter().filter_map(Row::declaration);
    Ok(declared.map(|declaration| (declaration.field_name.clone(), declaration)).collect())
}

/// All declarations of an account, for a write that relies on them: none is removed before its transaction ends.
pub(super) async fn declarations(tx: &mut Tx, account: i64) -> Result<Declarations, StoreError> {
    sqlx::query("select pg_advisory_xact_lock_shared($1, $2)")
        .bind(DECLARATIONS_LOCK)
        .bind(lock_key(account))
        .execute(&mut **tx)
        .await?;
    declared(&mut **tx, account).await
}

impl Store {
    /// What [`Store::attributes`] reads weighs, in bytes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn weight_of_attributes(&self, account: i64) -> Result<usize, StoreError> {
        let weight: i64 = sqlx::query_scalar(
            "select coalesce(sum($2 + coalesce(octet_length(display_name), 0) + coalesce(octet_length(description), 0)
                                 + octet_length(array_to_string(tags, ','))), 0)::bigint
             from merchant_product_attributes where account_id = $1",
        )
        .bind(account)
        .bind(DECLARATION_BYTES)
        .fetch_one(self.pool())
        .await?;
        Ok(usize::try_from(weight).unwrap_or_default())
    }

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
        let mut tx = self.begin().await?;
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
        .execute(&mut *tx)
        .await?;
        if made.rows_affected() == 0 {
            tx.rollback().await?;
            if !self.is_declared(account, &new.field_name).await? {
                let message = format!("an account has at most {MAX_ATTRIBUTES} attributes");
                return Err(StoreError::Unprocessable(vec![Fault::at("fieldName", "TOO_MANY_ATTRIBUTES", message)]));
            }
            let message = format!("the attribute {} is declared already", new.field_name);
            let faults = vec![Fault::at("fieldName", "ATTRIBUTE_EXISTS", message)];
            return Err(StoreError::Conflict { faults, current_version: None });
        }
        Ok(tx.commit().await?)
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

    /// Changes what a declaration tells people: what is absent stays, and what is empty inside is removed.
    ///
    /// # Errors
    /// Not found.
    pub async fn change_attribute(
        &self,
        account: i64,
        field_name: &str,
        display_name: Option<Option<String>>,
        description: Option<Option<String>>,
        tags: Option<Vec<String>>,
    ) -> Result<Declaration, StoreError> {
        let changed: Option<Row> = sqlx::query_as(
            "update merchant_product_attributes set
                 display_name = case when $3 then $4 else display_name end,
                 description = case when $5 then $6 else description end,
                 tags = coalesce($7, tags)
             where account_id = $1 and field_name = $2
             returning field_name, display_name, description, is_language_specific, format, object_type, tags",
        )
        .bind(account)
        .bind(field_name)
        .bind(display_name.is_some())
        .bind(display_name.flatten())
        .bind(description.is_some())
        .bind(description.flatten())
        .bind(tags)
        .fetch_optional(self.pool())
        .await?;
        changed.and_then(Row::declaration).ok_or_else(|| unknown(field_name))
    }

    /// Removes a declaration that no product uses.
    ///
    /// # Errors
    /// Not found; conflict while a product uses it.
    pub async fn remove_attribute(&self, account: i64, field_name: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query("select pg_advisory_xact_lock($1, $2)")
            .bind(DECLARATIONS_LOCK)
            .bind(lock_key(account))
            .execute(&mut *tx)
            .await?;
        let removed = sqlx::query("delete from merchant_product_attributes where account_id = $1 and field_name = $2")
            .bind(account)
            .bind(field_name)
            .execute(&mut *tx)
            .await?;
        if removed.rows_affected() == 0 {
            return Err(unknown(field_name));
        }
        let user: Option<String> = sqlx::query_scalar(
            "select product_id from products
             where account_id = $1 and used_attributes(details) @> array[$2]
               and (jsonb_path_exists(details, '$.merchantProductAttributes')
                    or jsonb_path_exists(details, '$.languageAttributes.*.merchantProductAttributes'))
             limit 1",
        )
        .bind(account)
        .bind(field_name)
        .fetch_optional(&mut *tx)
        .await?;
        if let Some(product_id) = user {
            let message = format!("the attribute {field_name} is in use, by the product \"{product_id}\" for one");
            let faults = vec![Fault::at("fieldName", "ATTRIBUTE_IN_USE", message).on(product_id)];
            return Err(StoreError::Conflict { faults, current_version: None });
        }
        Ok(tx.commit().await?)
    }
}
