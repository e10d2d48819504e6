//! Assignments: reading, listing, the actions of people, and labels on them.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use crate::domain::assignment::{Action, ClassChange, Status, Strategy, transition};
use crate::domain::{Fault, ProductClass, ShopId, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::journal::{self, Entry, stored_taxonomy, taxonomy_from_stored};
use crate::store::pages::{Page, Position};
use crate::store::products::unknown_product;
use crate::store::{Store, StoreError, Tx, labels, with_retries};

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
    /// Grows by one with each action and each stored automatic result.
    pub version: i64,
    /// Where auto-assignment stands.
    pub auto_state: String,
    /// Whether the product changed after a person decided.
    pub review_needed: bool,
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

    /// Its class.
    pub fn class(&self) -> Option<ProductClass> {
        self.product_class.as_deref().and_then(|class| class.parse().ok())
    }
}

const COLUMNS: &str = "assignment_uuid, product_key, product_id, shop_id, taxonomy, status, strategy, product_class,
    confidence, version, auto_state, review_needed, labels, updated_at";

/// Which assignments a list shows.
#[derive(Clone, Debug, Default)]
pub struct AssignmentFilter {
    /// Any of these statuses.
    pub statuses: Vec<Status>,
    /// Any of these products, where given.
    pub product_ids: Option<Vec<String>>,
    /// All of these labels.
    pub with_labels: Vec<String>,
    /// None of these labels.
    pub without_labels: Vec<String>,
    /// Of this shop, where given.
    pub shop: Option<ShopId>,
    /// With this mark, where given.
    pub review_needed: Option<bool>,
}

/// The order of a list of assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentOrder {
    /// By product id, then shop.
    Product,
    /// By confidence, the lowest first and those without any before them; then by product id and shop.
    Confidence,
}

/// The place of an assignment in a list: its confidence (-1 without one), product id and shop.
pub type AssignmentKey = (f32, String, i64);

impl AssignmentRecord {
    /// Its place in a list.
    pub fn key(&self) -> AssignmentKey {
        (self.confidence.unwrap_or(-1.0), self.product_id.clone(), self.shop_id)
    }
}

/// One item of an action.
#[derive(Clone, Debug)]
pub struct ActionItem {
    /// The product.
    pub product_id: String,
    /// Its shop.
    pub shop: ShopId,
    /// The version that the client read.
    pub version: i64,
}

/// An action on assignments of one taxonomy.
#[derive(Clone, Debug)]
pub struct ActionRequest {
    /// The taxonomy.
    pub taxonomy: Taxonomy,
    /// What is done.
    pub action: Action,
    /// The class given with it, and whether it is sufficient.
    pub class: Option<(ProductClass, bool)>,
    /// What is wrong with that class; told after everything about products and versions.
    pub class_fault: Option<Fault>,
    /// To which products.
    pub items: Vec<ActionItem>,
}

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

    /// The history of an assignment, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events(&self, assignment: &AssignmentRecord) -> Result<Vec<Event>, StoreError> {
        let events = sqlx::query_as(
            "select happened_at, actor, action, status, product_class, strategy from journal
             where product_key = $1 and taxonomy = $2 order by sequence",
        )
        .bind(assignment.product_key)
        .bind(assignment.taxonomy)
        .fetch_all(self.pool())
        .await?;
        Ok(events)
    }

    /// A page of assignments.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn assignments(
        &self,
        account: i64,
        taxonomy: Taxonomy,
        filter: &AssignmentFilter,
        order: AssignmentOrder,
        position: &Position<AssignmentKey>,
        size: usize,
    ) -> Result<Page<AssignmentRecord>, StoreError> {
        let mut query = QueryBuilder::new("select ");
        query.push(COLUMNS).push(" from assignments where account_id = ").push_bind(account);
        query.push(" and taxonomy = ").push_bind(stored_taxonomy(taxonomy));
        if filter.statuses.len() < Status::ALL.len() {
            let names: Vec<&str> = filter.statuses.iter().map(|status| status.name()).collect();
            query.push(" and status = any(").push_bind(names).push(")");
        }
        if let Some(ids) = &filter.product_ids {
            query.push(" and product_id = any(").push_bind(ids).push(")");
        }
        if !filter.with_labels.is_empty() {
            query.push(" and labels @> ").push_bind(&filter.with_labels);
        }
        if !filter.without_labels.is_empty() {
            query.push(" and not labels && ").push_bind(&filter.without_labels);
        }
        if let Some(shop) = filter.shop {
            query.push(" and shop_id = ").push_bind(shop.stored());
        }
        if let Some(needed) = filter.review_needed {
            query.push(" and review_needed = ").push_bind(needed);
        }
        let key = match order {
            AssignmentOrder::Product => "(product_id, shop_id)",
            AssignmentOrder::Confidence => "(coalesce(confidence, -1), product_id, shop_id)",
        };
        let (compare, bound) = match position {
            Position::Start => ("", None),
            Position::After(bound) => (" > ", Some(bound)),
            Position::Before(bound) => (" < ", Some(bound)),
        };
        if let Some((confidence, product_id, shop_id)) = bound {
            query.push(" and ").push(key).push(compare).push("(");
            if order == AssignmentOrder::Confidence {
                query.push_bind(*confidence).push(", ");
            }
            query.push_bind(product_id).push(", ").push_bind(*shop_id).push(")");
        }
        query.push(match (order, matches!(position, Position::Before(_))) {
            (AssignmentOrder::Product, false) => " order by product_id, shop_id",
            (AssignmentOrder::Product, true) => " order by product_id desc, shop_id desc",
            (AssignmentOrder::Confidence, false) => " order by coalesce(confidence, -1), product_id, shop_id",
            (AssignmentOrder::Confidence, true) => {
                " order by coalesce(confidence, -1) desc, product_id desc, shop_id desc"
            }
        });
        query.push(" limit ").push_bind(size as i64 + 1);
        let rows = query.build_query_as().fetch_all(self.pool()).await?;
        Ok(Page::from_rows(rows, size, position))
    }

    /// Stops auto-assignment of these products in all taxonomies, at once and on its own: a result in the making is
    /// never stored. Products that do not exist are passed over.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn abort_auto_assignment(
        &self,
        caller: &Caller,
        products: &[(String, ShopId)],
    ) -> Result<(), StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let (ids, shops) = columns(products);
            let pending: Vec<AssignmentRecord> = {
                let mut query = QueryBuilder::new("select ");
                query.push(COLUMNS).push(" from assignments where auto_state = 'PENDING' and product_key in (");
                query.push("select product_key from products join unnest(").push_bind(&ids).push("::text[], ");
                query.push_bind(&shops).push("::bigint[]) as named (id, shop)");
                query.push(" on product_id = id and shop_id = shop where account_id = ").push_bind(caller.account);
                query.push(") order by product_key, taxonomy for update");
                query.build_query_as().fetch_all(&mut *tx).await?
            };
            if pending.is_empty() {
                return Ok(());
            }
            let uuids: Vec<Uuid> = pending.iter().map(|assignment| assignment.assignment_uuid).collect();
            sqlx::query(
                "update assignments set auto_state = 'ABORTED', auto_epoch = auto_epoch + 1, updated_at = now()
                 where assignment_uuid = any($1)",
            )
            .bind(&uuids)
            .execute(&mut *tx)
            .await?;
            let entries: Vec<Entry<'_>> = pending
                .iter()
                .map(|assignment| entry(assignment, "AUTO_ABORT", &caller.user, assignment.version))
                .collect();
            journal::record(&mut tx, caller.account, &entries).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Acts on assignments, all or none, and answers them as they are then, in the order of the request.
    ///
    /// # Errors
    /// In this order, naming every item that fails: not found, conflict, unprocessable.
    pub async fn act(&self, caller: &Caller, request: &ActionRequest) -> Result<Vec<AssignmentRecord>, StoreError> {
        let products: Vec<(String, ShopId)> =
            request.items.iter().map(|item| (item.product_id.clone(), item.shop)).collect();
        self.abort_auto_assignment(caller, &products).await?;
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let keys = product_keys(&mut tx, caller.account, &products).await?;
            let locked = lock_assignments(&mut tx, &keys, request.taxonomy).await?;
            let current: Vec<&AssignmentRecord> =
                keys.iter().filter_map(|key| locked.iter().find(|assignment| assignment.product_key == *key)).collect();
            let next = decide(request, &current)?;
            let uuids: Vec<Uuid> = current.iter().map(|assignment| assignment.assignment_uuid).collect();
            sqlx::query(
                "update assignments a set status = new.status, product_class = new.class, strategy = 'MANUAL',
                        version = version + 1, review_needed = false, confidence = null, updated_at = now(),
                        auto_state = case when auto_state = 'PENDING' then 'ABORTED' else auto_state end,
                        auto_epoch = auto_epoch + 1
                 from unnest($1::uuid[], $2::text[], $3::text[]) as new (uuid, status, class)
                 where assignment_uuid = new.uuid",
            )
            .bind(&uuids)
            .bind(next.iter().map(|(status, _)| status.name()).collect::<Vec<_>>())
            .bind(next.iter().map(|(_, class)| class.as_deref()).collect::<Vec<_>>())
            .execute(&mut *tx)
            .await?;
            let entries: Vec<Entry<'_>> = current
                .iter()
                .zip(&next)
                .map(|(assignment, (status, class))| Entry {
                    status: Some(status.name()),
                    strategy: Some(Strategy::Manual.name()),
                    product_class: class.clone(),
                    ..entry(assignment, request.action.name(), &caller.user, assignment.version + 1)
                })
                .collect();
            journal::record(&mut tx, caller.account, &entries).await?;
            let after = lock_assignments(&mut tx, &keys, request.taxonomy).await?;
            tx.commit().await?;
            let in_order = keys.iter().filter_map(|key| after.iter().find(|a| a.product_key == *key).cloned());
            Ok(in_order.collect())
        })
        .await
    }

    /// Attaches labels to assignments or detaches them, all or none.
    ///
    /// # Errors
    /// In this order, naming every item that fails: not found, unprocessable.
    pub async fn label_assignments(
        &self,
        account: i64,
        uuids: &[Uuid],
        names: &[String],
        attach: bool,
    ) -> Result<(), StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let known: Vec<Uuid> = sqlx::query_scalar(
                "select assignment_uuid from assignments where account_id = $1 and assignment_uuid = any($2)
                 order by product_key, taxonomy for update",
            )
            .bind(account)
            .bind(uuids)
            .fetch_all(&mut *tx)
            .await?;
            let unknown: Vec<Fault> =
                uuids.iter().filter(|uuid| !known.contains(uuid)).map(|uuid| unknown_assignment(*uuid)).collect();
            if !unknown.is_empty() {
                return Err(StoreError::NotFound(unknown));
            }
            labels::require_defined(&mut tx, account, names).await?;
            sqlx::query(
                "update assignments set labels = array(
                     select distinct label from (
                         select unnest(labels) as label except select unnest($2::text[])
                         union all
                         select unnest($2::text[]) where $3) as changed order by label)
                 where assignment_uuid = any($1)",
            )
            .bind(uuids)
            .bind(names)
            .bind(attach)
            .execute(&mut *tx)
            .await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

/// The next status and class of every item, or all that stands against the action.
fn decide(request: &ActionRequest, current: &[&AssignmentRecord]) -> Result<Vec<(Status, Option<String>)>, StoreError> {
    let items = request.items.iter().enumerate().zip(current);
    let stale: Vec<Fault> = items
        .clone()
        .filter(|((_, item), assignment)| item.version != assignment.version)
        .map(|((index, item), assignment)| {
            let message = format!("the assignment has version {}, not {}", assignment.version, item.version);
            let field = format!("products[{index}].assignmentVersion.vatRules");
            let mut fault = Fault::at(field, "STALE_VERSION", message).on(&item.product_id);
            fault.current_version = Some(assignment.version);
            fault
        })
        .collect();
    if !stale.is_empty() {
        let current_version = match (stale.as_slice(), current) {
            ([fault], [_]) => fault.current_version,
            _ => None,
        };
        return Err(StoreError::Conflict { faults: stale, current_version });
    }
    let mut faults: Vec<Fault> = request.class_fault.iter().cloned().collect();
    let mut next = Vec::with_capacity(current.len());
    for ((index, item), assignment) in items {
        let status = Status::from_name(&assignment.status).unwrap_or(Status::Unassigned);
        let sufficient = request.class.is_some_and(|(_, sufficient)| sufficient);
        match transition(status, request.action, sufficient) {
            Ok((status, change)) => next.push((
                status,
                match change {
                    ClassChange::Keep => assignment.product_class.clone(),
                    ClassChange::Set => request.class.map(|(class, _)| class.to_string()),
                    ClassChange::Clear => None,
                },
            )),
            Err(refused) => {
                let fault = Fault::at(format!("products[{index}]"), "ACTION_NOT_ALLOWED", refused.to_string());
                faults.push(fault.on(&item.product_id));
            }
        }
    }
    if faults.is_empty() { Ok(next) } else { Err(StoreError::Unprocessable(faults)) }
}

fn entry<'a>(assignment: &'a AssignmentRecord, action: &'a str, actor: &'a str, version: i64) -> Entry<'a> {
    Entry {
        product: (assignment.product_key, &assignment.product_id, assignment.shop_id),
        taxonomy: Some(assignment.taxonomy()),
        action,
        actor,
        status: Some(&assignment.status),
        strategy: assignment.strategy.as_deref(),
        product_class: assignment.product_class.clone(),
        version,
    }
}

fn unknown_assignment(uuid: Uuid) -> Fault {
    Fault::at("assignmentUuids", "UNKNOWN_ASSIGNMENT", format!("there is no assignment {uuid}"))
}

fn columns(products: &[(String, ShopId)]) -> (Vec<&str>, Vec<i64>) {
    products.iter().map(|(id, shop)| (id.as_str(), shop.stored())).unzip()
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
    let (ids, shops) = columns(products);
    let keys: Vec<Option<i64>> = sqlx::query_scalar(
        "select product_key from unnest($2::text[], $3::bigint[]) with ordinality as named (id, shop, ordinal)
         left join products on account_id = $1 and shop_id = shop and product_id = id order by ordinal",
    )
    .bind(account)
    .bind(&ids)
    .bind(&shops)
    .fetch_all(&mut **tx)
    .await?;
    let unknown: Vec<Fault> =
        ids.iter().zip(&keys).filter(|(_, key)| key.is_none()).map(|(id, _)| unknown_product(id)).collect();
    if unknown.is_empty() { Ok(keys.into_iter().flatten().collect()) } else { Err(StoreError::NotFound(unknown)) }
}

async fn lock_assignments(tx: &mut Tx, keys: &[i64], taxonomy: Taxonomy) -> Result<Vec<AssignmentRecord>, StoreError> {
    let mut query = QueryBuilder::new("select ");
    query.push(COLUMNS).push(" from assignments where product_key = any(").push_bind(keys);
    query.push(") and taxonomy = ").push_bind(stored_taxonomy(taxonomy));
    query.push(" order by product_key for update");
    Ok(query.build_query_as().fetch_all(&mut **tx).await?)
}
