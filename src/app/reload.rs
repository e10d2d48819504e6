//! Takes files anew while the service runs: the model, the taxonomies and the VAT rules when an operator says so with
//! SIGHUP; the taxonomies and rules alone on each new day (UTC), on which lines begin and end. What cannot be used leaves
//! the old in place. Assignments are then judged again by `jobs::rule_changes`, which notices both.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use chrono::{NaiveDate, Utc};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::models::{load_reference, load_reference_as_of};
use crate::app::settings::ModelSettings;
use crate::decision::Engine;

/// How often it is looked whether the day is another.
const LOOK: Duration = Duration::from_secs(5);
/// Time until files that could not be used on a new day are tried again.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(600);

/// Runs until the service stops.
///
/// # Errors
/// When the system gives no signals.
pub(super) fn keep_up_to_date(
    engine: Arc<Engine>,
    settings: ModelSettings,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        let mut next_look = Instant::now() + LOOK;
        loop {
            let asked = tokio::select! {
                () = shutdown.cancelled() => return,
                Some(()) = hangup.recv() => true,
                () = tokio::time::sleep_until(next_look) => false,
            };
            let (engine, settings) = (engine.clone(), settings.clone());
            let done = tokio::task::spawn_blocking(move || match asked {
                true => reload(&engine, &settings),
                false => follow_day(&engine, &settings, Utc::now().date_naive()),
            });
            let done = done.await.context("reading files").and_then(|done| done);
            if let Err(error) = &done {
                tracing::error!(error = format!("{error:#}"), "the new files cannot be used; the old ones stay");
            }
            next_look = Instant::now() + if done.is_ok() { LOOK } else { PAUSE_AFTER_FAILURE };
        }
    });
    Ok(())
}

/// Takes everything anew that can be used.
fn reload(engine: &Engine, settings: &ModelSettings) -> anyhow::Result<()> {
    let model = engine.reload().map(|info| tracing::info!(version = %info.version, "took the new model"));
    let facts = load_reference(settings).map(|reference| {
        engine.replace_reference(Arc::new(reference));
        tracing::info!("took the new taxonomies and VAT rules");
    });
    if let (Err(_), Err(error)) = (&model, &facts) {
        tracing::error!(error = format!("{error:#}"), "the new facts cannot be used either");
    }
    model.context("the model").and(facts)
}

/// Takes taxonomies and rules anew where those in use are of an earlier day.
fn follow_day(engine: &Engine, settings: &ModelSettings, today: NaiveDate) -> anyhow::Result<()> {
    if engine.reference().day >= today {
        return Ok(());
    }
    let reference = load_reference_as_of(settings, today)?;
    engine.replace_reference(Arc::new(reference));
    tracing::info!(%today, "took the taxonomies of the day");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::decision::Basis;
    use crate::domain::{ClassCode, Details, Precision, Taxonomy};

    use super::*;

    fn write(dir: &Path, file: &str, text: &str) {
        let path = dir.join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn lines_begin_and_end_on_their_days_and_faulty_files_change_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "taxonomy/hs2022/61.tsv", "61\tde\ten\n6109\tde\ten\n610910\tde\ten\n");
        write(
            dir.path(),
            "taxonomy/national/TARIC.tsv",
            "61091010\t1\t2000-01-01\t2026-11-30\t61091020\n61091020\t1\t2026-12-01\t\t\n",
        );
        write(dir.path(), "vat/sides.tsv", "02\t-\t-\tRest\trest\n03\t-\tage\tKinder\tchildren\n");
        for country in Taxonomy::ALL.into_iter().flat_map(Taxonomy::countries) {
            let text = "completeness\tnothing\nread\t2026-11-01\nrate\tstandard\tSTANDARD\t20\t2020-01-01\t\tlaw\n";
            write(dir.path(), &format!("vat/{country}.tsv"), text);
        }
        let settings = ModelSettings {
            models_dir: Some(Path::new("models").to_owned()),
            taxonomy_dir: Some(dir.path().to_owned()),
        };
        let day = |text: &str| text.parse::<NaiveDate>().expect("a day");
        let reference = load_reference_as_of(&settings, day("2026-11-29")).expect("facts");
        let engine = Engine::load(Path::new("models/classifier.bin"), Arc::new(reference)).expect("a model");
        let listed = |code: &str| {
            let code = ClassCode::new(code).expect("a code");
            engine.reference().nomenclature(Taxonomy::Taric).is_listed(code)
        };
        let mut sets = Vec::new();
        for (today, old, new) in [("2026-11-29", true, false), ("2026-11-30", true, false), ("2026-12-01", false, true)]
        {
            follow_day(&engine, &settings, day(today)).expect("taken");
            assert_eq!((listed("61091010"), listed("61091020")), (old, new), "{today}");
            assert_eq!(engine.reference().day, day(today));
            sets.push(engine.reference().rule_set.clone());
        }
        // Assignments are judged again where something is another.
        assert!(sets[0] == sets[1] && sets[1] != sets[2]);
        // The clock may have been wrong: what is in use is not taken back.
        follow_day(&engine, &settings, day("2026-11-29")).expect("nothing to do");
        assert!(listed("61091020"));
        write(dir.path(), "vat/FR.tsv", "nonsense\n");
        assert!(follow_day(&engine, &settings, day("2026-12-02")).is_err());
        assert!(listed("61091020") && engine.reference().day == day("2026-12-01"));
        assert!(reload(&engine, &settings).is_err() && listed("61091020"));
    }

    #[test]
    fn a_model_file_that_is_written_over_is_no_concern_of_the_service_until_it_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("classifier.bin");
        let model = std::fs::read("models/classifier.bin").expect("a model");
        std::fs::write(&file, &model).expect("a copy");
        let settings = ModelSettings {
            models_dir: Some(dir.path().to_owned()),
            taxonomy_dir: Some(Path::new("models").to_owned()),
        };
        let reference = load_reference(&settings).expect("facts");
        let engine = Engine::load(&file, Arc::new(reference)).expect("a model");
        let classes = || {
            let product =
                serde_json::json!({"languageAttributes": {"de": {"productName": "Herren T-Shirt Baumwolle"}}});
            let details: Details = serde_json::from_value(product).expect("a product");
            let today = engine.reference().day;
            let verdicts = engine.decide(
                &details,
                &[Taxonomy::Taric],
                Basis { precision: Precision::default(), account: None },
                today,
            );
            format!("{verdicts:?}")
        };
        let before = classes();
        // As `cp` does it: the same file, emptied and filled again. A service that had it mapped would die here.
        for part in [0, 1 << 20, model.len() - 1] {
            std::fs::write(&file, &model[..part]).expect("written over");
            assert_eq!(classes(), before, "{part}");
            assert!(reload(&engine, &settings).is_err(), "{part}");
            assert_eq!(classes(), before, "{part}");
        }
        std::fs::write(&file, &model).expect("written over");
        reload(&engine, &settings).expect("it is whole");
        assert_eq!(classes(), before);
    }
}
