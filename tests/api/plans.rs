//! Nothing that is done often reads what it does not need: no large table is scanned.

use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use vat_classification::domain::Verdict;
use vat_classification::domain::access::Plan;
use vat_classification::domain::{Product, ShopId, Taxonomy};
use vat_classification::jobs::review;
use vat_classification::search::Postgres;
use vat_classification::store::accounts::Caller;
use vat_classification::store::changes::Selection;
use vat_classification::store::pages::Position;
use vat_classification::store::parked::Queue;
use vat_classification::store::products::{Asked, NewProduct};
use vat_classification::store::{Settings, Store, StoreError};

use crate::app::{App, action_body};
use crate::support::{RESTORED, TestDatabase, database};

/// Tables that grow with products, or with what is done to them.
pub(crate) const LARGE: [&str; 13] = [
    "assignment_action_items",
    "assignment_actions",
    "assignments",
    "idempotency_keys",
    "journal",
    "memory_decisions",
    "orphaned_objects",
    "pictures",
    "product_words",
    "products",
    "search_documents",
    "usage",
    "webhook_deliveries",
];

/// A service on a database of 21 accounts with 1,000 products each, and one connection to it, whose reads can be told.
pub(crate) struct Large {
    pub(crate) app: App,
    pub(crate) store: Store,
}

impl Large {
    pub(crate) async fn new() -> Large {
        let app = App::with_one_connection().await;
        let store = app.store.clone();
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
            "update assignments set status = 'ASSIGNED', strategy = 'DESCRIPTION', product_class = '610910-00-000',
                    confidence = 0.9, labels = case when product_id = 'p5' then array['hot'] else '{}' end
             where taxonomy = 0 and product_id like 'p%5'",
            "insert into product_words (product_key, account_id, words)
             select product_key, account_id, array[product_key, product_key + 1]::int[] from products",
            "insert into memory_decisions (account_id, assignment_uuid, product_key, taxonomy, verdict, product_class, texts)
             select account_id, assignment_uuid, product_key, taxonomy, 1, '610910-00-000', '{}' from assignments
             where taxonomy = 0",
            "insert into assignment_actions (action_id, account_id, taxonomy, action, actor, state, selected, finished_at)
             select gen_random_uuid(), account_id, 0, 'DENY', 'x', 'DONE', 1, now() from products",
            "insert into assignment_action_items (action_id, product_key, product_id, shop_id, version, outcome)
             select action_id, n, 'x', 0, 0, 'DONE' from assignment_actions, generate_series(1, 2) n",
            "insert into webhooks (webhook_id, account_id, url, types, secret, position)
             select gen_random_uuid(), account_id, 'http://127.0.0.1:1/', array['PRODUCT_CREATED'], '', 0 from accounts",
            "insert into webhook_deliveries (webhook_id, sequence, message_id, product_key, product_id, type, body, delivered_at)
             select webhook_id, n, gen_random_uuid(), n, 'x', 'PRODUCT_CREATED', '', now()
             from webhooks, generate_series(1, 500) n",
            "insert into idempotency_keys (account_id, level, key, attempt, leased_until, status, request_hash, headers, body)
             select account_id, 'EDIT', n::text, gen_random_uuid(), now(), 200, '', '[]', ''
             from accounts, generate_series(1, 500) n",
            "insert into usage (account_id, month, shard, used)
             select account_id, '2020-01-01'::date + n, 0, 1 from accounts, generate_series(1, 500) n",
            "insert into search_indexes (name, family, mapping_version, building) values ('postgresql', 'postgresql', 1, false)",
            "insert into search_documents (product_key, account_id, shop_id, product_id, version, id_text, keyword_texts,
                    name_texts, tag_texts, keyword_words, name_words, tag_words, all_keywords, all_names, all_tags)
             select product_key, account_id, 0, product_id, 1, product_id, '{}', '{}', '{}', '{}', '{}', '{}', '', '', ''
             from products",
            "analyze",
        ] {
            sqlx::raw_sql(statement).execute(store.pool()).await.expect(statement);
        }
        Large { app, store }
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
    pub(crate) async fn without_scan<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let before = self.scans().await;
        let done = work.await;
        assert_eq!(self.scans().await, before, "{what} scans a table");
        done
    }

    /// Entries that were read of the indices of some tables, and rows of these tables from end to end.
    pub(crate) async fn entries(&self, tables: &[&str]) -> i64 {
        sqlx::query("select pg_stat_force_next_flush()").execute(self.store.pool()).await.expect("flushed");
        sqlx::query_scalar(
            "select (select sum(idx_tup_read) from pg_stat_user_indexes where relname = any($1))::bigint
                  + (select sum(seq_tup_read) from pg_stat_user_tables where relname = any($1))::bigint",
        )
        .bind(tables)
        .fetch_one(self.store.pool())
        .await
        .expect("statistics")
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

/// A database of its own with one account, one connection to it, and a caller of the account.
pub(crate) async fn one_connection(plan: Plan) -> (TestDatabase, Store, Caller) {
    let database = database().await;
    let settings = Settings { database_connections: 1, ..Settings::default() };
    let store = Store::connect_with(&database.url, &settings).await.expect("a connection");
    store.create_account("one", plan).await.expect("an account");
    let caller = store.account_by_name("one", "x").await.expect("an answer").expect("the account");
    (database, store, caller)
}

#[tokio::test]
async fn a_creation_beyond_the_limit_of_the_plan_writes_nothing() {
    let (_database, store, caller) = one_connection(Plan::FreeTrial).await;
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
    // A dump that is restored where it was taken brings its rows into new tables.
    run(RESTORED).await;
    store.migrate().await.expect("migrated");
    assert!(is_stale().await);
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
        let nothing = |slots: usize| Ok(vec![Verdict::default(); slots]);
        let results: Vec<_> = batch.claims.iter().map(|claim| nothing(claim.slots.len())).collect();
        batch.complete(&results).await
    };
    assert_eq!(large.without_scan("auto-assignment", assigning).await.expect("stored"), 3);
    let claim = large.without_scan("a claim of the index", store.claim_search_changes(500)).await.expect("a claim");
    large.without_scan("its end", claim.expect("rows").finish(&[])).await.expect("finished");
    large.without_scan("deleting", store.delete_product(&caller, shop, "p1", 2)).await.expect("deleted");
    large.without_scan("housekeeping", store.orphaned_objects(None)).await.expect("keys");
}

/// What a client of an account may ask for, as paths.
const ASKED: [&str; 42] = [
    "/products/global?size=50",
    "/products/global?size=50&count=true",
    "/products/global?productIds=p1,p2",
    "/products/global?shopIds=3",
    "/products/global/p7",
    "/products/global?filterCriteria=%5B%5D",
    "/products/global?filterCriteria=%5B%7B%22productId%22%3A%22p77%22%7D%5D",
    "/shops/7/products/local",
    "/assignments/TARIC?assignmentStatus=ALL",
    "/assignments/TARIC?assignmentStatus=ALL&count=true",
    "/assignments/TARIC?assignmentStatus=ASSIGNED",
    "/assignments/TARIC?assignmentStatus=DENIED",
    "/assignments/TARIC?assignmentStatus=ALL&productIds=p1,p2",
    "/assignments/TARIC?assignmentStatus=ALL&sort=confidence",
    "/assignments/TARIC?assignmentStatus=ALL&sort=-confidence",
    "/assignments/TARIC?assignmentStatus=ALL&sort=updatedAt",
    "/assignments/TARIC?assignmentStatus=ALL&sort=-updatedAt",
    "/assignments/TARIC?assignmentStatus=ALL&sort=impact",
    "/assignments/TARIC?assignmentStatus=ALL&reviewNeeded=true",
    "/assignments/TARIC?assignmentStatus=ALL&labels=hot",
    "/assignments/TARIC?assignmentStatus=ALL&labels=!hot",
    "/assignments/TARIC?assignmentStatus=ALL&productClass=6109",
    "/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL",
    "/assignments/TARIC?assignmentStatus=ALL&autoAssignment=PENDING",
    "/assignments/TARIC?assignmentStatus=ALL&confidenceFrom=0.5&confidenceTo=0.95",
    "/assignments/TARIC?assignmentStatus=ALL&updatedFrom=2100-01-01T00:00:00Z",
    "/assignments/TARIC?assignmentStatus=ALL&shopId=3",
    "/assignments/TARIC?assignmentStatus=ALL&size=3&embed=EVENTS&embed=PRODUCT",
    "/assignments/TARIC/counts?by=assignmentStatus&by=heading",
    "/assignments/TARIC/counts?by=label",
    "/assignments/TARIC/counts?by=confidenceBand&labels=hot",
    "/assignments/TARIC/counts?by=day&productClass=6109",
    "/assignments/TARIC/counts?by=heading&confidenceFrom=0.71&confidenceTo=0.77",
    "/assignments/TARIC/counts?by=label&productClass=61",
    "/assignments/assignment-labels",
    "/products/merchant-product-attributes",
    "/changes?after=0",
    "/changes?after=latest",
    "/changes?after=0&types=PRODUCT_DELETED&taxonomy=TARIC",
    "/usage",
    "/webhooks",
    "/tokens",
];

#[tokio::test]
async fn what_a_client_asks_for_scans_no_large_table() {
    let large = Large::new().await;
    for path in ASKED {
        large.without_scan(path, large.app.get(path)).await.expect(200);
    }
    let one = large.app.assignment("TARIC", "p5").await;
    let uuid = one["assignmentUuid"].as_str().expect("a uuid").to_owned();
    for path in [format!("/assignments/TARIC/{uuid}?embed=EVENTS"), format!("/assignments/TARIC/{uuid}/alike")] {
        large.without_scan(&path, large.app.get(&path)).await.expect(200);
    }
    let label = json!({"label": "hot", "color": "#aabbcc"});
    large.without_scan("a label", large.app.post("/assignments/assignment-labels", label)).await.expect(201);
    let body = json!({"assignmentUuids": [uuid], "labels": ["hot"]});
    large.without_scan("labelling", large.app.put("/assignments", body)).await.expect(200);
    large.without_scan("an action", large.app.act("TARIC", "p5", "APPROVE", 0)).await.expect(200);
    let several = action_body(&[("p15", 0), ("p25", 0)]);
    let path = "/assignments/TARIC?assignmentAction=REJECT";
    large.without_scan("an action on several", large.app.patch(path, several)).await.expect(200);
    let filter = json!({"action": "DENY", "filter": {"assignmentStatus": ["ASSIGNED"], "productClass": "610910"}});
    let begun = large.app.post("/assignments/TARIC/actions", filter);
    let begun = large.without_scan("an action by filter", begun).await.expect(202).body;
    let path = format!("/assignments/actions/{}", begun["actionId"].as_str().expect("an id"));
    large.without_scan(&path, large.app.get(&path)).await.expect(200);
    let body = json!({"products": [{"productId": "p1"}]});
    large.without_scan("a repeated try", large.app.post("/assignments/auto-assignment", body)).await.expect(200);
    let attribute = json!({"fieldName": "a", "objectType": "Text", "format": "None", "isLanguageSpecific": false});
    let path = "/products/merchant-product-attributes";
    large.without_scan("an attribute", large.app.post(path, attribute)).await.expect(201);
    let path = "/products/merchant-product-attributes/a";
    large.without_scan("an attribute removed", large.app.delete(path)).await.expect(204);
    let search = json!({"productIds": ["p1"], "filterCriteria": [{"productName": "tee", "languageKey": "de"}]});
    large.without_scan("a search", large.app.post("/products/global/search", search)).await.expect(200);
}

#[tokio::test]
async fn what_jobs_and_operators_do_scans_no_large_table() {
    let large = Large::new().await;
    let store = &large.store;
    let never = CancellationToken::new();
    large.without_scan("the reviewers' work", review::work_off(store, &never)).await.expect("done");
    large.without_scan("the counts", store.fold_counts()).await.expect("added up");
    large.without_scan("its look-out", store.has_review_work()).await.expect("an answer");
    large.without_scan("labels that leave", store.shed_label(None)).await.expect("an answer");
    large.without_scan("old actions", store.forget_old_actions()).await.expect("forgotten");
    large.without_scan("webhooks", store.claim_webhooks(4)).await.expect("claimed");
    large.without_scan("lessons", store.memory_lessons()).await.expect("lessons");
    large.without_scan("what was taken back", store.forget_taken_back()).await.expect("forgotten");
    large.without_scan("idempotency keys", store.forget_old_keys()).await.expect("forgotten");
    large.without_scan("classes", store.assigned_classes(Taxonomy::Taric, "", 1_000)).await.expect("classes");
    let class = "610910-00-000".parse().expect("a class");
    large.without_scan("a rule", store.judge_again(Taxonomy::Taric, class, true, i64::MIN, 100)).await.expect("judged");
    let documents = Postgres::new(store);
    large.without_scan("documents", documents.versions(0, 100)).await.expect("versions");
    large.without_scan("products", store.product_versions(0, 100)).await.expect("versions");
    large.without_scan("removed documents", documents.forget_removed_documents()).await.expect("removed");
    large.without_scan("account list", store.accounts()).await.expect("accounts");
    large.without_scan("token list", store.tokens(Some("shop"))).await.expect("tokens");
    for queue in [Queue::AutoAssignment, Queue::Search] {
        large.without_scan("queue parked", store.parked(queue, Some("shop"), 0)).await.expect("parked");
    }
    let caller = store.account_by_name("account 7", "x").await.expect("an answer").expect("the account");
    large.without_scan("account memory", store.memory_sizes(caller.account)).await.expect("sizes");
    let page = store.remembered_decisions(caller.account, Uuid::nil());
    large.without_scan("account memory export", page).await.expect("decisions");
    large.without_scan("account delete", store.delete_account("account 7")).await.expect("deleted");
    large.without_scan("what was deleted before", store.erase_deleted()).await.expect("erased");
}
