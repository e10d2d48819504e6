//! An account goes to another database with all that it has, or stays where it is.

use std::io::Cursor;
use std::time::Duration;

use axum::body::Body;
use futures::future::join;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Postgres, Transaction};
use vat_classification::domain::ShopId;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::store::accounts::AccountError;
use vat_classification::store::moving::{COPIED, MADE_ANEW};
use vat_classification::store::operators::Tokens;
use vat_classification::store::products::{Asked, NewProduct};

use crate::app::{Answer, App, action_body, german, version};
use crate::operators::{printed, refused};

/// The account that moves.
const NAME: &str = "boutique";
/// Nobody but the test asks anything.
const NO_WAIT: Duration = Duration::ZERO;

/// Two databases with a service each, and an account of the first.
struct Two {
    here: App,
    there: App,
    token: String,
}

impl Two {
    /// The account has a bit of everything. The other database has an account with products, and is younger.
    async fn start() -> Two {
        let here = App::start().await;
        let there = App::start().await;
        there.create(&[("neighbour", "Tee"), ("p1", "Kaffee")]).await;
        there.assign().await;
        here.create(&[("stays", "Kaffee")]).await;
        here.store.create_account(NAME, Plan::Unlimited).await.expect("an account");
        run(&here, "update journal_base set base = base + 1000000000").await;
        let token = here.token(NAME, "anna", Level::Admin).await;
        let two = Two { here, there, token };
        two.fill().await;
        two
    }

    /// A move waits for this at its last table.
    async fn hold_the_last_table(&self) -> Transaction<'static, Postgres> {
        let mut lock = self.there.store.pool().begin().await.expect("a transaction");
        sqlx::raw_sql("lock table auto_queue in access exclusive mode").execute(&mut *lock).await.expect("a lock");
        lock
    }

    /// Until the other database has the account, in the making.
    async fn until_it_is_copied(&self) {
        while !self.there.store.accounts().await.expect("accounts").iter().any(|account| account.moving) {
            tokio::task::yield_now().await;
        }
    }

    async fn call(&self, app: &App, method: &str, path: &str, body: Value) -> Answer {
        app.raw(&self.token, method, path, "application/json", Body::from(body.to_string())).await
    }

    async fn get(&self, app: &App, path: &str) -> Answer {
        self.call(app, "GET", path, Value::Null).await
    }

    async fn send(&self, method: &str, path: &str, body: Value, status: u16) -> Value {
        self.call(&self.here, method, path, body).await.expect(status).body
    }

    async fn fill(&self) {
        let attribute =
            json!({"fieldName": "season", "objectType": "Text", "format": "None", "isLanguageSpecific": false});
        self.send("POST", "/products/merchant-product-attributes", attribute, 201).await;
        self.send("POST", "/assignments/assignment-labels", json!({"label": "hot", "color": "#aabbcc"}), 201).await;
        let products = (0..30).map(|at| (format!("p{at}"), german(&format!("Kaffee \"{at}\"\tganze\nBohne \\ N"))));
        self.send("POST", "/products/global", Value::Object(products.collect()), 201).await;
        self.send("POST", "/shops/7/products/local", json!({"p1": german("Tee")}), 201).await;
        self.here.assign().await;
        let listed = self.list("TARIC").await;
        let (first, second) = (&listed[0], &listed[1]);
        for (one, action) in [(first, "APPROVE"), (second, "DENY")] {
            let named = [(one["productId"].as_str().expect("an id"), version(one))];
            let path = format!("/assignments/TARIC?assignmentAction={action}");
            self.send("PATCH", &path, action_body(&named), 200).await;
        }
        let labelled = json!({"assignmentUuids": [second["assignmentUuid"]], "labels": ["hot"]});
        self.send("PUT", "/assignments", labelled, 200).await;
        self.send("DELETE", "/products/global?productId=p29&currentVersion=1", Value::Null, 204).await;
        self.send("PUT", "/products/global?productId=p7&currentVersion=1", german("Herren Jeans"), 200).await;
        let mut picture = b"--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(3, 2).write_to(&mut bytes, ImageFormat::Png).expect("a picture");
        picture.extend(bytes.into_inner());
        picture.extend(b"\r\n--X--\r\n");
        let path = "/products/global/product-picture?productId=p3";
        let kind = "multipart/form-data; boundary=X";
        self.here.raw(&self.token, "POST", path, kind, Body::from(picture)).await.expect(201);
        let webhook = json!({"url": "http://127.0.0.1:1/", "types": ["PRODUCT_CREATED"]});
        self.send("POST", "/webhooks", webhook, 201).await;
        let filter = json!({"action": "REJECT", "filter": {"assignmentStatus": ["UNASSIGNED"], "productIds": ["p5"]}});
        self.send("POST", "/assignments/UKGT/actions", filter, 202).await;
    }

    async fn list(&self, taxonomy: &str) -> Vec<Value> {
        let path = format!("/assignments/{taxonomy}?assignmentStatus=ALL&size=1000");
        self.get(&self.here, &path).await.expect(200).body["items"].as_array().expect("items").clone()
    }

    /// What a client sees of the account.
    async fn shown(&self, app: &App) -> Vec<Value> {
        let mut shown = Vec::new();
        for path in [
            "/products/global?size=1000",
            "/shops/7/products/local",
            "/assignments/TARIC?assignmentStatus=ALL&size=1000&embed=EVENTS",
            "/assignments/TARES?assignmentStatus=ALL&size=1000&embed=EVENTS",
            "/assignments/UKGT?assignmentStatus=ALL&size=1000&embed=EVENTS",
            "/assignments/TARIC/counts?by=assignmentStatus&by=heading",
            "/assignments/TARIC/counts?by=label",
            "/assignments/assignment-labels",
            "/products/merchant-product-attributes",
            "/webhooks",
            "/usage",
        ] {
            let mut body = self.get(app, path).await.expect(200).body;
            // The order of groups is nobody's business.
            if path.contains("/counts") {
                body["items"].as_array_mut().expect("items").sort_by_key(ToString::to_string);
            }
            shown.push(body);
        }
        shown
    }

    /// The products of which the feed tells behind a cursor, until there are so many, and the cursor behind them. Other
    /// tests hold the feed back for a moment.
    async fn follow(&self, app: &App, after: &str, wanted: usize) -> (Vec<String>, String) {
        let (mut told, mut after) = (Vec::new(), after.to_owned());
        while told.len() < wanted {
            let path = format!("/changes?after={after}&wait=30&types=PRODUCT_CREATED&types=PRODUCT_UPDATED");
            let page = self.get(app, &path).await.expect(200).body;
            let ids = page["items"].as_array().expect("items").iter().map(|item| item["productId"].as_str());
            told.extend(ids.map(|id| id.expect("an id").to_owned()));
            after = page["next"].as_str().expect("a cursor").to_owned();
        }
        (told, after)
    }

    async fn moved(&self) -> Result<u64, AccountError> {
        self.here.store.move_account(NAME, &self.there.store, NO_WAIT, |_, _| ()).await
    }

    /// Accounts of the other database.
    async fn arrived(&self) -> Vec<String> {
        self.there.store.accounts().await.expect("accounts").into_iter().map(|account| account.name).collect()
    }
}

async fn run(app: &App, statement: &'static str) {
    sqlx::raw_sql(statement).execute(app.store.pool()).await.expect(statement);
}

async fn count(app: &App, from: &str) -> i64 {
    let statement = AssertSqlSafe(format!("select count(*) from {from}"));
    sqlx::query_scalar(statement).fetch_one(app.store.pool()).await.expect("a count")
}

#[tokio::test]
async fn an_account_moves_with_all_that_it_has_and_goes_on_there() {
    let two = Two::start().await;
    let before = two.shown(&two.here).await;
    let cursor = two.follow(&two.here, "0", 32).await.1;
    let rows = |app: &App, table: &str| {
        let from = match table {
            "pictures" => "pictures join products using (product_key)".to_owned(),
            "assignment_action_items" => "assignment_action_items join assignment_actions using (action_id)".to_owned(),
            "webhook_deliveries" => "webhook_deliveries join webhooks using (webhook_id)".to_owned(),
            table => table.to_owned(),
        };
        let account = format!("(select account_id from accounts where name = '{NAME}')");
        let statement = format!("{from} where account_id = {account}");
        let app = app.store.clone();
        async move {
            let statement = AssertSqlSafe(format!("select count(*) from {statement}"));
            sqlx::query_scalar::<_, i64>(statement).fetch_one(app.pool()).await.expect("a count")
        }
    };
    let mut stored = Vec::new();
    for table in COPIED {
        stored.push((table, rows(&two.here, table).await));
    }
    assert!(stored.iter().filter(|(_, rows)| *rows > 0).count() >= 13, "{stored:?}");

    assert_eq!(two.moved().await.expect("moved"), 30);

    for (table, rows_before) in stored {
        assert_eq!(rows(&two.there, table).await, rows_before, "{table}");
    }
    assert_eq!(two.shown(&two.there).await, before);
    // Here is nothing left, and the picture's object is nobody's orphan.
    two.get(&two.here, "/usage").await.expect(401);
    assert_eq!(count(&two.here, "products").await, 1);
    assert_eq!(
        count(&two.here, "journal where account_id <> (select account_id from accounts where name = 'shop')").await,
        0
    );
    assert_eq!(count(&two.here, "orphaned_objects").await, 0);
    // What waited is done there: a product changed, and its neighbours' keys are their own.
    two.there.assign().await;
    let path = "/assignments/TARIC?assignmentStatus=ALL&productIds=p7";
    let item = two.get(&two.there, path).await.expect(200).body["items"][0].clone();
    assert_eq!((item["autoAssignment"].as_str(), item["strategy"].as_str()), (Some("DONE"), Some("DESCRIPTION")));
    two.there.get("/products/global/neighbour").await.expect(200);
    // A cursor of before goes on with what comes after, and with nothing else.
    two.call(&two.there, "POST", "/products/global", json!({"after": german("Tee")})).await.expect(201);
    assert_eq!(two.follow(&two.there, &cursor, 1).await.0, ["after"]);
    assert_eq!(two.follow(&two.there, "0", 33).await.0.len(), 33);
    // Products are found there.
    two.there.index().await;
    let search = json!({"filterCriteria": [{"productName": "Bohne", "languageKey": "de"}]});
    let found = two.call(&two.there, "POST", "/products/global/search", search).await.expect(200).body;
    assert_eq!(found["items"].as_array().expect("items").len(), 28);
}

#[tokio::test]
async fn a_move_that_fails_leaves_the_account_where_it_was_and_can_be_begun_again() {
    let two = Two::start().await;
    let before = two.shown(&two.here).await;
    run(
        &two.there,
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'no room'; end $$;
         create trigger refuse before insert on webhooks execute function refuse()",
    )
    .await;
    assert!(matches!(two.moved().await, Err(AccountError::Database(_))));
    assert_eq!(two.shown(&two.here).await, before);
    assert_eq!(two.arrived().await, ["shop"]);
    assert_eq!(count(&two.there, "products").await, 2);
    assert_eq!(count(&two.there, "orphaned_objects").await, 0, "the object is still named here");
    run(&two.there, "drop trigger refuse on webhooks").await;
    // As a program leaves it that is killed on the way.
    run(&two.here, "update accounts set moving = 'AWAY' where name = 'boutique'").await;
    run(&two.there, "insert into accounts (name, plan, moving) values ('boutique', 'UNLIMITED', 'HERE')").await;
    let refused = two.get(&two.here, "/usage").await.expect(503);
    assert!(refused.headers.contains_key("retry-after"), "{}", refused.body);
    assert!(matches!(two.here.store.delete_account(NAME).await, Err(AccountError::Moving(_))));
    assert_eq!(two.moved().await.expect("moved"), 30);
    assert_eq!(two.shown(&two.there).await, before);
}

#[tokio::test]
async fn what_is_written_while_an_account_is_copied_is_not_lost() {
    let two = Two::start().await;
    let caller = two.here.store.account_by_name(NAME, "anna").await.expect("an answer").expect("the account");
    let lock = two.hold_the_last_table().await;
    let late = async {
        two.until_it_is_copied().await;
        // The same command, given a second time, leaves the copy alone.
        assert!(matches!(two.moved().await, Err(AccountError::Moving(_))));
        // A request that was admitted before.
        let product = NewProduct { product_id: "late".to_owned(), product: Default::default() };
        two.here
            .store
            .create_products(&caller, ShopId::GLOBAL, &[product], &Asked::default(), false)
            .await
            .expect("stored");
        // A file's rows are refused from the first moment on.
        let merged = two.here.store.merge_products(&caller, ShopId::GLOBAL, &[("file", &json!({}))], false).await;
        assert!(merged.is_err());
        lock.rollback().await.expect("given back");
    };
    let (moved, ()) = join(two.moved(), late).await;
    assert!(matches!(moved, Err(AccountError::Changed(_))), "{moved:?}");
    two.get(&two.here, "/products/global/late").await.expect(200);
    assert_eq!(two.arrived().await, ["shop"]);
    assert_eq!(two.moved().await.expect("moved"), 31);
    two.get(&two.there, "/products/global/late").await.expect(200);
}

#[tokio::test]
async fn what_operators_say_while_an_account_is_copied_is_not_lost() {
    let two = Two::start().await;
    two.here.token(NAME, "ben", Level::Admin).await;
    let lock = two.hold_the_last_table().await;
    let late = async {
        two.until_it_is_copied().await;
        let lost = Tokens::User { account: NAME, user: "ben" };
        assert_eq!(two.here.store.revoke_tokens(lost).await.expect("revoked"), 1);
        lock.rollback().await.expect("given back");
    };
    let (moved, ()) = join(two.moved(), late).await;
    assert!(matches!(moved, Err(AccountError::Changed(_))), "{moved:?}");
    let day = chrono::Utc::now().date_naive();
    assert!(two.there.store.set_rule_state("its rules", day, None).await.expect("a state"));
    assert_eq!(two.moved().await.expect("moved"), 30);
    let tokens = two.there.store.tokens(Some(NAME)).await.expect("tokens");
    assert!(tokens.iter().any(|token| token.user_name == "ben" && token.revoked_at.is_some()), "in force again");
    assert_eq!(two.there.store.rule_state().await.expect("a state"), None, "what came is judged by the rules there");
}

#[tokio::test]
async fn a_move_that_was_killed_at_its_end_is_ended_by_the_next() {
    let two = Two::start().await;
    assert_eq!(two.moved().await.expect("moved"), 30);
    run(&two.there, "update accounts set moving = 'COPIED' where name = 'boutique'").await;
    two.get(&two.there, "/usage").await.expect(503);
    assert_eq!(two.moved().await.expect("ended"), 30);
    two.get(&two.there, "/usage").await.expect(200);
    assert!(matches!(two.moved().await, Err(AccountError::UnknownAccount(_))));
    // Another account of that name is not put in its place.
    two.here.store.create_account(NAME, Plan::Unlimited).await.expect("an account");
    assert!(matches!(two.moved().await, Err(AccountError::Exists(_))));
    run(&two.there, "update accounts set moving = 'COPIED' where name = 'boutique'").await;
    assert!(matches!(two.moved().await, Err(AccountError::Exists(_))));
    assert_eq!(count(&two.there, "products").await, 32);
}

#[tokio::test]
async fn the_program_moves_an_account_once_and_nowhere_else() {
    let two = Two::start().await;
    let (here, there) = (two.here.database_url(), two.there.database_url());
    for (arguments, told) in [
        (format!("account move nobody --wait-s 0 --to {there}"), "there is no account named nobody"),
        (format!("account move {NAME} --wait-s 0 --to {here}"), "exists already"),
        (format!("account move shop --wait-s 0 --to {there}"), "exists already"),
        (format!("account move {NAME} --wait-s 0 --to mysql://x@127.0.0.1/x"), "postgres://"),
        (
            format!("account move {NAME} --wait-s 0 --to postgres://x@127.0.0.1:1/x"),
            "cannot connect to the other database",
        ),
    ] {
        let (status, message) = refused(here, &arguments);
        assert!(status == 1 && message.contains(told), "{arguments}: {status} {message}");
    }
    two.get(&two.here, "/usage").await.expect(200);
    let moved = printed(&two.here, &format!("account move {NAME} --wait-s 0 --to {there}"));
    assert_eq!(moved, "boutique moved with 30 products");
    assert!(!printed(&two.here, "account list").contains(NAME));
    assert!(printed(&two.there, "account list").contains("boutique\tUNLIMITED\t0.95\tactive"));
    two.get(&two.there, "/usage").await.expect(200);
}

#[tokio::test]
async fn every_table_with_rows_of_accounts_is_copied_or_made_anew() {
    let app = App::start().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select distinct table_name::text from information_schema.columns
         where table_schema = 'public' and column_name in ('account_id', 'product_key', 'webhook_id', 'action_id')
         order by 1",
    )
    .fetch_all(app.store.pool())
    .await
    .expect("tables");
    let mut known: Vec<&str> = COPIED.into_iter().chain(MADE_ANEW).collect();
    known.sort_unstable();
    assert_eq!(tables, known);
}
