//! Several services on one database: what one leaves undone the other does, a lost answer any of them gives again, and
//! what the index refused an operator sends again.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::IntoResponse;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;
use vat_classification::http::BASE_PATH;
use vat_classification::jobs::{auto_assignment, projection, webhooks};

use crate::app::{Answer, App, action_body, german};
use crate::operators::printed;
use crate::webhooks::{Got, Receiver, deliver, hurry, register, sender, told};

/// How long something may take to become so, before a test gives up.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Whether a statement on the test's database waits for a lock.
const IS_WAITING: &str =
    "select count(*) > 0 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
/// Lets the index refuse two products for what they hold.
const REFUSED: &str = "
    create function refuse() returns trigger language plpgsql as $$
    begin raise exception E'no\\troom' using errcode = 'data_exception'; end $$;
    create trigger refuse before insert or update on search_documents
        for each row when (new.product_id in ('bad', 'gone')) execute function refuse()";
/// The message that ends a transaction: its letter, its length, the statement, and a zero.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

async fn run(app: &App, statement: &'static str) {
    sqlx::raw_sql(statement).execute(app.store.pool()).await.expect(statement);
}

async fn texts(app: &App, statement: &'static str) -> Vec<String> {
    sqlx::query_scalar(statement).fetch_all(app.store.pool()).await.expect(statement)
}

/// Waits until a statement answers yes.
async fn until(app: &App, statement: &'static str) {
    let is_so = async || sqlx::query_scalar::<_, bool>(statement).fetch_one(app.store.pool()).await.expect(statement);
    let waiting = async { while !is_so().await {} };
    timeout(GIVE_UP, waiting).await.expect(statement);
}

/// Another service on the same database, which it reaches by this URL.
async fn beside(first: &App, url: &str) -> App {
    // Every service of a test makes an account of the same name.
    run(first, "update accounts set name = 'boutique'").await;
    App::on(url).await
}

/// Ends a job where it stands, as the end of its service would.
async fn kill(job: JoinHandle<()>) {
    job.abort();
    assert!(job.await.expect_err("a job goes on until it is stopped").is_cancelled());
}

/// The ids of the products with this name, as the service tells an account.
async fn found(app: &App, token: &str, name: &str) -> Value {
    let body = Body::from(json!({"filterCriteria": [{"productName": name, "languageKey": "de"}]}).to_string());
    let page = app.raw(token, "POST", "/products/global/search", "application/json", body).await.expect(200).body;
    each(&page, "productId")
}

/// A field of every item of a list.
fn each(list: &Value, field: &str) -> Value {
    list["items"].as_array().expect("items").iter().map(|item| item[field].clone()).collect()
}

#[tokio::test]
async fn two_services_share_the_queue_and_what_one_was_deciding_when_it_stopped_is_decided_once_by_the_other() {
    let assign = |app: &App| {
        let (store, engine) = (app.store.clone(), app.engine.clone());
        auto_assignment::run(store, engine, Arc::default(), true, CancellationToken::new())
    };
    let first = App::start().await;
    let second = beside(&first, first.database_url()).await;
    first.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    let mut held = first.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from assignments where product_id = 'a' for update").execute(&mut *held).await.expect("held");
    // It has decided, and cannot store that.
    let stopped = tokio::spawn(assign(&first));
    until(&first, IS_WAITING).await;
    first.create(&[("c", "Herren Jeans")]).await;
    let other = tokio::spawn(assign(&second));
    until(&first, "select count(*) = 3 from assignments where auto_state = 'DONE'").await;
    assert_eq!(first.store.auto_queue_length().await.expect("a count"), 2, "what the first one holds is left to it");
    kill(stopped).await;
    held.rollback().await.expect("released");
    until(&first, "select not exists (select from auto_queue)").await;
    kill(other).await;
    let decided = "select product_id from journal where action = 'AUTO_ASSIGN' order by product_id";
    assert_eq!(texts(&first, decided).await, ["a", "a", "a", "b", "b", "b", "c", "c", "c"], "one for each taxonomy");
}

#[tokio::test]
async fn what_a_stopped_service_was_writing_to_the_index_is_written_by_the_other_when_the_lease_ends() {
    let index =
        |app: &App| projection::run(app.store.clone(), app.search.clone(), Arc::default(), CancellationToken::new());
    let first = App::start().await;
    let second = beside(&first, first.database_url()).await;
    first.create(&[("a", "Kaffee"), ("b", "Kaffee")]).await;
    first.index().await;
    first.put("/products/global?productId=a&currentVersion=1", german("Tee")).await.expect(200);
    let mut held = first.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from search_documents for update").execute(&mut *held).await.expect("held");
    let stopped = tokio::spawn(index(&first));
    until(&first, IS_WAITING).await;
    // As long as it is there, it holds what it has claimed.
    run(&first, "update search_outbox set leased_until = now() - interval '1 hour'").await;
    until(&first, "select bool_and(leased_until > now()) from search_outbox").await;
    kill(stopped).await;
    // A busy machine shall not end the lease before its turn.
    run(&first, "update search_outbox set lease = gen_random_uuid(), leased_until = now() + interval '1 hour'").await;
    held.rollback().await.expect("released");
    first.put("/products/global?productId=b&currentVersion=1", german("Tee")).await.expect(200);
    let other = tokio::spawn(index(&second));
    until(&first, "select count(*) = 1 from search_outbox").await;
    assert_eq!(found(&second, &first.token, "Tee").await, json!(["b"]), "what is leased is left alone");
    run(&first, "update search_outbox set leased_until = now() - interval '1 second'").await;
    until(&first, "select not exists (select from search_outbox)").await;
    kill(other).await;
    assert_eq!(found(&second, &first.token, "Tee").await, json!(["a", "b"]));
}

#[tokio::test]
async fn what_a_stopped_service_was_sending_is_sent_by_the_other_under_the_same_ids_when_the_lease_ends() {
    let first = App::start().await;
    let second = beside(&first, first.database_url()).await;
    let receiver = Receiver::start().await;
    // It leads to an address where every connection is taken and nothing is ever said.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = format!("http://{}/", silent.local_addr().expect("an address"));
    receiver.answer(move |_| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, place.clone())]).into_response());
    register(&first, &receiver, &["PRODUCT_CREATED"]).await;
    first.create(&[("a", "x"), ("b", "x"), ("c", "x")]).await;
    told(&first, "PRODUCT_CREATED", 3).await;
    let stopped = tokio::spawn(webhooks::run(first.store.clone(), sender(true), CancellationToken::new()));
    let three = try_join_all((0..3).map(|_| silent.accept()));
    let _open = timeout(GIVE_UP, three).await.expect("in time").expect("connections");
    kill(stopped).await;
    let id = |got: &Got| format!("{} {}", got.product(), got.id());
    let ids = |got: Vec<Got>| got.iter().map(id).collect::<BTreeSet<String>>();
    let begun = ids(receiver.take());
    assert_eq!(begun.len(), 3);
    receiver.answer_status(204);
    let sent = async || {
        hurry(&second).await;
        webhooks::work_off(&second.store, &sender(true)).await.expect("rounds");
        receiver.take().len()
    };
    assert_eq!(sent().await, 0, "they are in other hands");
    run(&first, "update webhooks set leased_until = now() - interval '1 second'").await;
    assert_eq!(ids(deliver(&second, &receiver, 3).await), begun);
    assert_eq!(sent().await, 0, "nothing is sent twice");
}

/// A way to a database that loses the answer to a COMMIT, once, whenever it is told to: its URL, and how it is told.
async fn unsure_way(database_url: &str) -> (String, Arc<AtomicBool>) {
    let mut url = Url::parse(database_url).expect("a URL");
    // The address of a private server names the directory of its socket behind the question mark.
    let socket = url.query_pairs().find(|(name, _)| name == "host").map(|(_, value)| value.into_owned());
    let host = socket.or_else(|| url.host_str().map(str::to_owned)).expect("a host");
    let port = url.port().unwrap_or(5432);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    url.set_host(Some("127.0.0.1")).expect("a host");
    url.set_port(Some(listener.local_addr().expect("an address").port())).expect("a port");
    url.set_query(Some("sslmode=disable"));
    let loses = Arc::new(AtomicBool::new(false));
    let told = loses.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (host, loses) = (host.clone(), told.clone());
            tokio::spawn(async move {
                if host.starts_with('/') {
                    pass(client, UnixStream::connect(format!("{host}/.s.PGSQL.{port}")).await?, &loses).await
                } else {
                    pass(client, TcpStream::connect((host.as_str(), port)).await?, &loses).await
                }
            });
        }
    });
    (url.into(), loses)
}

/// Passes on what both say, until one of them ends or an answer is lost: then the connection is, too.
async fn pass(client: TcpStream, server: impl AsyncRead + AsyncWrite, loses: &AtomicBool) -> io::Result<()> {
    let (asked, answered) = client.into_split();
    let (answers, asks) = tokio::io::split(server);
    let is_lost = AtomicBool::new(false);
    let note = |bytes: &[u8]| {
        if bytes.ends_with(COMMIT) && loses.swap(false, SeqCst) {
            is_lost.store(true, SeqCst);
        }
        true
    };
    tokio::select! {
        ended = carry(asked, asks, note) => ended,
        ended = carry(answers, answered, |_| !is_lost.load(SeqCst)) => ended,
    }
}

/// Passes bytes on as long as there are any that may be.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    may_pass: impl Fn(&[u8]) -> bool,
) -> io::Result<()> {
    let mut bytes = vec![0; 8_192];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 || !may_pass(&bytes[..read]) {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
    }
}

async fn keyed(app: &App, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let request = Request::builder().method(method).uri(format!("{BASE_PATH}{path}"));
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    let request = request.header(header::CONTENT_TYPE, "application/json");
    let request = request.header("Idempotency-Key", format!("{method} {path}"));
    app.send(request.body(Body::from(body.to_owned())).expect("a request")).await
}

#[tokio::test]
async fn a_request_whose_commit_was_done_and_not_answered_gets_its_one_answer_from_any_service() {
    let direct = App::start().await;
    let (url, loses) = unsure_way(direct.database_url()).await;
    let app = beside(&direct, &url).await;
    for (method, path, body, status, versions) in [
        ("POST", "/products/global", json!({"p": german("Socken aus Baumwolle")}).to_string(), 201, json!([1])),
        ("PATCH", "/assignments/TARIC?assignmentAction=REJECT", action_body(&[("p", 1)]).to_string(), 200, json!([1])),
        ("PATCH", "/products/global?productId=p&currentVersion=1", r#"{"shopIds": [3]}"#.to_owned(), 200, json!([2])),
        ("DELETE", "/products/global?productId=p&currentVersion=2", String::new(), 204, json!([])),
    ] {
        loses.store(true, SeqCst);
        let lost = keyed(&app, &app.token, method, path, &body).await.expect(503);
        assert!(!loses.load(SeqCst), "{method} {path} failed before its end");
        let is_told_when = lost.headers.contains_key(header::RETRY_AFTER);
        assert_eq!((&lost.body["code"], is_told_when), (&json!("ServiceUnavailable"), true));
        let mut answers = BTreeSet::new();
        for service in [&direct, &app, &direct] {
            let again = keyed(service, &app.token, method, path, &body).await.expect(status);
            assert_eq!(again.headers["idempotency-replayed"], "true", "{method} {path}");
            answers.insert(again.bytes);
        }
        assert_eq!(answers.len(), 1, "{method} {path}");
        let list = app.get("/products/global").await.expect(200).body;
        assert_eq!(each(&list, "version"), versions, "{method} {path}");
        app.assign().await;
    }
    let done = "select action from journal where taxonomy is null or action = 'REJECT' order by sequence";
    assert_eq!(texts(&app, done).await, ["PRODUCT_CREATED", "REJECT", "PRODUCT_UPDATED", "PRODUCT_DELETED"]);
}

#[tokio::test]
async fn what_the_index_refuses_is_parked_counted_and_printed_and_found_once_it_is_sent_again() {
    let app = App::start().await;
    app.index().await;
    run(&app, REFUSED).await;
    app.create(&["bad", "gone", "good"].map(|id| (id, "Kaffee"))).await;
    app.index().await;
    let state = async || {
        let lengths = app.store.queue_lengths().await.expect("lengths");
        (lengths.search_parked, lengths.search_outbox, found(&app, &app.token, "Kaffee").await)
    };
    assert_eq!(state().await, (2, 0, json!(["good"])));
    app.delete("/products/global?productId=gone&currentVersion=1").await.expect(204);
    let shown = printed(&app, "queue parked");
    let lines: Vec<&str> = shown.lines().collect();
    let [bad, gone] = lines[..] else { panic!("{shown}") };
    assert!(bad.starts_with("search\tshop\tbad\t\t") && bad.contains("no room"), "{shown}");
    assert!(gone.starts_with("search\tshop\t(deleted)\t\t") && gone.contains("no room"), "{shown}");
    assert_eq!(printed(&app, "queue retry --queue auto-assignment"), "0");
    run(&app, "drop trigger refuse on search_documents").await;
    assert_eq!(printed(&app, "queue retry --queue search --account shop"), "2");
    // Of the one that is gone its removal alone waits.
    assert_eq!(state().await, (0, 2, json!(["good"])));
    app.index().await;
    assert_eq!(state().await, (0, 0, json!(["bad", "good"])));
    assert_eq!(printed(&app, "queue parked"), "");
}
