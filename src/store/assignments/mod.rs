//! Assignments: one of them, and its history; `list` has pages, `act` the actions of people, `bulk` those by filter, which
//! `work` works off.

mod act;
mod bulk;
mod counts;
mod embed;
mod filter;
mod kept;
mod labelling;
mod list;
mod sureness;
mod work;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::assignment::Status;
use crate::domain::{Fault, ProductClass, ShopId, Taxonomy};
use crate::store::assignments::embed::weights;
use crate::store::journal::{Entry, Subject, stored_taxonomy, taxonomy_from_stored};
use crate::store::products::unknown_product;
use crate::store::{Store, StoreError, Tx};

pub use act::{Acted, ActionItem, ActionRequest, OnConflict, Refusal};
pub use bulk::{ActionProgress, BATCH_ASSIGNMENTS, BulkAction, LeftItem, MAX_SELECTED, Selected};
pub use counts::{CONFIDENCE_BANDS, CountBy, FOLDED_AT_ONCE, Group};
pub use embed::{Embedded, MAX_EVENTS, ReviewedProduct};
pub use filter::AssignmentFilter;
pub use kept::MAX_GROUPS;
pub(super) use labelling::{lock_carriers, relabel};
pub use list::{AssignmentKey, AssignmentOrder, AssignmentPage, ListRequest, SelectionError};

/// A stored assignment.
#[derive(Clone, Debug, FromRow)]
pub struct AssignmentRecord {
    /// Its identity.
    pub assignment_uuid: Uuid,
    /// The key of its product.
    pub product_key: i64,
    /// Its product's id.
    pub product_id: String,
    /// Its product's shop as stored, 0 for a global product.
    pub shop_id: i64,
    taxonomy: i16,
    /// Its status by name.
    pub status: String,
    /// How its class was found, by name.
    pub strategy: Option<String>,
    /// Its class, written code-NN-NNN.
    pub product_class: Option<String>,
    /// How sure auto-assignment was, 0 to 1.
    pub confidence: Option<f32>,
    /// What is at stake where the class is wrong; the more, the sooner a person should look.
    pub impact: f32,
    /// Grows by one with each action and each stored automatic result.
    pub version: i64,
    /// Where auto-assignment stands.
    pub auto_state: String,
    /// Whether the product changed after a person decided.
    pub review_needed: bool,
    /// Grows whenever a result in the making must no longer be stored.
    auto_epoch: i64,
    /// Labels attached.
    pub labels: Vec<String>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

impl AssignmentRecord {
    /// Its taxonomy.
    pub fn taxonomy(&self) -> Taxonomy {
        taxonomy_from_stored(self.taxonomy)
    }

    /// Its status.
    fn known_status(&self) -> Status {
        Status::from_name(&self.status).unwrap_or(Status::Unassigned)
    }

    /// Its class.
    pub fn class(&self) -> Option<ProductClass> {
        self.product_class.as_deref().and_then(|class| class.parse().ok())
    }
}

const COLUMNS: &str = "assignment_uuid, product_key, product_id, shop_id, taxonomy, status, strategy, product_class,
    confidence, impact, version, auto_state, auto_epoch, review_needed, labels, updated_at";

/// An entry of an assignment's history.
#[derive(Clone, Debug, FromRow)]
pub struct Event {
    /// When.
    pub happened_at: DateTime<Utc>,
    /// Who.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// The status after it.
    pub status: Option<String>,
    /// The class after it.
    pub product_class: Option<String>,
    /// How the class was found.
    pub strategy: Option<String>,
    /// How sure auto-assignment was of the class.
    pub confidence: Option<f32>,
    /// What the person wrote.
    pub comment: Option<String>,
    /// The action that it was part of.
    pub action_id: Option<Uuid>,
    /// The model that decided.
    pub model_version: Option<String>,
    /// The labels attached or detached.
    pub labels: Option<Vec<String>>,
}

impl Store {
    /// One assignment.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn assignment(&self, account: i64, uuid: Uuid) -> Result<AssignmentRecord, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from assignments where account_id = ").push_bind(account);
        query.push(" and assignment_uuid = ").push_bind(uuid);
        let record = query.build_query_as().fetch_optional(self.pool()).await?;
        record.ok_or_else(|| StoreError::not_found(unknown_assignment(uuid)))
    }

    /// What is read to be shown beside an assignment weighs, in bytes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn weight(&self, assignment: &AssignmentRecord, embedded: Embedded) -> Result<usize, StoreError> {
        let weights = weights(self.pool(), assignment.taxonomy(), &[assignment.product_key], embedded).await?;
        Ok(usize::try_from(weights.into_iter().sum::<i64>()).unwrap_or_default())
    }

    /// The histories of assignments of one taxonomy, oldest event first, in the order of the assignments; of each the last
    /// [`MAX_EVENTS`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events(
        &self,
        taxonomy: Taxonomy,
        assignments: &[AssignmentRecord],
    ) -> Result<Vec<Vec<Event>>, StoreError> {
        #[derive(FromRow)]
        struct Row {
            product_key: i64,
            #[sqlx(flatten)]
            event: Event,
        }
        let keys: Vec<i64> = assignments.iter().map(|assignment| assignment.product_key).collect();
        let rows: Vec<Row> = sqlx::query_as(
            "select product_key, happened_at, actor, action, status, product_class, strategy, confidence, comment,
                    action_id, model_version, labels
             from unnest($1::bigint[]) as shown (key) cross join lateral (
                 select * from journal where product_key = key and taxonomy = $2 order by sequence desc limit $3) as told
             order by product_key, sequence",
        )
        .bind(&keys)
        .bind(stored_taxonomy(taxonomy))
        .bind(MAX_EVENTS)
        .fetch_all(self.pool())
        .await?;
        let mut histories: HashMap<i64, Vec<Event>> = HashMap::new();
        for row in rows {
            histories.entry(row.product_key).or_default().push(row.event);
        }
        Ok(keys.iter().map(|key| histories.remove(key).unwrap_or_default()).collect())
    }
}

/// What history tells of an assignment as it stands.
fn entry<'a>(assignment: &'a AssignmentRecord, action: &'a str, actor: &'a str) -> Entry<'a> {
    Entry {
        product: Subject { key: assignment.product_key, id: &assignment.product_id, shop: assignment.shop_id },
        taxonomy: Some(assignment.taxonomy()),
        action,
        actor,
        status: Some(&assignment.status),
        strategy: assignment.strategy.as_deref(),
        product_class: assignment.product_class.clone(),
        version: assignment.version,
        confidence: assignment.confidence,
        ..Entry::default()
    }
}

fn unknown_assignment(uuid: Uuid) -> Fault {
    Fault::at("assignmentUuids", "UNKNOWN_ASSIGNMENT", format!("there is no assignment {uuid}"))
}

fn columns(products: &[(String, ShopId)]) -> (Vec<&str>, Vec<i64>) {
    products.iter().map(|(id, shop)| (id.as_str(), shop.stored())).unzip()
}

/// The keys of products, in the order given; none for one that does not exist.
async fn known_keys(tx: &mut Tx, account: i64, products: &[(String, ShopId)]) -> Result<Vec<Option<i64>>, StoreError> {
    let (ids, shops) = columns(products);
    let keys = sqlx::query_scalar(
        "select product_key from unnest($2::text[], $3::bigint[]) with ordinality as named (id, shop, ordinal)
         left join products on account_id = $1 and shop_id = shop and product_id = id order by ordinal",
    )
    .bind(account)
    .bind(&ids)
    .bind(&shops)
    .fetch_all(&mut **tx)
    .await?;
    Ok(keys)
}

/// The keys of products, in the order given.
///
/// # Errors
/// Not found, naming every unknown product.
pub(super) async fn product_keys(
    tx: &mut Tx,
    account: i64,
    products: &[(String, ShopId)],
) -> Result<Vec<i64>, StoreError> {
    let keys = known_keys(tx, account, products).await?;
    let missing = products.iter().zip(&keys).filter(|(_, key)| key.is_none());
    let unknown: Vec<Fault> = missing.map(|((id, _), _)| unknown_product(id)).collect();
    if unknown.is_empty() { Ok(keys.into_iter().flatten().collect()) } else { Err(StoreError::NotFound(unknown)) }
}

/// The assignments of these products in one taxonomy, locked in the order in which every writer locks them.
async fn lock_assignments(
    tx: &mut Tx,
    account: i64,
    keys: &[i64],
    taxonomy: i16,
) -> Result<Vec<AssignmentRecord>, StoreError> {
    let mut query = QueryBuilder::new("select ");
    query.push(COLUMNS).push(" from assignments where product_key = any(").push_bind(keys);
    query.push(") and taxonomy = ").push_bind(taxonomy).push(" and account_id = ").push_bind(account);
    query.push(" order by product_key for update");
    Ok(query.build_query_as().fetch_all(&mut **tx).await?)
}
