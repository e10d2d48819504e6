//! What one decision teaches.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use vat_classification::app::remembered;
use vat_classification::decision::Engine;
use vat_classification::domain::access::Level;
use vat_classification::domain::access::Plan;
use vat_classification::jobs::{auto_assignment, memory};
use vat_classification::store::memory::PAGE_DECISIONS;

use crate::app::{App, german, version};

/// A good of which no model has heard, in variants, and another one.
const GOODS: [(&str, &str); 4] = [
    ("a", "Zanbar Quillet Morvo 45 blau"),
    ("b", "Zanbar Quillet Morvo 60 rot"),
    ("c", "Zanbar Quillet Morvo schwarz"),
    ("other", "Trumel Veskon Ixpar blau"),
];
const TOLD: &str = "ASSIGN&productClass=0901210000-00-000";

async fn act(app: &App, product: &str, action: &str) {
    let now = version(&app.assignment("TARIC", product).await);
    app.act("TARIC", product, action, now).await.expect(200);
}

async fn class(app: &App, product: &str) -> Value {
    app.assignment("TARIC", product).await["productClassCode"].clone()
}

async fn follow(app: &App, service: &Arc<Engine>) {
    assert!(memory::follow(&app.store, service, &CancellationToken::new()).await.expect("followed"));
}

async fn with_goods() -> App {
    let app = App::start().await;
    app.create(&GOODS).await;
    app.assign().await;
    for (product, _) in GOODS {
        assert_eq!(app.assignment("TARIC", product).await["assignmentStatus"], "UNASSIGNED", "{product}");
    }
    app
}

fn question(name: &str, memory: Option<bool>) -> Value {
    let texts = german(name)["productDetails"]["languageAttributes"].clone();
    let mut body = json!({"taxonomy": "TARIC", "items": [{"languageAttributes": texts}]});
    if let Some(memory) = memory {
        body["memory"] = json!(memory);
    }
    body
}

#[tokio::test]
async fn one_decision_teaches_products_that_are_alike_and_no_others() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let own = app.assignment("TARIC", "a").await;
    for product in ["b", "c"] {
        let taught = app.assignment("TARIC", product).await;
        assert_eq!(
            (&taught["productClassCode"], &taught["strategy"]),
            (&own["productClassCode"], &json!("DESCRIPTION"))
        );
        assert!(taught["confidence"].as_f64().is_some_and(|sure| (0.95..1.0).contains(&sure)), "{taught}");
        let uuid = taught["assignmentUuid"].as_str().expect("a uuid");
        let shown = app.get(&format!("/assignments/TARIC/{uuid}?embed=EVENTS,CANDIDATES")).await.expect(200).body;
        let evidence = &shown["candidates"][0]["evidence"][0];
        assert_eq!(evidence["decision"], own["assignmentUuid"]);
        assert!(evidence["similarity"].as_f64().is_some_and(|alike| alike > 0.6), "{evidence}");
        let events = shown["events"].as_array().expect("events");
        let queued = events.iter().find(|event| event["action"] == "REQUEUE").expect("an event");
        assert_eq!(queued["actor"], "auto-assignment");
        let comment = queued["comment"].as_str().expect("a comment");
        assert!(comment.contains(own["assignmentUuid"].as_str().expect("a uuid")), "{comment}");
    }
    assert_eq!(app.assignment("TARIC", "other").await["assignmentStatus"], "UNASSIGNED");
    // Another taxonomy was not spoken of.
    assert_eq!(app.assignment("UKGT", "b").await["assignmentStatus"], "UNASSIGNED");
    // A product that comes later is decided as it comes.
    app.create(&[("d", "Zanbar Quillet Morvo 75 gelb")]).await;
    app.assign().await;
    assert_eq!(class(&app, "d").await, own["productClassCode"]);
}

#[tokio::test]
async fn a_decision_taken_back_takes_its_consequences_back() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    assert!(class(&app, "b").await.is_string());
    act(&app, "a", "UNASSIGN").await;
    app.learn().await;
    for product in ["a", "b", "c"] {
        assert_eq!(app.assignment("TARIC", product).await["assignmentStatus"], "UNASSIGNED", "{product}");
    }
    act(&app, "a", TOLD).await;
    act(&app, "a", "ASSIGN&productClass=190219-00-000").await;
    app.learn().await;
    assert_eq!(class(&app, "b").await, class(&app, "a").await);
    act(&app, "a", "REJECT").await;
    app.learn().await;
    assert_eq!(app.assignment("TARIC", "b").await["assignmentStatus"], "UNASSIGNED");
}

#[tokio::test]
async fn who_unassigns_one_product_says_nothing_of_those_that_are_alike() {
    let app = App::start().await;
    app.create(&[("a", "Herren T-Shirt Baumwolle 1"), ("b", "Herren T-Shirt Baumwolle 2")]).await;
    app.assign().await;
    let by_model = class(&app, "b").await;
    assert!(by_model.is_string());
    act(&app, "a", "UNASSIGN").await;
    app.learn().await;
    assert_eq!(class(&app, "b").await, by_model);
    assert_eq!(app.engine.memory().len(), 0);
}

#[tokio::test]
async fn a_person_is_believed_against_the_model_where_the_text_is_the_same() {
    let app = App::start().await;
    let names = [("a", "Herren T-Shirt Baumwolle"), ("b", "Herren T-Shirt Baumwolle"), ("c", "Damen Lederstiefel")];
    app.create(&names).await;
    app.assign().await;
    let (shirt, boots) = (class(&app, "b").await, class(&app, "c").await);
    act(&app, "a", "ASSIGN&productClass=190219-00-000").await;
    assert!(shirt.is_string() && shirt != class(&app, "a").await);
    app.learn().await;
    assert_eq!(class(&app, "b").await, "190219");
    assert_eq!(class(&app, "c").await, boots);
}

#[tokio::test]
async fn what_people_decided_is_never_touched() {
    let app = with_goods().await;
    act(&app, "b", "ASSIGN&productClass=190219-00-000").await;
    act(&app, "c", "DENY").await;
    let before = (app.assignment("TARIC", "b").await, app.assignment("TARIC", "c").await);
    act(&app, "a", TOLD).await;
    app.learn().await;
    assert_eq!((app.assignment("TARIC", "b").await, app.assignment("TARIC", "c").await), before);
    // Of two contradictory decisions neither is sure enough for a third product.
    app.create(&[("d", "Zanbar Quillet Morvo grau")]).await;
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "d").await["assignmentStatus"], "UNASSIGNED");
}

#[tokio::test]
async fn classifications_use_memory_unless_they_are_asked_not_to() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let ask =
        async |memory| app.post("/classifications", question("Quillet Zanbar Morvo", memory)).await.expect(200).body;
    for memory in [None, Some(true)] {
        let item = ask(memory).await["items"][0].clone();
        assert_eq!(item["decision"]["productClassCode"], class(&app, "a").await);
        assert_eq!(
            item["candidates"][0]["evidence"][0]["decision"],
            app.assignment("TARIC", "a").await["assignmentUuid"]
        );
    }
    let without = ask(Some(false)).await["items"][0].clone();
    assert_eq!((&without["decision"]["assignmentStatus"], &without["candidates"]), (&json!("UNASSIGNED"), &json!([])));
}

#[tokio::test]
async fn no_account_learns_from_another() {
    let app = with_goods().await;
    app.store.create_account("rival", Plan::Unlimited).await.expect("an account");
    let rival = app.token("rival", "rita", Level::Admin).await;
    let body = Value::Object([("x".to_owned(), german("Zanbar Quillet Morvo grün"))].into_iter().collect());
    app.raw(&rival, "POST", "/products/global", "application/json", body.to_string().into()).await.expect(201);
    app.assign().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let path = "/assignments/TARIC?assignmentStatus=ALL&embed=CANDIDATES";
    let list = app.raw(&rival, "GET", path, "application/json", String::new().into()).await.expect(200).body;
    assert_eq!(list["items"][0]["assignmentStatus"], "UNASSIGNED");
    assert_eq!(list["items"][0]["candidates"], json!([]));
    let asked = question("Zanbar Quillet Morvo", None).to_string();
    let answer = app.raw(&rival, "POST", "/classifications", "application/json", asked.into()).await.expect(200).body;
    assert_eq!(answer["items"][0]["decision"]["assignmentStatus"], "UNASSIGNED");
    let uuid = list["items"][0]["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let path = format!("/assignments/TARIC/{uuid}/alike");
    let alike = app.raw(&rival, "GET", &path, "application/json", String::new().into()).await.expect(200).body;
    assert_eq!(alike, json!({"items": []}));
    app.get(&path).await.expect(404);
}

#[tokio::test]
async fn alike_products_are_listed_with_their_class_the_most_alike_first() {
    let app = with_goods().await;
    act(&app, "b", TOLD).await;
    app.create(&[("near", "Zanbar Quillet Morvo Dromell")]).await;
    app.assign().await;
    let uuid = app.assignment("TARIC", "a").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let list = app.get(&format!("/assignments/TARIC/{uuid}/alike")).await.expect(200).body;
    let items = list["items"].as_array().expect("items");
    let mut ids: Vec<&str> = items.iter().filter_map(|item| item["productId"].as_str()).collect();
    let similarities: Vec<f64> = items.iter().filter_map(|item| item["similarity"].as_f64()).collect();
    assert!(similarities.is_sorted_by(|a, b| a >= b), "{list}");
    assert_eq!(ids.last(), Some(&"near"), "{list}");
    ids.sort_unstable();
    assert_eq!(ids, ["b", "c", "near"]);
    let b = items.iter().find(|item| item["productId"] == "b").expect("b");
    assert_eq!((&b["strategy"], &b["productClassCode"]), (&json!("MANUAL"), &class(&app, "b").await));
    app.get(&format!("/assignments/UKGT/{uuid}/alike")).await.expect(404);
    app.get("/assignments/TARIC/none/alike").await.expect(404);
}

#[tokio::test]
async fn another_service_and_one_that_starts_anew_know_what_was_decided() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let started = Arc::new(app.engine.with_own_memory());
    follow(&app, &started).await;
    assert_eq!(started.memory().len(), 1);
    act(&app, "a", "UNASSIGN").await;
    act(&app, "other", TOLD).await;
    act(&app, "b", "ASSIGN&productClass=190219-00-000").await;
    follow(&app, &started).await;
    assert_eq!(started.memory().len(), 2);
    follow(&app, &started).await;
    assert_eq!(started.memory().len(), 2);
}

#[tokio::test]
async fn a_service_that_does_not_know_all_decisions_yet_claims_nothing_and_stops_when_told() {
    let app = with_goods().await;
    app.create(&[("waiting", "Zanbar Quillet Morvo 70")]).await;
    let started = Arc::new(app.engine.with_own_memory());
    // As at a start with very many decisions: whoever wants to know them waits.
    let others_learn = started.memory().followed.lock().await;
    let stopping = CancellationToken::new();
    stopping.cancel();
    assert!(!memory::follow(&app.store, &started, &stopping).await.expect("given up"));
    let stopping = CancellationToken::new();
    let mut works = Box::pin(auto_assignment::work_off(&app.store, &started, &stopping));
    // The one that waits is asked first whenever anything goes on; a claim of its own would leave nothing to the other.
    let never = CancellationToken::new();
    tokio::select! {
        biased;
        ended = &mut works => panic!("{ended:?} before it knew what was decided"),
        worked = auto_assignment::work_off(&app.store, &app.engine, &never) => worked.expect("auto-assignment"),
    }
    assert_eq!(app.assignment("TARIC", "waiting").await["autoAssignment"], "DONE");
    stopping.cancel();
    works.await.expect("ended");
    drop(others_learn);
}

#[tokio::test]
async fn a_decision_whose_alike_products_cannot_be_queued_keeps_no_other_from_teaching() {
    let app = with_goods().await;
    app.create(&[("another", "Trumel Veskon Ixpar rot")]).await;
    app.assign().await;
    let refusing = "create function refuse() returns trigger language plpgsql as
                        $$ begin raise exception 'refused' using errcode = 'data_exception'; end $$;
                    create trigger refused before update on assignments for each row
                        when (new.product_id = 'b' and new.auto_state = 'PENDING') execute function refuse()";
    sqlx::raw_sql(refusing).execute(app.store.pool()).await.expect("made");
    act(&app, "a", TOLD).await;
    act(&app, "other", TOLD).await;
    app.learn().await;
    assert_eq!(class(&app, "b").await, Value::Null);
    assert_eq!(class(&app, "another").await, class(&app, "other").await);
    assert!(app.store.memory_lessons().await.expect("lessons").is_empty());
}

#[tokio::test]
async fn decisions_of_transactions_whose_numbers_differ_in_length_are_all_followed_page_by_page() {
    let app = App::start().await;
    // As text, the later transaction comes first.
    let insert = "insert into memory_decisions
                      (account_id, assignment_uuid, product_key, taxonomy, verdict, product_class, texts, changed_in)
                  select account_id, gen_random_uuid(), number, 0, 1, '090121-00-000', $2, $1::text::xid8
                  from accounts, generate_series(1, $3) number limit $3";
    let texts = json!({"languageAttributes": {"de": {"productName": GOODS[0].1}}});
    for (transaction, rows) in [("9", 3), ("10", PAGE_DECISIONS)] {
        let inserted = sqlx::query(insert).bind(transaction).bind(&texts).bind(rows);
        inserted.execute(app.store.pool()).await.expect("decisions");
    }
    let started = Arc::new(app.engine.with_own_memory());
    follow(&app, &started).await;
    assert_eq!(started.memory().len() as i64, PAGE_DECISIONS + 3);
}

#[tokio::test]
async fn a_cleared_memory_is_empty_and_leaves_decisions_as_they_are() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    app.learn().await;
    let account = app.caller("ben").await.account;
    let sizes = app.store.memory_sizes(account).await.expect("sizes");
    assert_eq!(
        sizes.iter().map(|size| (size.taxonomy().name(), size.right, size.wrong)).collect::<Vec<_>>(),
        [("TARIC", 1, 0)]
    );
    assert_eq!(app.store.clear_memory(account).await.expect("cleared"), 1);
    app.learn().await;
    assert!(app.engine.memory().is_empty());
    assert!(app.store.memory_sizes(account).await.expect("sizes").is_empty());
    assert!(class(&app, "a").await.is_string() && class(&app, "b").await.is_string());
}

#[tokio::test]
async fn an_undone_action_takes_its_memory_back_and_gives_back_what_was_remembered_before() {
    let app = with_goods().await;
    let told = async |action: &str| {
        let now = version(&app.assignment("TARIC", "a").await);
        let answer = app.act("TARIC", "a", action, now).await.expect(200).body;
        app.learn().await;
        format!("/assignments/actions/{}/undo", answer["actionId"].as_str().expect("an id"))
    };
    let undone = async |undo: &str| {
        assert_eq!(app.post(undo, json!({})).await.expect(202).body["done"], 1);
        app.learn().await;
        class(&app, "b").await
    };
    let first = told(TOLD).await;
    let coffee = class(&app, "b").await;
    assert!(coffee.is_string());
    let second = told("ASSIGN&productClass=190219-00-000").await;
    assert_eq!(class(&app, "b").await, "190219");
    assert_eq!(undone(&second).await, coffee, "what had been said before stands again");
    let third = told("REJECT").await;
    assert!(class(&app, "b").await.is_null());
    assert_eq!(undone(&third).await, coffee);
    let fourth = told("UNASSIGN").await;
    assert!(class(&app, "b").await.is_null());
    assert_eq!(undone(&fourth).await, coffee);
    assert_eq!(app.post(&first, json!({})).await.expect(202).body["done"], 0, "it has changed since");
}

#[tokio::test]
async fn more_products_than_are_looked_at_at_once_all_learn_and_hold_up_no_other_decision() {
    let app = with_goods().await;
    let names: Vec<(String, String)> =
        (0..1_100).map(|at| (format!("v{at}"), format!("Zanbar Quillet Morvo {at}"))).collect();
    for some in names.chunks(550) {
        app.create(&some.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect::<Vec<_>>()).await;
    }
    app.assign().await;
    act(&app, "a", TOLD).await;
    let lesson = app.store.memory_lessons().await.expect("lessons").remove(0);
    app.store.teach(&lesson, &[], Some(0)).await.expect("taught").expect("it is ours");
    act(&app, "other", TOLD).await;
    let lessons = app.store.memory_lessons().await.expect("lessons");
    let other = app.assignment("TARIC", "other").await["assignmentUuid"].clone();
    assert_eq!(json!(lessons[0].assignment), other, "what nobody has begun with comes first");
    app.learn().await;
    let page = app.get("/assignments/TARIC?assignmentStatus=UNASSIGNED&count=true").await.expect(200).body;
    assert_eq!(page["total"], 0, "{page}");
}

#[tokio::test]
async fn a_second_account_starts_with_what_the_first_one_knows() {
    let app = with_goods().await;
    act(&app, "a", TOLD).await;
    act(&app, "other", "REJECT").await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("memory.jsonl");
    let own = app.caller("ben").await.account;
    let exported = remembered::export(&app.store, own, &file).await.expect("exported");
    // A rejection of nothing says nothing about a class.
    assert_eq!(exported, 1);
    app.store.create_account("sister", Plan::Unlimited).await.expect("an account");
    let token = app.token("sister", "sue", Level::Admin).await;
    let sister = app.store.account_by_name("sister", "sue").await.expect("an answer").expect("an account").account;
    let body = Value::Object([("x".to_owned(), german("Zanbar Quillet Morvo grün"))].into_iter().collect());
    app.raw(&token, "POST", "/products/global", "application/json", body.to_string().into()).await.expect(201);
    app.assign().await;
    assert_eq!(remembered::import(&app.store, sister, &file).await.expect("imported"), 1);
    app.learn().await;
    let path = "/assignments/TARIC?assignmentStatus=ALL";
    let list = app.raw(&token, "GET", path, "application/json", String::new().into()).await.expect(200).body;
    assert_eq!(list["items"][0]["productClassCode"], class(&app, "a").await);
    assert_eq!(remembered::import(&app.store, sister, &file).await.expect("imported"), 0, "nothing is new");
    // What the sister forgets the first account still knows, and what she imports again she knows again.
    assert_eq!(app.store.clear_memory(sister).await.expect("cleared"), 1);
    assert_eq!(app.store.memory_sizes(own).await.expect("sizes")[0].right, 1);
    assert_eq!(remembered::import(&app.store, sister, &file).await.expect("imported"), 1);
    // A file with one faulty line is not taken at all.
    let good = std::fs::read_to_string(&file).expect("the file");
    let faults = [("TARIC", "HTS"), ("-00-000", ""), ("\"de\"", "\"?\""), ("right", "left")];
    for (known, faulty) in faults {
        let faulty = good.replace(known, faulty);
        let broken = directory.path().join("broken.jsonl");
        std::fs::write(&broken, format!("{}{faulty}", good.replace("Quillet", "Dromell"))).expect("written");
        let refused = remembered::import(&app.store, sister, &broken).await.expect_err("refused");
        assert!(format!("{refused:#}").contains("broken.jsonl:2"), "{refused:#}");
    }
    assert_eq!(app.store.memory_sizes(sister).await.expect("sizes")[0].right, 1);
}
