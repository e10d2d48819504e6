//! What is done often reads of a large database as much as it needs: as many entries as it shows, changes or moves.

use std::time::Duration;

use axum::body::Body;
use chrono::Utc;
use serde_json::json;
use vat_classification::domain::ShopId;
use vat_classification::domain::Verdict;
use vat_classification::domain::access::Plan;
use vat_classification::jobs::auto_assignment::decide_by;
use vat_classification::search::Postgres;
use vat_classification::store::Store;
use vat_classification::store::changes::Selection;
use vat_classification::store::pages::Position;
use vat_classification::store::parked::Queue;
use vat_classification::store::products::Merged;

use crate::app::App;
use crate::plans::{LARGE, Large, one_connection};

/// What something read, beside the most that it may.
struct Told {
    what: String,
    read: i64,
    most: i64,
}

/// Does things one by one, and tells what each read.
struct Reader {
    large: Large,
    /// The tables of which it is told.
    tables: &'static [&'static str],
    told: Vec<Told>,
}

impl Reader {
    async fn new(tables: &'static [&'static str]) -> Reader {
        Reader { large: Large::new().await, tables, told: Vec::new() }
    }

    async fn within<T>(&mut self, what: &str, most: i64, work: impl AsyncFnOnce(&Large) -> T) -> T {
        let before = self.large.entries(self.tables).await;
        let done = work(&self.large).await;
        let read = self.large.entries(self.tables).await - before;
        self.told.push(Told { what: what.to_owned(), read, most });
        done
    }

    /// Makes what is to be read.
    async fn fill(&self, statements: &[&'static str]) {
        for statement in statements {
            sqlx::raw_sql(*statement).execute(self.large.store.pool()).await.expect(statement);
        }
    }

    /// Fails with all that read too much.
    fn judge(&self) {
        let line = |told: &Told| format!("{}: {} entries, at most {}", told.what, told.read, told.most);
        let above: Vec<String> = self.told.iter().filter(|told| told.read > told.most).map(line).collect();
        assert!(above.is_empty(), "{}", above.join("\n"));
        // Statistics that nobody keeps would let everything pass.
        assert!(self.told.iter().any(|told| told.read > 0), "nothing is counted");
    }
}

/// Claims products, decides nothing of them, and answers how many results were stored.
async fn work_off(large: &Large, most: usize) -> usize {
    let batch = large.store.claim_auto_assignments(most).await.expect("a claim").expect("rows");
    let (batch, decided) = decide_by(batch, |claim| vec![Verdict::default(); claim.slots.len()]).await;
    batch.complete(&decided).await.expect("stored")
}

#[tokio::test]
async fn pages_read_what_they_show() {
    let mut reader = Reader::new(&LARGE).await;
    // The account has 1,000 products, 100 of them assigned; the database has 21 such accounts.
    for (path, most) in [
        ("/products/global?size=50", 400),
        ("/products/global?size=50&count=true", 1_400),
        ("/products/global?productIds=p1,p2", 20),
        ("/assignments/TARIC?assignmentStatus=ASSIGNED&size=50", 80),
        ("/assignments/TARIC?assignmentStatus=ALL&size=50", 90),
        ("/assignments/TARIC?assignmentStatus=ALL&size=50&sort=confidence", 160),
        ("/assignments/TARIC?assignmentStatus=ALL&size=50&sort=-updatedAt", 90),
        ("/assignments/TARIC?assignmentStatus=ALL&labels=hot", 10),
        ("/assignments/TARIC?assignmentStatus=ALL&size=20&embed=EVENTS&embed=PRODUCT", 300),
        ("/assignments/TARIC/counts?by=assignmentStatus", 10),
        ("/assignments/TARIC/counts?by=heading&by=assignmentStatus", 10),
        ("/changes?after=0&size=50", 160),
    ] {
        reader.within(path, most, async |large| large.app.get(path).await).await.expect(200);
    }
    reader.judge();
}

#[tokio::test]
async fn jobs_and_files_read_what_they_work_on() {
    let mut reader = Reader::new(&LARGE).await;
    let caller = reader.large.app.caller("anna").await;
    let page = async |large: &Large| large.store.changes(caller.account, 0, 50, &Selection::default()).await;
    reader.within("a page of the feed", 160, page).await.expect("changes");
    reader.large.app.create(&[("n1", "Tee"), ("n2", "Tee")]).await;
    let claim = async |large: &Large| work_off(large, 500).await;
    assert_eq!(reader.within("a claim", 60, claim).await, 6);
    let slice = async |large: &Large| {
        (large.store.product_versions(0, 100).await, Postgres::new(&large.store).versions(0, 100).await)
    };
    let (products, documents) = reader.within("a slice of the comparison", 210, slice).await;
    assert_eq!((products.expect("versions").len(), documents.expect("versions").len()), (100, 100));
    reader
        .within("keys that are kept", 10_500, async |large| large.store.count_kept_keys().await)
        .await
        .expect("counted");
    let remembered = async |large: &Large| {
        let now = large.store.memory_snapshot().await?;
        large.store.memory_page(None, &now, None).await
    };
    reader.within("a page of the memory", 510, remembered).await.expect("decisions");
    let park = "insert into auto_parked (account_id, product_key, reason)
                select account_id, product_key, 'x' from products where product_id in ('p1', 'p2')";
    sqlx::query(park).execute(reader.large.store.pool()).await.expect("parked");
    let retry = async |large: &Large| large.store.retry_parked(Queue::AutoAssignment, Some("shop"), Utc::now()).await;
    assert_eq!(reader.within("what is tried again", 10, retry).await.expect("sent"), 2);
    let export = async |large: &Large| {
        let page = large.store.products(caller.account, ShopId::GLOBAL, None, None, &Position::Start, 100).await;
        page.expect("a page").page.items.len()
    };
    assert_eq!(reader.within("a page of an export", 700, export).await, 100);
    let import = async |large: &Large| {
        let lines: String = (1..=20).map(|at| format!("p{at},Kaffee {at}\n")).collect();
        let file = format!("productId,de:productName\n{lines}");
        large.app.raw(&large.app.token, "POST", "/imports", "text/csv", Body::from(file)).await
    };
    reader.within("an import of 20 lines", 300, import).await.expect(200);
    reader.judge();
}

/// Tables of work that waits, and of what is yet to be added up.
const QUEUES: [&str; 7] = [
    "assignment_count_changes",
    "assignment_counts",
    "auto_parked",
    "auto_queue",
    "memory_lessons",
    "search_outbox",
    "search_parked",
];

/// Work of all kinds that waits, of all accounts that [`Large`] has: a thousand pieces of each.
const WAITING: [&str; 7] = [
    "insert into auto_queue (account_id, product_key) select account_id, product_key from products",
    "insert into search_outbox (account_id, product_key, version, deleted)
     select account_id, product_key, 1, false from products",
    "insert into auto_parked (account_id, product_key, reason) select account_id, product_key, 'x' from products",
    "insert into search_parked (account_id, product_key, version, reason)
     select account_id, product_key, 1, 'x' from products",
    "insert into memory_lessons (account_id, assignment_uuid) select account_id, assignment_uuid from memory_decisions",
    "insert into assignment_count_changes
     select account_id, 0, 2, 'ASSIGNED', '', 'DONE', false, product_id, -1, 1 from products",
    "analyze",
];

#[tokio::test]
async fn the_next_piece_of_work_is_found_without_reading_the_queue() {
    let mut reader = Reader::new(&QUEUES).await;
    reader.fill(&WAITING).await;
    let claim = async |large: &Large| work_off(large, 50).await;
    let waiting = async |large: &Large| -> i64 {
        let count = sqlx::query_scalar("select count(*) from auto_queue").fetch_one(large.store.pool());
        count.await.expect("a count")
    };
    let before = waiting(&reader.large).await;
    // Nothing is stored, since all is decided already; what was claimed is done all the same.
    assert_eq!(reader.within("a claim", 500, claim).await, 0);
    assert_eq!(waiting(&reader.large).await, before - 50);
    let claim = async |large: &Large| {
        let claim = large.store.claim_search_changes(50).await.expect("a claim").expect("rows");
        claim.finish(&[]).await
    };
    reader.within("a claim of the index", 500, claim).await.expect("finished");
    let lessons = reader.within("lessons", 100, async |large| large.store.memory_lessons().await).await;
    assert_eq!(lessons.expect("lessons").len(), 21);
    let look_out = async |large: &Large| large.store.has_review_work().await;
    assert!(reader.within("the look-out for reviews", 10, look_out).await.expect("an answer"));
    for queue in Queue::ALL {
        let parked = async |large: &Large| large.store.parked(queue, Some("account 7"), 0).await;
        let parked = reader.within("what is parked", 2_500, parked).await.expect("parked").len();
        // What the claims have done is parked no longer.
        assert!((950..=1_000).contains(&parked), "{parked}");
        let retry = async |large: &Large| large.store.retry_parked(queue, Some("account 7"), Utc::now()).await;
        assert_eq!(reader.within("what is tried again", 5_000, retry).await.expect("sent"), parked as u64);
    }
    reader.judge();
}

/// An account with five products, with all that products can have.
const SMALL: [&str; 6] = [
    "insert into accounts (name, plan) values ('small', 'UNLIMITED')",
    "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications, application_tags,
                           application_issues)
     select account_id, 0, 'p' || n, 1, '{}', '{}', '{}', '{}', '[]'
     from accounts, generate_series(1, 5) n where name = 'small'",
    "insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, auto_state)
     select gen_random_uuid(), account_id, product_key, taxonomy, product_id, 0, 'DONE'
     from products join accounts using (account_id), generate_series(0, 2) taxonomy where name = 'small'",
    "insert into product_words (product_key, account_id, words)
     select product_key, account_id, array[1, 2] from products join accounts using (account_id) where name = 'small'",
    "insert into pictures (product_key, object_key, content_type, width, height, size, etag)
     select product_key, gen_random_uuid()::text, 'image/png', 1, 1, 1, 'x'
     from products join accounts using (account_id) where name = 'small'",
    "analyze",
];

#[tokio::test]
async fn a_move_reads_the_account_that_moves() {
    let mut reader = Reader::new(&LARGE).await;
    reader.fill(&SMALL).await;
    let there = App::start().await;
    let moved = async |large: &Large, name: &str| {
        // A move needs several connections, and what they read is told when they end.
        let store = Store::connect(large.app.database_url()).await.expect("connected");
        let moved = store.move_account(name, &there.store, Duration::ZERO, |_, _| ()).await;
        store.pool().close().await;
        let others =
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                      and backend_type = 'client backend'";
        while sqlx::query_scalar::<_, i64>(others).fetch_one(large.store.pool()).await.expect("a count") > 0 {
            tokio::task::yield_now().await;
        }
        moved
    };
    // The smallest of the tables has 10,000 rows.
    let small = reader.within("a move of a small account", 2_000, async |large| moved(large, "small").await).await;
    assert_eq!(small.expect("moved"), 5);
    // Tables without an account of their own are read whole where that is less work: the account has a twentieth of each.
    let large = reader.within("a move", 200_000, async |large| moved(large, "account 7").await).await;
    assert_eq!(large.expect("moved"), 1_000);
    reader.judge();
}

#[tokio::test]
async fn products_are_looked_up_one_by_one_before_the_database_knows_how_many_there_are() {
    let (_database, store, caller) = one_connection(Plan::Unlimited).await;
    // Stored a moment ago, as by the import of a file that goes on: no statistics tell of them.
    sqlx::query(
        "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                               application_tags, application_issues)
         select $1, 0, 'p' || n, 1, '{}', '{}', '{}', '{}', '[]' from generate_series(1, 5000) n",
    )
    .bind(caller.account)
    .execute(store.pool())
    .await
    .expect("products");
    let read = async || -> i64 {
        sqlx::query("select pg_stat_force_next_flush()").execute(store.pool()).await.expect("flushed");
        sqlx::query_scalar(
            "select sum(idx_tup_read)::bigint + min(seq_tup_read) from pg_stat_user_indexes join pg_stat_user_tables
             using (relid) where pg_stat_user_tables.relname = 'products'",
        )
        .fetch_one(store.pool())
        .await
        .expect("statistics")
    };
    let ids: Vec<String> = (1..=100).map(|n| format!("p{n}")).collect();
    let nothing = json!({});
    let patched: Vec<_> = ids.iter().map(|id| (id.as_str(), &nothing)).collect();
    let before = read().await;
    let merged = store.merge_products(&caller, ShopId::GLOBAL, &patched, false).await.expect("merged");
    assert_eq!(merged, vec![Merged::Unchanged; 100]);
    let read = read().await - before;
    assert!(read <= 200, "{read} products were read to find 100");
}
