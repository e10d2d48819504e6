//! Measures the reviewer's desk through the HTTP API, by hand:
//!
//! ```text
//! DATABASE_URL=… cargo bench --bench desk -- ASSIGNMENTS [PART …]
//! ```
//!
//! DATABASE_URL names a server on which it may make a database. Parts run in the order in which they are named: `load` makes
//! the database with so many products, each with its assignment in TARIC and what the feed tells of it; `counts`, `lists`,
//! `queue` and `feed` read; `decisions` decides one at a time; `action` acts on 100,000 at once while another account is at
//! work; `rules` judges all again while both are. Without any all run, each on what `load` has left.

mod load;
mod reads;
mod service;
mod writes;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::service::Service;

const PARTS: [&str; 8] = ["load", "counts", "lists", "queue", "feed", "decisions", "action", "rules"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo adds --bench; without it, as in `cargo test --benches`, there is nothing to do.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let assignments = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let named = arguments.iter().filter(|argument| argument.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut parts: Vec<&str> = named.map(String::as_str).collect();
    if parts.is_empty() {
        parts = PARTS.to_vec();
    }
    let server = std::env::var("DATABASE_URL").context("DATABASE_URL names a server")?;
    let database = load::database_of(&server, assignments)?;
    let mut service = None;
    for part in parts {
        let begin = Instant::now();
        println!("\n== {part}, {assignments} assignments");
        if part == "load" {
            service = None;
            load::load(&server, &database, assignments).await?;
        } else {
            let service = match &mut service {
                Some(service) => service,
                None => service.insert(Service::start(&database).await?),
            };
            match part {
                "counts" => reads::counts(service).await?,
                "lists" => reads::lists(service).await?,
                "queue" => reads::queue(service).await?,
                "feed" => reads::feed(service, &database).await?,
                "decisions" => writes::decisions(service).await?,
                "action" => writes::action(service, &database).await?,
                "rules" => writes::rules(service, &database).await?,
                _ => bail!("there is no part {part}"),
            }
        }
        println!("({part} took {:.0} s)", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Times, to be told by their shares.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    /// The time, in milliseconds, that this share of them does not exceed.
    fn at(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let place = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
    }

    fn tell(&mut self, what: &str) {
        println!("{what:<52} {:>8.1} {:>8.1} {:>8.1}", self.at(0.5), self.at(0.99), self.at(1.0));
    }
}

/// Numbers that are the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
