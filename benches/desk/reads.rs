//! Counts, lists, the queue's first pages, and the feed.

use std::time::Instant;

use sqlx::{Connection as _, PgConnection};
use vat_classification::domain::changes::write_sequence;

use crate::service::Service;
use crate::{Random, Times};

/// Requests of each kind.
const REQUESTS: usize = 40;
/// What counts are grouped by.
const GROUPED_BY: [&str; 9] = [
    "assignmentStatus",
    "strategy",
    "autoAssignment",
    "reviewNeeded",
    "chapter",
    "heading",
    "label",
    "confidenceBand",
    "day",
];
const SORTS: [&str; 6] = ["", "confidence", "-confidence", "updatedAt", "-updatedAt", "impact"];
/// Filters by name; letters in braces are drawn anew for each request.
const FILTERS: [(&str, &str); 15] = [
    ("none", ""),
    ("status", "assignmentStatus={S}"),
    ("two statuses", "assignmentStatus=ASSIGNED,REJECTED"),
    ("strategy MANUAL", "strategy=MANUAL"),
    ("strategy of machines", "strategy=DESCRIPTION,CUSTOMS-CODE"),
    ("reviewNeeded", "reviewNeeded=true"),
    ("autoAssignment", "autoAssignment=ABORTED"),
    ("chapter", "productClass={CC}"),
    ("heading", "productClass={CCHH}"),
    ("label", "labels=label%20{L}"),
    ("without a label", "labels=!label%20{L}"),
    ("confidence", "confidenceFrom=0.{P}&confidenceTo=0.{Q}"),
    ("confidence to four decimals", "confidenceFrom=0.{P}37&confidenceTo=0.{Q}91"),
    ("day", "updatedFrom=2026-11-{D}&updatedTo=2026-11-{D}"),
    ("shop", "shopId={1}"),
];
const STATUSES: [&str; 5] = ["UNASSIGNED", "ASSIGNED", "REJECTED", "APPROVED", "DENIED"];
/// Headings that shops have.
const HEADINGS: [&str; 8] = ["6109", "8517", "0901", "9503", "6403", "3304", "8539", "4820"];

fn drawn(filter: &str, random: &mut Random) -> String {
    let heading = HEADINGS[random.below(8) as usize];
    let low = 50 + random.below(40);
    let filter = filter.replace("{S}", STATUSES[random.below(5) as usize]).replace("{CCHH}", heading);
    let filter = filter.replace("{CC}", &heading[..2]).replace("{L}", &random.below(17).to_string());
    let filter = filter.replace("{P}", &low.to_string()).replace("{Q}", &(low + 1 + random.below(9)).to_string());
    filter.replace("{D}", &(10 + random.below(10)).to_string()).replace("{1}", &(1 + random.below(5)).to_string())
}

fn head(what: &str) {
    println!("{what:<52} {:>8} {:>8} {:>8}", "p50 ms", "p99", "max");
}

/// Counts by everything with each filter; those of two kinds follow, and are told apart from the rest.
pub(crate) async fn counts(service: &Service) -> anyhow::Result<()> {
    let random = &mut Random(7);
    head("counts");
    let (mut all, mut slow) = (Times::default(), Vec::new());
    for (name, filter) in FILTERS {
        let mut of_filter = Times::default();
        for by in GROUPED_BY {
            let mut times = Times::default();
            for _ in 0..REQUESTS {
                let path = format!("/assignments/TARIC/counts?by={by}&{}", drawn(filter, random));
                times.0.push(time(service, &path).await);
            }
            of_filter.0.extend(&times.0);
            if times.at(0.99) > 60.0 {
                slow.push(format!("{name} by {by}: p50 {:.0}, p99 {:.0}", times.at(0.5), times.at(0.99)));
            }
        }
        of_filter.tell(&format!("by one, filter: {name}"));
        all.0.extend(of_filter.0);
    }
    all.tell("all of them");
    let mut pairs = Times::default();
    for (at, first) in GROUPED_BY.iter().enumerate() {
        for second in &GROUPED_BY[at + 1..] {
            let mut times = Times::default();
            for _ in 0..REQUESTS / 8 {
                let path = format!("/assignments/TARIC/counts?by={first},{second}&{}", drawn(FILTERS[1].1, random));
                times.0.push(time(service, &path).await);
            }
            if times.at(0.99) > 60.0 {
                slow.push(format!("status by {first},{second}: p50 {:.0}, max {:.0}", times.at(0.5), times.at(1.0)));
            }
            pairs.0.extend(times.0);
        }
    }
    pairs.tell("by two, of one status");
    println!("slower than 60 ms:");
    slow.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

/// The time of a request, one that is refused included: what is too slow or too much is told so.
async fn time(service: &Service, path: &str) -> std::time::Duration {
    let begin = Instant::now();
    match service.get(path).await {
        Ok((took, _)) => took,
        Err(_) => begin.elapsed(),
    }
}

/// First pages of 50 with every filter in every order, and their totals.
pub(crate) async fn lists(service: &Service) -> anyhow::Result<()> {
    let random = &mut Random(11);
    head("lists, first page of 50");
    let (mut all, mut slow) = (Times::default(), Vec::new());
    for (name, filter) in FILTERS {
        let mut of_filter = Times::default();
        for sort in SORTS {
            let mut times = Times::default();
            for _ in 0..REQUESTS {
                let filter = drawn(filter, random);
                let status = if filter.contains("assignmentStatus") { "" } else { "&assignmentStatus=ALL" };
                let sort = if sort.is_empty() { String::new() } else { format!("&sort={sort}") };
                times.0.push(time(service, &format!("/assignments/TARIC?{filter}{status}{sort}")).await);
            }
            of_filter.0.extend(&times.0);
            if times.at(0.99) > 60.0 {
                slow.push(format!("{name}, sort {sort}: p50 {:.0}, p99 {:.0}", times.at(0.5), times.at(0.99)));
            }
        }
        of_filter.tell(&format!("filter: {name}"));
        all.0.extend(of_filter.0);
    }
    all.tell("all of them");
    println!("slower than 60 ms:");
    slow.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

/// What the queue asks for: 50 assignments with product, candidates and rates, page after page.
pub(crate) async fn queue(service: &Service) -> anyhow::Result<()> {
    head("the queue");
    let filter = "assignmentStatus=ASSIGNED,REJECTED&strategy=DESCRIPTION,CUSTOMS-CODE&sort=confidence";
    let embeds = "embed=PRODUCT&embed=CANDIDATES&embed=VAT_RATES";
    for (what, size) in [("first six", 6), ("a page of 50", 50)] {
        let mut times = Times::default();
        for _ in 0..REQUESTS {
            times.0.push(service.get(&format!("/assignments/TARIC?{filter}&{embeds}&size={size}")).await?.0);
        }
        times.tell(what);
    }
    let mut times = Times::default();
    let mut path = format!("/assignments/TARIC?{filter}&{embeds}&size=50");
    for _ in 0..REQUESTS {
        let (took, page) = service.get(&path).await?;
        times.0.push(took);
        let next = page["links"]["next"].as_str().unwrap_or_default();
        path = next.split_once("/v1").map(|(_, path)| path.to_owned()).unwrap_or_default();
    }
    times.tell("the next page of 50, again and again");
    Ok(())
}

/// Pages of changes from any place of the journal, all of them or of one type, and what has happened since the last.
pub(crate) async fn feed(service: &Service, database: &str) -> anyhow::Result<()> {
    head("the feed");
    let mut inside = PgConnection::connect(database).await?;
    let (first, last): (i64, i64) = sqlx::query_as(ENDS).fetch_one(&mut inside).await?;
    let random = &mut Random(3);
    for (what, path) in [
        ("a page of 50", "/changes?"),
        ("a page of 1,000", "/changes?size=1000&"),
        ("50 of one type", "/changes?types=ASSIGNMENT_AUTO_ASSIGN&"),
        ("50 of a taxonomy", "/changes?taxonomy=TARIC&"),
        ("nothing of a type", "/changes?types=PRODUCT_DELETED&"),
    ] {
        let mut times = Times::default();
        for _ in 0..REQUESTS * 5 {
            let place = first + random.below((last - first).unsigned_abs().max(1)) as i64;
            times.0.push(service.get(&format!("{path}after={}", write_sequence(place))).await?.0);
        }
        times.tell(what);
    }
    let mut times = Times::default();
    for _ in 0..REQUESTS * 5 {
        times.0.push(service.get("/changes?after=latest").await?.0);
    }
    times.tell("what has happened since");
    Ok(())
}

const ENDS: &str = "select coalesce(min(sequence), 0), coalesce(max(sequence), 0) from journal";
