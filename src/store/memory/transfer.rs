//! What an account remembers, taken to another account of the same merchant.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::{Details, ProductClass, Taxonomy};
use crate::store::details::StoredDetails;
use crate::store::journal::{stored_taxonomy, taxonomy_from_stored};
use crate::store::{Store, StoreError};

use super::PAGE_DECISIONS;

/// The key that stands for the product of a decision that was made in another account.
const ELSEWHERE: i64 = 0;

/// A remembered decision as it is written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryEntry {
    /// The assignment that was decided; elsewhere it only tells decisions apart.
    pub assignment_uuid: Uuid,
    /// TARIC, TARES or UKGT.
    pub taxonomy: String,
    /// The class, written code-NN-NNN.
    pub product_class: String,
    /// Whether the class was said to be right, or wrong.
    pub right: bool,
    /// Details with nothing but the texts.
    pub product_details: Details,
}

#[derive(FromRow)]
struct Row {
    assignment_uuid: Uuid,
    taxonomy: i16,
    verdict: i16,
    product_class: String,
    texts: StoredDetails,
}

impl MemoryEntry {
    /// The taxonomy and the class.
    ///
    /// # Errors
    /// Says which of the two is not one.
    pub fn class(&self) -> Result<(Taxonomy, ProductClass), String> {
        let taxonomy = Taxonomy::from_name(&self.taxonomy).ok_or_else(|| format!("no taxonomy: {}", self.taxonomy))?;
        let class = self.product_class.parse::<ProductClass>();
        let class = class.map_err(|error| format!("{}: {error}", self.product_class))?;
        Ok((taxonomy, class))
    }
}

/// The id that a decision of another account has here; the same each time, so that what is imported twice is there once.
fn id_here(account: i64, assignment: Uuid) -> Uuid {
    let digest = Sha256::new().chain_update(account.to_be_bytes()).chain_update(assignment.as_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

impl Store {
    /// Decisions that an account remembers behind an assignment, by its id, at most [`PAGE_DECISIONS`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn remembered_decisions(&self, account: i64, after: Uuid) -> Result<Vec<MemoryEntry>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "select assignment_uuid, taxonomy, verdict, product_class, texts from memory_decisions
             where account_id = $1 and assignment_uuid > $2 and verdict <> 0 and product_class is not null
             order by assignment_uuid limit $3",
        )
        .bind(account)
        .bind(after)
        .bind(PAGE_DECISIONS)
        .fetch_all(self.pool())
        .await?;
        let entry = |row: Row| MemoryEntry {
            assignment_uuid: row.assignment_uuid,
            taxonomy: taxonomy_from_stored(row.taxonomy).name().to_owned(),
            product_class: row.product_class,
            right: row.verdict > 0,
            product_details: row.texts.0,
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    /// Makes an account remember decisions of another, as if they had been made just now; answers how many it had not
    /// remembered so before. Alike products are looked at as after any decision.
    ///
    /// # Errors
    /// When the database fails; then none of them is remembered.
    pub async fn remember_decisions(
        &self,
        account: i64,
        decisions: &[(MemoryEntry, Taxonomy, ProductClass)],
    ) -> Result<u64, StoreError> {
        let texts = |entry: &MemoryEntry| {
            let texts = Details {
                language_attributes: entry.product_details.language_attributes.clone(),
                ..Details::default()
            };
            serde_json::to_value(texts).unwrap_or_default()
        };
        let (mut ids, mut taxonomies, mut verdicts, mut classes, mut details) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (entry, taxonomy, class) in decisions {
            ids.push(id_here(account, entry.assignment_uuid));
            taxonomies.push(stored_taxonomy(*taxonomy));
            verdicts.push(if entry.right { 1i16 } else { -1 });
            classes.push(class.to_string());
            details.push(texts(entry));
        }
        let mut tx = self.begin().await?;
        let remembered = sqlx::query(
            "with taken as (
                 insert into memory_decisions (account_id, assignment_uuid, product_key, taxonomy, verdict, product_class, texts)
                 select $1, id, $2, taxonomy, verdict, class, texts
                 from unnest($3::uuid[], $4::smallint[], $5::smallint[], $6::text[], $7::jsonb[])
                      as other (id, taxonomy, verdict, class, texts)
                 on conflict (account_id, assignment_uuid) do update
                 set verdict = excluded.verdict, product_class = excluded.product_class, texts = excluded.texts,
                     decided_at = now(), changed_in = pg_current_xact_id()
                 where (memory_decisions.verdict, memory_decisions.product_class, memory_decisions.texts)
                       is distinct from (excluded.verdict, excluded.product_class, excluded.texts)
                 returning assignment_uuid)
             insert into memory_lessons (account_id, assignment_uuid) select $1, assignment_uuid from taken",
        )
        .bind(account)
        .bind(ELSEWHERE)
        .bind(ids)
        .bind(taxonomies)
        .bind(verdicts)
        .bind(classes)
        .bind(details)
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(remembered.rows_affected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_has_one_id_in_each_account() {
        let assignment = Uuid::from_u128(7);
        assert_eq!(id_here(1, assignment), id_here(1, assignment));
        assert_ne!(id_here(1, assignment), id_here(2, assignment));
        assert_ne!(id_here(1, assignment), assignment);
    }
}
