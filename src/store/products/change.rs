//! Writing products that change, with what depends on them.

use std::collections::HashMap;

use crate::domain::applications::Application;
use crate::domain::assignment::Status;
use crate::domain::{Details, Product, ShopId};
use crate::store::accounts::Caller;
use crate::store::journal::{Entry, Subject, taxonomy_from_stored};
use crate::store::products::locked::{Current, details_of, parts};
use crate::store::products::write::{Columns, NewProduct, announce, product_entry};
use crate::store::{StoreError, Tx, auto_queue};

/// A checked change of a product row.
pub(super) struct Change<'a, 'p> {
    pub current: &'a Current,
    /// Its details before; none where they cannot be read.
    pub before: Option<&'p Details>,
    pub product: &'p Product,
    pub columns: &'p Columns,
    pub asked: Vec<Application>,
}

/// Writes changed products, queues again what depends on them, and answers how many products were queued.
pub(super) async fn change_products<'a>(
    tx: &mut Tx,
    caller: &'a Caller,
    shop: ShopId,
    changes: &[Change<'a, '_>],
    entries: &mut Vec<Entry<'a>>,
) -> Result<usize, StoreError> {
    if changes.is_empty() {
        return Ok(0);
    }
    let keys: Vec<i64> = changes.iter().map(|change| change.current.product_key).collect();
    let applications: Vec<String> = changes
        .iter()
        .map(|change| change.asked.iter().map(|application| application.name()).collect::<Vec<_>>().join(","))
        .collect();
    sqlx::query(
        "update products set version = version + 1, details = new.details::jsonb, details_size = new.size, updated_at = now(),
                applications = string_to_array(new.asked, ','),
                shop_ids = case when extra is null then '{}'
                                else array(select jsonb_array_elements_text(extra::jsonb -> 's')::bigint) end,
                application_tags = case when extra is null then '{}'
                                        else array(select jsonb_array_elements_text(extra::jsonb -> 't')) end,
                application_issues = case when extra is null then '[]'::jsonb else extra::jsonb -> 'i' end
         from unnest($1::bigint[], $2::text[], $3::integer[], $4::text[], $5::text[])
              as new (key, details, size, extra, asked)
         where product_key = key",
    )
    .bind(&keys)
    .bind(changes.iter().map(|change| change.columns.details.as_str()).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.columns.size()).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.columns.extra.as_deref()).collect::<Vec<_>>())
    .bind(&applications)
    .execute(&mut **tx)
    .await?;
    let versions: Vec<i64> = changes.iter().map(|change| change.current.version + 1).collect();
    announce(tx, caller.account, &keys, &versions, false).await?;
    for change in changes {
        let product = change.current.in_journal(shop);
        entries.push(product_entry(product, "PRODUCT_UPDATED", &caller.user, change.current.version + 1));
    }

    let weighed: Vec<(i64, f32)> = changes
        .iter()
        .map(|change| (change, change.product.product_details.review_weight()))
        .filter(|(change, weight)| !change.before.is_some_and(|before| before.review_weight() == *weight))
        .map(|(change, weight)| (change.current.product_key, weight))
        .collect();
    auto_queue::weigh(tx, &weighed).await?;

    let affected: HashMap<i64, &str> = changes
        .iter()
        .filter(|change| !change.before.is_some_and(|before| before.same_evidence(&change.product.product_details)))
        .map(|change| (change.current.product_key, change.current.product_id.as_str()))
        .collect();
    let mut affected_keys: Vec<i64> = affected.keys().copied().collect();
    affected_keys.sort_unstable();
    let touched = auto_queue::product_changed(tx, &affected_keys).await?;
    let mut queued: Vec<i64> = Vec::new();
    for assignment in touched {
        if assignment.queued && queued.last() != Some(&assignment.product_key) {
            queued.push(assignment.product_key);
        }
        let id = affected.get(&assignment.product_key).copied().unwrap_or_default();
        entries.push(Entry {
            product: Subject { key: assignment.product_key, id, shop: shop.stored() },
            taxonomy: Some(taxonomy_from_stored(assignment.taxonomy)),
            action: "PRODUCT_CHANGED",
            actor: &caller.user,
            status: Status::from_name(&assignment.status).map(Status::name),
            strategy: assignment.strategy_name(),
            product_class: assignment.product_class,
            version: assignment.version,
            ..Entry::default()
        });
    }
    auto_queue::push(tx, caller.account, &queued).await?;
    Ok(queued.len())
}

/// A product that is there, and what is to stand in its place.
pub(super) type Replacement<'a, 'p> = (&'a Current, &'p NewProduct, &'p Columns);

/// Writes products in the place of those that are there, part by part, and answers how many were queued again.
pub(super) async fn replace_products<'a>(
    tx: &mut Tx,
    caller: &'a Caller,
    shop: ShopId,
    replacements: &[Replacement<'a, '_>],
    asked: &[Application],
    entries: &mut Vec<Entry<'a>>,
) -> Result<usize, StoreError> {
    let (mut queued, first) = (0, entries.len());
    // Assignments are locked part by part, and everybody locks them by the keys of their products.
    let mut by_key = replacements.to_vec();
    by_key.sort_by_key(|(current, ..)| current.product_key);
    for (_, part) in parts(&by_key, |(current, ..)| current.size) {
        let stored = details_of(tx, part.iter().map(|(current, ..)| *current)).await?;
        let change = part.iter().map(|&(current, new, columns)| {
            let before = stored.readable(current);
            Change { current, before, product: &new.product, columns, asked: asked.to_vec() }
        });
        let changes: Vec<Change<'_, '_>> = change.collect();
        queued += change_products(tx, caller, shop, &changes, entries).await?;
    }
    in_order(&mut entries[first..], replacements.iter().map(|(current, ..)| current.product_key));
    Ok(queued)
}

/// Puts entries in the order in which the products were sent, whatever the one in which they were written.
pub(super) fn in_order(entries: &mut [Entry<'_>], keys: impl Iterator<Item = i64>) {
    let places: HashMap<i64, usize> = keys.enumerate().map(|(place, key)| (key, place)).collect();
    entries.sort_by_key(|entry| places.get(&entry.product.key).copied());
}
