//! However much one account has put into a queue, another one's turn comes with the next claim.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::json;
use vat_classification::domain::{Product, ShopId};
use vat_classification::store::products::{Asked, NewProduct};
use vat_classification::store::search::LEASE;

use crate::app::{App, german};

/// Gives the account `shop` a backlog, and then another account a few products.
async fn backlog(app: &App, many: usize, few: usize) {
    app.store.create_account("small", vat_classification::domain::access::Plan::Unlimited).await.expect("an account");
    for (account, count) in [("shop", many), ("small", few)] {
        let caller = app.store.account_by_name(account, "x").await.expect("an answer").expect("the account");
        let product = |i| NewProduct { product_id: format!("{account}{i}"), product: Product::default() };
        let products: Vec<NewProduct> = (0..count).map(product).collect();
        let asked = Asked::default();
        app.store.create_products(&caller, ShopId::GLOBAL, &products, &asked, false).await.expect("created");
    }
}

#[tokio::test]
async fn a_small_account_is_assigned_with_the_next_claim() {
    let app = App::start().await;
    backlog(&app, 300, 5).await;
    let batch = app.store.claim_auto_assignments(50).await.expect("a claim").expect("a batch");
    assert_eq!(batch.claims.len(), 50, "what a small account leaves is given to the large one");
    let of_small = batch.claims.iter().filter(|claim| claim.product_id().starts_with("small")).count();
    assert_eq!(of_small, 5);
    // Another service gets other rows at the same time.
    let other = app.store.claim_auto_assignments(50).await.expect("a claim").expect("a batch");
    assert!(other.claims.iter().all(|claim| batch.claims.iter().all(|first| first.key() != claim.key())));
    assert_eq!(other.claims.len(), 50);
}

#[tokio::test]
async fn a_small_account_is_indexed_with_the_next_claim() {
    let app = App::start().await;
    backlog(&app, 300, 5).await;
    let mut claim = app.store.claim_search_changes(50).await.expect("a claim").expect("rows");
    let products = claim.take().0;
    assert_eq!(products.len(), 50);
    assert_eq!(products.iter().filter(|product| product.product_id().starts_with("small")).count(), 5);
    claim.release().await.expect("given back");
    assert_eq!(app.store.search_queue_length().await.expect("a count"), 305);
}

#[tokio::test]
async fn a_claim_weighs_no_more_than_its_budget() {
    let app = App::start().await;
    let description = |i: usize| format!("{i} {}", "wort ".repeat(9_999));
    for product in 0..4 {
        let languages: serde_json::Map<_, _> =
            ["de", "en", "fr", "it", "es", "pt", "nl", "da", "sv", "fi", "pl", "cs", "sk"]
                .into_iter()
                .chain(["sl", "hr", "hu", "ro", "bg", "el", "et"])
                .map(|language| (language.to_owned(), json!({"productDescription": description(product)})))
                .collect();
        let product = (format!("p{product}"), json!({"productDetails": {"languageAttributes": languages}}));
        let body: serde_json::Map<_, _> = [product].into_iter().collect();
        app.post("/products/global", body.into()).await.expect(201);
    }
    app.create(&[("small", "x")]).await;
    // Four of a megabyte are 4,000,200 bytes and below the budget; a fifth begins below it, a sixth beyond.
    let list = app.get("/products/global").await.expect(200);
    assert_eq!(list.body["items"].as_array().expect("items").len(), 5);
    sqlx::query("update products set details_size = details_size * 3 where details_size > 1000")
        .execute(app.store.pool())
        .await
        .expect("set");
    let mut sizes = Vec::new();
    while let Some(batch) = app.store.claim_auto_assignments(500).await.expect("a claim") {
        sizes.push(batch.claims.len());
        let nothing: Vec<_> = batch.claims.iter().map(|_| Ok(Vec::new())).collect();
        batch.complete(&nothing).await.expect("done");
    }
    assert_eq!(sizes, [2, 2, 1]);
    let mut claim = app.store.claim_search_changes(500).await.expect("a claim").expect("rows");
    assert_eq!(claim.take().0.len(), 2);
    // A list shows fewer than asked for, and leads on.
    let mut path = "/products/global?size=5".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = app.get(&path).await.expect(200).body;
        pages.push(page["items"].as_array().expect("items").len());
        match page["links"]["next"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, [3, 2]);
}

#[tokio::test]
async fn a_product_is_stored_up_to_a_megabyte_however_it_comes_to_be() {
    let app = App::start().await;
    // 20 texts of 50,000 characters of two bytes are far beyond it, 10 are just below.
    let languages = ["de", "en", "fr", "it", "es", "pt", "nl", "da", "sv", "fi"];
    let texts = |count: usize| {
        let text = json!({"productDescription": "ä".repeat(50_000)});
        let texts = languages.iter().take(count).map(|language| ((*language).to_owned(), text.clone()));
        json!({"productDetails": {"languageAttributes": texts.collect::<serde_json::Map<_, _>>()}})
    };
    let mut large = texts(10);
    large["productDetails"]["languageAttributes"]["pl"] = json!({"productDescription": "ä".repeat(30_000)});
    let refused = app.post("/products/global", json!({"p": large, "q": german("x")})).await.expect(422);
    assert_eq!(refused.faults(), ["productDetails PRODUCT_TOO_LARGE"]);
    assert_eq!(refused.body["errors"][0]["productId"], "p");
    app.put("/products/global?productId=p&currentVersion=0", large.clone()).await.expect(422);
    app.put("/products/global?productId=p&currentVersion=0", texts(10)).await.expect(201);
    let more = json!({"productDetails": {"languageAttributes": {"pl": {"productDescription": "ä".repeat(30_000)}}}});
    let refused = app.patch("/products/global?productId=p&currentVersion=1", more).await.expect(422);
    assert_eq!(refused.faults(), ["productDetails PRODUCT_TOO_LARGE"]);
    assert_eq!(app.get("/products/global/p?detail=small").await.expect(200).body["version"], 1);
}

#[tokio::test]
async fn a_claim_of_the_index_holds_up_neither_the_feed_nor_a_service_that_takes_over() {
    let app = App::start().await;
    app.create(&[("a", "x")]).await;
    let caller = app.store.account_by_name("shop", "x").await.expect("an answer").expect("the account");
    let held = app.store.claim_search_changes(10).await.expect("a claim").expect("rows");
    assert!(app.store.claim_search_changes(10).await.expect("an answer").is_none(), "held by somebody else");
    let open: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
    )
    .fetch_one(app.store.pool())
    .await
    .expect("a count");
    assert_eq!(open, 0, "a claim holds no transaction open");
    app.create(&[("b", "x")]).await;
    assert!(app.store.search_queue_length().await.expect("a count") == 2 && caller.account > 0);

    held.renew().await.expect("renewed");
    let until_free = "update search_outbox set leased_until = leased_until - $1";
    sqlx::query(until_free).bind(LEASE + Duration::from_secs(1)).execute(app.store.pool()).await.expect("time passes");
    let mut taken = app.store.claim_search_changes(10).await.expect("a claim").expect("rows");
    let changes: Vec<_> = taken.take().0.into_iter().map(|product| product.change()).collect();
    assert_eq!(changes.len(), 2);
    // The one that was late neither removes nor frees what it no longer holds.
    held.finish(&[]).await.expect("finished");
    assert!(app.store.claim_search_changes(10).await.expect("an answer").is_none());
    let outcome = vat_classification::store::search::Outcome::Done;
    taken.finish(&changes.into_iter().map(|change| (change, outcome.clone())).collect::<Vec<_>>()).await.expect("done");
    assert_eq!(app.store.search_queue_length().await.expect("a count"), 0);
}

#[tokio::test]
async fn whom_there_is_no_place_for_is_told_so_at_once_and_in_the_shape_of_every_error() {
    let app = App::start().await;
    app.get("/products/global").await.expect(200);
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table products in access exclusive mode").execute(&mut *held).await.expect("a lock");
    // Three quarters of the 32 places and of the eight times as many who may wait are an account's.
    let mut sent: FuturesUnordered<_> = (0..(32 + 256) * 3 / 4 + 1).map(|_| app.get("/products/global")).collect();
    let refused = sent.next().await.expect("an answer").expect(503);
    assert_eq!(refused.body["code"], "ServiceUnavailable");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(refused.headers["ratelimit-limit"], "60000");
    assert_eq!(refused.headers["x-content-type-options"], "nosniff");
    assert_eq!(refused.body["instance"], refused.headers["x-request-id"].to_str().expect("text"));
    assert!(refused.body["path"].as_str().is_some_and(|path| path.ends_with("/products/global")));
    // Not even the route is looked for.
    app.get("/no/such/path").await.expect(503);
    held.rollback().await.expect("no lock");
    while let Some(answer) = sent.next().await {
        assert!([200, 503].contains(&answer.status), "{}", answer.body);
    }
    app.get("/no/such/path").await.expect(404);
}

#[test]
fn those_who_are_sent_away_are_counted_apart_from_those_whose_route_was_looked_for() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let crowd = async {
        let app = App::start().await;
        app.get("/products/global").await.expect(200);
        let mut held = app.store.pool().begin().await.expect("a transaction");
        sqlx::query("lock table products in access exclusive mode").execute(&mut *held).await.expect("a lock");
        let mut sent: FuturesUnordered<_> = (0..(32 + 256) * 3 / 4 + 1).map(|_| app.get("/products/global")).collect();
        sent.next().await.expect("an answer").expect(503);
        app.get("/no/such/path").await.expect(503);
        held.rollback().await.expect("no lock");
        sent.collect::<Vec<_>>().await
    };
    metrics::with_local_recorder(&recorder, || runtime.block_on(crowd));
    let shown = recorder.handle().render();
    let count = |labels: &str| {
        let line = shown
            .lines()
            .find_map(|line| line.strip_prefix("vat_classification_http_requests_total")?.strip_prefix(labels));
        line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    assert!(count(r#"{method="GET",route="turned away",status="503"}"#) >= 2, "{shown}");
    assert!(count(r#"{method="GET",route="/api/vat-classification/v1/products/global",status="200"}"#) >= 1, "{shown}");
    assert_eq!(shown.matches("no/such/path").count(), 0, "{shown}");
}
