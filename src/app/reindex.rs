//! The subcommand `reindex`.

use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};

use crate::app::database::Database;
use crate::app::settings::DatabaseSettings;
use crate::search::{Engine, Settings};

/// Differences that are printed; the rest is counted.
const DIFFERENCES_SHOWN: i64 = 1_000;

pub(super) async fn run(verify: bool, database: &DatabaseSettings, search: &Settings) -> anyhow::Result<()> {
    let database = Database::open(database).await?;
    let done = async {
        let engine = Engine::new(search, &database.store)?;
        if verify { compare(&engine).await } else { rebuild(&engine).await }
    };
    let done = done.await;
    database.close().await;
    done
}

async fn rebuild(engine: &Engine) -> anyhow::Result<()> {
    let bar = ProgressBar::new(0);
    // A constant template: it cannot fail, and without it the bar looks plain.
    if let Ok(style) = ProgressStyle::with_template("Indexing [{bar:40}] {pos}/{len} {per_sec} {elapsed}") {
        bar.set_style(style.progress_chars("=> "));
    }
    engine
        .rebuild(&|done, total| {
            bar.set_length(total.unsigned_abs());
            bar.set_position(done.unsigned_abs());
        })
        .await?;
    bar.finish();
    println!("The index answers searches; now it is made small.");
    engine.compact().await?;
    Ok(())
}

async fn compare(engine: &Engine) -> anyhow::Result<()> {
    let shown = AtomicI64::new(0);
    let verified = engine
        .verify(&|difference| {
            if shown.fetch_add(1, Ordering::Relaxed) < DIFFERENCES_SHOWN {
                println!("{difference}");
            }
        })
        .await?;
    println!(
        "{} products compared, {} differ, {} changes on their way",
        verified.products, verified.differences, verified.waiting
    );
    if verified.differences > 0 {
        bail!("index and database differ");
    }
    Ok(())
}
