//! The service under test, and a client for it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, header};
use clap::Parser;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use vat_classification::decision::Engine;
use vat_classification::domain::access::{Level, Plan, TOKEN_RANDOM_BYTES, hash_token, write_token};
use vat_classification::exchange::Spool;
use vat_classification::http::{
    Admission, AdmissionSettings, AppState, BASE_PATH, DatabaseWatch, Links, Services, Waiting, Wake, router,
};
use vat_classification::jobs::{auto_assignment, memory, projection};
use vat_classification::pictures::{Inspector, PictureStore, S3Settings};
use vat_classification::reference::Reference;
use vat_classification::search;
use vat_classification::store::accounts::{Caller, Credential};
use vat_classification::store::{Settings, Store};
use vat_classification::webhooks::{Sender, WebhookSettings};

use crate::support::{TestDatabase, database};

/// Where answers say the service is.
const PUBLIC_URL: &str = "http://service.example";

/// The model and the facts that ship, loaded once for all tests.
static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    let reference = Reference::load(Path::new("models")).expect("the facts that ship");
    Arc::new(Engine::load(Path::new("models/classifier.bin"), Arc::new(reference)).expect("the model that ships"))
});

/// The settings of search, at their defaults.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    search: search::Settings,
}

/// A service with an account and a token of level ADMIN.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) engine: Arc<Engine>,
    pub(crate) search: search::Engine,
    pub(crate) token: String,
    /// What the service knows of its database.
    pub(crate) watch: DatabaseWatch,
    /// Cancelled when the service stops.
    pub(crate) stopping: CancellationToken,
    router: Router,
    url: String,
    _database: Option<TestDatabase>,
    _files: tempfile::TempDir,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) body: Value,
}

impl Answer {
    /// The answer, when it has this status; else the test fails and shows it.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    /// The fields that the error's items name, and their codes.
    pub(crate) fn faults(&self) -> Vec<String> {
        let items = self.body["errors"].as_array().into_iter().flatten();
        let fault = |item: &Value| {
            format!("{} {}", item["field"].as_str().unwrap_or("-"), item["code"].as_str().unwrap_or("-"))
        };
        items.map(fault).collect()
    }
}

impl App {
    pub(crate) async fn start() -> App {
        App::with_plan(Plan::Unlimited).await
    }

    pub(crate) async fn with_plan(plan: Plan) -> App {
        App::with(plan, AdmissionSettings::default()).await
    }

    pub(crate) async fn with(plan: Plan, admission: AdmissionSettings) -> App {
        App::with_all(plan, admission, &WebhookSettings { webhooks_allow_private: true }).await
    }

    /// A service whose webhooks go where these settings let them.
    pub(crate) async fn with_webhooks(webhooks: WebhookSettings) -> App {
        App::with_all(Plan::Unlimited, AdmissionSettings::default(), &webhooks).await
    }

    /// A service on a migrated database that is somebody else's.
    pub(crate) async fn on(url: &str) -> App {
        App::of(url, Store::connect(url).await.expect("a connection")).await
    }

    /// A service with these connections to a migrated database that is somebody else's.
    pub(crate) async fn of(url: &str, store: Store) -> App {
        let webhooks = WebhookSettings { webhooks_allow_private: true };
        App::made(url, store, None, Plan::Unlimited, AdmissionSettings::default(), &webhooks).await
    }

    /// A service with a single connection to its database, so that what statements do there can be told one by one.
    pub(crate) async fn with_one_connection() -> App {
        App::with_connections(Plan::Unlimited, AdmissionSettings::default(), 1).await
    }

    /// A service with so many connections to its database at most. A request waits for one until there is one, and not for as
    /// long as a busy machine lets it.
    pub(crate) async fn with_connections(plan: Plan, admission: AdmissionSettings, connections: u32) -> App {
        let database = database().await;
        let url = database.url.clone();
        let settings =
            Settings { database_connections: connections, database_acquire_timeout_ms: 30_000, ..Settings::default() };
        let store = Store::connect_with(&url, &settings).await.expect("a connection");
        let webhooks = WebhookSettings { webhooks_allow_private: true };
        App::made(&url, store, Some(database), plan, admission, &webhooks).await
    }

    async fn with_all(plan: Plan, admission: AdmissionSettings, webhooks: &WebhookSettings) -> App {
        let database = database().await;
        let url = database.url.clone();
        let store = Store::connect(&url).await.expect("a connection");
        App::made(&url, store, Some(database), plan, admission, webhooks).await
    }

    async fn made(
        url: &str,
        store: Store,
        database: Option<TestDatabase>,
        plan: Plan,
        admission: AdmissionSettings,
        webhooks: &WebhookSettings,
    ) -> App {
        let files = tempfile::tempdir().expect("a directory");
        // Tests that hold a search up until something else has happened shall not depend on how busy the machine is.
        let arguments = Arguments::try_parse_from(["test", "--search-deadline-ms", "30000"]).expect("settings");
        let settings = arguments.search;
        let search = search::Engine::new(&settings, &store).expect("a search engine");
        let s3 = S3Settings {
            pictures_s3_bucket: None,
            pictures_s3_endpoint: None,
            pictures_s3_region: String::new(),
            pictures_s3_access_key_id: None,
            pictures_s3_secret_access_key: None,
        };
        let watch = DatabaseWatch::default();
        let stopping = CancellationToken::new();
        let engine = Arc::new(ENGINE.with_own_memory());
        let state = AppState::from(Services {
            store: store.clone(),
            engine: engine.clone(),
            search: search.clone(),
            search_deadline: settings.deadline(),
            pictures: Arc::new(PictureStore::open(files.path(), &s3).expect("a picture store")),
            spool: Spool::new(&files.path().join("spool")),
            inspector: Arc::new(Inspector::new()),
            admission: Admission::new(&admission),
            database: watch.clone(),
            links: Arc::new(Links::new(PUBLIC_URL)),
            wake: Wake::default(),
            waiting: Waiting::new(stopping.clone()),
            webhooks: Sender::new(webhooks).expect("a sender"),
            metrics: PrometheusBuilder::new().build_recorder().handle(),
            metrics_apart: false,
        });
        store.create_account("shop", plan).await.expect("an account");
        let router = router(state);
        let (url, token) = (url.to_owned(), String::new());
        let mut app =
            App { store, engine, search, token, watch, stopping, router, url, _database: database, _files: files };
        app.token = app.token("shop", "anna", Level::Admin).await;
        app
    }

    /// Where it keeps pictures.
    pub(crate) fn pictures(&self) -> std::path::PathBuf {
        self._files.path().join("pictures")
    }

    /// Where its database is, for programs.
    pub(crate) fn database_url(&self) -> &str {
        &self.url
    }

    /// A new token.
    pub(crate) async fn token(&self, account: &str, user: &str, level: Level) -> String {
        let mut random = [0; TOKEN_RANDOM_BYTES];
        getrandom::fill(&mut random).expect("random bytes");
        let token = write_token(&random);
        let hash = hash_token(&token).expect("a hash");
        self.store.create_token(account, user, level, &hash, None).await.expect("a token");
        token
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, bytes, body };
        if answer.status >= 400 {
            for field in ["status", "code", "message", "timestamp", "path", "instance"] {
                assert!(answer.body[field].is_string(), "an error without {field}: {}", answer.body);
            }
            assert_eq!(answer.body["instance"], answer.headers["x-request-id"].to_str().expect("an id"));
        }
        answer
    }

    /// Sends bytes with a content type, with a token.
    pub(crate) async fn raw(&self, token: &str, method: &str, path: &str, kind: &str, body: Body) -> Answer {
        let path = match path.strip_prefix(PUBLIC_URL) {
            Some(path) => path.to_owned(),
            None => format!("{BASE_PATH}{path}"),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, kind)
            .body(body)
            .expect("a request");
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.raw(&self.token, "GET", path, "application/json", Body::empty()).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        self.raw(&self.token, method, path, "application/json", Body::from(body.to_string())).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call("PATCH", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.raw(&self.token, "DELETE", path, "application/json", Body::empty()).await
    }

    /// Creates global products with German names.
    pub(crate) async fn create(&self, products: &[(&str, &str)]) {
        let named = products.iter().map(|(id, name)| ((*id).to_owned(), german(name)));
        self.post("/products/global", Value::Object(named.collect())).await.expect(201);
    }

    /// Runs auto-assignment until nothing waits.
    pub(crate) async fn assign(&self) {
        let never = CancellationToken::new();
        auto_assignment::work_off(&self.store, &self.engine, &never).await.expect("auto-assignment");
        assert_eq!(self.store.auto_queue_length().await.expect("a count"), 0);
    }

    /// Learns what people decided, and decides anew for products that are alike.
    pub(crate) async fn learn(&self) {
        memory::work_off(&self.store, &self.engine, &CancellationToken::new()).await.expect("learnt");
        self.assign().await;
    }

    /// Feeds the search index until nothing waits, and answers searches from then on.
    pub(crate) async fn index(&self) {
        let stop = CancellationToken::new();
        let (store, search) = (self.store.clone(), self.search.clone());
        let feeding = tokio::spawn(projection::run(store, search, Arc::new(Notify::new()), stop.clone()));
        while self.store.search_queue_length().await.expect("a count") > 0
            || self.get("/products/global?filterCriteria=%5B%5D").await.status != 200
        {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        feeding.await.expect("the job ends");
    }

    /// A user of the account, for calls of the store.
    pub(crate) async fn caller(&self, user: &str) -> Caller {
        let hash = hash_token(&self.token("shop", user, Level::Edit).await).expect("a hash");
        match self.store.authenticate(&hash).await.expect("an answer") {
            Credential::Valid(caller, _) => caller,
            other => panic!("{other:?}"),
        }
    }

    /// The assignment of a global product.
    pub(crate) async fn assignment(&self, taxonomy: &str, product_id: &str) -> Value {
        let all = "UNASSIGNED,ASSIGNED,APPROVED,REJECTED,DENIED";
        let path = format!("/assignments/{taxonomy}?assignmentStatus={all}&productIds={product_id}");
        let list = self.get(&path).await.expect(200).body;
        list["items"][0].clone()
    }

    /// Acts on the assignment of a global product, with its version.
    pub(crate) async fn act(&self, taxonomy: &str, product_id: &str, action: &str, version: i64) -> Answer {
        let path = format!("/assignments/{taxonomy}?assignmentAction={action}");
        self.patch(&path, action_body(&[(product_id, version)])).await
    }

    /// Until somebody waits for a lock on a table of this database, of the many on the server.
    pub(crate) async fn until_somebody_waits_for(&self, table: &str) {
        let waits = "select exists (select from pg_locks where relation = $1::text::regclass and not granted
            and database = (select oid from pg_database where datname = current_database()))";
        while !sqlx::query_scalar::<_, bool>(waits).bind(table).fetch_one(self.store.pool()).await.expect("a look") {}
    }

    /// What happened to an assignment: actor, action and status of each event.
    pub(crate) async fn history(&self, taxonomy: &str, product_id: &str) -> Vec<String> {
        let uuid = self.assignment(taxonomy, product_id).await["assignmentUuid"].as_str().expect("a uuid").to_owned();
        let path = format!("/assignments/{taxonomy}/{uuid}?embed=EVENTS");
        let answer = self.get(&path).await.expect(200).body;
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let event = |event: &Value| {
            format!("{} {} {}", text(&event["actor"]), text(&event["action"]), text(&event["assignmentStatus"]))
        };
        answer["events"].as_array().expect("events").iter().map(event).collect()
    }
}

/// A product with a German name.
pub(crate) fn german(name: &str) -> Value {
    json!({"productDetails": {"languageAttributes": {"de": {"productName": name}}}})
}

/// The body of an action.
pub(crate) fn action_body(products: &[(&str, i64)]) -> Value {
    let item = |(id, version): &(&str, i64)| json!({"productId": id, "assignmentVersion": {"vatRules": version}});
    json!({"products": products.iter().map(item).collect::<Vec<_>>()})
}

/// The version of an assignment.
pub(crate) fn version(assignment: &Value) -> i64 {
    assignment["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].as_i64().expect("a version")
}
