//! Labels on assignments.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::domain::Fault;
use crate::store::accounts::Caller;
use crate::store::assignments::{AssignmentRecord, COLUMNS, entry, unknown_assignment};
use crate::store::journal::{self, Entry};
use crate::store::labels::MAX_LABELS_OF_ASSIGNMENT;
use crate::store::{Store, StoreError, Tx, labels, with_retries};

impl Store {
    /// Attaches labels to assignments or detaches them, all or none.
    ///
    /// # Errors
    /// In this order, naming every item that fails: not found, unprocessable.
    pub async fn label_assignments(
        &self,
        caller: &Caller,
        uuids: &[Uuid],
        names: &[String],
        attach: bool,
    ) -> Result<(), StoreError> {
        with_retries(|| async {
            let mut tx = self.begin().await?;
            let mut query = sqlx::QueryBuilder::new("select ");
            query.push(COLUMNS).push(" from assignments where account_id = ").push_bind(caller.account);
            query.push(" and assignment_uuid = any(").push_bind(uuids);
            query.push(") order by product_key, taxonomy for update");
            let known: Vec<AssignmentRecord> = query.build_query_as().fetch_all(&mut *tx).await?;
            let unknown: Vec<Fault> = uuids
                .iter()
                .filter(|uuid| !known.iter().any(|assignment| assignment.assignment_uuid == **uuid))
                .map(|uuid| unknown_assignment(*uuid))
                .collect();
            if !unknown.is_empty() {
                return Err(StoreError::NotFound(unknown));
            }
            labels::require_defined(&mut tx, caller.account, names).await?;
            let full: Vec<Fault> =
                known.iter().filter(|_| attach).filter_map(|assignment| too_many(assignment, names)).collect();
            if !full.is_empty() {
                return Err(StoreError::Unprocessable(full));
            }
            let (add, remove): (&[String], &[String]) = if attach { (names, &[]) } else { (&[], names) };
            relabel(&mut tx, caller.account, &caller.user, &known, add, remove).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

/// A fault where an assignment would carry more labels than it may. What carries more from before may keep them, and be
/// sent again what it has.
fn too_many(assignment: &AssignmentRecord, add: &[String]) -> Option<Fault> {
    let carried: BTreeSet<&String> = assignment.labels.iter().chain(add).collect();
    if carried.len() <= assignment.labels.len().max(MAX_LABELS_OF_ASSIGNMENT) {
        return None;
    }
    let message = format!(
        "the assignment {} would carry {} labels; it has at most {MAX_LABELS_OF_ASSIGNMENT}",
        assignment.assignment_uuid,
        carried.len()
    );
    Some(Fault::at("labels", "TOO_MANY_LABELS", message).on(&assignment.product_id))
}

/// Adds labels to locked assignments and takes others from them; each that changes gets its events.
pub(in crate::store) async fn relabel(
    tx: &mut Tx,
    account: i64,
    actor: &str,
    locked: &[AssignmentRecord],
    add: &[String],
    remove: &[String],
) -> Result<(), StoreError> {
    struct Change<'a> {
        assignment: &'a AssignmentRecord,
        labels: Vec<String>,
        added: Vec<String>,
        removed: Vec<String>,
    }
    let changes: Vec<Change<'_>> = locked
        .iter()
        .map(|assignment| {
            let has = |label: &&String| assignment.labels.contains(label);
            let mut added: Vec<String> = add.iter().filter(|label| !has(label)).cloned().collect();
            added.sort_unstable();
            added.dedup();
            let removed: Vec<String> = remove.iter().filter(has).cloned().collect();
            let kept = assignment.labels.iter().filter(|label| !removed.contains(label)).cloned();
            let mut labels: Vec<String> = kept.chain(added.iter().cloned()).collect();
            labels.sort_unstable();
            Change { assignment, labels, added, removed }
        })
        .filter(|change| !change.added.is_empty() || !change.removed.is_empty())
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update assignments set labels = case when new = '' then '{}' else string_to_array(new, ',') end
         from unnest($1::uuid[], $2::text[]) as changed (uuid, new) where assignment_uuid = uuid",
    )
    .bind(changes.iter().map(|change| change.assignment.assignment_uuid).collect::<Vec<_>>())
    // No label has a comma, and none is empty.
    .bind(changes.iter().map(|change| change.labels.join(",")).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for change in &changes {
        for (action, labels) in [("UNLABEL", &change.removed), ("LABEL", &change.added)] {
            if !labels.is_empty() {
                let labels = Some(labels.as_slice());
                entries.push(Entry { labels, ..entry(change.assignment, action, actor) });
            }
        }
    }
    journal::record(tx, account, &entries).await
}

/// Some assignments that carry a label, locked in the order in which every writer locks them.
pub(in crate::store) async fn lock_carriers(
    tx: &mut Tx,
    account: i64,
    label: &str,
    limit: usize,
) -> Result<Vec<AssignmentRecord>, StoreError> {
    let mut query = sqlx::QueryBuilder::new("select ");
    query.push(COLUMNS).push(" from assignments where assignment_uuid = any(array(");
    query.push("select assignment_uuid from assignments where account_id = ").push_bind(account);
    query.push(" and labels <> '{}' and labels @> array[").push_bind(label).push("]::text[] limit ");
    query.push_bind(limit as i64).push(")) order by product_key, taxonomy for update");
    Ok(query.build_query_as().fetch_all(&mut **tx).await?)
}
