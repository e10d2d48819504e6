//! The actions of people on assignments that a request names.

use std::collections::HashMap;

use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::domain::assignment::{Action, ClassChange, JudgedClass, transition};
use crate::domain::{Fault, ShopId, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::assignments::{AssignmentRecord, COLUMNS, columns, entry, known_keys, lock_assignments};
use crate::store::journal::{self, Entry, new_uuid, stored_taxonomy};
use crate::store::products::unknown_product;
use crate::store::{Store, StoreError, Tx, with_retries};

/// What becomes of the other items of a request when one of them cannot be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// None is done.
    #[default]
    Fail,
    /// All that can be done are.
    Skip,
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
    /// The class that ASSIGN gives it, or what is wrong with that class or the comment; told after products and versions.
    pub class: Option<Result<JudgedClass, Fault>>,
}

/// An action on assignments of one taxonomy.
#[derive(Clone, Debug)]
pub struct ActionRequest {
    /// The taxonomy.
    pub taxonomy: Taxonomy,
    /// What is done.
    pub action: Action,
    /// What the person wrote beside it.
    pub comment: Option<String>,
    /// What becomes of the other items when one cannot be done.
    pub on_conflict: OnConflict,
    /// To which products.
    pub items: Vec<ActionItem>,
}

/// Why an item was left as it is.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// The product does not exist.
    NotFound(Fault),
    /// The assignment has another version.
    Conflict(Fault),
    /// Its state, or the class, does not allow it.
    Unprocessable(Fault),
}

/// What an action did.
#[derive(Clone, Debug)]
pub struct Acted {
    /// By which it can be taken back.
    pub action_id: Uuid,
    /// In the order of the request: the assignment as it is now, or why it was left.
    pub outcomes: Vec<Result<AssignmentRecord, Refusal>>,
}

/// What an assignment is to become.
pub(super) struct Next<'a> {
    pub before: &'a AssignmentRecord,
    pub status: &'a str,
    pub strategy: Option<&'a str>,
    pub class: Option<String>,
    pub confidence: Option<f32>,
    pub review_needed: bool,
}

impl<'a> Next<'a> {
    /// What an action makes of an assignment.
    ///
    /// # Errors
    /// Says why it is not allowed.
    pub(super) fn after(
        before: &'a AssignmentRecord,
        action: Action,
        class: Option<JudgedClass>,
    ) -> Result<Next<'a>, String> {
        let sufficient = class.is_some_and(|class| class.sufficient);
        let (status, change) = transition(before.known_status(), before.review_needed, action, sufficient)
            .map_err(|refused| refused.to_string())?;
        // The confidence is that of the class, and stays as long as the class does.
        let (class, confidence) = match change {
            ClassChange::Keep => (before.product_class.clone(), before.confidence),
            ClassChange::Set => (class.map(|class| class.class.to_string()), None),
            ClassChange::Clear => (None, None),
        };
        let strategy = action.strategy().map(|strategy| strategy.name());
        Ok(Next { before, status: status.name(), strategy, class, confidence, review_needed: false })
    }
}

/// Writes what locked assignments become, and answers them as they are then, by product.
pub(super) async fn write(tx: &mut Tx, changes: &[Next<'_>]) -> Result<HashMap<i64, AssignmentRecord>, StoreError> {
    fn column<'a, T>(changes: &'a [Next<'a>], value: impl Fn(&'a Next<'a>) -> T) -> Vec<T> {
        changes.iter().map(value).collect()
    }
    let mut query = QueryBuilder::new(
        "update assignments set status = next_status, strategy = next_strategy, product_class = next_class,
                confidence = next_confidence, review_needed = next_review, version = version + 1, updated_at = now(),
                auto_state = case when auto_state = 'PENDING' then 'ABORTED' else auto_state end,
                auto_epoch = auto_epoch + 1
         from unnest(",
    );
    query.push_bind(column(changes, |next| next.before.assignment_uuid)).push("::uuid[], ");
    query.push_bind(column(changes, |next| next.status)).push("::text[], ");
    query.push_bind(column(changes, |next| next.strategy)).push("::text[], ");
    query.push_bind(column(changes, |next| next.class.as_deref())).push("::text[], ");
    query.push_bind(column(changes, |next| next.confidence)).push("::real[], ");
    query.push_bind(column(changes, |next| next.review_needed)).push("::boolean[])");
    query.push(" as new (uuid, next_status, next_strategy, next_class, next_confidence, next_review)");
    query.push(" where assignment_uuid = new.uuid returning ").push(COLUMNS);
    let after: Vec<AssignmentRecord> = query.build_query_as().fetch_all(&mut **tx).await?;
    Ok(after.into_iter().map(|assignment| (assignment.product_key, assignment)).collect())
}

/// The columns of an action's row.
pub(super) struct NewAction<'a> {
    pub id: Uuid,
    pub caller: &'a Caller,
    pub taxonomy: i16,
    pub action: &'a str,
    pub class: Option<JudgedClass>,
    pub comment: Option<&'a str>,
    pub filter: Option<&'a serde_json::Value>,
    pub undoes: Option<Uuid>,
    /// How many were selected, done and skipped; what is left of the first waits to be worked off.
    pub counts: (usize, usize, usize),
}

/// Writes down an action.
pub(super) async fn insert_action(tx: &mut Tx, new: &NewAction<'_>) -> Result<(), StoreError> {
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let (selected, done, skipped) = new.counts;
    sqlx::query(
        "insert into assignment_actions (action_id, account_id, taxonomy, action, product_class, sufficient, comment,
                                         actor, filter, undoes, selected, done, skipped, state, finished_at)
         select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                case when open then 'RUNNING' else 'DONE' end, case when open then null else now() end
         from (select $11 > $12 + $13) as waiting (open)",
    )
    .bind(new.id)
    .bind(new.caller.account)
    .bind(new.taxonomy)
    .bind(new.action)
    .bind(new.class.map(|class| class.class.to_string()))
    .bind(new.class.is_some_and(|class| class.sufficient))
    .bind(new.comment)
    .bind(&new.caller.user)
    .bind(new.filter)
    .bind(new.undoes)
    .bind(count(selected))
    .bind(count(done))
    .bind(count(skipped))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

impl Store {
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
            let entries: Vec<Entry<'_>> =
                pending.iter().map(|assignment| entry(assignment, "AUTO_ABORT", &caller.user)).collect();
            journal::record(&mut tx, caller.account, &entries).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Acts on assignments: all or none, or all that can be done, as the request says.
    ///
    /// # Errors
    /// Unless what cannot be done is skipped, in this order, naming every item that fails: not found, conflict,
    /// unprocessable.
    pub async fn act(&self, caller: &Caller, request: &ActionRequest) -> Result<Acted, StoreError> {
        let products: Vec<(String, ShopId)> =
            request.items.iter().map(|item| (item.product_id.clone(), item.shop)).collect();
        self.abort_auto_assignment(caller, &products).await?;
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let keys = known_keys(&mut tx, caller.account, &products).await?;
            let taxonomy = stored_taxonomy(request.taxonomy);
            let found: Vec<i64> = keys.iter().flatten().copied().collect();
            // A product may go between the look at its key and the lock, so that what is locked tells what there is.
            let locked = lock_assignments(&mut tx, caller.account, &found, taxonomy).await?;
            let locked: HashMap<i64, &AssignmentRecord> =
                locked.iter().map(|assignment| (assignment.product_key, assignment)).collect();
            let mut decided: Vec<Result<Next<'_>, Refusal>> = Vec::with_capacity(request.items.len());
            for (index, (item, key)) in request.items.iter().zip(&keys).enumerate() {
                let current = key.and_then(|key| locked.get(&key).copied());
                decided.push(decide(request.action, index, item, current));
            }
            if request.on_conflict == OnConflict::Fail {
                refuse(&decided)?;
            }
            let (next, refused): (Vec<usize>, Vec<usize>) =
                (0..decided.len()).partition(|index| decided[*index].is_ok());
            let mut outcomes: Vec<Option<Result<AssignmentRecord, Refusal>>> = vec![None; decided.len()];
            for index in &refused {
                outcomes[*index] = decided[*index].as_ref().err().cloned().map(Err);
            }
            let changes: Vec<Next<'_>> = decided.into_iter().filter_map(Result::ok).collect();
            let action_id = new_uuid();
            let after = write(&mut tx, &changes).await?;
            let new = NewAction {
                id: action_id,
                caller,
                taxonomy,
                action: request.action.name(),
                class: request.items.iter().find_map(|item| item.class.as_ref()?.as_ref().ok().copied()),
                comment: request.comment.as_deref(),
                filter: None,
                undoes: None,
                counts: (request.items.len(), changes.len(), refused.len()),
            };
            insert_action(&mut tx, &new).await?;
            record(&mut tx, &Done::of(&new), &changes, &after).await?;
            tx.commit().await?;
            for (index, change) in next.into_iter().zip(&changes) {
                outcomes[index] = after.get(&change.before.product_key).cloned().map(Ok);
            }
            Ok(Acted { action_id, outcomes: outcomes.into_iter().flatten().collect() })
        })
        .await
    }
}

/// An action as history tells it.
pub(super) struct Done<'a> {
    pub id: Uuid,
    pub account: i64,
    pub actor: &'a str,
    pub action: &'a str,
    pub comment: Option<&'a str>,
}

impl<'a> Done<'a> {
    fn of(new: &'a NewAction<'a>) -> Done<'a> {
        let NewAction { id, caller, action, comment, .. } = *new;
        Done { id, account: caller.account, actor: &caller.user, action, comment }
    }
}

/// Writes history and what it takes to undo, for changes that were written.
pub(super) async fn record(
    tx: &mut Tx,
    action: &Done<'_>,
    changes: &[Next<'_>],
    after: &HashMap<i64, AssignmentRecord>,
) -> Result<(), StoreError> {
    let written: Vec<(&AssignmentRecord, &AssignmentRecord)> =
        changes.iter().filter_map(|next| Some((next.before, after.get(&next.before.product_key)?))).collect();
    let entries: Vec<Entry<'_>> = written
        .iter()
        .map(|(_, after)| Entry {
            comment: action.comment,
            action_id: Some(action.id),
            ..entry(after, action.action, action.actor)
        })
        .collect();
    journal::record(tx, action.account, &entries).await?;
    sqlx::query(
        "insert into assignment_action_items (action_id, product_key, product_id, shop_id, version, outcome,
             status_before, strategy_before, class_before, confidence_before, review_before, version_after, epoch_after,
             review_after)
         select $1, key, id, shop, version, 'DONE', status, strategy, class, confidence, review, version + 1, epoch,
                still
         from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[],
                     $9::real[], $10::boolean[], $11::bigint[], $12::boolean[])
              as done (key, id, shop, version, status, strategy, class, confidence, review, epoch, still)
         on conflict (action_id, product_key) do update set outcome = 'DONE',
             status_before = excluded.status_before, strategy_before = excluded.strategy_before,
             class_before = excluded.class_before, confidence_before = excluded.confidence_before,
             review_before = excluded.review_before, version_after = excluded.version_after,
             epoch_after = excluded.epoch_after, review_after = excluded.review_after",
    )
    .bind(action.id)
    .bind(written.iter().map(|(before, _)| before.product_key).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.product_id.as_str()).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.shop_id).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.version).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.status.as_str()).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.strategy.as_deref()).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.product_class.as_deref()).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.confidence).collect::<Vec<_>>())
    .bind(written.iter().map(|(before, _)| before.review_needed).collect::<Vec<_>>())
    .bind(written.iter().map(|(_, after)| after.auto_epoch).collect::<Vec<_>>())
    .bind(written.iter().map(|(_, after)| after.review_needed).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What becomes of an item, or what stands against it first.
fn decide<'a>(
    action: Action,
    index: usize,
    item: &ActionItem,
    current: Option<&'a AssignmentRecord>,
) -> Result<Next<'a>, Refusal> {
    let Some(current) = current else { return Err(Refusal::NotFound(unknown_product(&item.product_id))) };
    if item.version != current.version {
        let message = format!("the assignment has version {}, not {}", current.version, item.version);
        let field = format!("products[{index}].assignmentVersion.vatRules");
        let mut fault = Fault::at(field, "STALE_VERSION", message).on(&item.product_id);
        fault.current_version = Some(current.version);
        return Err(Refusal::Conflict(fault));
    }
    let class = item.class.clone().transpose().map_err(Refusal::Unprocessable)?;
    Next::after(current, action, class).map_err(|message| {
        let fault = Fault::at(format!("products[{index}]"), "ACTION_NOT_ALLOWED", message);
        Refusal::Unprocessable(fault.on(&item.product_id))
    })
}

/// Everything of the first kind that stands against a request.
fn refuse(decided: &[Result<Next<'_>, Refusal>]) -> Result<(), StoreError> {
    let (mut unknown, mut stale, mut wrong): (Vec<Fault>, Vec<Fault>, Vec<Fault>) = Default::default();
    for refusal in decided.iter().filter_map(|decided| decided.as_ref().err().cloned()) {
        match refusal {
            Refusal::NotFound(fault) => unknown.push(fault),
            Refusal::Conflict(fault) => stale.push(fault),
            // What is wrong with the class of the whole request is told once.
            Refusal::Unprocessable(fault) if wrong.contains(&fault) => {}
            Refusal::Unprocessable(fault) => wrong.push(fault),
        }
    }
    if !unknown.is_empty() {
        return Err(StoreError::NotFound(unknown));
    }
    if !stale.is_empty() {
        let current_version = match (stale.as_slice(), decided.len()) {
            ([fault], 1) => fault.current_version,
            _ => None,
        };
        return Err(StoreError::Conflict { faults: stale, current_version });
    }
    if wrong.is_empty() { Ok(()) } else { Err(StoreError::Unprocessable(wrong)) }
}
