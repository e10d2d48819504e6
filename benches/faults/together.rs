//! All attacks at one time, on a service that is started for this. Attackers give way to it, as if they were on machines
//! of their own; else one measures which of them gets the processors.

use std::time::Duration;

use futures::future::join_all;

use crate::attacks;
use crate::own;
use crate::probe::{Probe, Service};

/// Memory that the service may have at any moment, in MiB.
const MOST_MIB: u64 = 1_024;
/// Memory that it may have more than before, once it has rested, in MiB.
const MORE_MIB: u64 = 100;
/// How long the service is asked before it is attacked, to know what this machine makes of it.
const BEFORE: Duration = Duration::from_secs(10);
/// How long an answer of `/health/live` may take.
const LIVE: Duration = Duration::from_millis(100);

/// How much attackers give way, in the steps of nice(2).
const NICENESS: i32 = 10;

/// Attacks, and tells whether the service stayed within its limits.
pub(crate) async fn run() {
    let directory = own::directory();
    let own = own::Service::start(&directory).await;
    let service = Service::own(&own);
    service.fill().await;
    let probe = Probe::start(&service);
    tokio::time::sleep(BEFORE).await;
    let quiet = probe.stop().await;
    let before = service.resident_mib();

    let probe = Probe::start(&service);
    let attacked = Service::own(&own);
    let attackers = std::thread::spawn(move || attack(&attacked));
    tokio::task::spawn_blocking(move || attackers.join()).await.expect("a thread").expect("attacks that end");
    let seen = probe.stop().await;
    tokio::time::sleep(crate::REST).await;
    let after = service.resident_mib();

    println!("\n| | before | meanwhile | {} s later | wanted |\n|---|---|---|---|---|", crate::REST.as_secs());
    println!("| memory, MiB | {before} | {} | {after} | {MOST_MIB}; {MORE_MIB} more than before |", seen.peak_mib);
    let row = |name: &str, quiet: [Duration; 2], seen: [Duration; 2]| {
        let [quiet, seen] = [quiet, seen].map(|[p99, most]| format!("{} / {}", p99.as_millis(), most.as_millis()));
        println!("| {name}, p99 / slowest, ms | {quiet} | {seen} | | {} |", LIVE.as_millis());
    };
    row("`/health/live`", [quiet.live_p99, quiet.live], [seen.live_p99, seen.live]);
    row("the same at METRICS_ADDR", [quiet.apart_p99, quiet.apart], [seen.apart_p99, seen.apart]);
    println!("| `/usage`, slowest, ms | {} | {} | | |", quiet.other.as_millis(), seen.other.as_millis());
    let kept = seen.peak_mib <= MOST_MIB && after <= before + MORE_MIB && seen.live <= LIVE && seen.apart <= LIVE;
    println!("\n{}", if kept { "within all limits" } else { "NOT within all limits" });
    drop(own);
    let _ = std::fs::remove_dir_all(&directory);
}

/// Throws everything at once, from threads of a lower priority.
fn attack(service: &Service) {
    // To Linux each thread has a niceness of its own, and threads that it starts begin with the same.
    rustix::process::setpriority_process(None, NICENESS).expect("whoever runs this may be nice");
    let attacks = attacks::all().into_iter().map(|(name, attack)| {
        let attack = attack(service.clone());
        async move { println!("{name}: {}", attack.await) }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(join_all(attacks));
}
