//! Orders of events that are rare by themselves, each forced by a lock that the test holds.

use std::pin::pin;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Postgres, Transaction};
use vat_classification::domain::{Product, ShopId};
use vat_classification::store::products::{Asked, NewProduct};
use vat_classification::store::{Settings, Store};

use crate::app::{Answer, App, german, version};
use crate::support::database;

/// How long somebody may be on the way to the lock that waits for them: a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a writer waits for the only connection, in milliseconds: as long as the test is patient.
const ACQUIRE_TIMEOUT_MS: u64 = 60_000;
/// The versions and the new classes of three assignments: whichever is taken for another one is known by it.
const VERSIONS: [i64; 3] = [1, 2, 3];
const CLASSES: [&str; 3] = ["090121-00-000", "090210-00-000", "190219-00-000"];

/// Waits until so many statements on the test's database wait for a lock.
async fn until_waiting(store: &Store, count: i64) {
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'";
    let until = Instant::now() + PATIENCE;
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(store.pool()).await.expect("a count") < count {
        assert!(Instant::now() < until, "fewer than {count} wait for a lock");
        tokio::task::yield_now().await;
    }
}

/// Deletes products under the eyes of a request: it sees them until it waits for what the transaction holds, and then
/// they are gone.
async fn deleting(
    app: &App,
    mut held: Transaction<'static, Postgres>,
    ids: &[&str],
    request: impl Future<Output = Answer>,
) -> Answer {
    let delete = sqlx::query("delete from products where product_id = any($1)").bind(ids.to_vec());
    delete.execute(&mut *held).await.expect("deleted");
    let commit = async {
        until_waiting(&app.store, 1).await;
        held.commit().await.expect("committed");
    };
    let (answer, ()) = tokio::join!(request, commit);
    answer
}

/// Products whose assignments nothing waits for any more, in TARIC at [`VERSIONS`].
async fn three(app: &App, round: &str) -> [String; 3] {
    let ids = ["a", "b", "c"].map(|id| format!("{round}-{id}"));
    let products = ids.iter().map(|id| (id.clone(), json!({"productDetails": {}})));
    app.post("/products/global", Value::Object(products.collect())).await.expect(201);
    app.assign().await;
    for (id, version) in [(&ids[1], 1), (&ids[2], 1), (&ids[2], 2)] {
        app.act("TARIC", id, "REJECT", version).await.expect(200);
    }
    ids
}

fn name(product: &Value) -> &Value {
    &product["productDetails"]["languageAttributes"]["de"]["productName"]
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().into_iter().flatten().filter_map(|item| item["productId"].as_str()).collect()
}

#[tokio::test]
async fn a_change_answers_what_it_wrote_though_another_writer_comes_between_its_commit_and_its_answer() {
    let database = database().await;
    let settings =
        Settings { database_connections: 1, database_acquire_timeout_ms: ACQUIRE_TIMEOUT_MS, ..Settings::default() };
    let store = Store::connect_with(&database.url, &settings).await.expect("a connection");
    let app = App::of(&database.url, store).await;
    let outside = Store::connect(&database.url).await.expect("another connection");
    let caller = app.caller("eve").await;
    for (method, deletes) in [("PATCH", true), ("PATCH", false), ("PUT", true), ("PUT", false)] {
        let id = format!("{method}-{deletes}");
        app.create(&[(&id, "before")]).await;
        let mut held = outside.pool().begin().await.expect("a transaction");
        let lock = sqlx::query("select from products where product_id = $1 for update").bind(&id);
        lock.execute(&mut *held).await.expect("locked");
        let path = format!("/products/global?productId={id}&currentVersion=1");
        let change = app.call(method, &path, german("mine"));
        let other = async {
            until_waiting(&outside, 1).await;
            let mut write = pin!(async {
                if deletes {
                    return app.store.delete_product(&caller, ShopId::GLOBAL, &id, 2).await;
                }
                let new = NewProduct { product_id: id.clone(), product: Product::default() };
                let asked = Asked::default();
                app.store.replace_product(&caller, ShopId::GLOBAL, &new, 2, &asked, true).await.map(drop)
            });
            // It stands behind the change for the only connection, and before whatever the change would ask after its
            // commit: connections are given in the order in which they were asked for.
            assert!(futures::poll!(write.as_mut()).is_pending(), "{id}");
            held.rollback().await.expect("released");
            write.await.expect("written");
        };
        let (answer, ()) = tokio::join!(change, other);
        let told = answer.expect(200).body;
        assert_eq!((&told["version"], name(&told)), (&json!(2), &json!("mine")), "{id}");
        let now = app.get(&format!("/products/global/{id}")).await;
        match deletes {
            true => assert_eq!(now.status, 404, "{id}"),
            false => assert_eq!(now.expect(200).body["version"], 3, "{id}"),
        }
    }
}

#[tokio::test]
async fn of_two_changes_behind_one_lock_each_answers_its_own_version_and_text() {
    let app = App::start().await;
    app.create(&[("p", "none")]).await;
    let mut held = app.store.pool().begin().await.expect("a transaction");
    sqlx::query("select from products for update").execute(&mut *held).await.expect("locked");
    let change = async |version: i64, text: &str| {
        let path = format!("/products/global?productId=p&currentVersion={version}");
        app.patch(&path, german(text)).await.expect(200).body
    };
    let behind = async {
        until_waiting(&app.store, 1).await;
        change(2, "second").await
    };
    let release = async {
        until_waiting(&app.store, 2).await;
        held.rollback().await.expect("released");
    };
    let (first, second, ()) = tokio::join!(change(1, "first"), behind, release);
    assert_eq!((&first["version"], name(&first)), (&json!(2), &json!("first")));
    assert_eq!((&second["version"], name(&second)), (&json!(3), &json!("second")));
    assert_eq!(app.get("/products/global/p").await.expect(200).body, second);
    let versions: Vec<i64> =
        sqlx::query_scalar("select version from journal where action = 'PRODUCT_UPDATED' order by sequence")
            .fetch_all(app.store.pool())
            .await
            .expect("versions");
    assert_eq!(versions, [2, 3]);
}

#[tokio::test]
async fn a_product_that_goes_between_the_look_at_its_key_and_the_lock_is_missing_and_no_other_is_taken_for_it() {
    let app = App::start().await;
    for gone in 0..3 {
        for mode in ["FAIL", "SKIP"] {
            let ids = three(&app, &format!("{gone}{mode}")).await;
            let item = |at: usize| {
                let version = json!({"vatRules": VERSIONS[at]});
                json!({"productId": ids[at], "assignmentVersion": version, "productClass": CLASSES[at]})
            };
            let body = json!({"products": [item(0), item(1), item(2)], "onConflict": mode});
            let act = app.patch("/assignments/TARIC?assignmentAction=ASSIGN", body);
            let held = app.store.pool().begin().await.expect("a transaction");
            let answer = deleting(&app, held, &[&ids[gone]], act).await;
            let stay = (0..3).filter(|at| *at != gone);
            if mode == "FAIL" {
                let refused = answer.expect(404);
                assert_eq!(refused.faults(), ["productId UNKNOWN_PRODUCT"], "{ids:?}");
                assert_eq!(refused.body["errors"][0]["productId"], json!(ids[gone]));
                for at in stay {
                    assert_eq!(version(&app.assignment("TARIC", &ids[at]).await), VERSIONS[at], "{ids:?}");
                }
                continue;
            }
            let done = answer.expect(200).body;
            let statuses: Vec<&Value> =
                done["results"].as_array().expect("results").iter().map(|result| &result["status"]).collect();
            let expected: Vec<i32> = (0..3).map(|at| if at == gone { 404 } else { 200 }).collect();
            assert_eq!(statuses, expected, "{done}");
            let acted: Vec<&str> = done["products"]
                .as_array()
                .expect("products")
                .iter()
                .filter_map(|product| product["productId"].as_str())
                .collect();
            assert_eq!(acted, stay.clone().map(|at| ids[at].as_str()).collect::<Vec<_>>());
            for at in stay {
                let now = app.assignment("TARIC", &ids[at]).await;
                assert_eq!((version(&now), &now["productClass"]), (VERSIONS[at] + 1, &json!(CLASSES[at])), "{done}");
            }
        }
    }
}

#[tokio::test]
async fn a_product_that_goes_after_a_filter_selected_it_is_left_and_told_of_and_the_others_are_done() {
    let app = App::start().await;
    for gone in 0..3 {
        let ids = three(&app, &format!("filter{gone}")).await;
        let body = json!({"action": "DENY", "filter": {"assignmentStatus": "ALL", "productIds": ids}});
        let act = app.post("/assignments/TARIC/actions", body);
        let held = app.store.pool().begin().await.expect("a transaction");
        let done = deleting(&app, held, &[&ids[gone]], act).await.expect(202).body;
        let counts = ["selected", "done", "skipped", "failed"].map(|field| done[field].as_i64());
        assert_eq!(counts, [3, 2, 1, 0].map(Some), "{done}");
        let left = json!([{"productId": ids[gone], "outcome": "SKIPPED", "code": "UNKNOWN_PRODUCT"}]);
        assert_eq!(done["left"], left);
        for at in (0..3).filter(|at| *at != gone) {
            let now = app.assignment("TARIC", &ids[at]).await;
            assert_eq!((version(&now), &now["assignmentStatus"]), (VERSIONS[at] + 1, &json!("DENIED")), "{done}");
        }
    }
}

#[tokio::test]
async fn a_page_of_which_every_hit_goes_before_it_is_read_still_leads_on_whichever_way_it_was_come_to() {
    let listed = "/products/global?size=2&detail=Small&filterCriteria=%5B%5D";
    let searched = json!({"size": 2, "detail": "Small", "filterCriteria": []});
    for (method, first, body) in [("GET", listed, Value::Null), ("POST", "/products/global/search", searched)] {
        let app = App::start().await;
        app.create(&["a", "b", "c", "d", "e", "f", "g", "h"].map(|id| (id, "x"))).await;
        app.index().await;
        let ask = async |path: &str| app.call(method, path, body.clone()).await;
        let emptied = async |path: &str, gone: [&str; 2]| {
            let mut held = app.store.pool().begin().await.expect("a transaction");
            // The engine has a table of its own and answers; who then reads the products waits.
            let lock = sqlx::raw_sql("lock table products in access exclusive mode");
            lock.execute(&mut *held).await.expect("locked");
            let page = deleting(&app, held, &gone, ask(path)).await.expect(200).body;
            assert_eq!(page["items"], json!([]), "{method} {path}");
            page
        };
        let link = |page: &Value, to: &str| page["links"][to].as_str().expect("a link").to_owned();
        let empty = emptied(first, ["a", "b"]).await;
        let second = ask(&link(&empty, "next")).await.expect(200).body;
        assert_eq!(ids(&second), ["c", "d"], "{method}");
        let third = ask(&link(&second, "next")).await.expect(200).body;
        let last = ask(&link(&third, "next")).await.expect(200).body;
        assert_eq!((ids(&last), &last["links"]["next"]), (vec!["g", "h"], &Value::Null), "{method}");
        let empty = emptied(&link(&last, "prev"), ["e", "f"]).await;
        assert_eq!(ids(&ask(&link(&empty, "prev")).await.expect(200).body), ["c", "d"], "{method}");
        assert_eq!(ids(&ask(&link(&empty, "next")).await.expect(200).body), ["g", "h"], "{method}");
    }
}
