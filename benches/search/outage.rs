//! Elasticsearch stopped, and frozen, while products are written, read and searched.

use std::cell::RefCell;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use elasticsearch::http::Method;
use reqwest::StatusCode;
use serde_json::json;

use crate::service::Service;
use crate::{Bench, Times};

/// How long it is away, and before that there.
const AWAY: Duration = Duration::from_secs(60);
const THERE: Duration = Duration::from_secs(20);
/// Time between two writes, two reads and two searches.
const WRITE_PAUSE: Duration = Duration::from_millis(20);
const READ_PAUSE: Duration = Duration::from_millis(10);
const SEARCH_PAUSE: Duration = Duration::from_millis(250);
/// How long the index may take to follow, until the benchmark fails.
const FOLLOW_LIMIT: Duration = Duration::from_secs(120);

/// What was measured in one phase.
#[derive(Default)]
struct Phase {
    writes: RefCell<Times>,
    reads: RefCell<Times>,
    searches: RefCell<Times>,
    /// Searches with an answer, and without.
    found: RefCell<[usize; 2]>,
}

impl Bench {
    pub(crate) async fn outages(&self, service: &Service) -> anyhow::Result<()> {
        for (kind, away, back) in
            [("frozen", "OUTAGE_FREEZE", "OUTAGE_THAW"), ("stopped", "OUTAGE_STOP", "OUTAGE_START")]
        {
            let Ok((away, back)) = std::env::var(away).and_then(|away| Ok((away, std::env::var(back)?))) else {
                println!("{kind}: not measured, since {away} and {back} are not set");
                continue;
            };
            self.outage(service, kind, &away, &back).await?;
        }
        Ok(())
    }

    async fn outage(&self, service: &Service, kind: &str, away: &str, back: &str) -> anyhow::Result<()> {
        let normal = self.phase(service, kind, THERE).await?;
        shell(away).await?;
        let outage = self.phase(service, kind, AWAY).await?;
        shell(back).await?;
        let begin = Instant::now();
        let health = "_cluster/health?wait_for_status=yellow&timeout=1s";
        while self.elastic(Method::Get, health, None).await.map_or(true, |health| health["timed_out"] != false) {
            ensure!(begin.elapsed() < FOLLOW_LIMIT, "Elasticsearch does not return");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (returned, waiting) = (begin.elapsed(), self.store.search_queue_length().await?);
        while self.store.search_queue_length().await? > 0 {
            ensure!(begin.elapsed() < FOLLOW_LIMIT, "the index does not follow");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let followed = begin.elapsed() - returned;
        let engine = self.engine(&self.elasticsearch)?;
        engine.refresh().await?;
        let verified = engine.verify(&|difference| println!("{difference}")).await?;
        println!("{kind:<10}            writes p50/p99      reads p50/p99    searches p50/max  found  503");
        for (name, phase) in [("before", normal), ("during", outage)] {
            let (mut writes, mut reads, mut searches) =
                (phase.writes.into_inner(), phase.reads.into_inner(), phase.searches.into_inner());
            let [found, unavailable] = phase.found.into_inner();
            println!(
                "{name:<20} {:>8.1} {:>8.1} ms {:>6.1} {:>7.1} ms {:>6.1} {:>8.1} ms {found:>5} {unavailable:>4}",
                writes.at(0.5),
                writes.at(0.99),
                reads.at(0.5),
                reads.at(0.99),
                searches.at(0.5),
                searches.at(1.0)
            );
        }
        println!(
            "answers {:.1} s after it was told to return; {waiting} changes written {:.1} s later; {} products compared, \
             {} differ",
            returned.as_secs_f64(),
            followed.as_secs_f64(),
            verified.products,
            verified.differences
        );
        Ok(())
    }

    /// Writes, reads and searches for a time.
    async fn phase(&self, service: &Service, kind: &str, length: Duration) -> anyhow::Result<Phase> {
        let (phase, end) = (Phase::default(), Instant::now() + length);
        let writes = async {
            for i in 0.. {
                let begin = Instant::now();
                if begin >= end {
                    break;
                }
                service.write(&[(format!("OUT-{kind}-{}", i % 5_000), self.corpus.product(i).1)]).await?;
                phase.writes.borrow_mut().0.push(begin.elapsed());
                tokio::time::sleep(WRITE_PAUSE).await;
            }
            anyhow::Ok(())
        };
        let reads = async {
            for i in 0.. {
                let begin = Instant::now();
                if begin >= end {
                    break;
                }
                service.get(&format!("/products/global/{}", self.corpus.product(i * 7 % self.products).0)).await?;
                phase.reads.borrow_mut().0.push(begin.elapsed());
                tokio::time::sleep(READ_PAUSE).await;
            }
            anyhow::Ok(())
        };
        let searches = async {
            while Instant::now() < end {
                let begin = Instant::now();
                let (status, body) = service.search(&json!([{"languageKey": "de", "keywords": "schwarz"}])).await?;
                phase.searches.borrow_mut().0.push(begin.elapsed());
                let missing = status == StatusCode::SERVICE_UNAVAILABLE;
                ensure!(missing || status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&body));
                phase.found.borrow_mut()[usize::from(missing)] += 1;
                tokio::time::sleep(SEARCH_PAUSE).await;
            }
            anyhow::Ok(())
        };
        tokio::try_join!(writes, reads, searches)?;
        Ok(phase)
    }
}

async fn shell(command: &str) -> anyhow::Result<()> {
    let command = command.to_owned();
    let run = move || Command::new("sh").arg("-c").arg(&command).stdin(Stdio::null()).status().context(command);
    let status = tokio::task::spawn_blocking(run).await??;
    ensure!(status.success(), "the command ended with {status}");
    Ok(())
}
