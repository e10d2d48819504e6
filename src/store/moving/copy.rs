//! The rows of an account, table by table, as one of its moments has them.

use futures::TryStreamExt;
use sqlx::PgConnection;

use crate::store::Store;

/// Bytes that are written in one transaction.
const PART_BYTES: usize = 8 << 20;

/// What is added to the keys of an account, and its id there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub account: i64,
    pub added: i64,
}

/// Copies the rows of an account from one table, and answers how many there are.
pub(super) async fn copy_table(
    snapshot: &mut PgConnection,
    account: i64,
    target: &Store,
    table: &str,
    place: Place,
) -> Result<u64, sqlx::Error> {
    let columns: Vec<String> = sqlx::query_scalar(
        "select attname::text from pg_attribute
         where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
           and (attidentity = '' or attname = 'product_key') and attname <> 'changed_in'
         order by attnum",
    )
    .bind(table)
    .fetch_all(&mut *snapshot)
    .await?;
    let values: Vec<String> = columns.iter().map(|column| value(column, place)).collect();
    let (read, names) = (values.join(", "), columns.join(", "));
    let out = format!("copy (select {read} from {table} where {}) to stdout", of_account(table, &columns, account));
    let into = format!("copy {table} ({names}) from stdin");
    let (mut rows, mut part) = (0, Vec::new());
    let mut lines = snapshot.copy_out_raw(&out).await?;
    while let Some(line) = lines.try_next().await? {
        part.extend_from_slice(&line);
        // A message holds whole rows.
        if part.len() >= PART_BYTES {
            rows += target.copy_in(&into, &part).await?;
            part.clear();
        }
    }
    if !part.is_empty() {
        rows += target.copy_in(&into, &part).await?;
    }
    Ok(rows)
}

impl Store {
    async fn copy_in(&self, statement: &str, rows: &[u8]) -> Result<u64, sqlx::Error> {
        let mut connection = self.pool().acquire().await?;
        let mut copy = connection.copy_in_raw(statement).await?;
        copy.send(rows).await?;
        copy.finish().await
    }
}

/// What a column of a row becomes there. Keys of no product, such as -1 and 0, stay what they are.
fn value(column: &str, place: Place) -> String {
    let Place { account, added } = place;
    match column {
        "account_id" => format!("{account}::bigint"),
        "product_key" | "worked_to" => format!("case when {column} > 0 then {column} + {added} else {column} end"),
        // Nothing is sent before the account is in force.
        "next_round_at" => "'infinity'::timestamptz".to_owned(),
        _ => column.to_owned(),
    }
}

/// Which rows of a table are an account's.
fn of_account(table: &str, columns: &[String], account: i64) -> String {
    // No index of words knows the account; they go and come with their products.
    if table != "product_words" && columns.iter().any(|column| column == "account_id") {
        return format!("account_id = {account}");
    }
    let (key, owner) = match table {
        "pictures" | "product_words" => ("product_key", "products"),
        "assignment_action_items" => ("action_id", "assignment_actions"),
        _ => ("webhook_id", "webhooks"),
    };
    format!("{key} in (select {key} from {owner} where account_id = {account})")
}
