//! What a service costs while nobody asks it anything, with one account and with a thousand.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, PgConnection};
use vat_classification::domain::access::{Level, Plan, TOKEN_RANDOM_BYTES, hash_token, write_token};
use vat_classification::store::Store;

use crate::own::{self, BASE_PATH, Service};
use crate::probe;

/// Accounts that are made beside the first.
const ACCOUNTS: usize = 999;
/// Products of each of them, of which a person has decided the first.
const PRODUCTS: usize = 20;
/// How long the service settles before it is measured, and how long that goes on.
const SETTLE: Duration = Duration::from_secs(30);
const MEASURED: Duration = Duration::from_secs(60);

/// Measures before and after the accounts are made.
pub(crate) async fn run() {
    let directory = own::directory();
    let mut service = Service::start(&directory).await;
    println!("| accounts | ready after | processor | transactions/s | memory |\n|---|---|---|---|---|");
    tell(&mut service, 1).await;
    let store = Store::connect(&service.database_url()).await.expect("a connection");
    for number in 0..ACCOUNTS {
        make(&service, &store, number).await;
    }
    store.pool().close().await;
    tell(&mut service, ACCOUNTS + 1).await;
    drop(service);
    let _ = std::fs::remove_dir_all(&directory);
}

/// Starts it anew, lets it settle, and watches it.
async fn tell(service: &mut Service, accounts: usize) {
    // What was made has been classified and indexed, and no part of that is measured.
    tokio::time::sleep(SETTLE).await;
    service.stop();
    let ready = service.again().await;
    tokio::time::sleep(SETTLE).await;
    let seen = probe::Service::own(service);
    let (processor, transactions) = (seen.cpu_seconds(), committed(service).await);
    tokio::time::sleep(MEASURED).await;
    let seconds = MEASURED.as_secs_f64();
    let share = (seen.cpu_seconds() - processor) / seconds * 100.0;
    let rate = (committed(service).await - transactions) as f64 / seconds;
    println!(
        "| {accounts} | {:.2} s | {share:.2} % of a core | {rate:.1} | {} MiB |",
        ready.as_secs_f64(),
        seen.resident_mib()
    );
}

async fn committed(service: &Service) -> i64 {
    let mut connection = PgConnection::connect(&service.database_url()).await.expect("a connection");
    sqlx::query_scalar("select xact_commit from pg_stat_database where datname = current_database()")
        .fetch_one(&mut connection)
        .await
        .expect("statistics")
}

/// An account with products that are classified, and with one decision of a person to remember.
async fn make(service: &Service, store: &Store, number: usize) {
    let name = format!("account-{number}");
    // Not by the program, which takes a tenth of a second for each.
    store.create_account(&name, Plan::Unlimited).await.expect("an account");
    let mut random = [0; TOKEN_RANDOM_BYTES];
    getrandom::fill(&mut random).expect("random bytes");
    let token = write_token(&random);
    let hash = hash_token(&token).expect("a hash");
    store.create_token(&name, "bench", Level::Edit, &hash, None).await.expect("a token");
    let url = |path: &str| format!("{}{BASE_PATH}{path}", service.base);
    let product = |product: usize| {
        let details =
            json!({"languageAttributes": {"de": {"productName": format!("Herren T-Shirt Baumwolle {product}")}}});
        (format!("p-{product}"), json!({ "productDetails": details }))
    };
    let products = serde_json::Value::Object((0..PRODUCTS).map(product).collect());
    let made = service.client.post(url("/products/global")).bearer_auth(&token).json(&products).send().await;
    assert!(made.is_ok_and(|answer| answer.status().is_success()), "{name} has products");
    let path = url("/assignments/TARIC?assignmentAction=ASSIGN&productClass=610910-00-000");
    // Before it was assigned by the service, or after.
    for version in [0, 1] {
        let body = json!({"products": [{"productId": "p-0", "assignmentVersion": {"vatRules": version}}]});
        let decided = service.client.patch(&path).bearer_auth(&token).json(&body).send().await;
        if decided.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
    }
    panic!("{name} decides nothing");
}
