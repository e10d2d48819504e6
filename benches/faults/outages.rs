//! Faults of what the service stands on: itself killed, its database killed, frozen, out of connections, out of room.
//! For each it is counted what clients were answered, how long they waited, and whether anything acknowledged is lost;
//! and, once the database lets somebody in again, how long the service takes to notice, while clients go on writing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;

use crate::own::{self, BASE_PATH, GIVE_UP, Service};

/// Clients that write, and products of each of their requests.
const WRITERS: (usize, usize) = (6, 50);
/// How often the service and its database are killed.
const KILLS: (usize, usize) = (20, 8);
/// How long the database is frozen, and how long it has no connection to give.
const AWAY: Duration = Duration::from_secs(20);
/// Connections for which a database that is short of them has room.
const FEW_CONNECTIONS: usize = 6;
/// Bytes of the file system that fills up, and of the same once there is room, as `mount` takes them.
const ROOM: (&str, &str) = ("size=190m", "size=1g");
/// How long is written to the one that fills up.
const FILLING: Duration = Duration::from_secs(90);

/// What clients saw.
#[derive(Default)]
struct Seen {
    statuses: BTreeMap<u16, usize>,
    slowest: Duration,
    /// Products of batches that were acknowledged, and of those that were not.
    acknowledged: BTreeSet<String>,
    unclear: BTreeSet<String>,
}

impl Service {
    /// Creates a batch of products whose ids say which batch they are of, and answers the status, 0 without an answer.
    async fn create(&self, token: &str, batch: &str) -> u16 {
        let product = |number: usize| (format!("{batch}.{number}"), json!({"productDetails": {}}));
        let body = Value::Object((0..WRITERS.1).map(product).collect());
        let request = self.client.post(format!("{}{BASE_PATH}/products/global", self.base)).bearer_auth(token);
        request.json(&body).send().await.map_or(0, |answer| answer.status().as_u16())
    }

    /// Writes from several clients while `fault` goes on.
    async fn under_load<T>(&self, name: &str, fault: impl Future<Output = T>) -> (Seen, T) {
        let (stop, token) = (Arc::new(AtomicBool::new(false)), self.token());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let writers = (0..WRITERS.0).map(|writer| {
            let (stop, token, seen) = (stop.clone(), token.clone(), seen.clone());
            async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let batch = format!("{name}-{writer}-{number}");
                    number += 1;
                    let began = Instant::now();
                    let status = self.create(&token, &batch).await;
                    let mut seen = seen.lock().await;
                    *seen.statuses.entry(status).or_default() += 1;
                    seen.slowest = seen.slowest.max(began.elapsed());
                    if status == 201 {
                        seen.acknowledged.insert(batch)
                    } else {
                        seen.unclear.insert(batch)
                    };
                    drop(seen);
                    if status == 0 {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            }
        });
        let fault = async {
            let done = fault.await;
            stop.store(true, Ordering::Relaxed);
            done
        };
        let (done, _) = futures::future::join(fault, futures::future::join_all(writers)).await;
        (std::mem::take(&mut *seen.lock().await), done)
    }

    /// How long it takes until the database lets somebody in, and from then on until a batch can be stored.
    async fn healed(&self) -> (Duration, Duration) {
        let back = self.database_is_back().await;
        let (began, token) = (Instant::now(), self.token());
        loop {
            let batch = format!("healed-{}", uuid::Uuid::new_v4().simple());
            if self.create(&token, &batch).await == 201 {
                return (back, began.elapsed());
            }
            assert!(began.elapsed() < 2 * GIVE_UP, "the service does not come to itself");
        }
    }

    /// What is stored of batches: those that are lost though acknowledged, and those that are there in part.
    async fn compare(&self, seen: &Seen) -> String {
        let mut connection = PgConnection::connect(&self.database_url()).await.expect("a connection");
        let stored: Vec<(String, i64)> = sqlx::query_as(
            "select split_part(product_id, '.', 1), count(*) from products
             where exists (select from assignments where assignments.product_key = products.product_key) group by 1",
        )
        .fetch_all(&mut connection)
        .await
        .expect("what is stored");
        let stored: BTreeMap<String, i64> = stored.into_iter().collect();
        let lost = seen.acknowledged.iter().filter(|batch| !stored.contains_key(*batch)).count();
        let all = seen.acknowledged.iter().chain(&seen.unclear);
        let partial = all.filter(|batch| stored.get(*batch).is_some_and(|count| *count != WRITERS.1 as i64)).count();
        format!("{} acknowledged, {lost} lost, {partial} in part", seen.acknowledged.len())
    }
}

fn row(fault: &str, seen: &Seen, (back, healed): (Duration, Duration), kept: &str) -> String {
    let statuses: Vec<String> = seen.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
    format!(
        "| {fault:<38} | {:<40} | {:>6.2} | {:>6.2} | {:>6.2} | {kept} |",
        statuses.join(", "),
        seen.slowest.as_secs_f64(),
        back.as_secs_f64(),
        healed.as_secs_f64()
    )
}

/// Throws every fault at services of their own, and prints a table.
pub(crate) async fn all() {
    let directory = own::directory();
    let head = "| fault | answers (0: none) | slowest s | database back s | healed after that s | what is stored |";
    let mut table = vec![head.to_owned()];
    let mut tell = |row: String| {
        println!("{row}");
        table.push(row);
    };
    let mut service = Service::start(&directory).await;
    let mut restarts = Vec::new();
    for round in 0..KILLS.0 {
        let name = format!("service{round}");
        let pause = Duration::from_millis(300 + 61 * round as u64);
        let pid = i32::try_from(service.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        let (seen, ()) = service
            .under_load(&name, async {
                tokio::time::sleep(pause).await;
                let _ = kill_process(pid, Signal::KILL);
            })
            .await;
        service.kill();
        restarts.push((seen, service.again().await));
    }
    let slowest = restarts.iter().map(|(_, took)| *took).max().unwrap_or_default();
    let whole = restarts.into_iter().fold(Seen::default(), |whole, (seen, _)| whole.and(seen));
    let kept = service.compare(&whole).await;
    tell(row(&format!("service killed, {} times", KILLS.0), &whole, (Duration::ZERO, slowest), &kept));

    let mut whole = Seen::default();
    let mut slowest = (Duration::ZERO, Duration::ZERO);
    for round in 0..KILLS.1 {
        let kill = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            service.signal_database(Signal::KILL);
            service.healed().await
        };
        let (seen, (back, healed)) = service.under_load(&format!("database{round}"), kill).await;
        slowest = (slowest.0.max(back), slowest.1.max(healed));
        whole = whole.and(seen);
    }
    let kept = service.compare(&whole).await;
    tell(row(&format!("database killed, {} times", KILLS.1), &whole, slowest, &kept));

    let freeze = async {
        service.signal_database(Signal::STOP);
        tokio::time::sleep(AWAY).await;
        service.signal_database(Signal::CONT);
        service.healed().await
    };
    let (seen, healed) = service.under_load("frozen", freeze).await;
    let kept = service.compare(&seen).await;
    tell(row(&format!("database frozen for {} s", AWAY.as_secs()), &seen, healed, &kept));

    for (name, left) in [("connections", 0), ("few", FEW_CONNECTIONS)] {
        let take = async { (take_connections(&service.database_url(), left).await, service.healed().await) };
        let (seen, (taken, healed)) = service.under_load(name, take).await;
        let kept = service.compare(&seen).await;
        tell(row(&format!("{taken} connections taken, {left} left"), &seen, healed, &kept));
    }
    drop(service);
    let _ = fs::remove_dir_all(&directory);
    match full(&directory).await {
        Ok(row) => tell(row),
        Err(error) => println!("no file system could be filled, which needs the right to mount one: {error}"),
    }
    println!("\n{}", table.join("\n"));
}

/// Takes all connections that the database has but so many, the service's too, keeps them for a while, and answers how
/// many they were.
async fn take_connections(url: &str, left: usize) -> usize {
    let began = Instant::now();
    let mut taken = vec![PgConnection::connect(url).await.expect("a connection")];
    loop {
        while let Ok(connection) = PgConnection::connect(url).await {
            taken.push(connection);
        }
        let killed: Vec<bool> = sqlx::query_scalar(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'vat-classification'",
        )
        .fetch_all(&mut taken[0])
        .await
        .expect("the service loses its connections");
        // The service opens others as fast: what it gets is taken from it again, until it has next to none.
        if killed.len() <= left {
            taken.truncate(taken.len() + killed.len() - left);
            break;
        }
        assert!(began.elapsed() < GIVE_UP, "the service does not let go of its connections");
    }
    tokio::time::sleep(AWAY).await;
    taken.len()
}

/// A database on a file system that fills up.
async fn full(directory: &Path) -> io::Result<String> {
    fs::create_dir_all(directory)?;
    let mount = |options: &str| {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory).status()?;
        if done.success() { Ok(()) } else { Err(io::Error::other("mount fails")) }
    };
    mount(ROOM.0)?;
    let service = Service::start(directory).await;
    let fill = async {
        let began = Instant::now();
        while began.elapsed() < FILLING {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        mount(&format!("remount,{}", ROOM.1))?;
        io::Result::Ok(service.healed().await)
    };
    let (seen, healed) = service.under_load("full", fill).await;
    let healed = healed?;
    let kept = service.compare(&seen).await;
    drop(service);
    let _ = Command::new("umount").arg(directory).status();
    let _ = fs::remove_dir_all(directory);
    Ok(row("no room on the database's disk", &seen, healed, &kept))
}

impl Seen {
    fn and(mut self, other: Seen) -> Seen {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.acknowledged.extend(other.acknowledged);
        self.unclear.extend(other.unclear);
        self
    }
}
