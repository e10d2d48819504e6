//! The private PostgreSQL on real processes: each test in a data directory of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, kill_process};
use sqlx::{Connection, PgConnection};

use super::lock::claim;
use super::pid_file::PidFile;
use super::place::Place;
use super::*;

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the server accepts connections")
}

async fn write(url: &str, number: i32) {
    let mut connection = connect(url).await;
    sqlx::query("create table if not exists kept (number integer)").execute(&mut connection).await.expect("a table");
    sqlx::query("insert into kept values ($1)").bind(number).execute(&mut connection).await.expect("a row");
}

async fn read(url: &str) -> Vec<i32> {
    let mut connection = connect(url).await;
    sqlx::query_scalar("select number from kept order by number").fetch_all(&mut connection).await.expect("rows")
}

fn pid(data_dir: &Path) -> Option<rustix::process::Pid> {
    let place = Place::existing(data_dir)?;
    PidFile::of_running(&place.cluster()).map(|file| file.pid())
}

fn directory() -> tempfile::TempDir {
    directory_for(0o755)
}

fn directory_for(mode: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(mode)).expect("rights");
    directory
}

#[tokio::test]
async fn a_database_keeps_its_rows_from_one_start_to_the_next() {
    let directory = directory();
    assert_eq!(running_url(directory.path()), None);
    for number in 1..=2 {
        let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
        assert_eq!(running_url(directory.path()), Some(postgres.url()));
        write(&postgres.url(), number).await;
        postgres.stop().await;
        assert_eq!(pid(directory.path()), None);
        assert_eq!(running_url(directory.path()), None);
    }
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    assert_eq!(read(&postgres.url()).await, [1, 2]);
    postgres.stop().await;
}

#[tokio::test]
async fn a_cluster_that_a_server_has_which_is_not_seen_from_here_is_left_alone() {
    let directory = directory();
    EmbeddedPostgres::start(directory.path()).await.expect("started").stop().await;
    let place = Place::existing(directory.path()).expect("a place");
    // As a server in another container has it, whose processes have no number here.
    let elsewhere = claim(place.root()).expect("a file").expect("nobody has it");
    let refused = EmbeddedPostgres::start(directory.path()).await.expect_err("in use");
    assert!(matches!(refused, StartError::Elsewhere { .. }), "{refused}");
    drop(elsewhere);
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    assert!(claim(place.root()).expect("a file").is_none(), "the server holds it");
    postgres.stop().await;
    assert!(claim(place.root()).expect("a file").is_some());
}

#[tokio::test]
async fn a_killed_server_comes_up_again_by_itself_and_on_the_next_start() {
    let directory = directory();
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    write(&postgres.url(), 1).await;
    let first = pid(directory.path()).expect("a server");
    kill_process(first, Signal::KILL).expect("killed");
    let second = loop {
        match pid(directory.path()) {
            Some(pid) if pid != first && running_url(directory.path()).is_some() => break pid,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    write(&postgres.url(), 2).await;
    // The service is killed as well: its claim and its supervisor are gone, the stale pid file stays.
    postgres.supervisor.abort();
    drop(postgres);
    kill_process(second, Signal::KILL).expect("killed");
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    assert_eq!(read(&postgres.url()).await, [1, 2]);
    postgres.stop().await;
}

#[tokio::test]
async fn a_server_left_behind_is_adopted_and_stopped_in_the_end() {
    let directory = directory();
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    let left = pid(directory.path());
    postgres.supervisor.abort();
    drop(postgres);
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    assert_eq!(pid(directory.path()), left);
    write(&postgres.url(), 1).await;
    postgres.stop().await;
    assert_eq!(pid(directory.path()), None);
}

#[tokio::test]
async fn the_server_runs_until_its_last_user_leaves() {
    let directory = directory();
    let (first, second) =
        tokio::join!(EmbeddedPostgres::start(directory.path()), EmbeddedPostgres::start(directory.path()));
    let (first, second) = (first.expect("started"), second.expect("joined"));
    first.stop().await;
    write(&second.url(), 1).await;
    second.stop().await;
    assert_eq!(pid(directory.path()), None);
}

#[tokio::test]
async fn a_stale_pid_file_with_the_number_of_another_process_is_no_obstacle() {
    let directory = directory();
    EmbeddedPostgres::start(directory.path()).await.expect("started").stop().await;
    let cluster = Place::existing(directory.path()).expect("a place").cluster();
    let file = cluster.join("postmaster.pid");
    std::fs::write(&file, format!("{}\n{}\n1\n5432\n\n\n", std::process::id(), cluster.display())).expect("written");
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    write(&postgres.url(), 1).await;
    postgres.stop().await;
}

#[tokio::test]
async fn an_interrupted_initdb_is_done_again_while_it_goes_on_writing_as_an_orphan() {
    let directory = directory();
    let place = Place::prepare(directory.path()).expect("a place");
    // Of this version and of one that knew a single name.
    let left = ["cluster.new", "cluster.new-0"].map(|name| place.root().join(name));
    let is_over = Arc::new(AtomicBool::new(false));
    let orphan = std::thread::spawn({
        let (left, is_over) = (left.clone(), is_over.clone());
        move || {
            while !is_over.load(Ordering::Relaxed) {
                for directory in &left {
                    // Either may fail while the other side removes it.
                    let _ = std::fs::create_dir_all(directory);
                    let _ = std::fs::write(directory.join("PG_VERSION"), "17");
                }
                std::thread::yield_now();
            }
        }
    });
    let started = EmbeddedPostgres::start(directory.path()).await;
    is_over.store(true, Ordering::Relaxed);
    orphan.join().expect("an orphan that ends");
    started.expect("started").stop().await;
    for directory in &left {
        std::fs::create_dir_all(directory).expect("left behind");
    }
    EmbeddedPostgres::start(directory.path()).await.expect("started").stop().await;
    assert!(!left.iter().any(|directory| directory.exists()), "the next start removes what is left");
}

#[tokio::test]
async fn a_directory_that_only_root_may_enter_is_no_obstacle() {
    let directory = directory_for(0o700);
    for number in 1..=2 {
        let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
        write(&postgres.url(), number).await;
        assert_eq!(running_url(directory.path()), Some(postgres.url()));
        postgres.stop().await;
    }
    let root = Place::existing(directory.path()).expect("a place").root().to_path_buf();
    assert_eq!(root.starts_with(directory.path()), !rustix::process::geteuid().is_root());
    std::fs::remove_dir_all(root).expect("removed");
}

#[tokio::test]
async fn nobody_gets_in_without_the_password() {
    let directory = directory();
    let postgres = EmbeddedPostgres::start(directory.path()).await.expect("started");
    let password = postgres.url().split([':', '@']).nth(2).expect("a password").to_owned();
    let error = PgConnection::connect(&postgres.url().replace(&password, "guess")).await.expect_err("refused");
    assert!(error.to_string().contains("password authentication failed"), "{error}");
    postgres.stop().await;
}

#[test]
fn one_data_directory_has_one_service() {
    let directory = directory();
    let lock = DataDirLock::acquire(directory.path()).expect("free");
    assert!(matches!(DataDirLock::acquire(directory.path()), Err(AlreadyRunning::Held(_))));
    drop(lock);
    DataDirLock::acquire(directory.path()).expect("free again");
}
