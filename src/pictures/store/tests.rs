use std::collections::HashMap;
use std::sync::Mutex;

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::IntoResponse;

use super::*;

async fn keeps_and_forgets(store: &PictureStore) {
    let (key, other) = (Uuid::new_v4(), Uuid::new_v4());
    let bytes = Bytes::from_static(b"a picture");
    assert_eq!(store.get(key).await.expect("an answer"), None);
    store.put(key, bytes.clone()).await.expect("kept");
    store.put(key, bytes.clone()).await.expect("kept again");
    assert_eq!(store.get(key).await.expect("an answer"), Some(bytes));
    assert_eq!(store.get(other).await.expect("an answer"), None);
    for again in [false, true] {
        let deleted = store.delete(key).await.expect("deleted");
        assert_eq!(deleted, if again && store.directory.is_some() { Deleted::NotHere } else { Deleted::Gone });
        assert_eq!(store.get(key).await.expect("an answer"), None);
    }
}

#[test]
fn a_directory_has_one_name_whoever_asks_and_whoever_died_over_it() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join(PLACE_FILE), "").expect("what one left that died over it");
    let name = place_of(directory.path()).expect("a name");
    assert_eq!(place_of(directory.path()), Some(name));
    assert_eq!(std::fs::read_dir(directory.path()).expect("a list").count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn a_local_directory_keeps_and_forgets_pictures() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("a store");
    keeps_and_forgets(&store).await;
    store.put(Uuid::nil(), Bytes::from_static(b"kept")).await.expect("kept");
    let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("the same store");
    assert_eq!(store.get(Uuid::nil()).await.expect("an answer"), Some(Bytes::from_static(b"kept")));
}

#[test]
fn a_directory_keeps_its_name_and_no_two_have_the_same() {
    let (one, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let place = |directory: &Path| {
        let store = PictureStore::open(directory, &S3Settings::default()).expect("a store");
        store.place().expect("a name").to_owned()
    };
    assert_eq!(place(one.path()), place(one.path()));
    assert_ne!(place(one.path()), place(other.path()));
}

#[tokio::test]
async fn a_directory_whose_disk_is_away_takes_no_picture() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = PictureStore::open(directory.path(), &S3Settings::default()).expect("a store");
    let (there, away) = (directory.path().join("pictures"), directory.path().join("away"));
    std::fs::rename(&there, &away).expect("taken away");
    std::fs::create_dir(&there).expect("what lies below the disk");
    let bytes = Bytes::from_static(b"a picture");
    store.put(Uuid::nil(), bytes.clone()).await.expect_err("it would be hidden once the disk is back");
    assert_eq!(std::fs::read_dir(&there).expect("a directory").count(), 0);
    std::fs::remove_dir(&there).expect("empty");
    std::fs::rename(&away, &there).expect("back");
    store.put(Uuid::nil(), bytes).await.expect("kept");
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_given_up_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let settings = S3Settings {
        pictures_s3_bucket: Some("bucket".to_owned()),
        pictures_s3_endpoint: Some(format!("http://{}", silent.local_addr().expect("an address"))),
        pictures_s3_access_key_id: Some("the-key".to_owned()),
        pictures_s3_secret_access_key: Some("the-secret".to_owned()),
        ..S3Settings::default()
    };
    let soon = Duration::from_millis(50);
    let store = PictureStore::open(Path::new("."), &settings).expect("a store");
    let store = PictureStore { limits: Limits { keeping: soon, reading: soon }, ..store };
    let began = std::time::Instant::now();
    store.get(Uuid::nil()).await.expect_err("no answer");
    store.put(Uuid::nil(), Bytes::from_static(b"a picture")).await.expect_err("no answer");
    // A single request would be waited for as long.
    assert!(began.elapsed() < REQUEST_LIMIT, "{:?}", began.elapsed());
}

type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

/// The part of S3 that is needed: objects by path, and only for signed requests.
async fn object(
    State(objects): State<Objects>,
    method: Method,
    UrlPath(path): UrlPath<String>,
    headers: HeaderMap,
    body: Bytes,
) -> axum::response::Response {
    let signed = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if !signed.is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 Credential=the-key/")) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let headers = [(header::ETAG, "\"1\""), (header::LAST_MODIFIED, "Sat, 21 Nov 2026 00:00:00 GMT")];
    let mut objects = objects.lock().expect("not poisoned");
    match method {
        Method::PUT => {
            objects.insert(path, body);
            headers.into_response()
        }
        Method::DELETE => {
            objects.remove(&path);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => match objects.get(&path) {
            Some(bytes) => (headers, bytes.clone()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

#[tokio::test]
async fn an_s3_compatible_store_keeps_and_forgets_pictures() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let objects = Objects::default();
    let router = Router::new()
        .fallback_service(Router::new().route("/{*path}", axum::routing::any(object)).with_state(Arc::clone(&objects)));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = S3Settings {
        pictures_s3_bucket: Some("bucket".to_owned()),
        pictures_s3_endpoint: Some(endpoint),
        pictures_s3_region: "eu-central-1".to_owned(),
        pictures_s3_access_key_id: Some("the-key".to_owned()),
        pictures_s3_secret_access_key: Some("the-secret".to_owned()),
    };
    assert!(!format!("{settings:?}").contains("the-"), "{settings:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let store = PictureStore::open(directory.path(), &settings).expect("a store");
    keeps_and_forgets(&store).await;
    store.put(Uuid::nil(), Bytes::from_static(b"kept")).await.expect("kept");
    let paths: Vec<String> = objects.lock().expect("not poisoned").keys().cloned().collect();
    assert_eq!(paths, ["bucket/00/00000000000000000000000000000000"]);
    server.abort();
}
