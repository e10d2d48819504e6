//! Products that are changed together and have more details than are read at one time: part by part, and still as a whole.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vat_classification::domain::{ShopId, Taxonomy};

use crate::app::{Answer, App, german};

const LIST: &str = "/products/global";
const PRODUCTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Five products, of which the database believes that one alone is all that is read at one time.
async fn of_large_products() -> App {
    let app = App::start().await;
    app.create(&PRODUCTS.map(|id| (id, "Kaffee"))).await;
    sqlx::query("update products set details_size = 1 << 20").execute(app.store.pool()).await.expect("set");
    app
}

/// A product whose details no version can have written.
async fn spoil(app: &App, id: &str) {
    sqlx::query("update products set details = '{\"productUids\": {\"any\": 7}}' where product_id = $1")
        .bind(id)
        .execute(app.store.pool())
        .await
        .expect("spoiled");
}

async fn versions(app: &App) -> Vec<i64> {
    sqlx::query_scalar("select version from products order by product_id")
        .fetch_all(app.store.pool())
        .await
        .expect("versions")
}

fn update(id: &str, name: &str) -> Value {
    json!({"productId": id, "currentVersion": 1, "patch": {"productDetails": {"manufacturerName": name}}})
}

async fn send(app: &App, updates: &[Value], on_conflict: &str) -> Answer {
    app.post(&format!("{LIST}/updates"), json!({"updates": updates, "onConflict": on_conflict})).await
}

/// Products and versions of the changes in the journal, and how many entries there are of them.
async fn told(app: &App) -> (BTreeSet<(String, i64)>, usize) {
    let entries: Vec<(String, i64)> =
        sqlx::query_as("select product_id, version from journal where action = 'PRODUCT_UPDATED'")
            .fetch_all(app.store.pool())
            .await
            .expect("entries");
    let many = entries.len();
    (entries.into_iter().collect(), many)
}

#[tokio::test]
async fn what_is_changed_part_by_part_is_changed_as_a_whole_or_not_at_all() {
    let app = of_large_products().await;
    let all: Vec<Value> = PRODUCTS.iter().rev().map(|id| update(id, "Meier")).collect();
    let long = "x".repeat(10_000);
    for (last, status) in [(update("none", "x"), 404), (update("a", &long), 422)] {
        // The parts before the last one could be written.
        let mut refused = all.clone();
        refused[4] = last;
        send(&app, &refused, "FAIL").await.expect(status);
        assert_eq!(versions(&app).await, [1; 5]);
        assert_eq!(told(&app).await.1, 0);
    }
    let done = send(&app, &all, "FAIL").await.expect(200).body;
    let order: Vec<&str> = done["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| result["productId"].as_str().expect("an id"))
        .collect();
    assert_eq!(order, ["e", "d", "c", "b", "a"]);
    assert_eq!(versions(&app).await, [2; 5]);
    // Entries are numbered through all parts.
    assert_eq!(told(&app).await, (PRODUCTS.map(|id| (id.to_owned(), 2)).into(), 5));
}

#[tokio::test]
async fn what_is_replaced_part_by_part_is_checked_again_only_where_it_says_something_else() {
    let app = of_large_products().await;
    app.assign().await;
    let mut body: serde_json::Map<String, Value> =
        PRODUCTS.iter().map(|id| ((*id).to_owned(), german("Kaffee"))).collect();
    body.insert("d".to_owned(), german("Tee"));
    body.insert("new".to_owned(), german("Tee"));
    let queued = async || -> Vec<String> {
        sqlx::query_scalar("select product_id from auto_queue join products using (product_key) order by product_id")
            .fetch_all(app.store.pool())
            .await
            .expect("a queue")
    };
    assert_eq!(queued().await, [""; 0]);
    app.post(&format!("{LIST}?updateIfExists=true"), Value::Object(body)).await.expect(201);
    assert_eq!(versions(&app).await, [2, 2, 2, 2, 2, 1]);
    assert_eq!(queued().await, ["d", "new"]);
    assert_eq!(told(&app).await, (PRODUCTS.map(|id| (id.to_owned(), 2)).into(), 5));
}

#[tokio::test]
async fn what_a_file_says_of_large_products_is_merged_part_by_part() {
    let app = of_large_products().await;
    spoil(&app, "b").await;
    let caller = app.caller("anna").await;
    let patch = |name: &str| json!({"productDetails": {"manufacturerName": name}});
    let (same, other) = (json!({}), patch("Meier"));
    let patched = [("e", &other), ("new", &other), ("d", &same), ("b", &other), ("a", &other)];
    let merged = app.store.merge_products(&caller, ShopId::GLOBAL, &patched, false).await.expect("merged");
    let kinds: Vec<String> =
        merged.iter().map(|merged| format!("{merged:?}").chars().take_while(|c| c.is_alphabetic()).collect()).collect();
    assert_eq!(kinds, ["Updated", "Created", "Unchanged", "Refused", "Updated"]);
    assert_eq!(versions(&app).await, [2, 1, 1, 1, 2, 1]);
    assert_eq!(told(&app).await, (BTreeSet::from([("a".to_owned(), 2), ("e".to_owned(), 2)]), 2));
}

#[tokio::test]
async fn a_product_that_cannot_be_read_costs_itself_alone() {
    let app = of_large_products().await;
    spoil(&app, "c").await;
    let updates = ["b", "c", "d"].map(|id| update(id, "Meier"));
    let refused = send(&app, &updates, "FAIL").await.expect(422);
    assert_eq!(refused.faults(), ["productId UNREADABLE"]);
    assert_eq!(versions(&app).await, [1; 5]);
    let skipped = send(&app, &updates, "SKIP").await.expect(200).body;
    let statuses: Vec<&Value> =
        skipped["results"].as_array().expect("results").iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 422, 200]);
    assert_eq!(versions(&app).await, [1, 2, 1, 2, 1]);

    // A patch of it alone says the same; what does not stand on it can be done.
    let alone = format!("{LIST}?productId=c&currentVersion=1");
    let patch = json!({"productDetails": {"manufacturerName": "Meier"}});
    assert_eq!(app.patch(&alone, patch).await.expect(422).faults(), ["productId UNREADABLE"]);
    app.put(&alone, german("Kaffee")).await.expect(200);
    spoil(&app, "e").await;
    let gone = json!({"products": [{"productId": "e", "currentVersion": 1}]});
    app.post(&format!("{LIST}/deletions"), gone).await.expect(200);
}

#[tokio::test]
async fn large_decisions_and_large_products_like_them_are_read_in_small_parts() {
    let app = App::start().await;
    app.create(&PRODUCTS.map(|id| (id, "Herren T-Shirt Baumwolle"))).await;
    app.assign().await;
    for id in PRODUCTS {
        let version = crate::app::version(&app.assignment("TARIC", id).await);
        app.act("TARIC", id, "approve", version).await.expect(200);
    }
    let account = app.caller("anna").await.account;

    // Three of these pass what is read at one time.
    let large =
        "update memory_decisions set texts = texts || jsonb_build_object('manufacturerName', repeat('x', 3 << 20))";
    sqlx::query(large).execute(app.store.pool()).await.expect("large");
    let now = app.store.memory_snapshot().await.expect("a snapshot");
    let (mut sizes, mut decisions, mut after) = (Vec::new(), BTreeSet::new(), None);
    loop {
        let page = app.store.memory_page(None, &now, after).await.expect("a page");
        sizes.push(page.rows.len());
        decisions.extend(page.rows.iter().map(|row| row.assignment_uuid));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((sizes, decisions.len()), (vec![3, 2], 5));

    sqlx::query("update products set details_size = 3 << 20").execute(app.store.pool()).await.expect("set");
    let words: Vec<i32> =
        sqlx::query_scalar("select words from product_words limit 1").fetch_one(app.store.pool()).await.expect("words");
    let (mut found, mut after) = (Vec::new(), i64::MIN);
    loop {
        let part = app.store.products_with_words(account, Taxonomy::Taric, &words, after).await;
        let (products, more) = part.expect("a part");
        assert!(products.len() <= 3, "{}", products.len());
        found.extend(products.into_iter().map(|product| product.product_id));
        let Some(more) = more else { break };
        after = more;
    }
    assert_eq!(found, PRODUCTS);
    let alike = app.store.products_alike(account, Taxonomy::Taric, &words).await.expect("products");
    assert_eq!(alike.len(), 3, "a list of those that are most alike has what fits");
}
