//! Throws attacks at a running service and tells what became of it and of its other clients.
//!
//! `BASE_URL=http://127.0.0.1:8080 TOKEN=… PID=… cargo bench --bench faults [-- NAME…]`, with an EDIT token of an account
//! that holds nothing else, and the process id of the service on the same machine. It ends with a table: how the attack
//! was answered, the slowest answer of `/health/live` and of an ordinary request meanwhile, the memory of the service at
//! its greatest and 20 s later. Needs as many open files as the largest attack has connections.

mod attacks;
mod probe;

use std::time::Duration;

use probe::{Probe, Service};

/// How long after an attack the service must have given its memory back.
const REST: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
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
