//! What one request may take: pages are cut by what they weigh, memory is asked for before anything is read, and what may be
//! slow takes a place among the searches.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use sqlx::{PgConnection, Postgres, Transaction};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vat_classification::domain::access::Plan;
use vat_classification::domain::{Product, ShopId};
use vat_classification::http::AdmissionSettings;
use vat_classification::store::accounts::Caller;
use vat_classification::store::products::{Asked, Fate, NewProduct};

use crate::app::{Answer, App, german};

/// Searches at one time that are an account's: three quarters of all.
const SEARCHES: usize = 9;

/// The products on each page, and on the way back.
async fn walk(app: &App, path: &str) -> [Vec<Vec<String>>; 2] {
    let ids = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().expect("items").iter();
        items.map(|item| item["productId"].as_str().expect("an id").to_owned()).collect()
    };
    let mut page = app.get(path).await.expect(200).body;
    let mut forth = vec![ids(&page)];
    while let Some(next) = page["links"]["next"].as_str() {
        page = app.get(next).await.expect(200).body;
        forth.push(ids(&page));
    }
    let mut back = vec![ids(&page)];
    while let Some(prev) = page["links"]["prev"].as_str() {
        page = app.get(prev).await.expect(200).body;
        back.insert(0, ids(&page));
    }
    [forth, back]
}

/// Whether so many wait in this database for a lock of a kind.
async fn waits_for(connection: &mut PgConnection, kind: &str, many: usize) -> bool {
    let waiting: i64 = sqlx::query_scalar(
        "select count(*) from pg_locks where not granted and locktype = $1
           and database = (select oid from pg_database where datname = current_database())",
    )
    .bind(kind)
    .fetch_one(connection)
    .await
    .expect("a count");
    waiting >= many as i64
}

/// Fails where there is an answer while something is locked that it has to read.
fn none_yet(answer: Option<Answer>) {
    assert!(answer.is_none(), "an answer from behind a lock: {answer:?}");
}

/// Opens connections, one after the other: many at one time may take longer than a request waits for one.
async fn connect(app: &App, connections: usize) {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(app.store.pool().acquire().await.expect("a connection"));
    }
}

/// Adds events of a taxonomy to the history of products.
async fn add_events(app: &App, taxonomy: i16, products: &str, many: i64) {
    sqlx::query(
        "insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, version)
         select -(product_key * 100000 + n) * 3 - $1, account_id, product_key, product_id, shop_id, $1, 'LABEL', 'anna', 0
         from products, generate_series(1, $2) n where product_id like $3",
    )
    .bind(taxonomy)
    .bind(many)
    .bind(products)
    .execute(app.store.pool())
    .await
    .expect("events");
}

#[tokio::test]
async fn a_page_of_assignments_shows_no_more_of_products_than_its_budget() {
    let app = App::start().await;
    let products: Vec<String> = (0..5).map(|n| format!("p{n}")).collect();
    let named: Vec<(&str, &str)> = products.iter().map(|id| (id.as_str(), "Kaffee")).collect();
    app.create(&named).await;
    app.create(&[("small", "x")]).await;
    // Three of 3 MiB pass the 8 MiB of a page.
    sqlx::query("update products set details_size = 3 << 20 where product_id like 'p%'")
        .execute(app.store.pool())
        .await
        .expect("set");
    for sort in ["", "&sort=-updatedAt", "&sort=confidence"] {
        for embed in ["PRODUCT", "CANDIDATES"] {
            let list = format!("/assignments/TARES?assignmentStatus=ALL&size=6{sort}");
            let whole = app.get(&list).await.expect(200).body;
            assert_eq!(whole["items"].as_array().expect("items").len(), 6, "what is not read weighs nothing");
            let [forth, back] = walk(&app, &format!("{list}&embed={embed}")).await;
            assert!(forth.iter().chain(&back).all(|page| (1..=3).contains(&page.len())), "{forth:?} {back:?}");
            for pages in [forth, back] {
                let large = |page: &Vec<String>| page.iter().filter(|id| id.starts_with('p')).count();
                assert!(pages.iter().all(|page| large(page) <= 2), "{pages:?}");
                let visited: Vec<String> = pages.concat();
                assert_eq!((visited.len(), visited.iter().collect::<BTreeSet<_>>().len()), (6, 6), "{visited:?}");
            }
        }
    }
    // What alone is too much for a page is one.
    sqlx::query("update products set details_size = 100 << 20").execute(app.store.pool()).await.expect("set");
    let [forth, back] = walk(&app, "/assignments/TARES?assignmentStatus=ALL&embed=PRODUCT").await;
    assert_eq!((forth.len(), back.len()), (6, 6));
}

#[tokio::test]
async fn a_page_of_assignments_has_no_more_events_than_its_budget_and_those_of_its_taxonomy() {
    let app = App::start().await;
    app.create(&[("p0", "x"), ("p1", "x"), ("p2", "x"), ("q", "x")]).await;
    let list = "/assignments/TARES?assignmentStatus=ALL&embed=EVENTS";
    let [plain, _] = walk(&app, list).await;
    assert_eq!(plain, [["p0", "p1", "p2", "q"]]);
    // Of TARIC: they are not read where TARES is shown.
    add_events(&app, 0, "p%", 9_000).await;
    let [plain, _] = walk(&app, list).await;
    assert_eq!(plain, [["p0", "p1", "p2", "q"]]);
    assert_eq!(app.history("TARES", "p0").await, ["anna CREATE UNASSIGNED"]);
    // Two of 9,001 fit into 20,000, a third does not.
    let list = list.replace("TARES", "TARIC");
    let pages = walk(&app, &list).await;
    assert_eq!(pages[0], [vec!["p0", "p1"], vec!["p2", "q"]]);
    assert_eq!(pages[1].concat(), pages[0].concat());
    assert_eq!(app.history("TARIC", "p0").await.len(), 9_001);
    // Of one that has more, the last are shown.
    add_events(&app, 2, "q", 20_001).await;
    let history = app.history("UKGT", "q").await;
    assert_eq!(history.len(), 20_000);
    assert_eq!(history.last().map(String::as_str), Some("anna CREATE UNASSIGNED"));
}

/// Holds memory of the account as requests do that wait for their body; 10 MiB each.
async fn hold_memory(app: &Arc<App>, requests: usize) -> Vec<JoinHandle<()>> {
    let (held, mut are_held) = mpsc::unbounded_channel();
    let mut waiting = Vec::new();
    for _ in 0..requests {
        let (app, held) = (Arc::clone(app), held.clone());
        waiting.push(tokio::spawn(async move {
            // The body is asked for once its memory is taken, and never comes.
            let asked = async move {
                held.send(()).expect("a test that listens");
                std::future::pending::<Result<Bytes, std::io::Error>>().await
            };
            let body = Body::from_stream(stream::once(asked));
            let path = "/products/global/product-picture?productId=p";
            app.raw(&app.token, "POST", path, "multipart/form-data; boundary=X", body).await;
        }));
    }
    for _ in 0..requests {
        are_held.recv().await.expect("a request");
    }
    waiting
}

#[tokio::test]
async fn what_weighs_much_waits_for_memory_before_it_is_read() {
    // 48 MiB are an account's.
    let small = AdmissionSettings { request_memory_mib: 64, ..AdmissionSettings::default() };
    let app = Arc::new(App::with(Plan::Unlimited, small).await);
    app.create(&[("p", "x"), ("q", "x")]).await;
    add_events(&app, 0, "p", 20_000).await;
    sqlx::query(
        "insert into merchant_product_attributes (account_id, field_name, description, is_language_specific, format,
                                                  object_type, tags)
         select account_id, 'a' || n, repeat('x', 2000), false, 'None', 'Text', array_fill(repeat('t', 200), array[40])
         from accounts, generate_series(1, 1000) n",
    )
    .execute(app.store.pool())
    .await
    .expect("attributes");
    let uuid = app.assignment("TARIC", "p").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let large = [
        "/assignments/TARIC?assignmentStatus=ALL&size=1000".to_owned(),
        "/assignments/TARIC?assignmentStatus=ALL&embed=EVENTS&size=1".to_owned(),
        format!("/assignments/TARIC/{uuid}?embed=EVENTS"),
        "/products/merchant-product-attributes".to_owned(),
    ];
    let waiting = hold_memory(&app, 4).await;
    for path in &large {
        assert_eq!(app.get(path).await.expect(503).body["code"], "ServiceUnavailable", "{path}");
    }
    for small in ["size=10", "size=10&productIds=q&embed=EVENTS,PRODUCT"] {
        app.get(&format!("/assignments/TARIC?assignmentStatus=ALL&{small}")).await.expect(200);
    }
    for one in waiting {
        one.abort();
        assert!(one.await.is_err_and(|error| error.is_cancelled()));
    }
    for path in &large {
        app.get(path).await.expect(200);
    }
}

/// Locks what is locked while a declaration of an account is removed: who relies on declarations waits for that.
async fn removes_a_declaration(app: &App, caller: &Caller) -> Transaction<'static, Postgres> {
    let mut removing = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("select pg_advisory_xact_lock($1, $2)")
        .bind(0x6174_7472)
        .bind(caller.account as i32)
        .execute(&mut *removing)
        .await
        .expect("a lock");
    removing
}

#[tokio::test]
async fn an_import_without_attributes_does_not_look_them_up() {
    let app = App::start().await;
    app.create(&[("old", "x")]).await;
    let caller = app.caller("anna").await;
    let mut removing = removes_a_declaration(&app, &caller).await;
    let (new, changed) = (german("new"), german("changed"));
    let patched = [("new", &new), ("old", &changed)];
    app.store.merge_products(&caller, ShopId::GLOBAL, &patched, false).await.expect("merged");
    let with = json!({"productDetails": {"merchantProductAttributes": {"manual": "x"}}});
    let with = [("with", &with)];
    let mut merging = std::pin::pin!(app.store.merge_products(&caller, ShopId::GLOBAL, &with, false));
    while !waits_for(&mut removing, "advisory", 1).await {
        assert!(merging.as_mut().now_or_never().is_none(), "attributes are looked up where they are used");
    }
    removing.rollback().await.expect("no lock");
    let merged = merging.await.expect("merged");
    assert!(matches!(merged[..], [vat_classification::store::products::Merged::Refused(_)]), "{merged:?}");
}

#[tokio::test]
async fn a_declaration_that_goes_after_products_were_judged_is_missed_before_they_are_stored() {
    let app = App::start().await;
    let caller = app.caller("anna").await;
    let with = json!({"merchantProductAttributes": {"manual": "x"}});
    let product = Product { shop_ids: Vec::new(), product_details: serde_json::from_value(with).expect("details") };
    let products = [NewProduct { product_id: "with".to_owned(), product }];
    let (store, asked) = (&app.store, Asked::default());
    for skip in [false, true] {
        app.post("/products/merchant-product-attributes", json!({"fieldName": "manual"})).await.expect(201);
        let mut removing = removes_a_declaration(&app, &caller).await;
        let mut creating = std::pin::pin!(async {
            match skip {
                false => store.create_products(&caller, ShopId::GLOBAL, &products, &asked, false).await.is_ok(),
                true => {
                    let fates = store.create_what_can_be(&caller, ShopId::GLOBAL, &products, &asked, false).await;
                    !matches!(fates.expect("fates")[..], [Fate::Broken(_)])
                }
            }
        });
        while !waits_for(&mut removing, "advisory", 1).await {
            assert!(creating.as_mut().now_or_never().is_none(), "declarations are held on to where they are relied on");
        }
        sqlx::query("delete from merchant_product_attributes").execute(&mut *removing).await.expect("gone");
        removing.commit().await.expect("committed");
        assert!(!creating.await, "stored, {skip}");
    }
    app.get("/products/global/with").await.expect(404);
}

#[tokio::test]
async fn who_finds_no_place_to_compute_is_charged_no_checks() {
    // Each processor has four places, and three quarters of them are an account's.
    let places = std::thread::available_parallelism().map_or(2, usize::from) * 3;
    let many = AdmissionSettings { max_requests: 4 * places as u32, ..AdmissionSettings::default() };
    let app = App::with_connections(Plan::FreeTrial, many, places as u32 + 4).await;
    app.create(&[("p", "Kaffee")]).await;
    let used = async || app.get("/usage").await.expect(200).body["used"].as_i64().expect("a number");
    let before = used().await;
    connect(&app, places + 2).await;
    let uuid = app.assignment("TARIC", "p").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    // Those who look for products that are alike keep their places while they read.
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table product_words in access exclusive mode").execute(&mut *held).await.expect("a lock");
    let alike = format!("/assignments/TARIC/{uuid}/alike");
    let mut computing: FuturesUnordered<_> = (0..places).map(|_| app.get(&alike)).collect();
    while !waits_for(&mut held, "relation", places).await {
        none_yet(computing.next().now_or_never().flatten());
    }
    let body = json!({"taxonomy": "TARIC", "items": [{"languageAttributes": {"de": {"productName": "Kaffee"}}}]});
    let refused = app.post("/classifications", body.clone()).await.expect(503);
    assert_eq!(refused.body["code"], "ServiceUnavailable");
    assert_eq!(used().await, before);
    held.rollback().await.expect("no lock");
    while let Some(answer) = computing.next().await {
        answer.expect(200);
    }
    app.post("/classifications", body).await.expect(200);
    assert_eq!(used().await, before + 1);
}

#[tokio::test]
async fn lists_counts_and_actions_that_a_filter_may_make_slow_take_places_of_searches() {
    let app = App::with_connections(Plan::Unlimited, AdmissionSettings::default(), SEARCHES as u32 + 8).await;
    app.create(&[("p", "x")]).await;
    let filter = "assignmentStatus=ALL&labels=!none";
    let list = format!("/assignments/TARIC?{filter}");
    let count = format!("/assignments/TARIC/counts?by=heading&{filter}&shopId=1");
    let act = || {
        let filter = json!({"assignmentStatus": "ALL", "shopId": 1});
        app.post("/assignments/TARIC/actions", json!({"action": "REJECT", "filter": filter, "dryRun": true}))
    };
    for path in [&list, &count] {
        app.get(path).await.expect(200);
    }
    act().await.expect(202);
    connect(&app, SEARCHES + 3).await;
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table assignments in access exclusive mode").execute(&mut *held).await.expect("a lock");
    let mut searching: FuturesUnordered<_> = (0..SEARCHES).map(|_| app.get(&list)).collect();
    while !waits_for(&mut held, "relation", SEARCHES).await {
        none_yet(searching.next().now_or_never().flatten());
    }
    let (listed, counted, acted) = tokio::join!(app.get(&list), app.get(&count), act());
    for refused in [listed, counted, acted] {
        assert_eq!(refused.expect(503).body["code"], "ServiceUnavailable");
    }
    // Statuses alone are read in the order of an index, and need no such place: it is the lock that they wait for.
    let open = "/assignments/TARIC?assignmentStatus=ALL";
    let mut opened = std::pin::pin!(app.get(open));
    while !waits_for(&mut held, "relation", SEARCHES + 1).await {
        none_yet(opened.as_mut().now_or_never());
    }
    held.rollback().await.expect("no lock");
    opened.await.expect(200);
    while let Some(answer) = searching.next().await {
        answer.expect(200);
    }
}

/// Bytes of memory that this process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("pages") << 12
}

#[tokio::test]
async fn connections_keep_nothing_of_the_largest_statement_that_they_sent() {
    const CONNECTIONS: usize = 12;
    const STATEMENT_BYTES: usize = 32 << 20;
    let app = App::start().await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(app.store.pool().acquire().await.expect("a connection"));
    }
    let before = resident();
    for connection in &mut connections {
        let text = "x".repeat(STATEMENT_BYTES);
        let length: i32 = sqlx::query_scalar("select length($1::text)")
            .bind(text)
            .fetch_one(&mut **connection)
            .await
            .expect("a length");
        assert_eq!(length as usize, STATEMENT_BYTES);
    }
    assert!(resident() > before + CONNECTIONS / 2 * STATEMENT_BYTES, "what is measured is there");
    for mut connection in connections {
        connection.return_to_pool().await;
    }
    // Other tests of this program take and give back memory meanwhile, but not as much.
    assert!(resident() < before + CONNECTIONS / 2 * STATEMENT_BYTES, "{before} {}", resident());
}
