//! One product that cannot be worked on costs no other.

use chrono::Utc;
use vat_classification::domain::ShopId;
use vat_classification::domain::Verdict;
use vat_classification::jobs::auto_assignment::{decide, decide_by};
use vat_classification::jobs::projection::changes_by;
use vat_classification::store::parked::Queue;
use vat_classification::store::search::{Outcome, StoredProduct};

use crate::app::App;

/// Changes what is stored of a product, as another version of the service may have written it.
async fn store_as(app: &App, product_id: &str, details: &str) {
    sqlx::query("update products set details = details || $2::jsonb where product_id = $1")
        .bind(product_id)
        .bind(details)
        .execute(app.store.pool())
        .await
        .expect("updated");
}

async fn parked(app: &App, queue: Queue) -> Vec<String> {
    let parked = app.store.parked(queue, Some("shop"), i64::MIN).await.expect("a list");
    parked.into_iter().map(|work| format!("{} {}", work.product_id.unwrap_or_default(), work.reason)).collect()
}

#[tokio::test]
async fn a_panic_costs_one_product_which_is_parked_and_can_be_sent_again() {
    let app = App::start().await;
    app.create(&[("a", "Socken aus Baumwolle"), ("b", "Socken aus Wolle"), ("c", "Kaffee, geröstet")]).await;
    let batch = app.store.claim_auto_assignments(100).await.expect("a claim").expect("a batch");
    let (batch, decided) = decide_by(batch, |claim| {
        let name = claim.details.language("de").and_then(|texts| texts.product_name.as_deref());
        assert!(name != Some("Socken aus Wolle"), "wool is too warm");
        vec![Verdict::default(); claim.slots.len()]
    })
    .await;
    assert_eq!(batch.complete(&decided).await.expect("stored"), 6);
    assert_eq!(app.assignment("TARIC", "a").await["autoAssignment"], "DONE");
    assert_eq!(app.assignment("TARIC", "b").await["autoAssignment"], "PENDING");
    assert_eq!(parked(&app, Queue::AutoAssignment).await, ["b panic: wool is too warm"]);
    assert_eq!(app.store.queue_lengths().await.expect("lengths").auto_parked, 1);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "b").await["autoAssignment"], "PENDING");

    let long_ago = Utc::now() - chrono::Duration::days(1);
    let retry = async |before| app.store.retry_parked(Queue::AutoAssignment, None, before).await.expect("a count");
    assert_eq!(retry(long_ago).await, 0);
    assert_eq!(retry(Utc::now() + chrono::Duration::days(1)).await, 1);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "b").await["autoAssignment"], "DONE");
    assert_eq!(parked(&app, Queue::AutoAssignment).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_parked_product_that_changes_is_tried_again_and_leaves_the_list() {
    let app = App::start().await;
    app.create(&[("a", "Socken")]).await;
    let batch = app.store.claim_auto_assignments(100).await.expect("a claim").expect("a batch");
    let (batch, decided) = decide_by(batch, |_| panic!("no")).await;
    assert_eq!(batch.complete(&decided).await.expect("stored"), 0);
    assert_eq!(parked(&app, Queue::AutoAssignment).await.len(), 1);
    app.put("/products/global?productId=a&currentVersion=1", crate::app::german("Strümpfe")).await.expect(200);
    app.assign().await;
    assert_eq!(parked(&app, Queue::AutoAssignment).await.len(), 0);
    assert_eq!(app.assignment("TARIC", "a").await["autoAssignment"], "DONE");
}

#[tokio::test]
async fn fields_of_another_version_are_passed_over() {
    let app = App::start().await;
    app.create(&[("a", "Socken aus Baumwolle"), ("b", "Kaffee, geröstet")]).await;
    store_as(&app, "a", r#"{"future": {"x": 1}}"#).await;
    let list = app.get("/products/global").await.expect(200).body;
    assert_eq!(list["items"].as_array().expect("items").len(), 2);
    let details = &app.get("/products/global/a").await.expect(200).body["productDetails"];
    assert!(details["languageAttributes"]["de"]["productName"].is_string() && details["future"].is_null());
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "a").await["autoAssignment"], "DONE");
    let patch = serde_json::json!({"productDetails": {"manufacturerName": "m"}});
    app.patch("/products/global?productId=a&currentVersion=1", patch).await.expect(200);
    assert_eq!(parked(&app, Queue::AutoAssignment).await.len(), 0);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_neither_lists_nor_queues_and_can_be_replaced() {
    let app = App::start().await;
    app.create(&[("a", "Socken aus Baumwolle"), ("b", "Kaffee, geröstet")]).await;
    store_as(&app, "a", r#"{"languageAttributes": 7}"#).await;
    let list = app.get("/products/global").await.expect(200).body;
    assert_eq!(list["items"].as_array().expect("items").len(), 1);

    let batch = app.store.claim_auto_assignments(100).await.expect("a claim").expect("a batch");
    let (batch, decided) = decide(app.engine.clone(), batch).await;
    assert_eq!(batch.complete(&decided).await.expect("stored"), 3);
    assert_eq!(app.store.auto_queue_length().await.expect("a count"), 0);
    assert!(parked(&app, Queue::AutoAssignment).await[0].starts_with("a "));

    app.search.rebuild(&|_, _| {}).await.expect("an index");
    assert!(parked(&app, Queue::Search).await[0].starts_with("a "));
    let mut claim = app.store.claim_search_changes(100).await.expect("a claim").expect("rows");
    let (products, removals) = claim.take();
    assert_eq!((products.len(), removals.len()), (1, 0));
    claim.finish(&[]).await.expect("finished");
    assert_eq!(app.store.search_queue_length().await.expect("a count"), 1);

    app.put("/products/global?productId=a&currentVersion=1", crate::app::german("Strümpfe")).await.expect(200);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "a").await["autoAssignment"], "DONE");
    assert_eq!(parked(&app, Queue::AutoAssignment).await.len(), 0);
    let record = app.store.account_by_name("shop", "x").await.expect("an answer").expect("the account");
    assert!(app.store.product(record.account, ShopId::GLOBAL, "a").await.is_ok());
}

#[tokio::test]
async fn a_product_of_which_no_entry_can_be_made_is_parked_and_the_others_are_written() {
    let app = App::start().await;
    app.create(&[("a", "Socken"), ("b", "Tee"), ("c", "Kaffee")]).await;
    let mut claim = app.store.claim_search_changes(10).await.expect("a claim").expect("rows");
    let make = |product: StoredProduct| {
        assert_ne!(product.product_id(), "b", "tea is too hot");
        product.change()
    };
    let (changes, refused) = changes_by(&mut claim, make).await.expect("changes");
    assert_eq!((changes.len(), refused.len()), (2, 1));
    let finished: Vec<_> = changes.into_iter().map(|change| (change, Outcome::Done)).chain(refused).collect();
    claim.finish(&finished).await.expect("finished");
    let told = parked(&app, Queue::Search).await;
    assert!(told.len() == 1 && told[0].starts_with("b panic: ") && told[0].contains("tea is too hot"), "{told:?}");
    assert_eq!(app.store.search_queue_length().await.expect("a count"), 0);
}
