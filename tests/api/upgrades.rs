//! Two versions on one database: the later one has added to the schema while the earlier one runs and goes on running.

use serde_json::json;
use sqlx::migrate::MigrateError;
use vat_classification::store::{Settings, Store};

use crate::app::{Answer, App, german, version};

/// What a later version may do to the schema, as far as it only adds: columns wherever there are rows, a table, an index,
/// a note that it was done.
const LATER: &str = "
    do $$ declare name text; begin
        for name in select tablename from pg_tables where schemaname = 'public' and tablename <> '_sqlx_migrations' loop
            execute format('alter table %I add column of_later text, add column of_later_too int not null default 7', name);
        end loop;
    end $$;
    create table later (account_id bigint not null references accounts, kept text);
    insert into later select account_id, 'x' from accounts;
    create index later_products on products (account_id, of_later);
    insert into _sqlx_migrations (version, description, success, checksum, execution_time)
    values (9000, 'adds things', true, '', 0)";

async fn run(app: &App, statement: &'static str) {
    sqlx::raw_sql(statement).execute(app.store.pool()).await.expect(statement);
}

/// Does a bit of everything, with names of its own.
pub(crate) async fn work(app: &App, name: &str) {
    let id = |number: usize| format!("{name}-{number}");
    let products = (0..5).map(|number| (id(number), german("Kaffee, ganze Bohne"))).collect();
    app.post("/products/global", serde_json::Value::Object(products)).await.expect(201);
    let path =
        |number: usize, version: i64| format!("/products/global?productId={}&currentVersion={version}", id(number));
    app.put(&path(0, 1), german("Tee")).await.expect(200);
    app.patch(&path(1, 1), json!({"productDetails": {"manufacturerName": "m"}})).await.expect(200);
    app.delete(&path(2, 1)).await.expect(204);
    app.assign().await;
    app.index().await;
    let one = app.assignment("TARIC", &id(3)).await;
    let act = |action: &'static str, version: i64| async move {
        app.act("TARIC", &format!("{name}-3"), action, version).await
    };
    act("DENY", version(&one)).await.expect(200);
    app.post("/assignments/assignment-labels", json!({"label": name, "color": "#aabbcc"})).await.expect(201);
    app.put("/assignments", json!({"assignmentUuids": [one["assignmentUuid"]], "labels": [name]})).await.expect(200);
    let body = json!({"action": "REJECT", "filter": {"assignmentStatus": ["ALL"], "productIds": [id(4)]}});
    app.post("/assignments/UKGT/actions", body).await.expect(202);
    app.learn().await;
    let items = |answer: Answer| answer.expect(200).body["items"].as_array().expect("items").len();
    assert_eq!(items(app.get(&format!("/assignments/TARIC?assignmentStatus=ALL&labels={name}&embed=EVENTS")).await), 1);
    for path in ["/assignments/TARIC/counts?by=assignmentStatus", "/products/global?size=3"] {
        assert!(items(app.get(path).await) > 0, "{path}");
    }
    // The feed tells what is settled: nothing while an older transaction of the server, another test's too, is open.
    while items(app.get("/changes?after=0").await) == 0 {
        tokio::task::yield_now().await;
    }
    let search = json!({"filterCriteria": [{"productName": "Bohne", "languageKey": "de"}], "productIds": [id(1)]});
    assert_eq!(items(app.post("/products/global/search", search).await), 1);
    app.store.fold_counts().await.expect("added up");
    app.store.erase_deleted().await.expect("nothing to erase");
}

#[tokio::test]
async fn a_version_goes_on_while_and_after_a_later_one_adds_to_the_schema() {
    let app = App::start().await;
    // Every statement is prepared by then, with the columns that there are.
    work(&app, "before").await;
    run(&app, LATER).await;
    work(&app, "after").await;
    // It can be started again, beside the later one or in its place.
    let again = Store::connect(app.database_url()).await.expect("a connection");
    again.migrate().await.expect("a schema that was only added to");
    again.pool().close().await;
    // What the later version keeps of accounts goes with them.
    app.store.delete_account("shop").await.expect("erased");
    let left: i64 =
        sqlx::query_scalar("select count(*) from later").fetch_one(app.store.pool()).await.expect("a count");
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_version_does_not_start_on_a_schema_that_a_later_one_has_broken() {
    let app = App::start().await;
    run(
        &app,
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9000, 'adds things', true, '', 0), (9001, 'breaking change of keys', true, '', 0)",
    )
    .await;
    assert!(matches!(app.store.migrate().await, Err(MigrateError::VersionMissing(9001))));
}

#[tokio::test]
async fn a_migration_has_no_limit_of_time_and_gives_up_a_lock_that_it_does_not_get_until_it_gets_it() {
    let app = App::start().await;
    // The last one sets how tables are vacuumed, which may be done twice.
    run(&app, "delete from _sqlx_migrations where version = 63").await;
    let settings = Settings { database_statement_timeout_s: 1, ..Settings::default() };
    let store = Store::connect_with(app.database_url(), &settings).await.expect("connected");
    let mut works = app.store.pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table assignments in share update exclusive mode").execute(&mut *works).await.expect("held");
    let waits = "select exists (select from pg_locks where not granted and relation = 'assignments'::regclass
                                and database = (select oid from pg_database where datname = current_database()))";
    let let_go_when_given_up = async {
        for is_awaited in [true, false] {
            while sqlx::query_scalar::<_, bool>(waits).fetch_one(app.store.pool()).await.expect("a look") != is_awaited
            {
                tokio::task::yield_now().await;
            }
        }
        works.rollback().await.expect("let go");
    };
    let (migrated, ()) = tokio::join!(store.migrate(), let_go_when_given_up);
    migrated.expect("migrated");
    let known = "select exists (select from _sqlx_migrations where version = 63)";
    assert!(sqlx::query_scalar::<_, bool>(known).fetch_one(app.store.pool()).await.expect("a look"));
}
