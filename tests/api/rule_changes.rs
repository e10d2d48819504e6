//! Assignments when VAT rules begin, end or are replaced.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vat_classification::jobs::auto_assignment::{Standing, decide, store_unless_outdated};
use vat_classification::jobs::rule_changes::keep_up;
use vat_classification::reference::Reference;
use vat_classification::store::rule_changes::SLICE_ASSIGNMENTS;

use crate::app::App;
use crate::filling::fill;

/// A rule by which the rate of laptops is not known.
const UNKNOWN: &str = "gap\t847130\t00-000\tFUEL\tLaptops, of which nothing is known\t2020-01-01\t\n";

/// Milk, roses and a laptop, by customs codes.
async fn products(app: &App) {
    let product = |code: &str| json!({"productDetails": {"customsCodes": {"taricCode": code}}});
    let body = json!({"milk": product("040120"), "roses": product("060311"), "laptop": product("847130")});
    app.post("/products/global", body).await.expect(201);
    app.assign().await;
}

async fn status(app: &App, id: &str) -> (Value, Value) {
    let one = app.assignment("TARIC", id).await;
    (one["assignmentStatus"].clone(), one["reviewNeeded"].clone())
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

/// How many assignments change as all are judged by the rules of a day.
async fn judge(app: &App, text: &str) -> usize {
    let judged = keep_up(&app.store, &app.engine, day(text), &CancellationToken::new()).await.expect("a pass");
    judged.map_or(0, |judged| judged.changed)
}

/// The same when nothing is known of an earlier look.
async fn judge_anew(app: &App, text: &str) -> usize {
    sqlx::query("delete from rule_state").execute(app.store.pool()).await.expect("forgotten");
    judge(app, text).await
}

#[tokio::test]
async fn what_a_rule_change_touches_is_judged_again_once_and_with_an_event() {
    let app = App::start().await;
    products(&app).await;
    let before = app.assignment("TARIC", "laptop").await;
    assert_eq!(before["assignmentStatus"], "ASSIGNED");
    let version = before["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].clone();
    // Before August 2025 the rules of Romania are not known, so that nothing is sufficient in all countries.
    let changed = judge(&app, "2025-07-31").await;
    assert!(changed >= 1, "{changed}");
    assert_eq!(status(&app, "laptop").await.0, "REJECTED");
    assert_eq!(judge(&app, "2025-07-31").await, 0);
    let again = judge(&app, "2026-11-22").await;
    assert_eq!(again, changed);
    let uuid = before["assignmentUuid"].as_str().expect("an identity").to_owned();
    let after = app.get(&format!("/assignments/TARIC/{uuid}?embed=EVENTS")).await.expect(200).body;
    assert_eq!(after["assignmentStatus"], "ASSIGNED");
    assert_eq!(
        after["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].as_i64(),
        version.as_i64().map(|version| version + 2)
    );
    let events: Vec<(&Value, &Value, &Value)> = after["events"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| (&event["action"], &event["actor"], &event["assignmentStatus"]))
        .collect();
    let last = &events[events.len() - 2..];
    assert_eq!(last[0], (&json!("RULE_CHANGED"), &json!("vat-rules"), &json!("REJECTED")));
    assert_eq!(last[1], (&json!("RULE_CHANGED"), &json!("vat-rules"), &json!("ASSIGNED")));
}

#[tokio::test]
async fn what_a_person_decided_stays_and_is_marked_for_review() {
    let app = App::start().await;
    products(&app).await;
    let version =
        app.assignment("TARIC", "laptop").await["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].clone();
    app.act("TARIC", "laptop", "APPROVE", version.as_i64().expect("a version")).await.expect(200);
    judge(&app, "2025-07-31").await;
    assert_eq!(status(&app, "laptop").await, (json!("APPROVED"), json!(true)));
    judge_anew(&app, "2025-07-30").await;
    let uuid = app.assignment("TARIC", "laptop").await["assignmentUuid"].as_str().expect("an identity").to_owned();
    let after = app.get(&format!("/assignments/TARIC/{uuid}?embed=EVENTS")).await.expect(200).body;
    let changes =
        after["events"].as_array().into_iter().flatten().filter(|event| event["action"] == "RULE_CHANGED").count();
    assert_eq!(changes, 1, "marked once");
}

#[tokio::test]
async fn a_pass_that_is_stopped_is_made_up_for() {
    let app = App::start().await;
    products(&app).await;
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert_eq!(keep_up(&app.store, &app.engine, day("2025-07-31"), &stopped).await.expect("a pass"), None);
    assert_eq!(app.store.rule_state().await.expect("a state"), None);
    assert!(judge(&app, "2025-07-31").await >= 1);
    let (rules, judged) = app.store.rule_state().await.expect("a state").expect("one");
    assert_eq!((rules, judged), (app.engine.reference().rule_set.clone(), day("2025-07-31")));
}

#[tokio::test]
async fn a_day_on_which_no_rule_begins_or_ends_looks_at_no_assignment() {
    let app = App::start().await;
    products(&app).await;
    judge(&app, "2026-11-22").await;
    // Nobody judged it so: whoever looked would change it.
    let wrong = "update assignments set status = 'REJECTED' where product_id = 'laptop' and taxonomy = 0";
    sqlx::query(wrong).execute(app.store.pool()).await.expect("changed");
    assert_eq!(judge(&app, "2026-11-23").await, 0);
    judge_anew(&app, "2025-07-31").await;
    assert!(judge(&app, "2026-11-23").await > 0);
    assert_eq!(status(&app, "laptop").await.0, "ASSIGNED");
}

#[tokio::test]
async fn a_service_whose_clock_is_behind_judges_nothing_back() {
    let app = App::start().await;
    products(&app).await;
    // Before August 2025 the rules of Romania are not known.
    judge(&app, "2025-08-01").await;
    assert_eq!(judge(&app, "2025-07-31").await, 0);
    assert_eq!(status(&app, "laptop").await.0, "ASSIGNED");
    assert_eq!(app.store.rule_state().await.expect("a state").expect("one").1, day("2025-08-01"));
    // One that was a year ahead is not followed until then.
    judge(&app, "2027-11-22").await;
    judge(&app, "2026-11-22").await;
    assert_eq!(app.store.rule_state().await.expect("a state").expect("one").1, day("2026-11-22"));
    // What is judged is noted unless something else was noted meanwhile.
    let (rules, stale) = (app.engine.reference().rule_set.clone(), Some((String::new(), day("2026-11-21"))));
    assert!(!app.store.set_rule_state(&rules, day("2026-11-23"), stale.as_ref()).await.expect("a state"));
    assert!(!app.store.set_rule_state(&rules, day("2026-11-23"), None).await.expect("a state"));
}

#[tokio::test]
async fn what_was_decided_by_rules_that_are_in_force_no_more_is_decided_anew() {
    let app = App::start().await;
    let laptop = json!({"productDetails": {"customsCodes": {"taricCode": "847130"}}});
    app.post("/products/global", json!({"laptop": laptop})).await.expect(201);
    let batch = app.store.claim_auto_assignments(10).await.expect("a claim").expect("a batch");
    let basis = Standing::of(&app.engine);
    let (batch, results) = decide(app.engine.clone(), batch).await;
    let facts = shipped_facts();
    let rules = facts.path().join("vat/DE.tsv");
    let shipped = std::fs::read_to_string(&rules).expect("rules");
    std::fs::write(&rules, format!("{}\n{UNKNOWN}", shipped.trim_end())).expect("a file");
    let today = chrono::Utc::now().date_naive();
    app.engine.replace_reference(Arc::new(Reference::load_as_of(facts.path(), today).expect("facts")));
    // All that was there is judged by the new rules now; what is still on its way is not.
    let stored = store_unless_outdated(&app.engine, &basis, batch, &results).await.expect("given back");
    assert_eq!((stored, app.assignment("TARIC", "laptop").await["autoAssignment"].clone()), (0, json!("PENDING")));
    app.assign().await;
    assert_eq!(status(&app, "laptop").await.0, "REJECTED");
}

#[tokio::test]
async fn what_is_to_change_is_found_behind_many_of_its_class_that_are_not() {
    let app = App::start().await;
    let last = "case when row_number() over (order by product_key) > $1 - 2 then 'REJECTED' else 'ASSIGNED' end";
    fill(&app, 2 * SLICE_ASSIGNMENTS + 1, &[("status", last)]).await;
    assert_eq!(judge(&app, "2026-11-22").await, 2);
}

#[tokio::test]
async fn products_whose_class_ended_are_led_on_and_what_a_person_decided_stays() {
    let app = App::start().await;
    let product = json!({"productDetails": {"customsCodes": {"ukgtCode": "6109100090"}}});
    app.post("/products/global", json!({"found": product, "decided": product})).await.expect(201);
    app.assign().await;
    let before = app.assignment("UKGT", "decided").await;
    assert_eq!(before["productClassCode"], "6109100090");
    let version = before["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].as_i64().expect("a version");
    app.act("UKGT", "decided", "REJECT", version).await.expect(200);
    let facts = shipped_facts();
    let list = facts.path().join("taxonomy/national/UKGT.tsv");
    let lines = std::fs::read_to_string(&list).expect("a list");
    let (listed, ended) = ("6109100090\t1\t2015-03-10\t\t\n", "6109100090\t1\t2015-03-10\t2026-10-31\t6109100010\n");
    assert!(lines.contains(listed));
    std::fs::write(&list, lines.replace(listed, ended)).expect("a file");
    let reference = Reference::load_as_of(facts.path(), day("2026-11-22")).expect("facts");
    app.engine.replace_reference(Arc::new(reference));
    assert_eq!(judge(&app, "2026-11-22").await, 1);
    app.assign().await;
    assert_eq!(app.assignment("UKGT", "found").await["productClassCode"], "6109100010");
    assert_eq!(app.assignment("UKGT", "decided").await["productClassCode"], "6109100090");
    let history = app.history("UKGT", "found").await;
    assert!(history.contains(&"vat-rules REQUEUE REJECTED".to_owned()), "{history:?}");
    // The day asked about counts: a line that has ended since has its rates.
    app.get("/vat-rates/UKGT/6109100090?date=2026-10-31").await.expect(200);
    app.get("/vat-rates/UKGT/6109100090?date=2026-11-01").await.expect(404);
}

/// How long the program may take to start, or to notice a signal.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The service as a process of its own, with facts of its own; it ends with the value.
struct Program {
    child: Child,
    facts: tempfile::TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}

/// The facts that ship, to be changed.
fn shipped_facts() -> tempfile::TempDir {
    let facts = tempfile::tempdir().expect("a directory");
    for folder in ["taxonomy", "vat"] {
        copy(&Path::new("models").join(folder), &facts.path().join(folder));
    }
    facts
}

impl Program {
    fn start(app: &App) -> Program {
        let facts = shipped_facts();
        let log = std::fs::File::create(facts.path().join("log")).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_vat-classification"));
        for name in ["PUBLIC_URL", "ELASTICSEARCH_URL", "METRICS_ADDR"] {
            command.env_remove(name);
        }
        command.env("DATABASE_URL", app.database_url()).env("DATA_DIR", facts.path().join("data"));
        command.env("TAXONOMY_DIR", facts.path()).env("BIND_ADDR", "127.0.0.1:0").env("RUST_LOG", "info");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Program { child: command.spawn().expect("the program"), facts }
    }

    fn hang_up(&self) {
        let told = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status().expect("kill");
        assert!(told.success());
    }

    /// Waits until its log says something so many times.
    async fn says(&self, text: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(self.facts.path().join("log")).expect("a log");
            if log.matches(text).count() >= times {
                return;
            }
            assert!(Instant::now() < until, "it never says {text}:\n{log}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[tokio::test]
async fn a_hangup_takes_new_rules_and_judges_by_them_and_faulty_ones_change_nothing() {
    let app = App::start().await;
    products(&app).await;
    assert_eq!(status(&app, "laptop").await.0, "ASSIGNED");
    let program = Program::start(&app);
    program.says("judged assignments by the VAT rules of the day", 1).await;
    assert_eq!(status(&app, "laptop").await.0, "ASSIGNED");
    let rules = program.facts.path().join("vat/DE.tsv");
    let shipped = std::fs::read_to_string(&rules).expect("rules");
    std::fs::write(&rules, format!("{}\n{UNKNOWN}", shipped.trim_end())).expect("a file");
    program.hang_up();
    program.says("judged assignments by the VAT rules of the day", 2).await;
    assert_eq!(status(&app, "laptop").await.0, "REJECTED");
    assert_eq!(
        app.history("TARIC", "laptop").await.last().map(String::as_str),
        Some("vat-rules RULE_CHANGED REJECTED")
    );
    std::fs::write(&rules, "nonsense\n").expect("a file");
    program.hang_up();
    program.says("the old ones stay", 1).await;
    std::fs::write(&rules, shipped).expect("a file");
    program.hang_up();
    program.says("judged assignments by the VAT rules of the day", 3).await;
    assert_eq!(status(&app, "laptop").await.0, "ASSIGNED");
}
