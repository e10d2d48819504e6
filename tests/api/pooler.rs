//! The service behind a real PgBouncer in transaction mode, which gives each transaction another connection.

use futures::future::join_all;
use vat_classification::store::{Settings, Store};

use crate::app::App;
use crate::support::{empty_database, pooler};
use crate::upgrades::work;

#[tokio::test]
async fn everything_works_behind_a_pooler_in_transaction_mode() {
    let database = empty_database().await;
    let Some(pooler) = pooler(&database.url).await else { return };
    let settings = Settings { database_transaction_pooler: true, ..Settings::default() };
    let store = Store::connect_with(&pooler.url, &settings).await.expect("connected");
    // Several services start at one time.
    let others = join_all((0..3).map(|_| store.migrate())).await;
    others.into_iter().for_each(|migrated| migrated.expect("migrated"));
    let app = App::of(&pooler.url, store).await;
    work(&app, "first").await;
    // What was prepared on one connection is asked of all others.
    for path in ["/products/global?size=3", "/assignments/TARIC?assignmentStatus=ALL&count=true", "/usage"] {
        for answer in join_all((0..24).map(|_| app.get(path))).await {
            answer.expect(200);
        }
    }
    work(&app, "second").await;
    app.store.forget_old_keys().await.expect("forgotten");
    app.store.count_kept_keys().await.expect("counted");
    app.store.forget_old_actions().await.expect("forgotten");
    app.store.forget_taken_back().await.expect("forgotten");
    app.store.queue_lengths().await.expect("lengths");
    app.store.delete_account("shop").await.expect("erased");
    let left: i64 =
        sqlx::query_scalar("select count(*) from products").fetch_one(app.store.pool()).await.expect("a count");
    assert_eq!(left, 0);
    app.store.pool().close().await;
}
