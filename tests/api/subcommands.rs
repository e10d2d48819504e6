//! What the program's subcommands set, show and refuse, through the program itself.

use std::collections::BTreeMap;
use std::fs;

use axum::body::Body;
use serde_json::json;
use sqlx::AssertSqlSafe;
use tempfile::TempDir;
use url::Url;
use vat_classification::domain::Verdict;
use vat_classification::domain::access::Level;
use vat_classification::jobs::auto_assignment::decide_by;
use vat_classification::store::search::Change;

use crate::app::{App, german};
use crate::operators::{printed, refused};

/// Where nobody listens, with a password that no message may tell.
const AWAY: &str = "postgres://nobody:secret@127.0.0.1:1/vat";
/// The balances that there are, as a refusal names them.
const BALANCES: &str = "0.90, 0.95 or 0.98";
/// What a file holds that a program is told to write to.
const KEPT: &str = "kept\n";
/// A file of one product.
const PRODUCTS: &str = "productId,de:productName\na,Kaffee\n";

/// A directory with a file to read and one to write, by their paths.
fn files() -> (TempDir, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (products, kept) = (path("products.csv"), path("kept.csv"));
    fs::write(&products, PRODUCTS).expect("written");
    fs::write(&kept, KEPT).expect("written");
    (directory, products, kept)
}

/// What a program says that fails with status 1: one line.
#[track_caller]
fn one_line(database: &str, arguments: &str) -> String {
    let (status, told) = refused(database, arguments);
    assert_eq!(status, 1, "{arguments}: {told}");
    let line = told.strip_suffix('\n').unwrap_or_else(|| panic!("{arguments}: no line: {told:?}"));
    assert!(line.starts_with("error: ") && !line.contains('\n'), "{arguments}: {told}");
    line.to_owned()
}

/// How many rows each table has, and a digest of them all.
async fn stored(app: &App) -> BTreeMap<String, (i64, Option<String>)> {
    let tables: Vec<String> = sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
        .fetch_all(app.store.pool())
        .await
        .expect("tables");
    let mut stored = BTreeMap::new();
    for table in tables {
        let statement = format!(
            "select count(*), md5(string_agg(entry::text, ' ' order by entry::text)) from \"{table}\" as entry"
        );
        let rows: (i64, Option<String>) =
            sqlx::query_as(AssertSqlSafe(statement)).fetch_one(app.store.pool()).await.expect("a digest");
        stored.insert(table, rows);
    }
    stored
}

#[tokio::test]
async fn usage_tells_the_balance_that_the_programs_set_and_no_other_is_taken() {
    let app = App::start().await;
    assert_eq!(printed(&app, "account create exact --precision 0.98"), "exact");
    let token = app.token("exact", "anna", Level::Read).await;
    let told = async || {
        app.raw(&token, "GET", "/usage", "", Body::empty()).await.expect(200).body["decisionPrecision"].clone()
    };
    assert_eq!(told().await, json!(0.98));
    assert_eq!(printed(&app, "account precision exact 0.90"), "exact 0.90");
    assert_eq!(told().await, json!(0.9));
    assert!(printed(&app, "account list").contains("exact\tUNLIMITED\t0.90\tactive"));
    let of_shop = app.get("/usage").await.expect(200).body["decisionPrecision"].clone();
    assert_eq!(of_shop, json!(0.95), "another account keeps its own");

    for value in ["0.97", "0.9001", "90", "0", "1", "nan", "0,9", "high"] {
        for (arguments, argument) in [
            (format!("account create other --precision {value}"), "'--precision <PRECISION>'"),
            (format!("account precision exact {value}"), "'<PRECISION>'"),
        ] {
            let (status, message) = refused(app.database_url(), &arguments);
            assert_eq!(status, 2, "{arguments}: {message}");
            for part in [argument, value, BALANCES] {
                assert!(message.contains(part), "{arguments}: {part}: {message}");
            }
        }
    }
    assert_eq!(told().await, json!(0.9));
    assert!(!printed(&app, "account list").contains("other"));
}

#[tokio::test]
async fn parked_work_of_both_queues_is_shown_with_its_reason_and_once_sent_again_is_done_and_gone() {
    let app = App::start().await;
    printed(&app, "account create other");
    app.create(&[("wool", "Socken aus Wolle"), ("gone", "Tee")]).await;
    app.post("/shops/7/products/local", json!({"local": german("Kaffee, geröstet")})).await.expect(201);
    let batch = app.store.claim_auto_assignments(100).await.expect("a claim").expect("a batch");
    let (batch, decided) =
        decide_by(batch, |claim| -> Vec<Verdict> { panic!("too\twarm\nfor {}", claim.product_id()) }).await;
    let wool = batch.claims.iter().find(|claim| claim.product_id() == "wool").expect("claimed");
    let of_wool = Change { key: wool.key(), account: wool.account(), version: 1, document: None };
    assert_eq!(batch.complete(&decided).await.expect("stored"), 0);
    app.delete("/products/global?productId=gone&currentVersion=1").await.expect(204);
    app.index().await;
    app.store.park_search_change(&of_wool, "no such field").await.expect("parked");

    let shown = |arguments: &str| -> Vec<[String; 5]> {
        let told = printed(&app, &format!("queue parked {arguments}"));
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [queue, account, product, shop, when, why] = fields[..] else { panic!("{line:?}") };
            assert!(when.contains("UTC"), "{line:?}");
            [queue, account, product, shop, why].map(str::to_owned)
        };
        told.lines().map(row).collect()
    };
    let mut all = shown("");
    all.sort();
    let of_search = ["search", "shop", "wool", "", "no such field"];
    let expected = [
        ["auto-assignment", "shop", "(deleted)", "", "panic: too warm for gone"],
        ["auto-assignment", "shop", "local", "7", "panic: too warm for local"],
        ["auto-assignment", "shop", "wool", "", "panic: too warm for wool"],
        of_search,
    ];
    assert_eq!(all, expected);
    assert_eq!(shown("--queue search --account shop"), [of_search]);
    assert_eq!(shown("--account other"), [[""; 5]; 0]);
    assert_eq!(printed(&app, "queue retry --account other"), "0");

    assert_eq!(printed(&app, "queue retry --queue search"), "1");
    assert_eq!(app.store.search_queue_length().await.expect("a count"), 1);
    assert_eq!(shown("--queue search"), [[""; 5]; 0]);
    assert_eq!(shown("").len(), 3, "the other queue is left as it is");
    assert_eq!(printed(&app, "queue retry --account shop"), "3", "what is gone counts, too");
    assert_eq!(app.store.auto_queue_length().await.expect("a count"), 2);
    assert_eq!(shown(""), [[""; 5]; 0]);
    assert_eq!(printed(&app, "queue retry"), "0");

    app.index().await;
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "wool").await["autoAssignment"], "DONE");
    assert_eq!(shown(""), [[""; 5]; 0]);
}

#[tokio::test]
async fn an_account_that_is_not_there_is_told_in_one_line_and_nothing_changes() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let (_directory, products, _) = files();
    // The first program on a database notes which one it is.
    printed(&app, "migrate");
    let before = stored(&app).await;
    for (arguments, text) in [
        ("account create shop --plan FREE_TRIAL --precision 0.98", "an account named shop exists already"),
        ("account precision nobody 0.90", "there is no account named nobody"),
        ("account enable nobody", "there is no account named nobody"),
        ("account memory show nobody", "there is no account named nobody"),
        ("account memory clear nobody", "there is no account named nobody"),
        ("account memory import nobody FILE", "there is no account named nobody"),
        ("token create --account nobody --user anna --level READ", "there is no account named nobody"),
        ("token revoke --account nobody --user anna", "there is no such token"),
        ("import --account nobody FILE", "there is no account named nobody"),
    ] {
        let told = one_line(app.database_url(), &arguments.replace("FILE", &products));
        assert!(told.contains(text), "{arguments}: {told}");
    }
    assert_eq!(stored(&app).await, before);
}

#[tokio::test]
async fn an_account_that_is_not_there_is_not_taken_for_one_without_parked_work() {
    let app = App::start().await;
    for command in ["parked", "retry", "parked --queue search", "retry --queue auto-assignment"] {
        let told = one_line(app.database_url(), &format!("queue {command} --account nobody"));
        assert!(told.contains("there is no account named nobody"), "{command}: {told}");
    }
    let (status, told) = refused(app.database_url(), "queue parked --queue webhooks");
    assert_eq!(status, 2, "{told}");
    assert!(told.contains("--queue <QUEUE>") && told.contains("auto-assignment or search"), "{told}");
}

#[tokio::test]
async fn a_program_that_fails_leaves_the_files_that_it_would_write_as_they_were() {
    let app = App::start().await;
    let (_directory, products, kept) = files();
    for database in [app.database_url(), AWAY] {
        for arguments in [
            format!("account memory export nobody {kept}"),
            format!("export --account nobody {kept}"),
            format!("import --account nobody --report {kept} {products}"),
        ] {
            one_line(database, &arguments);
            assert_eq!(fs::read_to_string(&kept).expect("a file"), KEPT, "{arguments}");
        }
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_had_is_told_in_one_line_by_every_program_that_needs_one() {
    let app = App::start().await;
    let mut missing = Url::parse(app.database_url()).expect("a URL");
    missing.set_path("vat_test_that_is_not_there");
    let (_directory, products, kept) = files();
    for arguments in [
        "account create a --precision 0.98",
        "account precision a 0.90",
        "account plan a UNLIMITED",
        "account list",
        "account disable a",
        "account enable a",
        "account delete a",
        "account move a --wait-s 0 --to postgres://nobody:secret@127.0.0.1:1/other",
        "account memory show a",
        "account memory clear a",
        "account memory export a KEPT",
        "account memory import a FILE",
        "token create --account a --user u --level READ",
        "token list",
        "token revoke --id 1",
        "queue parked",
        "queue retry",
        "migrate",
        "reindex",
        "reindex --verify",
        "import --account a FILE",
        "export --account a KEPT",
    ] {
        let named = arguments.replace("FILE", &products).replace("KEPT", &kept);
        for (database, texts) in [
            (AWAY, ["cannot connect to the database", "refused"]),
            (missing.as_str(), ["cannot connect to the database", "does not exist"]),
            ("mysql://nobody:secret@127.0.0.1/vat", ["DATABASE_URL", "postgres://"]),
        ] {
            let told = one_line(database, &named);
            assert!(texts.iter().all(|text| told.contains(text)), "{arguments}: {told}");
            assert!(!told.contains("secret"), "{arguments}: {told}");
        }
    }
}
