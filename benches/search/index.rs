//! The rate of a full index, beside that of the same requests sent raw, and its size.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use elasticsearch::http::Method;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::{Bench, fake};

const RAW_INDEX: &str = "bench-raw";
/// Raw requests under way at the same time.
const RAW_AT_ONCE: [usize; 3] = [1, 2, 3];
/// Products over which the two rates are compared: the bodies of their requests are held in memory.
const COMPARED: usize = 200_000;
/// Products of which the length of the texts is taken.
const SAMPLED: usize = 20_000;

impl Bench {
    pub(crate) async fn index(&self) -> anyhow::Result<()> {
        let compared = self.products.min(COMPARED);
        let raw = self.raw(compared).await?;
        let first = self.build().await?;
        let rate = compared as f64 / first.as_secs_f64();
        println!("the first {compared} from PostgreSQL: {rate:.0}/s");
        for (at_once, raw) in raw {
            println!("raw _bulk, {at_once} at once: {raw:.0}/s; from PostgreSQL {:.2} of it", rate / raw);
        }
        let text = self.text_bytes();
        let name = self.index_name().await?;
        println!("index as built: {:.2} times the text of {:.0} MB", self.size(&name).await? / text, text / 1e6);
        let begin = Instant::now();
        self.engine(&self.elasticsearch)?.compact().await?;
        let size = self.size(&name).await?;
        println!(
            "made small after {:.0} s: {:.0} MB, {:.2} times the text",
            begin.elapsed().as_secs_f64(),
            size / 1e6,
            size / text
        );
        Ok(())
    }

    /// Makes the index from the products; answers how long the first of them took.
    pub(crate) async fn build(&self) -> anyhow::Result<Duration> {
        // Where an index answers, the new one is merged before it takes its place: that is measured apart.
        if let Ok(old) = self.index_name().await {
            self.elastic(Method::Delete, &old, None).await?;
        }
        let begin = Instant::now();
        let first = Mutex::new(None);
        let compared = self.products.min(COMPARED) as i64;
        let progress = |done: i64, _: i64| {
            if done >= compared
                && let Ok(mut first) = first.lock()
            {
                first.get_or_insert(begin.elapsed());
            }
        };
        self.engine(&self.elasticsearch)?.rebuild(&progress).await?;
        let took = begin.elapsed();
        println!("full index in {:.0} s, {:.0}/s", took.as_secs_f64(), self.products as f64 / took.as_secs_f64());
        let first = first.lock().map_or(None, |first| *first);
        Ok(first.unwrap_or(took))
    }

    /// The rates at which Elasticsearch takes the requests of the service when they are there already, by how many are
    /// sent at once.
    async fn raw(&self, documents: usize) -> anyhow::Result<Vec<(usize, f64)>> {
        let (url, received) = fake::start(documents).await;
        let engine = self.engine(&url)?;
        let begin = Instant::now();
        tokio::select! {
            _ = engine.rebuild(&|_, _| {}) => {}
            () = received.full() => {}
        }
        println!("own share of indexing: {:.0}/s", documents as f64 / begin.elapsed().as_secs_f64());
        let (mut index, bulks) = received.take();
        let aliases = index["aliases"].as_object();
        let alias = aliases.and_then(|aliases| aliases.keys().next().cloned()).context("an alias")?;
        index["aliases"] = json!({alias: {}});
        let mut rates = Vec::new();
        for at_once in RAW_AT_ONCE {
            self.elastic(Method::Delete, RAW_INDEX, None).await?;
            self.elastic(Method::Put, RAW_INDEX, Some(index.to_string().into_bytes())).await?;
            let begin = Instant::now();
            let sent = stream::iter(&bulks).map(|(body, count)| async move {
                let answer = self.elastic(Method::Post, "_bulk?filter_path=errors", Some(body.to_vec())).await?;
                ensure!(answer["errors"] == false, "raw documents are refused: {answer}");
                Ok(count)
            });
            let sent: usize =
                sent.buffer_unordered(at_once).try_fold(0, |sum, count| async move { Ok(sum + count) }).await?;
            rates.push((at_once, sent as f64 / begin.elapsed().as_secs_f64()));
            println!("raw _bulk, {at_once} at once: {:.0}/s", rates.last().map_or(0.0, |rate| rate.1));
        }
        self.elastic(Method::Delete, RAW_INDEX, None).await?;
        Ok(rates)
    }

    async fn size(&self, index: &str) -> anyhow::Result<f64> {
        self.elastic(Method::Post, &format!("{index}/_refresh"), None).await?;
        let stats = self.elastic(Method::Get, &format!("{index}/_stats/store"), None).await?;
        stats["_all"]["primaries"]["store"]["size_in_bytes"].as_f64().context("a size")
    }

    /// Bytes of the texts and ids of all products.
    fn text_bytes(&self) -> f64 {
        let of = |n: usize| {
            let (id, details) = self.corpus.product(n);
            let texts = details["languageAttributes"].as_object().into_iter().flatten().flat_map(|(_, texts)| {
                let tags = texts["productTags"].as_array().into_iter().flatten();
                [&texts["productName"], &texts["productDescription"]].into_iter().chain(tags)
            });
            id.len() + texts.filter_map(Value::as_str).map(str::len).sum::<usize>()
        };
        let sampled = self.products.min(SAMPLED);
        (0..sampled).map(of).sum::<usize>() as f64 * self.products as f64 / sampled as f64
    }
}
