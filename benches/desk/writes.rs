//! Decisions one at a time, an action on very many, and judging all again by other rules.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection, Executor as _, PgConnection};

use crate::Times;
use crate::service::Service;

/// Decisions that are timed.
const DECISIONS: usize = 300;
/// Items after which the service crashes.
const CRASH_AFTER: i64 = 5_000;
/// Most assignments of an action.
const ACTED_ON: i64 = 100_000;

/// Decides one after the other as a reviewer does.
pub(crate) async fn decisions(service: &Service) -> anyhow::Result<()> {
    println!("{:<52} {:>8} {:>8} {:>8}", "decisions", "p50 ms", "p99", "max");
    for (action, status) in [("APPROVE", "ASSIGNED"), ("REJECT", "REJECTED"), ("ASSIGN", "UNASSIGNED")] {
        let list = format!("/assignments/TARIC?assignmentStatus={status}&size={DECISIONS}");
        let (_, page) = service.get(&list).await?;
        let class = if action == "ASSIGN" { "&productClass=610910-00-000" } else { "" };
        let path = format!("/assignments/TARIC?assignmentAction={action}{class}");
        let mut times = Times::default();
        for item in page["items"].as_array().context("items")? {
            let version = &item["subscribedPlatformServices"]["vatRules"]["assignmentVersion"];
            let mut product = json!({"productId": item["productId"], "assignmentVersion": {"vatRules": version}});
            if item["shopId"].is_number() {
                product["shopId"] = item["shopId"].clone();
            }
            times.0.push(service.send(Method::PATCH, &path, &json!({"products": [product]})).await?.0);
        }
        times.tell(action);
    }
    Ok(())
}

/// How long another account's small requests take, until something is done.
async fn beside(
    service: &Service,
    what: &str,
    done: impl AsyncFn() -> anyhow::Result<bool>,
) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let (mut writes, mut lists) = (Times::default(), Times::default());
    let mut number = 0;
    while !done().await? {
        number += 1;
        let body = json!({(format!("O-{what}-{number}")): {"productDetails": {"languageAttributes":
            {"de": {"productName": "Herren T-Shirt Baumwolle"}}}}});
        writes.0.push(service.timed(&service.other, Method::POST, "/products/global", Some(&body)).await?.0);
        let list = "/assignments/TARIC?assignmentStatus=ALL&sort=impact";
        lists.0.push(service.timed(&service.other, Method::GET, list, None).await?.0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{:<52} {:>8} {:>8} {:>8}", "another account meanwhile", "p50 ms", "p99", "max");
    writes.tell("a product is stored");
    lists.tell("a list is read");
    Ok(begin.elapsed())
}

/// An action on as many as one may be about, interrupted by a crash, and taking it back.
pub(crate) async fn action(service: &mut Service, database: &str) -> anyhow::Result<()> {
    let begin = Instant::now();
    // As many as fit, by confidence.
    let mut body = json!({});
    for low in (50..100).rev() {
        let to = f64::from(low) / 100.0;
        let narrowed = json!({"assignmentStatus": ["ASSIGNED", "REJECTED"], "confidenceTo": to});
        let (count, took) = selected(service, &narrowed).await?;
        if count <= ACTED_ON {
            println!("{count} with a confidence up to {to}; a dry run takes {:.0} ms", took.as_secs_f64() * 1e3);
            body = json!({"action": "REJECT", "filter": narrowed, "expectedCount": count});
            break;
        }
    }
    let (took, begun) = service.send(Method::POST, "/assignments/TARIC/actions", &body).await?;
    println!("answered after {:.0} ms, {} done", took.as_secs_f64() * 1e3, begun["done"]);
    let mut undo = begun["actionId"].as_str().context("an action")?.to_owned();
    while progress(service, &undo).await?["done"].as_i64() < Some(CRASH_AFTER) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    service.crash(database).await?;
    println!("crashed, and ready again, {} done", progress(service, &undo).await?["done"]);
    let service = &*service;
    for what in ["action", "undo"] {
        let id = undo.clone();
        let took = beside(service, what, async || Ok(progress(service, &id).await?["state"] == "DONE")).await?;
        let end = progress(service, &id).await?;
        println!(
            "{what}: {} of {} done, {} left, in {:.1} s",
            end["done"],
            end["selected"],
            end["skipped"],
            took.as_secs_f64()
        );
        let mut connection = PgConnection::connect(database).await?;
        let (events, products): (i64, i64) =
            sqlx::query_as("select count(*), count(distinct product_key) from journal where action_id = $1::uuid")
                .bind(&id)
                .fetch_one(&mut connection)
                .await?;
        println!("{what}: {events} events of {products} products");
        if what == "action" {
            let path = format!("/assignments/actions/{id}/undo");
            let (took, begun) = service.send(Method::POST, &path, &json!({})).await?;
            println!("taking it back is answered after {:.0} ms", took.as_secs_f64() * 1e3);
            undo = begun["actionId"].as_str().context("an action")?.to_owned();
        }
    }
    println!("all of it in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

async fn progress(service: &Service, id: &str) -> anyhow::Result<Value> {
    Ok(service.get(&format!("/assignments/actions/{id}")).await?.1)
}

async fn selected(service: &Service, filter: &Value) -> anyhow::Result<(i64, Duration)> {
    let body = json!({"action": "REJECT", "filter": filter, "dryRun": true});
    match service.send(Method::POST, "/assignments/TARIC/actions", &body).await {
        Ok((took, answer)) => Ok((answer["selected"].as_i64().unwrap_or(0), took)),
        // More than an action may be about.
        Err(_) => Ok((i64::MAX, Duration::ZERO)),
    }
}

/// All assignments are judged again, as on a day on which rules begin. Their statuses were drawn, so that for many
/// another one follows from the rules; a second pass finds nothing to change.
pub(crate) async fn rules(service: &Service, database: &str) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(database).await?;
    let judged = "select count(*) from journal where action = 'RULE_CHANGED'";
    for pass in ["first", "second"] {
        let before: i64 = sqlx::query_scalar(judged).fetch_one(&mut connection).await?;
        connection.execute("delete from rule_state").await?;
        let took = beside(service, pass, async || {
            let mut connection = PgConnection::connect(database).await?;
            let done = sqlx::query_scalar("select exists (select from rule_state)").fetch_one(&mut connection).await?;
            Ok(done)
        })
        .await?;
        let after: i64 = sqlx::query_scalar(judged).fetch_one(&mut connection).await?;
        println!("{pass} pass: {} changed, in {:.1} s", after - before, took.as_secs_f64());
    }
    Ok(())
}
