//! Creating products, each with its three assignments and all that announces it.

use std::collections::HashMap;

use sqlx::{Executor, Postgres};
use uuid::Uuid;

use crate::computing;
use crate::domain::access::Plan;
use crate::domain::applications::Application;
use crate::domain::validation::Declarations;
use crate::domain::{Fault, ShopId};
use crate::store::accounts::Caller;
use crate::store::journal::{self, new_uuid};
use crate::store::products::change::{Replacement, replace_products};
use crate::store::products::locked::{Current, lock_products};
use crate::store::products::write::{Asked, Columns, NewProduct, PRODUCT_BYTES, product_faults, relied_on};
use crate::store::{Store, StoreError, attributes, quota, tx, with_retries};

/// Entries that the creation of a product makes in the journal: its own and one for each assignment.
pub(super) const ENTRIES_OF_CREATION: usize = 4;

/// Everything about new products in one statement, so that storing one takes one round trip, and no row is looked up
/// that was made a moment ago. Assignments come by taxonomy, as most of their indices have them: neighbours in the
/// statement are then neighbours there.
///
/// The parameters: account, shop, user; ids, details, sizes, extras, and the identities of the three assignments, by
/// product; the applications asked for; the checks to count, 0 where they are counted elsewhere; over how many rows
/// they are spread.
const INSERT: &str = "
    with new as (
        select * from unnest($4::text[], $5::text[], $6::integer[], $7::text[], $8::uuid[], $9::uuid[], $10::uuid[])
            with ordinality as new (id, details, size, extra, taric, tares, ukgt, ordinal)
    ), inserted as (
        insert into products (account_id, shop_id, product_id, version, details, details_size, applications, shop_ids,
                              application_tags, application_issues)
        select $1::bigint, $2::bigint, id, 1, details::jsonb, size, $11::text[],
               case when extra is null then '{}'
                    else array(select jsonb_array_elements_text(extra::jsonb -> 's')::bigint) end,
               case when extra is null then '{}' else array(select jsonb_array_elements_text(extra::jsonb -> 't')) end,
               case when extra is null then '[]'::jsonb else extra::jsonb -> 'i' end
        from new order by id collate \"C\"
        returning product_key, product_id, nullif(shop_ids, '{}') as shop_ids
    ), made as materialized (
        select product_key, product_id, shop_ids, ordinal, taric, tares, ukgt from inserted join new on id = product_id
    ), assigned as (
        insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, shop_ids,
                                 auto_state)
        select uuid, $1::bigint, product_key, taxonomy, product_id, $2::bigint, shop_ids, 'PENDING'
        from made cross join lateral (values (taric, 0::smallint), (tares, 1::smallint), (ukgt, 2::smallint))
             as slot (uuid, taxonomy)
        order by taxonomy, product_key
    ), queued as (
        insert into auto_queue (account_id, product_key) select $1::bigint, product_key from made order by ordinal
    ), announced as (
        insert into search_outbox (account_id, product_key, version, deleted)
        select $1::bigint, product_key, 1, false from made order by ordinal
    ), told as (
        insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, status,
                             version)
        select start + (ordinal - 1) * 4 + step, $1::bigint, product_key, product_id, $2::bigint, taxonomy, action,
               $3::text, status, version
        from (select journal_sequence(0)) as first (start) cross join made cross join
             (values (0, null::smallint, 'PRODUCT_CREATED', null, 1), (1, 0::smallint, 'CREATE', 'UNASSIGNED', 0),
                     (2, 1::smallint, 'CREATE', 'UNASSIGNED', 0), (3, 2::smallint, 'CREATE', 'UNASSIGNED', 0))
             as event (step, taxonomy, action, status, version)
    ), counted as (
        insert into usage (account_id, month, shard, used)
        select $1::bigint, date_trunc('month', now() at time zone 'UTC'),
               pg_current_xact_id()::text::bigint % $13::bigint, $12::bigint
        where $12::bigint > 0
        on conflict (account_id, month, shard) do update set used = usage.used + excluded.used
    )
    select count(*) from inserted";

impl Store {
    /// Creates products, all or none; with `update_if_exists`, replaces those that exist.
    ///
    /// # Errors
    /// [`StoreError::Unprocessable`] names every product that breaks a rule or exists already.
    pub async fn create_products(
        &self,
        caller: &Caller,
        shop: ShopId,
        products: &[NewProduct],
        asked: &Asked,
        update_if_exists: bool,
    ) -> Result<(), StoreError> {
        let judged_by = relied_on(self, caller, products).await?;
        let none = Declarations::default();
        let declarations = judged_by.as_ref().unwrap_or(&none);
        let judge = || -> Result<(Vec<Columns>, Vec<Fault>), StoreError> {
            let (mut written, mut faults) = (Vec::with_capacity(products.len()), asked.faults.clone());
            for new in products {
                let columns = Columns::of(&new.product, &asked.applications)?;
                faults.extend(product_faults(&new.product_id, &new.product, &columns, shop, declarations));
                written.push(columns);
            }
            Ok((written, faults))
        };
        let (columns, faults) = computing::in_place(products.len() * PRODUCT_BYTES, judge)?;
        let creation = Creation { caller, shop, products, columns: &columns, asked: &asked.applications };
        // What is right, new and not limited needs nothing looked up before it is stored.
        let at_once = judged_by.is_none() && !update_if_exists && caller.plan == Plan::Unlimited && !tx::is_held();
        if faults.is_empty() && at_once {
            match creation.insert(self.pool(), |_| true, products.len()).await {
                Err(error) if error.is_transient() => {}
                done => return done.map(drop),
            }
        }
        let (faults, judged_by) = (&faults, judged_by.as_ref());
        with_retries(|| self.create_or_replace(&creation, faults, judged_by, update_if_exists)).await
    }

    async fn create_or_replace(
        &self,
        creation: &Creation<'_>,
        faults: &[Fault],
        judged_by: Option<&Declarations>,
        update_if_exists: bool,
    ) -> Result<(), StoreError> {
        let Creation { caller, shop, products, columns, asked } = *creation;
        let mut tx = self.begin().await?;
        if let Some(judged_by) = judged_by.filter(|_| faults.is_empty()) {
            // A declaration may have gone since the first look; from here on none goes.
            let declarations = attributes::declarations(&mut tx, caller.account).await?;
            // Thousands of products are judged again, over which locks are held, only where that may say something else.
            if declarations != *judged_by {
                let judge = |(new, columns): (&NewProduct, &Columns)| {
                    product_faults(&new.product_id, &new.product, columns, shop, &declarations)
                };
                let faults: Vec<Fault> = products.iter().zip(columns).flat_map(judge).collect();
                if !faults.is_empty() {
                    return Err(StoreError::Unprocessable(faults));
                }
            }
        }
        let ids: Vec<&str> = products.iter().map(|new| new.product_id.as_str()).collect();
        let existing = lock_products(&mut tx, caller.account, shop, &ids).await?;
        let existing: HashMap<&str, &Current> =
            existing.iter().map(|current| (current.product_id.as_str(), current)).collect();
        let mut faults = faults.to_vec();
        for new in products.iter().filter(|new| !update_if_exists && existing.contains_key(new.product_id.as_str())) {
            let message = format!("there is a product \"{}\" already", new.product_id);
            faults.push(Fault::at("productId", "PRODUCT_EXISTS", message).on(&new.product_id));
        }
        if !faults.is_empty() {
            return Err(StoreError::Unprocessable(faults));
        }
        let is_new = |new: &NewProduct| !existing.contains_key(new.product_id.as_str());
        let fresh = products.iter().filter(|new| is_new(new)).count();
        quota::require_room(&mut tx, caller, fresh).await?;
        creation.insert(&mut *tx, is_new, 0).await?;
        let replacements: Vec<Replacement<'_, '_>> = products
            .iter()
            .zip(columns)
            .filter_map(|(new, columns)| Some((*existing.get(new.product_id.as_str())?, new, columns)))
            .collect();
        let mut entries = Vec::new();
        let requeued = replace_products(&mut tx, caller, shop, &replacements, asked, &mut entries).await?;
        quota::charge(&mut tx, caller, fresh + requeued).await?;
        journal::record_after(&mut tx, caller.account, fresh * ENTRIES_OF_CREATION, &entries).await?;
        Ok(tx.commit().await?)
    }
}

/// Products to be created by one request.
#[derive(Clone, Copy)]
pub(super) struct Creation<'a> {
    pub caller: &'a Caller,
    pub shop: ShopId,
    pub products: &'a [NewProduct],
    pub columns: &'a [Columns],
    pub asked: &'a [Application],
}

impl Creation<'_> {
    /// Inserts the products that are wanted. One of the same id that another transaction has committed breaks a
    /// constraint; nothing is then inserted.
    pub(super) async fn insert(
        &self,
        connection: impl Executor<'_, Database = Postgres>,
        wanted: impl Fn(&NewProduct) -> bool,
        checks: usize,
    ) -> Result<(), StoreError> {
        let new: Vec<(&NewProduct, &Columns)> =
            self.products.iter().zip(self.columns).filter(|(new, _)| wanted(new)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let uuids = || new.iter().map(|_| new_uuid()).collect::<Vec<Uuid>>();
        let applications: Vec<&str> = self.asked.iter().map(|application| application.name()).collect();
        sqlx::query(INSERT)
            .bind(self.caller.account)
            .bind(self.shop.stored())
            .bind(&self.caller.user)
            .bind(new.iter().map(|(new, _)| new.product_id.as_str()).collect::<Vec<_>>())
            .bind(new.iter().map(|(_, columns)| columns.details.as_str()).collect::<Vec<_>>())
            .bind(new.iter().map(|(_, columns)| columns.size()).collect::<Vec<_>>())
            .bind(new.iter().map(|(_, columns)| columns.extra.as_deref()).collect::<Vec<_>>())
            .bind(uuids())
            .bind(uuids())
            .bind(uuids())
            .bind(applications)
            .bind(i64::try_from(checks).unwrap_or(i64::MAX))
            .bind(quota::SHARDS)
            .execute(connection)
            .await?;
        Ok(())
    }
}
