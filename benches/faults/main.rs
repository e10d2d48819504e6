//! Throws attacks at a running service and tells what became of it and of its other clients.
//!
//! `BASE_URL=http://127.0.0.1:8080 TOKEN=… PID=… cargo bench --bench faults [-- NAME…]`, with an EDIT token of an account
//! that holds nothing else, and the process id of the service on the same machine. It ends with a table: how the attack
//! was answered, the slowest answer of `/health/live` and of an ordinary request meanwhile, the memory of the service at
//! its greatest and 20 s later.
//!
//! `cargo bench --bench faults -- outages` starts services of its own and takes away what they stand on: they are killed,
//! their database is killed, frozen, without connections and, where the right to mount is there, without room. That takes
//! about five minutes and ends with a table of what was answered, how long it took to heal, and what was lost.
//!
//! Three more start a service of their own, and say at their end whether it kept what was wanted of it: `-- together`
//! throws all attacks at one time (two minutes), `-- neighbour` measures what an account notices while another one brings
//! in 200,000 products through the interface and as many by `import` (five to ten minutes), and `-- idle` what a service
//! costs that nobody asks anything, with one account and with a thousand (five minutes).

mod attacks;
// The catalogue of the bench of searches, of which this one needs a part.
#[path = "../search/corpus.rs"]
#[allow(dead_code)]
mod corpus;
mod idle;
mod inputs;
mod neighbour;
mod outages;
mod own;
mod probe;
mod together;
mod wire;

use std::time::Duration;

use probe::{Probe, Service};

/// How long after an attack the service must have given its memory back.
const REST: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    raise_open_files();
    // These start what they need themselves.
    match wanted.first().map(String::as_str) {
        Some("idle") => return idle::run().await,
        Some("neighbour") => return neighbour::run().await,
        Some("outages") => return outages::all().await,
        Some("together") => return together::run().await,
        _ => {}
    }
    let service = Service::from_environment();
    service.fill().await;
    let before = service.resident_mib();
    println!("{before} MiB before");
    let mut table = vec![format!(
        "| {:<34} | {:<52} | {:>8} | {:>8} | {:>8} | {:>8} |",
        "attack", "answers", "live ms", "other ms", "peak MiB", "then MiB"
    )];
    for (name, attack) in attacks::all() {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        let probe = Probe::start(&service);
        let answers = attack(service.clone()).await;
        let seen = probe.stop().await;
        tokio::time::sleep(REST).await;
        let row = format!(
            "| {name:<34} | {answers:<52} | {:>8} | {:>8} | {:>8} | {:>8} |",
            seen.live.as_millis(),
            seen.other.as_millis(),
            seen.peak_mib,
            service.resident_mib()
        );
        println!("{row}");
        table.push(row);
    }
    println!("\n{}", table.join("\n"));
}

/// Raises the limit of open files as far as the system allows: an attack has thousands of connections.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        println!("the limit of open files cannot be raised: {error}");
    }
}
