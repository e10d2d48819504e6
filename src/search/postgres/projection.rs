//! Writes `search_documents`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::domain::filter::{Document, Field, Text};
use crate::search::postgres::{FAMILY, Postgres, VERSION};
use crate::store::search::Change;
use crate::store::{StoreError, Tx};

/// How long the row of a deleted product keeps late writes from bringing it back, as an interval of PostgreSQL.
const REMOVED_KEPT: &str = "1 day";
/// Rows that are compared with products at once.
const SWEPT_AT_ONCE: i64 = 10_000;

impl Postgres {
    /// Writes changes in a transaction of their own, as documents of this version, and tells whether it has: not
    /// where a later version makes such documents or has made them.
    ///
    /// What is there of the same version of its product is written `anew` only while the index is built: later it is what
    /// would be written, and stays.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn write(&self, changes: &[Change], anew: bool) -> Result<bool, StoreError> {
        let mut tx = self.store.begin().await?;
        // A later version that is about to begin waits until these are written, and then writes over them.
        sqlx::raw_sql("lock table search_indexes in share mode").execute(&mut *tx).await?;
        let is_left: bool =
            sqlx::query_scalar("select exists (select from search_indexes where family = $1 and mapping_version > $2)")
                .bind(FAMILY)
                .bind(VERSION)
                .fetch_one(&mut *tx)
                .await?;
        if is_left {
            tx.rollback().await?;
            return Ok(false);
        }
        project(&mut tx, changes, anew).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Removes entries of products that do not exist, and those of long deleted ones for good.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn sweep_documents(&self) -> Result<(), StoreError> {
        let mut after = i64::MIN;
        loop {
            // Part by part: one statement over a large table would run into its limit.
            let last: Option<i64> = sqlx::query_scalar(
                "with part as materialized (
                     select product_key from search_documents where product_key > $1 order by product_key limit $2
                 ), swept as (
                     delete from search_documents using part
                     where search_documents.product_key = part.product_key and account_id is not null
                       and not exists (select from products where products.product_key = part.product_key)
                 )
                 select max(product_key) from part",
            )
            .bind(after)
            .bind(SWEPT_AT_ONCE)
            .fetch_one(self.store.pool())
            .await?;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        self.forget_removed_documents().await
    }

    /// Removes the rows that only keep the versions of long deleted products.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_removed_documents(&self) -> Result<(), StoreError> {
        loop {
            let removed = sqlx::query(
                "delete from search_documents where product_key in (
                     select product_key from search_documents
                     where account_id is null and written_at < now() - $1::text::interval limit $2)",
            )
            .bind(REMOVED_KEPT)
            .bind(SWEPT_AT_ONCE)
            .execute(self.store.pool())
            .await?;
            if removed.rows_affected() < SWEPT_AT_ONCE.unsigned_abs() {
                return Ok(());
            }
        }
    }

    /// Keys and versions of entries above this key, in the order of keys.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn versions(&self, after: i64, limit: usize) -> Result<Vec<(i64, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "select product_key, version from search_documents
             where product_key > $1 and account_id is not null order by 1 limit $2",
        )
        .bind(after)
        .bind(limit as i64)
        .fetch_all(self.store.pool())
        .await?)
    }
}

/// The texts of a document as its columns hold them.
struct Columns {
    texts: Value,
    words: Value,
    all: String,
}

fn columns(document: &Document, field: Field) -> Columns {
    let (mut texts, mut words, mut all) = (Map::new(), Map::new(), String::new());
    for language in &document.languages {
        let found = language.texts(field);
        if found.is_empty() {
            continue;
        }
        let lines = found.iter().map(|text| text.folded.as_str()).collect::<Vec<_>>().join("\n");
        all.push_str(&lines);
        all.push('\n');
        texts.insert(language.language.clone(), Value::from(lines));
        let lines = found.into_iter().map(line_of_words).collect::<Vec<_>>().join("\n");
        words.insert(language.language.clone(), Value::from(lines));
    }
    Columns { texts: Value::from(texts), words: Value::from(words), all }
}

/// Words with a blank before and behind each.
fn line_of_words(text: &Text) -> String {
    let mut line = String::from(" ");
    for word in &text.words {
        let _ = write!(line, "{word} ");
    }
    line
}

async fn project(tx: &mut Tx, changes: &[Change], anew: bool) -> Result<(), StoreError> {
    let mut changes: Vec<&Change> = changes.iter().collect();
    // Rows are locked in the order of keys, so that services which write the same ones do not wait in a circle.
    changes.sort_unstable_by_key(|change| change.key);
    let documents: Vec<Option<&Document>> = changes.iter().map(|change| change.document.as_ref()).collect();
    let mut fields = Vec::new();
    for field in Field::ALL {
        fields.push(
            documents
                .iter()
                .map(|document| match document {
                    Some(document) => columns(document, field),
                    None => Columns { texts: Map::new().into(), words: Map::new().into(), all: String::new() },
                })
                .collect::<Vec<Columns>>(),
        );
    }
    let mut query = sqlx::query(
        "insert into search_documents (product_key, account_id, shop_id, product_id, version, country, id_text,
                keyword_texts, name_texts, tag_texts, keyword_words, name_words, tag_words,
                all_keywords, all_names, all_tags)
         select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[],
                $7::text[], $8::jsonb[], $9::jsonb[], $10::jsonb[], $11::jsonb[], $12::jsonb[], $13::jsonb[],
                $14::text[], $15::text[], $16::text[])
         on conflict (product_key) do update
         set account_id = excluded.account_id, shop_id = excluded.shop_id, product_id = excluded.product_id,
             version = excluded.version, country = excluded.country, id_text = excluded.id_text,
             keyword_texts = excluded.keyword_texts, name_texts = excluded.name_texts, tag_texts = excluded.tag_texts,
             keyword_words = excluded.keyword_words, name_words = excluded.name_words, tag_words = excluded.tag_words,
             all_keywords = excluded.all_keywords, all_names = excluded.all_names, all_tags = excluded.all_tags,
             written_at = now()
         where (search_documents.version < excluded.version or $17 and search_documents.version = excluded.version)
           and search_documents.account_id is not null",
    )
    .bind(changes.iter().map(|change| change.key).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.document.as_ref().map(|_| change.account)).collect::<Vec<_>>())
    .bind(documents.iter().map(|document| document.map_or(0, |found| found.shop)).collect::<Vec<_>>())
    .bind(documents.iter().map(|document| document.map_or("", |found| &found.product_id)).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.version).collect::<Vec<_>>())
    .bind(documents.iter().map(|document| document.and_then(|found| found.country.clone())).collect::<Vec<_>>())
    .bind(documents.iter().map(|document| document.map_or("", |found| &found.id_text)).collect::<Vec<_>>());
    for field in &fields {
        query = query.bind(field.iter().map(|columns| columns.texts.clone()).collect::<Vec<_>>());
    }
    for field in &fields {
        query = query.bind(field.iter().map(|columns| columns.words.clone()).collect::<Vec<_>>());
    }
    for field in &fields {
        query = query.bind(field.iter().map(|columns| columns.all.clone()).collect::<Vec<_>>());
    }
    query.bind(anew).execute(&mut **tx).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::Details;

    #[test]
    fn texts_and_words_are_kept_by_language_one_text_per_line() {
        let details: Details = serde_json::from_value(json!({"languageAttributes": {
            "de": {"productName": "T-Shirt Rot", "productDescription": "Ä!", "productTags": ["a b", "…", "c"]},
            "fr": {},
        }}))
        .expect("details");
        let document = Document::of(1, 1, 0, "x", 1, &details);
        let keywords = columns(&document, Field::Keywords);
        assert_eq!(keywords.texts, json!({"de": "t-shirt rot\nä!"}));
        assert_eq!(keywords.words, json!({"de": " t shirt rot \n ä "}));
        assert_eq!(keywords.all, "t-shirt rot\nä!\n");
        assert_eq!(columns(&document, Field::Tags).words, json!({"de": " a b \n \n c "}));
    }
}
