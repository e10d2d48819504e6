//! The queue of products whose entry in the search index is to be written or removed.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::domain::Details;
use crate::domain::filter::Document;
use crate::store::details::StoredDetails;
use crate::store::fairness::{self, FairQueue};
use crate::store::products::{SIZE, bytes_before};
use crate::store::{Store, StoreError, Tx, parked};

/// Most bytes of stored details that are read at once; at least one product is read, however large.
const MAX_READ_BYTES: i64 = 4 * 1024 * 1024;
/// Products that are counted one by one to tell how many there are.
const COUNTED_PRODUCTS: i64 = 20_000;
/// How long a claim holds its rows unless it is renewed: as long as they wait at most when a service dies that holds
/// them.
pub const LEASE: Duration = Duration::from_secs(3);

/// A product as it is read for projection.
#[derive(Clone, Debug)]
pub struct StoredProduct {
    pub(super) product_key: i64,
    pub(super) account_id: i64,
    shop_id: i64,
    product_id: String,
    pub(super) version: i64,
    details: Details,
}

/// Products that were read together.
#[derive(Default)]
struct ReadProducts {
    products: Vec<StoredProduct>,
    /// Those whose rows cannot be read, and why.
    unreadable: Vec<(Change, String)>,
    /// Those left for later, since the ones before them are large.
    later: HashSet<i64>,
}

/// A step of the way through all products.
pub struct Part {
    /// Products in the order of keys; those that cannot be read are left out, and parked.
    pub products: Vec<StoredProduct>,
    /// The key from behind which to read on; none at the end.
    pub last: Option<i64>,
}

/// A product whose entry is to be written, or removed where there is no document.
#[derive(Clone, Debug)]
pub struct Change {
    /// The product's key.
    pub key: i64,
    /// Its account.
    pub account: i64,
    /// Its version; a deletion has the last version plus one.
    pub version: i64,
    /// What to store of it.
    pub document: Option<Document>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the index, or a later version is.
    Done,
    /// The engine had no room for it or failed; it is tried again.
    Retry(String),
    /// The engine refuses it for what it holds.
    Never(String),
}

/// Rows of the queue that this service holds until it finishes or releases them, or their lease ends. No transaction
/// is open meanwhile: the search engine may be slow, and neither the feed of changes nor vacuum waits for it.
pub struct Claim {
    store: Store,
    lease: Uuid,
    /// Each row by account and id, with its product.
    rows: Vec<(i64, i64, i64)>,
    removals: Vec<Change>,
    products: Vec<StoredProduct>,
    unreadable: Vec<(Change, String)>,
    /// Products whose rows are done with, whatever becomes of the others: they no longer exist.
    gone: HashSet<i64>,
}

#[derive(FromRow)]
struct Row {
    turn: i64,
    outbox_id: i64,
    product_key: i64,
    account_id: i64,
    version: i64,
    deleted: bool,
}

impl StoredProduct {
    /// The product's key.
    pub fn key(&self) -> i64 {
        self.product_key
    }

    /// The product's id.
    pub fn product_id(&self) -> &str {
        &self.product_id
    }

    /// What to write.
    pub fn change(self) -> Change {
        let (key, account, version) = (self.product_key, self.account_id, self.version);
        let document = Document::of(key, account, self.shop_id, &self.product_id, version, &self.details);
        Change { key, account, version, document: Some(document) }
    }
}

impl Store {
    /// Claims rows of the queue that no other service holds, of every account in turn, for [`LEASE`], and reads their
    /// products as they are now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim_search_changes(&self, limit: usize) -> Result<Option<Claim>, StoreError> {
        if !self.finds("select exists (select from search_outbox)").await? {
            return Ok(None);
        }
        let mut tx = self.begin().await?;
        let locked = fairness::lock_rows(&mut tx, FairQueue::Search, limit).await?;
        if locked.is_empty() {
            tx.rollback().await?;
            return Ok(None);
        }
        let lease = Uuid::new_v4();
        let (accounts, ids): (Vec<i64>, Vec<i64>) = locked.into_iter().unzip();
        let mut rows: Vec<Row> = sqlx::query_as(
            "update search_outbox set lease = $3, leased_until = now() + $4
             from unnest($1::bigint[], $2::bigint[]) with ordinality as claimed (account, id, turn)
             where account_id = account and outbox_id = id
             returning turn, account_id, outbox_id, product_key, version, deleted",
        )
        .bind(&accounts)
        .bind(&ids)
        .bind(lease)
        .bind(LEASE)
        .fetch_all(&mut *tx)
        .await?;
        rows.sort_unstable_by_key(|row| row.turn);
        let removals: BTreeMap<i64, Change> = rows
            .iter()
            .filter(|row| row.deleted)
            .map(|row| {
                let change =
                    Change { key: row.product_key, account: row.account_id, version: row.version, document: None };
                (row.product_key, change)
            })
            .collect();
        let mut written: HashSet<i64> = HashSet::new();
        let keys = rows.iter().map(|row| row.product_key).filter(|key| !removals.contains_key(key));
        let keys: Vec<i64> = keys.filter(|key| written.insert(*key)).collect();
        let read = read_products(&mut tx, &keys).await?;
        tx.commit().await?;
        let found = read.keys();
        Ok(Some(Claim {
            store: self.clone(),
            lease,
            rows: rows.iter().map(|row| (row.account_id, row.outbox_id, row.product_key)).collect(),
            removals: removals.into_values().collect(),
            gone: written.difference(&found).copied().collect(),
            products: read.products,
            unreadable: read.unreadable,
        }))
    }

    /// Products with keys above this one, in the order of keys, as many as are read at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn products_after_key(&self, after: i64, limit: usize) -> Result<Part, StoreError> {
        let mut tx = self.begin().await?;
        let keys: Vec<i64> =
            sqlx::query_scalar("select product_key from products where product_key > $1 order by 1 limit $2")
                .bind(after)
                .bind(limit as i64)
                .fetch_all(&mut *tx)
                .await?;
        let read = read_products(&mut tx, &keys).await?;
        for (change, reason) in &read.unreadable {
            park(&mut tx, change, reason).await?;
        }
        tx.commit().await?;
        let last = keys.into_iter().filter(|key| !read.later.contains(key)).max();
        Ok(Part { products: read.products, last })
    }

    /// How many rows wait in the queue.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn search_queue_length(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("select count(*) from search_outbox").fetch_one(self.pool()).await?)
    }

    /// How many products could not be indexed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn search_parked(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("select count(*) from search_parked").fetch_one(self.pool()).await?)
    }

    /// How many products there are, of all accounts: where they are many, as many as the table's size tells of.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_products(&self) -> Result<i64, StoreError> {
        let counted: i64 = sqlx::query_scalar("select count(*) from (select from products limit $1) as first")
            .bind(COUNTED_PRODUCTS)
            .fetch_one(self.pool())
            .await?;
        if counted < COUNTED_PRODUCTS {
            return Ok(counted);
        }
        // As the database itself supposes for its plans: by what it found per page when it last looked.
        let supposed: i64 = sqlx::query_scalar(
            "select case when reltuples > 0 and relpages > 0
                    then (reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::int))::bigint
                    else 0 end
             from pg_class where oid = 'products'::regclass",
        )
        .fetch_one(self.pool())
        .await?;
        Ok(supposed.max(counted))
    }
}

impl Claim {
    /// Takes out the products to write and the removals.
    pub fn take(&mut self) -> (Vec<StoredProduct>, Vec<Change>) {
        (std::mem::take(&mut self.products), std::mem::take(&mut self.removals))
    }

    /// Holds the rows for another [`LEASE`] from now on.
    ///
    /// # Errors
    /// When the database fails; the rows may then be claimed by another service, which harms nothing.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.set_lease(Some(LEASE)).await
    }

    /// Gives the rows back at once, as they were.
    ///
    /// # Errors
    /// When the database fails; the rows are then free when the lease ends.
    pub async fn release(self) -> Result<(), StoreError> {
        self.set_lease(None).await
    }

    async fn set_lease(&self, lasts: Option<Duration>) -> Result<(), StoreError> {
        let (accounts, ids) = self.ids(|_| true);
        sqlx::query(
            "update search_outbox set leased_until = now() + $4
             from unnest($1::bigint[], $2::bigint[]) as held (account, id)
             where account_id = account and outbox_id = id and lease = $3",
        )
        .bind(accounts)
        .bind(ids)
        .bind(self.lease)
        .bind(lasts)
        .execute(self.store.pool())
        .await?;
        Ok(())
    }

    /// The rows of some products, by account and id.
    fn ids(&self, of: impl Fn(i64) -> bool) -> (Vec<i64>, Vec<i64>) {
        self.rows.iter().filter(|(.., key)| of(*key)).map(|(account, id, _)| (*account, *id)).unzip()
    }

    /// Ends the claim: rows of products that are done or parked leave the queue, the others are free to be claimed.
    ///
    /// # Errors
    /// When the database fails; the rows then stay, and are free when the lease ends.
    pub async fn finish(mut self, outcomes: &[(Change, Outcome)]) -> Result<(), StoreError> {
        let mut tx = self.store.begin().await?;
        let mut settled = std::mem::take(&mut self.gone);
        for (change, reason) in std::mem::take(&mut self.unreadable) {
            park(&mut tx, &change, &reason).await?;
            settled.insert(change.key);
        }
        let mut done = Vec::new();
        for (change, outcome) in outcomes {
            match outcome {
                Outcome::Done => done.push(change.key),
                Outcome::Never(reason) => park(&mut tx, change, reason).await?,
                Outcome::Retry(_) => continue,
            }
            settled.insert(change.key);
        }
        let (accounts, ids) = self.ids(|key| settled.contains(&key));
        sqlx::query(
            "delete from search_outbox using unnest($1::bigint[], $2::bigint[]) as done (account, id)
             where account_id = account and outbox_id = id and lease = $3",
        )
        .bind(accounts)
        .bind(ids)
        .bind(self.lease)
        .execute(&mut *tx)
        .await?;
        sqlx::query("delete from search_parked where product_key = any($1)").bind(done).execute(&mut *tx).await?;
        tx.commit().await?;
        if self.rows.iter().any(|(.., key)| !settled.contains(key)) {
            self.release().await?;
        }
        Ok(())
    }
}

impl Store {
    /// Puts a change on the list of those that the search engine refuses.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn park_search_change(&self, change: &Change, reason: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        park(&mut tx, change, reason).await?;
        tx.commit().await?;
        Ok(())
    }
}

async fn park(tx: &mut Tx, change: &Change, reason: &str) -> Result<(), StoreError> {
    sqlx::query(
        "insert into search_parked (product_key, account_id, version, reason) values ($1, $2, $3, $4)
         on conflict (product_key) do update
         set version = excluded.version, reason = excluded.reason, parked_at = now()",
    )
    .bind(change.key)
    .bind(change.account)
    .bind(change.version)
    .bind(parked::kept(reason))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

impl ReadProducts {
    /// Every product that exists.
    fn keys(&self) -> HashSet<i64> {
        let read = self.products.iter().map(|product| product.product_key);
        let unreadable = self.unreadable.iter().map(|(change, _)| change.key);
        read.chain(unreadable).chain(self.later.iter().copied()).collect()
    }
}

/// Reads products by their keys, the first ones first, without the details of those beyond [`MAX_READ_BYTES`].
async fn read_products(tx: &mut Tx, keys: &[i64]) -> Result<ReadProducts, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "select product_key, account_id, shop_id, product_id, version, before >= $2 as later,
                case when before < $2 then details end as details
         from (select products.*, turn, {} as before
               from unnest($1::bigint[]) with ordinality as wanted (key, turn)
               join products on product_key = key) as sized
         order by turn",
        bytes_before(SIZE, "turn")
    )))
    .bind(keys)
    .bind(MAX_READ_BYTES)
    .fetch_all(&mut **tx)
    .await?;
    let mut read = ReadProducts::default();
    for row in rows {
        let (product_key, account_id, version) =
            (row.try_get("product_key")?, row.try_get("account_id")?, row.try_get("version")?);
        if row.try_get("later")? {
            read.later.insert(product_key);
            continue;
        }
        match row.try_get::<StoredDetails, _>("details") {
            Ok(StoredDetails(details)) => read.products.push(StoredProduct {
                product_key,
                account_id,
                shop_id: row.try_get("shop_id")?,
                product_id: row.try_get("product_id")?,
                version,
                details,
            }),
            Err(error) => {
                let change = Change { key: product_key, account: account_id, version, document: None };
                read.unreadable.push((change, error.to_string()));
            }
        }
    }
    Ok(read)
}
