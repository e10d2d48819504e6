//! The database away: frozen, killed, out of connections, out of room. Nothing hangs, nothing acknowledged is lost, and
//! all is well again at once when it is back.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use futures::future::join_all;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinHandle;
use vat_classification::store::Store;
use vat_classification::store::pulse::Pulse;

use crate::app::{Answer, App, german};
use crate::support::OwnServer;

/// How long a request may wait for a database that is away: the contract's 2 s, and one for a machine with much else
/// to do.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// How long a database may take to be there again, before a test gives up.
const GIVE_UP: Duration = Duration::from_secs(60);
/// How long the service may take to notice that it is: the contract's 1 s, and four for a machine with much else to do.
const LONGEST_HEALING: Duration = Duration::from_secs(5);
/// Requests that are sent at one time: as many as the service has connections.
const AT_ONCE: usize = 24;
/// Connections for which a database that is short of them has room.
const FEW_CONNECTIONS: usize = 6;

/// A service on a database that can be taken away.
struct Outage {
    app: App,
    server: OwnServer,
    watching: JoinHandle<()>,
}

impl Outage {
    async fn start() -> Outage {
        let server = OwnServer::start().await;
        let store = Store::connect(&server.url).await.expect("a connection");
        store.migrate().await.expect("migrated");
        store.pool().close().await;
        let app = App::on(&server.url).await;
        let watching = tokio::spawn(app.watch.clone().keep(Pulse::of(&app.store), app.stopping.clone()));
        app.create(&[("before", "Kaffee")]).await;
        Outage { app, server, watching }
    }

    /// An answer that has to come in time, and says to come again where it is no success.
    async fn ask(&self, request: impl Future<Output = Answer>) -> u16 {
        let began = Instant::now();
        let answer = request.await;
        assert!(began.elapsed() < LONGEST_WAIT, "{:?} {}", began.elapsed(), answer.body);
        if answer.status >= 400 {
            assert_eq!(answer.status, 503, "{}", answer.body);
            assert_eq!(answer.body["code"], "ServiceUnavailable", "{}", answer.body);
            assert!(answer.headers.contains_key("retry-after"));
            assert!(answer.headers.contains_key("ratelimit-limit"));
        }
        answer.status
    }

    async fn read(&self) -> u16 {
        self.ask(self.app.get("/products/global/before")).await
    }

    async fn write(&self, id: &str) -> u16 {
        let body = serde_json::json!({ id: german("Tee") });
        self.ask(self.app.post("/products/global", body)).await
    }

    /// What an operator's address answers.
    async fn open(&self, path: &str) -> u16 {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let began = Instant::now();
        let status = self.app.send(request).await.status;
        assert!(began.elapsed() < Duration::from_secs(1), "{path} {:?}", began.elapsed());
        status
    }

    /// Asks until the service serves again, which it has to soon after the database lets somebody in.
    async fn heal(&self) {
        let began = Instant::now();
        // One attempt may fall among the last of a server that is killed, and end with it.
        while PgConnection::connect(&self.server.url).await.is_err() {
            assert!(began.elapsed() < GIVE_UP);
            leave_a_turn().await;
        }
        let began = Instant::now();
        while self.read().await != 200 {
            assert!(began.elapsed() < LONGEST_HEALING);
            leave_a_turn().await;
        }
    }

    /// Asks until as many requests at one time are served as the service has connections.
    async fn heal_all(&self) {
        let began = Instant::now();
        while join_all((0..AT_ONCE).map(|_| self.read())).await.iter().any(|status| *status != 200) {
            assert!(began.elapsed() < LONGEST_HEALING);
            leave_a_turn().await;
        }
    }

    async fn end(self) {
        self.app.stopping.cancel();
        self.watching.await.expect("the watch ends");
    }
}

/// Lets the watch of the database run: requests that are refused at once leave nobody a turn on this thread.
async fn leave_a_turn() {
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_frozen_database_makes_nobody_wait_and_costs_nothing() {
    let outage = Outage::start().await;
    outage.server.freeze();
    assert_eq!(outage.read().await, 503);
    assert_eq!(outage.write("meanwhile").await, 503);
    assert_eq!(outage.open("/health/live").await, 200);
    assert_eq!(outage.open("/health/ready").await, 503);
    assert_eq!(outage.open("/metrics").await, 200);
    outage.server.thaw();
    outage.heal().await;
    assert_eq!(outage.open("/health/ready").await, 200);
    assert_eq!(outage.write("after").await, 201);
    outage.end().await;
}

#[tokio::test]
async fn a_database_that_ends_a_connection_is_not_away() {
    let outage = Outage::start().await;
    let mut pulse = Pulse::of(&outage.app.store);
    assert!(pulse.beats(LONGEST_WAIT).await);
    sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()",
    )
    .execute(outage.app.store.pool())
    .await
    .expect("the connections end");
    assert!(pulse.beats(LONGEST_WAIT).await);
    outage.end().await;
}

#[tokio::test]
async fn a_killed_database_loses_nothing_that_was_acknowledged() {
    let outage = Outage::start().await;
    let mut acknowledged = vec!["before".to_owned()];
    for round in 0..2 {
        let writing = join_all((0..8).map(|writer| {
            let outage = &outage;
            async move {
                let mut stored = Vec::new();
                for number in 0..20 {
                    if writer == 0 && number == 5 {
                        outage.server.kill();
                    }
                    let id = format!("{round}-{writer}-{number}");
                    if outage.write(&id).await == 201 {
                        stored.push(id);
                    }
                }
                stored
            }
        }));
        acknowledged.extend(writing.await.concat());
        outage.heal().await;
    }
    for id in &acknowledged {
        outage.app.get(&format!("/products/global/{id}")).await.expect(200);
    }
    outage.app.assign().await;
    outage.end().await;
}

#[tokio::test]
async fn what_a_dead_database_left_behind_keeps_no_new_one_from_starting() {
    let outage = Outage::start().await;
    outage.server.orphan();
    outage.heal().await;
    assert_eq!(outage.write("after").await, 201);
    outage.end().await;
}

#[tokio::test]
async fn a_database_without_a_free_connection_keeps_nobody_waiting() {
    let outage = Outage::start().await;
    let mut taken = Vec::new();
    while let Ok(connection) = PgConnection::connect(&outage.server.url).await {
        taken.push(connection);
    }
    assert!(taken.len() > AT_ONCE, "{}", taken.len());
    for _ in 0..2 {
        join_all((0..AT_ONCE).map(|_| outage.read())).await;
    }
    for connection in taken {
        connection.close().await.expect("closed");
    }
    outage.heal_all().await;
    outage.end().await;
}

#[tokio::test]
async fn a_database_with_few_connections_left_serves_some_and_sends_the_others_away_in_time() {
    let outage = Outage::start().await;
    let mut first = PgConnection::connect(&outage.server.url).await.expect("a connection");
    sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'vat-classification'")
        .execute(&mut first)
        .await
        .expect("the service has lost its connections");
    let mut taken = vec![first];
    while let Ok(connection) = PgConnection::connect(&outage.server.url).await {
        taken.push(connection);
    }
    for connection in taken.drain(..FEW_CONNECTIONS) {
        connection.close().await.expect("closed");
    }
    let began = Instant::now();
    let mut is_served = [false; 2];
    for round in 0.. {
        let reads = join_all((0..AT_ONCE).map(|_| outage.read()));
        let ids: Vec<String> = (0..AT_ONCE).map(|number| format!("few-{round}-{number}")).collect();
        let writes = join_all(ids.iter().map(|id| outage.write(id)));
        let (reads, writes) = futures::future::join(reads, writes).await;
        for (id, _) in ids.iter().zip(&writes).filter(|(_, status)| **status == 201) {
            assert!([200, 503].contains(&outage.ask(outage.app.get(&format!("/products/global/{id}"))).await));
        }
        is_served[0] |= reads.contains(&200);
        is_served[1] |= writes.contains(&201);
        if is_served == [true; 2] {
            break;
        }
        assert!(began.elapsed() < GIVE_UP, "nothing is served by {FEW_CONNECTIONS} connections");
        leave_a_turn().await;
    }
    drop(taken);
    outage.heal_all().await;
    outage.end().await;
}

#[tokio::test]
async fn a_full_database_refuses_writes_and_goes_on_with_reads() {
    let app = App::start().await;
    app.create(&[("before", "Kaffee")]).await;
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement).execute(app.store.pool()).await.expect(statement);
    };
    // As PostgreSQL says it when a disk is full.
    run("create function no_room() returns trigger language plpgsql as $$
         begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$;
         create trigger no_room before insert on journal execute function no_room()")
    .await;
    let refused = app.post("/products/global", serde_json::json!({"p": german("Tee")})).await.expect(503);
    assert_eq!(refused.body["code"], "ServiceUnavailable");
    assert!(refused.headers.contains_key("retry-after"));
    app.get("/products/global/before").await.expect(200);
    app.get("/products/global/p").await.expect(404);
    run("drop trigger no_room on journal").await;
    app.create(&[("p", "Tee")]).await;
}
