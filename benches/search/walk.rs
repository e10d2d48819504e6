//! A large result page by page while the catalogue changes, and how long a write stays unseen.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::service::Service;
use crate::{Bench, Times};

/// Those who change the catalogue.
const WRITERS: usize = 50;
/// Time between two writes of one of them.
const WRITE_PAUSE: Duration = Duration::from_millis(100);
/// Products that the result has at most.
const WALKED: usize = 100_000;
/// Seconds for which writes are measured, writes a second, and products of one request.
const SECONDS: usize = 10;
const WRITES_PER_SECOND: usize = 1_000;
const BATCH: usize = 100;

impl Bench {
    /// Every product that was there all the time is seen once, and the last pages are as fast as the first.
    pub(crate) async fn walk(&self, service: &Service) -> anyhow::Result<()> {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let change = async {
            let writers = (0..WRITERS).map(|writer| change(service, writer, &stop, &written));
            futures::future::try_join_all(writers).await.map(drop)
        };
        let read = async {
            let found = read(service).await;
            stop.store(true, Ordering::Relaxed);
            found
        };
        let (changed, found) = tokio::join!(change, read);
        changed?;
        let (ids, mut times) = found?;
        let seen: HashSet<&String> = ids.iter().collect();
        ensure!(seen.len() == ids.len(), "{} products were there twice", ids.len() - seen.len());
        let last = ids.last().context("a product")?;
        let lasting = (0..self.products).map(|n| self.corpus.product(n)).filter(|(id, details)| {
            let name = details["languageAttributes"]["de"]["productName"].as_str();
            id <= last && name.is_some_and(|name| name.to_lowercase().contains("rot"))
        });
        let (mut expected, mut missed) = (0, 0);
        for (id, _) in lasting {
            expected += 1;
            missed += usize::from(!seen.contains(&id));
        }
        ensure!(missed == 0, "{missed} of {expected} products were missed");
        let tenth = times.len().div_ceil(10);
        let mut end = Times(times.split_off(times.len() - tenth));
        let (mut start, mut middle) = (Times(times.drain(..tenth).collect()), Times(times));
        println!(
            "{} products, {expected} of them there all the time, each seen once, while {} were written",
            ids.len(),
            written.load(Ordering::Relaxed)
        );
        println!("page, ms       p50    p99    max");
        for (name, times) in [("first tenth", &mut start), ("between", &mut middle), ("last tenth", &mut end)] {
            println!("{name:<12} {:>5.1} {:>6.1} {:>6.1}", times.at(0.5), times.at(0.99), times.at(1.0));
        }
        Ok(())
    }

    /// How long until a write is found, at a constant rate of writes.
    pub(crate) async fn visible(&self, service: &Service) -> anyhow::Result<()> {
        let begin = Instant::now();
        // Ids that no earlier run has left.
        let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let seconds = (0..SECONDS).map(|second| self.visible_after(service, begin, run, second));
        let found = futures::future::try_join_all(seconds).await?;
        let written = found.iter().map(|(written, _)| *written).max().unwrap_or(begin);
        let mut waits = Times(found.into_iter().map(|(_, wait)| wait).collect());
        println!(
            "a write is found after {:.0} ms (median), {:.0} ms (longest), at {:.0} writes/s",
            waits.at(0.5),
            waits.at(1.0),
            (SECONDS * WRITES_PER_SECOND) as f64 / written.duration_since(begin).as_secs_f64()
        );
        Ok(())
    }

    /// Writes what is due in a second, and answers when it was written and how long after that the last of it was found.
    async fn visible_after(
        &self,
        service: &Service,
        begin: Instant,
        run: u64,
        second: usize,
    ) -> anyhow::Result<(Instant, Duration)> {
        tokio::time::sleep_until((begin + Duration::from_secs(second as u64)).into()).await;
        for part in 0..WRITES_PER_SECOND / BATCH {
            let product = |i: usize| {
                let number = part * BATCH + i;
                let id = format!("SEEN-{run}-{second}-{number:04}");
                (id, self.corpus.product(second * WRITES_PER_SECOND + number).1)
            };
            service.write(&(0..BATCH).map(product).collect::<Vec<(String, Value)>>()).await?;
        }
        let committed = Instant::now();
        let last = json!([{"productId": format!("SEEN-{run}-{second}-{:04}", WRITES_PER_SECOND - 1)}]);
        loop {
            let (status, body) = service.search(&last).await?;
            let answer: Value = serde_json::from_slice(&body)?;
            if status == StatusCode::OK && answer["items"].as_array().is_some_and(|items| !items.is_empty()) {
                return Ok((committed, committed.elapsed()));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Follows the links of a search; answers the ids, and the time of each page.
async fn read(service: &Service) -> anyhow::Result<(Vec<String>, Vec<Duration>)> {
    let criteria = json!([{"languageKey": "de", "productName": "rot"}]).to_string();
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("size", &crate::PAGE.to_string())
        .append_pair("filterCriteria", &criteria)
        .finish();
    let (mut next, mut ids, mut times) = (Some(format!("/products/global?{query}")), Vec::new(), Vec::new());
    while let Some(link) = next {
        let begin = Instant::now();
        let page = service.get(&link).await?;
        times.push(begin.elapsed());
        for item in page["items"].as_array().context("items")? {
            ids.push(item["productId"].as_str().context("an id")?.to_owned());
        }
        next = page["links"]["next"].as_str().filter(|_| ids.len() < WALKED).map(str::to_owned);
    }
    Ok((ids, times))
}

/// Makes and deletes products of its own until told to stop.
async fn change(service: &Service, writer: usize, stop: &AtomicBool, written: &AtomicUsize) -> anyhow::Result<()> {
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Among those that are walked over.
        let id = format!("{}-{writer}-{round}", ["ART", "MX", "SKU"][round % 3]);
        let details = json!({"languageAttributes": {"de": {"productName": format!("neu rot {round}")}}});
        service.write(&[(id.clone(), details)]).await?;
        written.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(WRITE_PAUSE).await;
        if round % 2 == 1 {
            service.delete(&id).await?;
            written.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
