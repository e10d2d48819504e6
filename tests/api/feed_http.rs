//! The feed of changes as a client follows it, by `next`, while many write without waiting for each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::Value;
use vat_classification::domain::access::Plan;
use vat_classification::http::AdmissionSettings;

use crate::app::{App, german};

const WRITERS: usize = 8;
/// Products of each writer, and how often each of them is changed before it is deleted.
const PRODUCTS: usize = 13;
const CHANGES: usize = 6;
/// Every product has an assignment in each.
const TAXONOMIES: [&str; 3] = ["TARIC", "TARES", "UKGT"];
/// Items of a page: few enough that pages end in the middle of what one request has changed.
const PAGE: usize = 21;
/// How long the end of the feed is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// More requests in a minute than a reader can send that does not pause.
const NO_RATE: u64 = 1_000_000_000;

/// What is told of a product that is made, changed and deleted, in this order.
fn life() -> Vec<String> {
    let of_assignments = |kind: &str| TAXONOMIES.map(|taxonomy| format!("{kind} {taxonomy}"));
    let mut life = vec!["PRODUCT_CREATED 1".to_owned()];
    life.extend(of_assignments("ASSIGNMENT_CREATE"));
    for version in 2..CHANGES + 2 {
        life.push(format!("PRODUCT_UPDATED {version}"));
        life.extend(of_assignments("ASSIGNMENT_PRODUCT_CHANGED"));
    }
    life.push(format!("PRODUCT_DELETED {}", CHANGES + 2));
    life
}

/// An item, by its type with the taxonomy of an assignment or the version of a product.
fn told(item: &Value) -> String {
    let kind = item["type"].as_str().expect("a type");
    match item["taxonomy"].as_str() {
        Some(taxonomy) => format!("{kind} {taxonomy}"),
        None => format!("{kind} {}", item["version"]),
    }
}

/// Makes products, changes and deletes them, one request after the other.
async fn write(app: &App, writer: usize) {
    for number in 0..PRODUCTS {
        let id = format!("{writer}-{number}");
        app.create(&[(id.as_str(), "Kaffee")]).await;
        for version in 1..=CHANGES {
            let path = format!("/products/global?productId={id}&currentVersion={version}");
            app.patch(&path, german(&format!("Kaffee {version}"))).await.expect(200);
        }
        let path = format!("/products/global?productId={id}&currentVersion={}", CHANGES + 1);
        app.delete(&path).await.expect(204);
    }
}

/// Follows the feed without a pause until nobody writes any more and so many items have come.
async fn follow(app: &App, writers: &AtomicUsize, items: usize) -> Vec<Value> {
    let (mut seen, mut place, mut progress) = (Vec::new(), String::new(), Instant::now());
    loop {
        let is_over = writers.load(Ordering::SeqCst) == 0;
        let page = app.get(&format!("/changes?size={PAGE}{place}")).await.expect(200).body;
        let found = page["items"].as_array().expect("items");
        if !found.is_empty() {
            progress = Instant::now();
        } else if is_over && (seen.len() >= items || progress.elapsed() > PATIENCE) {
            // What other databases of the server are at may hold the end back for a while.
            return seen;
        }
        seen.extend(found.iter().cloned());
        place = format!("&after={}", page["next"].as_str().expect("a place"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_follows_next_while_many_write_is_told_the_life_of_each_product_once_and_in_its_order() {
    let admission = AdmissionSettings { rate_requests_per_minute: NO_RATE, ..AdmissionSettings::default() };
    let app = App::with(Plan::Unlimited, admission).await;
    let life = life();
    let writers = AtomicUsize::new(WRITERS);
    let writing = (0..WRITERS).map(async |writer: usize| {
        write(&app, writer).await;
        writers.fetch_sub(1, Ordering::SeqCst);
    });
    let (seen, _) = tokio::join!(follow(&app, &writers, WRITERS * PRODUCTS * life.len()), join_all(writing));

    let places: Vec<&str> = seen.iter().map(|item| item["sequence"].as_str().expect("a place")).collect();
    assert!(places.is_sorted_by(|before, after| before < after), "an item twice, or before an earlier one");
    let mut lives: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for item in &seen {
        lives.entry(item["productId"].as_str().expect("an id")).or_default().push(told(item));
    }
    assert_eq!(lives.len(), WRITERS * PRODUCTS);
    for (id, told) in lives {
        assert_eq!(told, life, "{id}");
    }
}
