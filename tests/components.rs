//! The servers that the other tests rely on are real, and each test has a database of its own.

mod support;

use elasticsearch::Elasticsearch;
use elasticsearch::http::transport::Transport;
use sqlx::{Connection, PgConnection};

#[tokio::test]
async fn each_test_has_a_migrated_database_of_its_own() {
    let (first, second) = (support::database().await, support::database().await);
    assert_ne!(first.url, second.url);
    let mut connection = PgConnection::connect(&first.url).await.expect("a connection");
    let migrations: i64 = sqlx::query_scalar("select count(*) from _sqlx_migrations where success")
        .fetch_one(&mut connection)
        .await
        .expect("a count");
    assert_eq!(migrations as usize, vat_classification::store::MIGRATIONS.iter().count());
}

#[tokio::test]
async fn a_database_is_gone_when_its_test_is_over() {
    let kept = support::empty_database().await;
    let gone = support::empty_database().await.url.clone();
    PgConnection::connect(&kept.url).await.expect("it is there");
    let error = PgConnection::connect(&gone).await.expect_err("it is gone");
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[tokio::test]
async fn elasticsearch_answers() {
    let url = support::elasticsearch().await;
    let client = Elasticsearch::new(Transport::single_node(&url).expect("a transport"));
    let health =
        client.cluster().health(elasticsearch::cluster::ClusterHealthParts::None).send().await.expect("an answer");
    assert!(health.status_code().is_success(), "{health:?}");
}
