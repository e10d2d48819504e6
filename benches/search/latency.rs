//! The time of a first page by kind of value.

use std::collections::HashSet;
use std::time::Instant;

use anyhow::ensure;
use elasticsearch::http::Method;
use reqwest::StatusCode;
use serde_json::json;

use crate::corpus::Random;
use crate::load::DISTINCT;
use crate::service::Service;
use crate::{Bench, Times};

/// Values of each kind.
const VALUES: usize = 300;
/// Of these, how many are asked of what is slower.
const COMPARED_VALUES: usize = 30;
/// Requests before the first that counts.
const WARM_UP: usize = 100;
/// Numbers of characters, and what else is asked for.
const KINDS: [&str; 9] = ["1", "2", "3", "4", "6", "9", "14", "gap phrase", "and or not"];

impl Bench {
    /// With Elasticsearch, whose index query cache is off.
    pub(crate) async fn latencies(&self, service: &Service) -> anyhow::Result<()> {
        let name = self.index_name().await?;
        let off = json!({"index.queries.cache.enabled": false}).to_string();
        self.elastic(Method::Post, &format!("{name}/_close"), None).await?;
        self.elastic(Method::Put, &format!("{name}/_settings"), Some(off.into_bytes())).await?;
        self.elastic(Method::Post, &format!("{name}/_open"), None).await?;
        self.elastic(Method::Get, "_cluster/health?wait_for_status=yellow&timeout=60s", None).await?;
        self.table(service).await
    }

    /// Without Elasticsearch.
    pub(crate) async fn latencies_of_postgres(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let service = Service::start(self, None).await?;
        println!("ready after {:.0} s", begin.elapsed().as_secs_f64());
        self.administer("vacuum analyze search_documents").await?;
        self.table(&service).await
    }

    async fn table(&self, service: &Service) -> anyhow::Result<()> {
        println!("                        the service             wildcard        ilike");
        println!("first page, ms      p50    p99    max   503    p50    p99    p50    p99");
        let random = &mut Random(7);
        let mut used = HashSet::new();
        for value in self.values(random, &mut used, "4", WARM_UP) {
            service.search(&json!([{"languageKey": "de", "keywords": value}])).await?;
        }
        let compared = if self.is_compared().await? { COMPARED_VALUES } else { 0 };
        for kind in KINDS {
            let values = self.values(random, &mut used, kind, VALUES);
            self.row(service, kind, &values, compared).await?;
        }
        Ok(())
    }

    fn values(&self, random: &mut Random, used: &mut HashSet<String>, kind: &str, count: usize) -> Vec<String> {
        let texts = self.products.min(DISTINCT);
        let mut values = Vec::new();
        while values.len() < count {
            let value = match (kind, kind.parse()) {
                (_, Ok(length)) => self.corpus.piece(random, texts, length),
                ("gap phrase", _) => self.corpus.gap_phrase(random, texts),
                _ => {
                    let mut piece = |length| self.corpus.piece(random, texts, length);
                    format!("{} {} -{} or {}", piece(3), piece(2), piece(4), piece(6))
                }
            };
            // There are few values of one character and not many of two, so that those are repeated.
            if used.insert(value.to_lowercase()) || matches!(kind, "1" | "2") {
                values.push(value);
            }
        }
        values
    }

    async fn row(&self, service: &Service, kind: &str, values: &[String], compared: usize) -> anyhow::Result<()> {
        let (mut times, mut wildcard, mut ilike, mut slow) =
            (Times::default(), Times::default(), Times::default(), 0_usize);
        for (i, value) in values.iter().enumerate() {
            let begin = Instant::now();
            let (status, body) = service.search(&json!([{"languageKey": "de", "keywords": value}])).await?;
            times.0.push(begin.elapsed());
            slow += usize::from(status == StatusCode::SERVICE_UNAVAILABLE);
            let known = matches!(status, StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE);
            ensure!(known, "{value}: {status} {}", String::from_utf8_lossy(&body));
            if i < compared && !kind.contains(' ') {
                let begin = Instant::now();
                self.wildcard(&value.to_lowercase()).await?;
                wildcard.0.push(begin.elapsed());
                let begin = Instant::now();
                self.ilike(&value.to_lowercase()).await?;
                ilike.0.push(begin.elapsed());
            }
        }
        println!(
            "{kind:<14} {:>8.1} {:>6.1} {:>6.1} {slow:>5} {:>6.1} {:>6.1} {:>6.1} {:>6.1}",
            times.at(0.5),
            times.at(0.99),
            times.at(1.0),
            wildcard.at(0.5),
            wildcard.at(0.99),
            ilike.at(0.5),
            ilike.at(0.99),
        );
        Ok(())
    }
}
