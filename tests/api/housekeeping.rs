//! Objects that no picture names are removed, all of them, by the host that has them.

use std::fs;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use vat_classification::jobs::housekeeping::remove_orphans;
use vat_classification::pictures::{PictureStore, S3Settings};
use vat_classification::store::pictures::PictureRecord;

use crate::app::App;

fn pictures() -> (PictureStore, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (PictureStore::open(directory.path(), &S3Settings::default()).expect("a store"), directory)
}

/// An object that nothing names, noted long ago.
async fn orphan(app: &App, pictures: &PictureStore) -> Uuid {
    let key = Uuid::new_v4();
    app.store.orphan_object(&key.to_string(), pictures.place()).await.expect("noted");
    pictures.put(key, Bytes::from_static(b"x")).await.expect("kept");
    key
}

async fn time_passes(app: &App) {
    let earlier = "update orphaned_objects set orphaned_at = orphaned_at - interval '1 day'";
    sqlx::query(earlier).execute(app.store.pool()).await.expect("time passes");
}

async fn left(app: &App) -> i64 {
    app.store.queue_lengths().await.expect("lengths").orphaned_objects
}

#[tokio::test]
async fn a_round_removes_all_and_one_that_fails_keeps_no_other() {
    let app = App::start().await;
    let (pictures, directory) = pictures();
    let bad = Uuid::new_v4().simple().to_string();
    // A directory in the place of the file cannot be deleted as one.
    fs::create_dir_all(directory.path().join("pictures").join(&bad[..2]).join(&bad).join("x")).expect("a directory");
    app.store.orphan_object(&bad, pictures.place()).await.expect("noted");
    for _ in 0..250 {
        orphan(&app, &pictures).await;
    }
    let never = CancellationToken::new();
    assert_eq!(remove_orphans(&app.store, &pictures, &never).await.expect("a round"), 0, "they are too young");
    time_passes(&app).await;
    assert_eq!(remove_orphans(&app.store, &pictures, &never).await.expect("a round"), 250);
    assert_eq!(left(&app).await, 1);
    assert_eq!(remove_orphans(&app.store, &pictures, &never).await.expect("a round"), 0);
}

#[tokio::test]
async fn a_host_leaves_what_lies_on_another() {
    let app = App::start().await;
    let ((one, _files), (other, _others)) = (pictures(), pictures());
    let key = orphan(&app, &one).await;
    // Noted by a version that did not say where.
    let old = orphan(&app, &one).await;
    sqlx::query("update orphaned_objects set place = null where object_key = $1")
        .bind(old.to_string())
        .execute(app.store.pool())
        .await
        .expect("set");
    time_passes(&app).await;
    let never = CancellationToken::new();
    assert_eq!(remove_orphans(&app.store, &other, &never).await.expect("a round"), 0);
    assert_eq!(left(&app).await, 2);
    time_passes(&app).await;
    assert_eq!(remove_orphans(&app.store, &one, &never).await.expect("a round"), 2);
    assert_eq!((one.get(key).await.expect("an answer"), one.get(old).await.expect("an answer")), (None, None));
}

#[tokio::test]
async fn an_object_that_a_picture_names_is_no_orphan() {
    let app = App::start().await;
    app.create(&[("p", "x")]).await;
    let (pictures, _files) = pictures();
    let key = orphan(&app, &pictures).await;
    let record = PictureRecord {
        object_key: key.to_string(),
        content_type: "image/png".to_owned(),
        width: 1,
        height: 1,
        size: 1,
        etag: "x".to_owned(),
    };
    let caller = app.store.account_by_name("shop", "x").await.expect("an answer").expect("the account");
    let shop = vat_classification::domain::ShopId::GLOBAL;
    app.store.set_picture(caller.account, shop, "p", &record, false).await.expect("set");
    assert_eq!(left(&app).await, 0);
    app.delete("/products/global?productId=p&currentVersion=1").await.expect(204);
    assert_eq!(left(&app).await, 1, "it is one when the product goes");
    time_passes(&app).await;
    let never = CancellationToken::new();
    assert_eq!(remove_orphans(&app.store, &pictures, &never).await.expect("a round"), 1);
}
