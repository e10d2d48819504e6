//! What operators do with accounts and tokens, through the program itself and beside the service.

use std::io::Cursor;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use axum::body::Body;
use image::{DynamicImage, ImageFormat};
use serde_json::json;
use sqlx::AssertSqlSafe;
use vat_classification::domain::ShopId;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::store::accounts::AccountError;
use vat_classification::store::operators::Tokens;
use vat_classification::store::products::{Asked, NewProduct};

use crate::app::{App, action_body, german};

/// Stands in everything that an account holds.
const MARK: &str = "zwiebelfisch";

/// Runs the program with arguments separated by blanks.
fn run(database: &str, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vat-classification"));
    for name in ["BIND_ADDR", "PUBLIC_URL", "ELASTICSEARCH_URL", "DATA_DIR", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.args(arguments.split_whitespace()).env("DATABASE_URL", database).output().expect("the program runs")
}

/// What a program that succeeds prints.
#[track_caller]
pub(crate) fn printed(app: &App, arguments: &str) -> String {
    let output = run(app.database_url(), arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// What a program that fails says, and its status.
pub(crate) fn refused(database: &str, arguments: &str) -> (i32, String) {
    let output = run(database, arguments);
    assert!(!output.status.success(), "{arguments}");
    (output.status.code().expect("a status"), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Tables in which the mark stands.
async fn marked(app: &App) -> Vec<String> {
    let tables: Vec<String> = sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
        .fetch_all(app.store.pool())
        .await
        .expect("tables");
    let mut found = Vec::new();
    for table in tables {
        let statement = format!("select count(*) from \"{table}\" as entry where entry::text ilike $1");
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
            .bind(format!("%{MARK}%"))
            .fetch_one(app.store.pool())
            .await
            .expect("a count");
        if rows > 0 {
            found.push(table);
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_programs_make_list_change_and_delete_accounts_and_tokens() {
    let app = App::start().await;
    assert_eq!(printed(&app, "account create boutique --plan FREE_TRIAL"), "boutique");
    let token = printed(&app, "token create --account boutique --user anna --level EDIT --expires-days 3");
    let again = printed(&app, "token create --account boutique --user anna --level READ");
    let list = printed(&app, "account list");
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0][..4], ["boutique", "FREE_TRIAL", "0.95", "active"]);
    assert_eq!((rows.len(), rows[1][0]), (2, "shop"));

    printed(&app, "account plan boutique UNLIMITED");
    let usage = |token: String| async { app.raw(&{ token }, "GET", "/usage", "", Body::empty()).await };
    assert_eq!(usage(token.clone()).await.expect(200).body["plan"], "UNLIMITED");
    printed(&app, "account disable boutique");
    usage(token.clone()).await.expect(403);
    assert!(printed(&app, "account list").contains("boutique\tUNLIMITED\t0.95\tdisabled"));
    printed(&app, "account enable boutique");
    usage(token.clone()).await.expect(200);

    let list = printed(&app, "token list --account boutique");
    let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows.len(), rows[0].len()), (2, 8));
    assert_eq!(
        (rows[0][1..4].join(" "), rows[1][1..4].join(" ")),
        ("boutique anna EDIT".into(), "boutique anna READ".into())
    );
    assert!(rows[0][6] != "-" && rows[1][6] == "-", "one was used: {list}");
    assert!(rows[0][5] != "-" && rows[1][5] == "-", "one expires: {list}");
    assert!(!list.contains(&token) && rows[0][0] != rows[1][0]);
    assert_eq!(printed(&app, &format!("token revoke --id {}", rows[0][0])), "1");
    usage(token).await.expect(403);
    usage(again.clone()).await.expect(200);
    assert_eq!(printed(&app, "token revoke --account boutique --user anna"), "1");
    usage(again.clone()).await.expect(403);
    let last = printed(&app, "token create --account boutique --user ben --level READ");
    printed(&app, &format!("token revoke {last}"));
    usage(last).await.expect(403);

    assert_eq!(printed(&app, "account delete boutique"), "boutique deleted with 0 products");
    usage(again).await.expect(401);
    for (arguments, status, text) in [
        ("account delete boutique", 1, "there is no account named boutique"),
        ("account disable boutique", 1, "there is no account named boutique"),
        ("account plan boutique UNLIMITED", 1, "there is no account named boutique"),
        ("token list --account boutique", 1, "there is no account named boutique"),
        ("token revoke --id 0123", 1, "there is no such token"),
        ("token revoke --account shop --user nobody", 1, "there is no such token"),
        ("token revoke", 2, "<TOKEN>"),
        ("account plan shop CHEAP", 2, "FREE_TRIAL"),
    ] {
        let (code, told) = refused(app.database_url(), arguments);
        assert!(code == status && told.contains(text), "{arguments}: {code} {told}");
    }
    assert_eq!(printed(&app, "account create boutique"), "boutique", "the name is free");
    assert!(printed(&app, "migrate").contains("up to date"));
    assert!(printed(&app, "check-config").contains("good"));
}

#[test]
fn what_is_wrong_with_a_start_is_said_at_once_with_the_name_of_the_setting() {
    let away = "postgres://nobody:secret@127.0.0.1:1/vat";
    for (database, arguments, status, texts) in [
        (away, "account list", 1, ["cannot connect to the database", "refused"]),
        ("mysql://nobody:secret@127.0.0.1/vat", "serve", 1, ["DATABASE_URL", "postgres://"]),
        (away, "serve --public-url notaurl", 2, ["--public-url", "https://"]),
        (away, "serve --bind-addr nowhere", 2, ["--bind-addr", "127.0.0.1:8080"]),
        (away, "serve --log =[", 1, ["RUST_LOG", "=["]),
        (away, "check-config --bind-addr localhost:0", 1, ["DATABASE_URL", "refused"]),
        (away, "--bind-addr localhost:0 serve", 1, ["cannot connect to the database", "refused"]),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let data_dir = if arguments.contains("serve") {
            format!(" --data-dir {}", directory.path().display())
        } else {
            String::new()
        };
        let began = Instant::now();
        let (code, told) = refused(database, &format!("{arguments}{data_dir}"));
        assert!(code == status && texts.iter().all(|text| told.contains(text)), "{arguments}: {code} {told}");
        assert!(!told.contains("secret"), "{told}");
        assert_eq!(told.matches("refused").count(), usize::from(texts[1] == "refused"), "told once: {told}");
        // Loading the model before is part of some of these; the database alone takes less than 2 s.
        assert!(began.elapsed() < Duration::from_secs(20), "{arguments}");
    }
}

#[tokio::test]
async fn an_account_is_deleted_with_everything_that_it_ever_stored_and_no_other() {
    let app = App::start().await;
    let name = format!("{MARK}-account");
    app.store.create_account(&name, Plan::Unlimited).await.expect("an account");
    let token = app.token(&name, MARK, Level::Admin).await;
    let call = |method: &'static str, path: String, body: serde_json::Value| {
        let (app, token) = (&app, &token);
        async move { app.raw(token, method, &path, "application/json", Body::from(body.to_string())).await }
    };
    app.create(&[("kept", "Kaffee")]).await;
    let declared = json!({"fieldName": MARK, "objectType": "Text", "format": "None", "isLanguageSpecific": false});
    call("POST", "/products/merchant-product-attributes".into(), declared).await.expect(201);
    let label = json!({"label": MARK, "color": "#aabbcc"});
    call("POST", "/assignments/assignment-labels".into(), label).await.expect(201);
    let id = |at: usize| format!("{MARK}-{at}");
    let products = (0..1_203).map(|at| (id(at), german(&format!("{MARK} Kaffee")))).collect();
    call("POST", "/products/global".into(), serde_json::Value::Object(products)).await.expect(201);
    let local = json!({ id(0): german("Kaffee") });
    call("POST", "/shops/7/products/local".into(), local).await.expect(201);
    call("DELETE", format!("/products/global?productId={}&currentVersion=1", id(1)), json!({})).await.expect(204);
    call("PATCH", "/assignments/TARIC?assignmentAction=DENY".into(), action_body(&[(&id(2), 0)])).await.expect(200);
    let mut picture = b"--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::new_rgb8(3, 2).write_to(&mut bytes, ImageFormat::Png).expect("a picture");
    picture.extend(bytes.into_inner());
    picture.extend(b"\r\n--X--\r\n");
    let path = format!("/products/global/product-picture?productId={}", id(3));
    app.raw(&token, "POST", &path, "multipart/form-data; boundary=X", Body::from(picture)).await.expect(201);
    let before = marked(&app).await;
    for table in
        ["accounts", "assignments", "journal", "products", "tokens", "merchant_product_attributes", "assignment_labels"]
    {
        assert!(before.contains(&table.to_owned()), "{table}: {before:?}");
    }

    let caller = app.store.account_by_name(&name, MARK).await.expect("an answer").expect("a caller");
    assert_eq!(app.store.delete_account(&name).await.expect("deleted"), 1_203);
    assert_eq!(marked(&app).await, Vec::<String>::new());
    assert!(matches!(app.store.delete_account(&name).await, Err(AccountError::UnknownAccount(_))));
    assert!(app.store.revoke_tokens(Tokens::User { account: &name, user: MARK }).await.is_err());
    app.get("/products/global/kept").await.expect(200);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "kept").await["autoAssignment"], "DONE");
    let orphans: i64 =
        sqlx::query_scalar("select count(*) from orphaned_objects").fetch_one(app.store.pool()).await.expect("a count");
    let told: i64 = sqlx::query_scalar("select count(*) from search_outbox where deleted and account_id = $1")
        .bind(caller.account)
        .fetch_one(app.store.pool())
        .await
        .expect("a count");
    assert_eq!((orphans, told), (1, 1_204), "a picture to remove, and products for the search engine to forget");

    // A request that was admitted before ends after the deletion.
    let late = NewProduct { product_id: id(9), product: Default::default() };
    app.store.create_products(&caller, ShopId::GLOBAL, &[late], &Asked::default(), false).await.expect("stored");
    assert!(!marked(&app).await.is_empty());
    assert_eq!(app.store.erase_deleted().await.expect("erased"), 0);
    assert_eq!(marked(&app).await, Vec::<String>::new());
    sqlx::query("update accounts set deleted_at = now() - interval '2 days' where deleted_at is not null")
        .execute(app.store.pool())
        .await
        .expect("an update");
    assert_eq!(app.store.erase_deleted().await.expect("erased"), 1, "its row goes a day later");
}

#[tokio::test]
async fn the_use_of_a_token_is_written_at_most_once_an_hour() {
    let app = App::start().await;
    let used = || async { app.store.tokens(Some("shop")).await.expect("tokens")[0].last_used_at };
    assert_eq!(used().await, None);
    app.get("/usage").await.expect(200);
    let first = used().await.expect("noted");
    app.get("/usage").await.expect(200);
    assert_eq!(used().await, Some(first));
    sqlx::query("update tokens set last_used_at = now() - interval '61 minutes'")
        .execute(app.store.pool())
        .await
        .expect("an update");
    app.get("/usage").await.expect(200);
    assert!(used().await.expect("noted") >= first);
}
