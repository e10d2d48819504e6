//! Requests with an Idempotency-Key are done once.

use std::io::Cursor;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, header};
use futures::future::join_all;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};
use uuid::Uuid;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::http::BASE_PATH;

use crate::app::{Answer, App, action_body, german};

const GLOBAL: &str = "/products/global";
/// Less than a key stays taken when nobody does its request, and more than a busy machine needs to do it.
const SOONER_THAN_A_LEASE: Duration = Duration::from_secs(50);

async fn keyed(app: &App, token: &str, key: &str, method: &str, path: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("{BASE_PATH}{path}"))
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", key);
    app.send(request.body(Body::from(body.to_owned())).expect("a request")).await
}

fn replayed(answer: &Answer) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

/// Uploads the picture of a product as a form with a boundary of its own, as each client makes another one each time.
async fn keyed_picture(app: &App, boundary: &str, png: &[u8]) -> Answer {
    let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n");
    let body = [head.as_bytes(), png, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let request = Request::post(format!("{BASE_PATH}{GLOBAL}/product-picture?productId=p"))
        .header(header::AUTHORIZATION, format!("Bearer {}", app.token))
        .header(header::CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"))
        .header("Idempotency-Key", "picture");
    app.send(request.body(Body::from(body)).expect("a request")).await
}

#[tokio::test]
async fn a_picture_that_is_sent_again_is_the_same_request_whatever_the_boundary_of_its_form() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let [one, other] = [1, 2].map(|side| {
        let mut png = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(side, side).write_to(&mut png, ImageFormat::Png).expect("a picture");
        png.into_inner()
    });
    let first = keyed_picture(&app, "first", &one).await.expect(201);
    let again = keyed_picture(&app, "another-one", &one).await.expect(201);
    assert!(replayed(&again) && again.body["url"] == first.body["url"], "{}", again.body);
    assert_eq!(keyed_picture(&app, "first", &other).await.expect(422).body["code"], "IDEMPOTENCY_KEY_REUSED");
}

/// The answer without what is of its own at every time.
fn content(answer: &Answer) -> (u16, Value) {
    let mut body = answer.body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("instance");
    }
    (answer.status, body)
}

#[tokio::test]
async fn a_repetition_gets_the_first_answer_and_changes_nothing() {
    let app = App::start().await;
    app.post("/assignments/assignment-labels", json!({"label": "l", "color": "#112233"})).await.expect(201);
    let mut uuid = Value::Null;
    let requests = [
        ("POST", GLOBAL.to_owned(), json!({"p": german("Kaffee"), "q": german("Tee")}), 201),
        ("PATCH", format!("{GLOBAL}?productId=p&currentVersion=1"), json!({"shopIds": [3]}), 200),
        ("PUT", format!("{GLOBAL}?productId=p&currentVersion=2"), german("Saft"), 200),
        ("PUT", format!("{GLOBAL}?productId=new&currentVersion=0"), german("neu"), 201),
        ("PUT", format!("{GLOBAL}?productId=p&currentVersion=2"), german("Wein"), 409),
        ("PUT", format!("{GLOBAL}?productId=none&currentVersion=2"), german("Wein"), 404),
        ("POST", GLOBAL.to_owned(), json!({"p": german("x")}), 422),
        ("POST", GLOBAL.to_owned(), json!({"p": {"unknown": 1}}), 400),
        ("PATCH", "/assignments/TARIC?assignmentAction=REJECT".to_owned(), action_body(&[("p", 0)]), 200),
        ("PATCH", "/assignments/UKGT?assignmentAction=REJECT".to_owned(), action_body(&[("p", 7)]), 409),
        ("POST", "/assignments/auto-assignment".to_owned(), json!({"products": [{"productId": "q"}]}), 200),
        ("PUT", "/assignments".to_owned(), json!({"assignmentUuids": ["UUID"], "labels": ["l"]}), 200),
        ("DELETE", "/assignments".to_owned(), json!({"assignmentUuids": ["UUID"], "labels": ["l"]}), 200),
        (
            "POST",
            "/products/merchant-product-attributes".to_owned(),
            json!({"fieldName": "f", "objectType": "Text"}),
            201,
        ),
        ("POST", "/assignments/assignment-labels".to_owned(), json!({"label": "new", "color": "#112233"}), 201),
        ("DELETE", format!("{GLOBAL}?productId=q&currentVersion=1"), Value::Null, 204),
    ];
    for (at, (method, path, body, status)) in requests.iter().enumerate() {
        if at == 1 {
            uuid = app.assignment("TARIC", "q").await["assignmentUuid"].clone();
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let body = body.replace("UUID", uuid.as_str().unwrap_or_default());
        let key = format!("key {at}");
        let first = keyed(&app, &app.token, &key, method, path, &body).await;
        assert_eq!(first.status, *status, "{method} {path}: {}", first.body);
        assert!(!replayed(&first));
        let states = async || {
            let rows: Vec<(String,)> = sqlx::query_as(
                "select jsonb_agg(p order by product_key)::text from products p
                 union all select jsonb_agg(j order by sequence)::text from journal j
                 union all select jsonb_agg(a order by assignment_uuid)::text from assignments a
                 union all select coalesce(jsonb_agg(u order by month, shard), '[]')::text from usage u",
            )
            .fetch_all(app.store.pool())
            .await
            .expect("rows");
            rows
        };
        let before = states().await;
        let again = keyed(&app, &app.token, &key, method, path, &body).await;
        assert_eq!(content(&again), content(&first), "{method} {path}");
        assert_eq!(again.headers.get(header::CONTENT_TYPE), first.headers.get(header::CONTENT_TYPE), "{method} {path}");
        assert!(replayed(&again), "{method} {path}");
        assert_eq!(states().await, before, "{method} {path}");
    }
    assert_eq!(app.get(&format!("{GLOBAL}/p")).await.body["version"], 3);
}

#[tokio::test]
async fn another_request_with_the_key_is_refused() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201);
    for (method, path, body) in [
        ("POST", GLOBAL, json!({"p": german("Tee")}).to_string()),
        ("POST", GLOBAL, format!("{body} ")),
        ("POST", "/products/global?updateIfExists=true", body.clone()),
        ("POST", "/shops/1/products/local", body.clone()),
        ("PUT", "/products/global?productId=p&currentVersion=1", german("Tee").to_string()),
        ("DELETE", "/products/global?productId=p&currentVersion=1", String::new()),
    ] {
        let refused = keyed(&app, &app.token, "k", method, path, &body).await.expect(422);
        assert_eq!(refused.body["code"], "IDEMPOTENCY_KEY_REUSED", "{method} {path}");
    }
    assert_eq!(app.get(&format!("{GLOBAL}/p")).await.body["version"], 1);
    // A key says nothing of requests that only read, nor of those of another account.
    keyed(&app, &app.token, "k", "GET", "/products/global/p", "").await.expect(200);
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let other = app.token("other", "eve", Level::Admin).await;
    assert!(!replayed(&keyed(&app, &other, "k", "POST", GLOBAL, &body).await.expect(201)));
}

#[tokio::test]
async fn a_key_is_one_header_of_1_to_255_characters() {
    let app = App::start().await;
    for bad in ["", &"k".repeat(256)] {
        keyed(&app, &app.token, bad, "POST", GLOBAL, "{}").await.expect(400);
    }
    keyed(&app, &app.token, &"k".repeat(255), "POST", GLOBAL, &json!({"p": german("x")}).to_string()).await.expect(201);
    let twice = Request::post(format!("{BASE_PATH}{GLOBAL}"))
        .header(header::AUTHORIZATION, format!("Bearer {}", app.token))
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", "a")
        .header("Idempotency-Key", "b");
    app.send(twice.body(Body::from("{}")).expect("a request")).await.expect(400);
}

#[tokio::test]
async fn of_many_at_once_one_is_done_and_the_others_are_told_so() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    let answers = join_all((0..16).map(|_| keyed(&app, &app.token, "k", "POST", GLOBAL, &body))).await;
    let done = answers.iter().filter(|answer| answer.status == 201 && !replayed(answer)).count();
    assert_eq!(done, 1);
    for answer in &answers {
        let in_use = answer.status == 409 && answer.body["code"] == "IDEMPOTENCY_KEY_IN_USE";
        assert!(answer.status == 201 || in_use, "{}", answer.body);
    }
}

#[tokio::test]
async fn a_key_taken_by_a_service_that_died_is_in_use_until_its_lease_ends() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    sqlx::query(
        "insert into idempotency_keys (account_id, level, key, attempt, leased_until)
         select account_id, 'ADMIN', 'k', $1, now() + interval '1 hour' from accounts",
    )
    .bind(Uuid::new_v4())
    .execute(app.store.pool())
    .await
    .expect("a row");
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(409);
    sqlx::query("update idempotency_keys set leased_until = now()").execute(app.store.pool()).await.expect("an update");
    assert!(!replayed(&keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201)));
    assert!(replayed(&keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201)));
}

#[tokio::test]
async fn a_crash_before_the_answer_leaves_neither_the_change_nor_the_answer() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    // The moment at which the answer is stored fails, with all that was done before it.
    sqlx::raw_sql(
        "create function crash() returns trigger language plpgsql as $$ begin raise exception 'crash'; end $$;
         create trigger crash before update on idempotency_keys for each row when (new.status is not null)
             execute function crash();",
    )
    .execute(app.store.pool())
    .await
    .expect("a trigger");
    let failed = keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await;
    assert!(failed.status >= 500, "{}", failed.body);
    app.get(&format!("{GLOBAL}/p")).await.expect(404);
    sqlx::raw_sql("drop trigger crash on idempotency_keys").execute(app.store.pool()).await.expect("no trigger");
    assert!(!replayed(&keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201)));
    assert_eq!(app.get(&format!("{GLOBAL}/p")).await.expect(200).body["version"], 1);
}

/// Sends a request, whose client goes away while it waits for a lock on a table.
async fn give_up_while_it_waits_for(app: &App, table: &str, body: &str) {
    let mut request = Box::pin(keyed(app, &app.token, "k", "POST", GLOBAL, body));
    tokio::select! {
        answer = &mut request => panic!("answered {}", answer.status),
        () = app.until_somebody_waits_for(table) => {}
    }
}

/// The answer to a request whose key is in use as long as another does it.
async fn once_its_key_is_free(app: &App, body: &str) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = keyed(app, &app.token, "k", "POST", GLOBAL, body).await;
        if answer.status != 409 {
            return answer;
        }
        assert!(begin.elapsed() < SOONER_THAN_A_LEASE, "the key is in use, and nobody does its request");
    }
}

#[tokio::test]
async fn a_request_whose_client_went_away_is_done_all_the_same() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    let mut lock = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table products in exclusive mode").execute(&mut *lock).await.expect("a lock");
    give_up_while_it_waits_for(&app, "products", &body).await;
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(409);
    lock.commit().await.expect("no lock");
    assert!(replayed(&once_its_key_is_free(&app, &body).await.expect(201)));
}

#[tokio::test]
async fn a_key_that_is_taken_while_the_client_goes_away_is_that_of_a_request_that_is_done() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    let mut lock = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("lock table idempotency_keys in exclusive mode").execute(&mut *lock).await.expect("a lock");
    give_up_while_it_waits_for(&app, "idempotency_keys", &body).await;
    lock.commit().await.expect("no lock");
    once_its_key_is_free(&app, &body).await.expect(201);
    assert_eq!(app.get(&format!("{GLOBAL}/p")).await.expect(200).body["version"], 1);
}

#[tokio::test]
async fn keys_are_forgotten_after_a_day_and_an_account_keeps_so_many() {
    let app = App::start().await;
    let body = json!({"p": german("Kaffee")}).to_string();
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201);
    let age = |hours: i32| {
        sqlx::query("update idempotency_keys set created_at = now() - make_interval(hours => $1)").bind(hours)
    };
    age(23).execute(app.store.pool()).await.expect("an update");
    app.store.forget_old_keys().await.expect("housekeeping");
    app.store.count_kept_keys().await.expect("housekeeping");
    assert!(replayed(&keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201)));
    age(25).execute(app.store.pool()).await.expect("an update");
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(422);
    age(25).execute(app.store.pool()).await.expect("an update");
    app.store.forget_old_keys().await.expect("housekeeping");
    app.store.count_kept_keys().await.expect("housekeeping");
    let left: i64 =
        sqlx::query_scalar("select count(*) from idempotency_keys").fetch_one(app.store.pool()).await.expect("a count");
    assert_eq!(left, 0);

    sqlx::query("insert into idempotency_usage select account_id, 1000000000, 0 from accounts")
        .execute(app.store.pool())
        .await
        .expect("a row");
    let refused = keyed(&app, &app.token, "k2", "POST", GLOBAL, &body).await;
    assert!(matches!(refused.status, 429 | 503), "{}", refused.body);
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
    app.store.forget_old_keys().await.expect("housekeeping");
    app.store.count_kept_keys().await.expect("housekeeping");
    keyed(&app, &app.token, "k2", "POST", GLOBAL, &body).await.expect(422);
}

#[tokio::test]
async fn a_lower_level_does_not_get_the_answer_of_a_higher_one() {
    let app = App::start().await;
    let reader = app.token("shop", "rita", Level::Read).await;
    let body = json!({"p": german("Kaffee")}).to_string();
    keyed(&app, &app.token, "k", "POST", GLOBAL, &body).await.expect(201);
    keyed(&app, &reader, "k", "POST", GLOBAL, &body).await.expect(403);
}

#[tokio::test]
async fn actions_by_filter_and_changed_labels_are_done_once_too() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee"), ("q", "Tee")]).await;
    let action = json!({"action": "REJECT", "filter": {"assignmentStatus": "UNASSIGNED"}}).to_string();
    let path = "/assignments/TARIC/actions";
    let begun = keyed(&app, &app.token, "act", "POST", path, &action).await.expect(202);
    let again = keyed(&app, &app.token, "act", "POST", path, &action).await.expect(202);
    assert!(replayed(&again) && again.body["actionId"] == begun.body["actionId"], "{}", again.body);
    let id = begun.body["actionId"].as_str().expect("an id");
    while app.store.work_on_action(None, 100).await.expect("work").is_some() {}
    let done = app.get(&format!("/assignments/actions/{id}")).await.expect(200).body;
    assert_eq!((&done["selected"], &done["done"]), (&json!(2), &json!(2)), "{done}");
    let undo = format!("/assignments/actions/{id}/undo");
    let undone = keyed(&app, &app.token, "undo", "POST", &undo, "{}").await.expect(202);
    let again = keyed(&app, &app.token, "undo", "POST", &undo, "{}").await.expect(202);
    assert_eq!(content(&again), content(&undone));

    app.post("/assignments/assignment-labels", json!({"label": "old", "color": "#112233"})).await.expect(201);
    let rename = json!({"label": "new"}).to_string();
    for _ in 0..2 {
        keyed(&app, &app.token, "label", "PATCH", "/assignments/assignment-labels/old", &rename).await.expect(200);
    }
}

#[tokio::test]
async fn a_key_means_nothing_where_there_is_no_operation() {
    let app = App::start().await;
    let path = "/assignments/assignment-labels";
    let body = json!({"label": "l", "color": "#112233"}).to_string();
    keyed(&app, &app.token, "k", "POST", path, &body).await.expect(201);
    keyed(&app, &app.token, "k", "DELETE", path, &body).await.expect(405);
    keyed(&app, &app.token, "k", "POST", "/nowhere", &body).await.expect(404);
    assert!(replayed(&keyed(&app, &app.token, "k", "POST", path, &body).await.expect(201)));
}
