//! Nothing that is done often reads what it does not need: no large table is scanned.

use vat_classification::domain::access::Plan;
use vat_classification::domain::{Product, ShopId};
use vat_classification::store::auto_queue::AutoResult;
use vat_classification::store::changes::Selection;
use vat_classification::store::pages::Position;
use vat_classification::store::products::{Asked, NewProduct};
use vat_classification::store::{Settings, Store, StoreError};

use crate::support::{TestDatabase, database};

/// Tables that grow with products.
const LARGE: [&str; 6] = ["products", "assignments", "journal", "pictures", "search_documents", "orphaned_objects"];

/// A database of 20 accounts with 1,000 products each, and one connection to it, whose reads can be told.
struct Large {
    store: Store,
    _database: TestDatabase,
}

impl Large {
    async fn new() -> Large {
        let database = database().await;
        let settings = Settings { database_connections: 1, ..Settings::default() };
        let store = Store::connect_with(&database.url, &settings).await.expect("a connection");
        for statement in [
            "insert into accounts (name, plan) select 'account ' || n, 'UNLIMITED' from generate_series(1, 20) n",
            "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                                   application_tags, application_issues)
             select account_id, 0, 'p' || n, 1, '{}', '{}', '{}', '{}', '[]'
             from accounts, generate_series(1, 1000) n",
            "insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, auto_state)
             select gen_random_uuid(), account_id, product_key, taxonomy, product_id, 0, 'DONE'
             from products, generate_series(0, 2) taxonomy",
            "insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, version)
             select journal_sequence(row_number() over ()), account_id, product_key, product_id, 0, taxonomy, 'CREATE',
                    'x', 0
             from assignments",
            "insert into pictures (product_key, object_key, content_type, width, height, size, etag)
             select product_key, gen_random_uuid()::text, 'image/png', 1, 1, 1, 'x' from products",
            "insert into orphaned_objects (object_key, orphaned_at)
             select gen_random_uuid()::text, now() - interval '1 day' from products",
            "insert into search_documents (product_key, account_id, shop_id, product_id, version, id_text, keyword_texts,
                    name_texts, tag_texts, keyword_words, name_words, tag_words, all_keywords, all_names, all_tags)
             select product_key, account_id, 0, product_id, 1, product_id, '{}', '{}', '{}', '{}', '{}', '{}', '', '', ''
             from products",
            "analyze",
        ] {
            sqlx::raw_sql(statement).execute(store.pool()).await.expect(statement);
        }
        Large { store, _database: database }
    }

    /// How often each large table was read from end to end.
    async fn scans(&self) -> Vec<(String, i64)> {
        sqlx::query("select pg_stat_force_next_flush()").execute(self.store.pool()).await.expect("flushed");
        sqlx::query_as(
            "select relname::text, seq_scan from pg_stat_user_tables where relname = any($1) order by relname",
        )
        .bind(LARGE)
        .fetch_all(self.store.pool())
        .await
        .expect("statistics")
    }

    /// Does something, which must not scan a large table.
    async fn without_scan<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let before = self.scans().await;
        let done = work.await;
        assert_eq!(self.scans().await, before, "{what} scans a table");
        done
    }
}

#[tokio::test]
async fn starting_does_not_read_the_journal() {
    let large = Large::new().await;
    // The first start in a cluster finds the end of the journal, account by account; the next knows it.
    large.without_scan("the first start", large.store.migrate()).await.expect("migrated");
    large.without_scan("another start", large.store.migrate()).await.expect("migrated");
}

#[tokio::test]
async fn after_a_restore_sequences_go_on_above_the_highest() {
    let large = Large::new().await;
    let highest: i64 =
        sqlx::query_scalar("update journal set sequence = sequence + 131072::bigint * 1000000000 returning sequence")
            .fetch_all(large.store.pool())
            .await
            .expect("moved")
            .into_iter()
            .max()
            .expect("rows");
    sqlx::raw_sql("update journal_base set cluster = 1; analyze")
        .execute(large.store.pool())
        .await
        .expect("another cluster");
    large.without_scan("a start after a restore", large.store.migrate()).await.expect("migrated");
    let next: i64 =
        sqlx::query_scalar("select journal_sequence(0)").fetch_one(large.store.pool()).await.expect("a sequence");
    assert!(next > highest, "{next} {highest}");
}

#[tokio::test]
async fn a_creation_beyond_the_limit_of_the_plan_writes_nothing() {
    let database = database().await;
    let settings = Settings { database_connections: 1, ..Settings::default() };
    let store = Store::connect_with(&database.url, &settings).await.expect("a connection");
    store.create_account("trial", Plan::FreeTrial).await.expect("an account");
    let caller = store.account_by_name("trial", "x").await.expect("an answer").expect("the account");
    let product = |i: i32| NewProduct { product_id: format!("p{i}"), product: Product::default() };
    let products: Vec<NewProduct> = (0..101).map(product).collect();
    let refused = store.create_products(&caller, ShopId::GLOBAL, &products, &Asked::default(), false).await;
    assert!(matches!(refused, Err(StoreError::LimitExceeded { limit: 100, used: 0, asked: 101 })), "{refused:?}");
    sqlx::query("select pg_stat_force_next_flush()").execute(store.pool()).await.expect("flushed");
    let inserted: i64 = sqlx::query_scalar("select n_tup_ins from pg_stat_user_tables where relname = 'products'")
        .fetch_one(store.pool())
        .await
        .expect("statistics");
    assert_eq!(inserted, 0);
    store.create_products(&caller, ShopId::GLOBAL, &products[..100], &Asked::default(), false).await.expect("room");
}

#[tokio::test]
async fn a_database_that_was_put_back_to_an_earlier_state_is_noticed_once() {
    let database = database().await;
    let store = Store::connect(&database.url).await.expect("a connection");
    store.migrate().await.expect("migrated");
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(store.pool()).await.expect(statement);
    };
    let sequence = async || -> i64 {
        sqlx::query_scalar("select journal_sequence(0)").fetch_one(store.pool()).await.expect("a sequence")
    };
    let is_stale = async || store.search_indexes().await.expect("indices")[0].stale;
    run("insert into search_indexes (name, family, mapping_version, building) values ('x', 'x', 1, false)").await;
    let before = sequence().await;
    store.migrate().await.expect("migrated");
    assert!(!is_stale().await, "another start is no restore");
    run("update journal_base set timeline = 0").await;
    store.migrate().await.expect("migrated");
    assert!(is_stale().await);
    // What clients may have seen of the lost transactions lies below.
    assert!(sequence().await - before > 131_072 * 1_000_000);
    run("update search_indexes set stale = false").await;
    store.migrate().await.expect("migrated");
    assert!(!is_stale().await);
}

#[tokio::test]
async fn what_is_done_often_scans_no_large_table() {
    let large = Large::new().await;
    let store = &large.store;
    let caller = store.account_by_name("account 7", "x").await.expect("an answer").expect("the account");
    let (account, shop) = (caller.account, ShopId::GLOBAL);
    let asked = Asked::default();
    let new = |id: &str| NewProduct { product_id: id.to_owned(), product: Product::default() };
    for position in [Position::Start, Position::After("p5".to_owned()), Position::Before("p5".to_owned())] {
        let page = large.without_scan("a list", store.products(account, shop, None, None, &position, 50)).await;
        assert_eq!(page.expect("a page").page.items.len(), 50);
    }
    let ids = ["p1".to_owned(), "p2".to_owned()];
    large
        .without_scan("named ones", store.products(account, shop, Some(&ids), None, &Position::Start, 50))
        .await
        .expect("a page");
    large.without_scan("a product", store.product(account, shop, "p1")).await.expect("the product");
    large.without_scan("the feed", store.changes(account, 0, 50, &Selection::default())).await.expect("changes");
    large
        .without_scan("creating", store.create_products(&caller, shop, &[new("n")], &asked, false))
        .await
        .expect("made");
    large
        .without_scan("creating or replacing", store.create_products(&caller, shop, &[new("n")], &asked, true))
        .await
        .expect("made");
    large
        .without_scan("replacing", store.replace_product(&caller, shop, &new("p1"), 1, &asked, false))
        .await
        .expect("put");
    // A claim keeps the only connection for itself until it is complete.
    let assigning = async {
        let batch = store.claim_auto_assignments(500).await.expect("a claim").expect("rows");
        let nothing = |slots: usize| Ok(vec![AutoResult { found: None, risk: 0.0 }; slots]);
        let results: Vec<_> = batch.claims.iter().map(|claim| nothing(claim.slots.len())).collect();
        batch.complete(&results).await
    };
    assert_eq!(large.without_scan("auto-assignment", assigning).await.expect("stored"), 3);
    let claim = large.without_scan("a claim of the index", store.claim_search_changes(500)).await.expect("a claim");
    large.without_scan("its end", claim.expect("rows").finish(&[])).await.expect("finished");
    large.without_scan("deleting", store.delete_product(&caller, shop, "p1", 2)).await.expect("deleted");
    large.without_scan("housekeeping", store.orphaned_objects(None)).await.expect("keys");
}
