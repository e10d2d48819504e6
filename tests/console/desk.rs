//! A desk to review at: the real service as a process of its own, a database, and browsers.

use std::future::Future;
use std::io::Cursor;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use image::{DynamicImage, ImageFormat};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::browser::{Browser, Driver, free_port};
use crate::support::{TestDatabase, database};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");
const BASE: &str = "/api/vat-classification/v1";
/// How long the service may take to start, and to classify what it is sent.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// A service with an account and a reviewer's token.
pub(crate) struct Desk {
    /// Where the console is.
    pub(crate) url: String,
    /// The token of Anna, who may do everything.
    pub(crate) token: String,
    port: u16,
    service: Mutex<Option<Child>>,
    driver: Driver,
    browsers: Mutex<Vec<Browser>>,
    http: reqwest::Client,
    database: TestDatabase,
    files: TempDir,
}

/// Runs a test at a desk, and ends what it has started whatever becomes of it.
pub(crate) async fn at_a_desk<F, Fut>(test: F)
where
    F: FnOnce(Arc<Desk>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let desk = Arc::new(Desk::start().await);
    let outcome = tokio::spawn(test(desk.clone())).await;
    let browsers = std::mem::take(&mut *desk.browsers.lock().expect("the browsers"));
    for browser in browsers {
        browser.close().await;
    }
    desk.stop().await;
    if let Err(failure) = outcome {
        std::panic::resume_unwind(failure.into_panic());
    }
}

impl Desk {
    async fn start() -> Desk {
        let port = free_port();
        let mut desk = Desk {
            url: format!("http://127.0.0.1:{port}"),
            token: String::new(),
            port,
            service: Mutex::new(None),
            driver: Driver::start().await,
            browsers: Mutex::default(),
            http: reqwest::Client::new(),
            database: database().await,
            files: tempfile::tempdir().expect("a directory"),
        };
        desk.command(&["account", "create", "desk"]).await;
        desk.token = desk.token_of("anna", "ADMIN").await;
        desk.serve().await;
        desk
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("DATABASE_URL", &self.database.url).env("DATA_DIR", self.files.path());
        command.env("BIND_ADDR", format!("127.0.0.1:{}", self.port)).env("RUST_LOG", "warn");
        command.env_remove("PUBLIC_URL").env_remove("ELASTICSEARCH_URL").stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// What a subcommand prints.
    async fn command(&self, arguments: &[&str]) -> String {
        let done = self.program(arguments).output().await.expect("the program");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// A new token of a user.
    pub(crate) async fn token_of(&self, user: &str, level: &str) -> String {
        self.command(&["token", "create", "--account", "desk", "--user", user, "--level", level]).await
    }

    /// Starts the service, and waits until it is ready.
    pub(crate) async fn serve(&self) {
        let log = self.files.path().join("service.log");
        let output = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let mut command = self.program(&["serve"]);
        command.stdout(output.try_clone().expect("a handle")).stderr(output);
        *self.service.lock().expect("the service") = Some(command.spawn().expect("the service"));
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.http.get(format!("{}/health/ready", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < until, "the service is not ready: {}", said());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends the service as a crash does.
    pub(crate) async fn stop(&self) {
        let service = self.service.lock().expect("the service").take();
        if let Some(mut service) = service {
            service.kill().await.expect("an end");
        }
    }

    /// Sends a request of another client, and returns the answer's body. Comes again, as it is told to, while the search
    /// index of a new database is being made.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let request = self.http.request(method.parse().expect("a method"), format!("{}{BASE}{path}", self.url));
            let answer = request.bearer_auth(&self.token).json(&body).send().await.expect("an answer");
            let status = answer.status();
            let answer: Value = answer.json().await.unwrap_or(Value::Null);
            if status.is_success() {
                return answer;
            }
            let comes_again = answer["code"] == "SearchUnavailable" && Instant::now() < until;
            assert!(comes_again, "{method} {path}: {status} {answer}");
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call("GET", path, json!({})).await
    }

    /// Stores products of these names, `P-001` and so on, and waits until they are classified.
    pub(crate) async fn stock(&self, names: &[&str]) {
        let product = |(at, name): (usize, &&str)| {
            (
                format!("P-{:03}", at + 1),
                json!({"productDetails": {"languageAttributes": {"de": {"productName": name}}}}),
            )
        };
        let products: Map<String, Value> = names.iter().enumerate().map(product).collect();
        self.store(Value::Object(products)).await;
    }

    /// Stores products, and waits until they are classified.
    pub(crate) async fn store(&self, products: Value) {
        self.store_at("/products/global", products).await;
    }

    /// Stores products of all shops or of one, and waits until they are classified.
    pub(crate) async fn store_at(&self, path: &str, products: Value) {
        self.call("POST", &format!("{path}?updateIfExists=true"), products).await;
        let until = Instant::now() + PATIENCE;
        while self.get("/assignments/TARIC?assignmentStatus=ALL&autoAssignment=PENDING&size=1").await["items"]
            != json!([])
        {
            assert!(Instant::now() < until, "the products are not classified");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gives a global product a picture, 3 pixels wide.
    pub(crate) async fn picture(&self, product: &str) {
        let mut png = Vec::new();
        DynamicImage::new_rgb8(3, 2).write_to(&mut Cursor::new(&mut png), ImageFormat::Png).expect("a picture");
        let head = "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n";
        let form = [head.as_bytes(), &png[..], &b"\r\n--X--\r\n"[..]].concat();
        let url = format!("{}{BASE}/products/global/product-picture?productId={product}", self.url);
        let request =
            self.http.post(url).bearer_auth(&self.token).header("Content-Type", "multipart/form-data; boundary=X");
        let answer = request.body(form).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
    }

    /// Decides over an assignment as another client does.
    pub(crate) async fn decide(&self, action: &str, item: &Value) {
        let version = &item["subscribedPlatformServices"]["vatRules"]["assignmentVersion"];
        let one = json!({"productId": item["productId"], "assignmentVersion": {"vatRules": version}});
        self.call("PATCH", &format!("/assignments/TARIC?assignmentAction={action}"), json!({"products": [one]})).await;
    }

    /// How many assignments have this status.
    pub(crate) async fn count(&self, status: &str) -> i64 {
        let path = format!("/assignments/TARIC?assignmentStatus={status}&size=1&count=true");
        self.get(&path).await["total"].as_i64().expect("a total")
    }

    /// The assignment of a global product.
    pub(crate) async fn assignment(&self, product: &str) -> Value {
        self.get(&format!("/assignments/TARIC?assignmentStatus=ALL&productIds={product}&embed=EVENTS")).await["items"]
            [0]
        .clone()
    }

    /// A browser that has signed in with this token, and the start page.
    pub(crate) async fn browser(&self, token: &str, language: &str, width: u32) -> Browser {
        let browser = self.window(language, width).await;
        browser.open(&self.url).await;
        browser.fill("#token", token).await;
        browser.click("button.primary").await;
        browser.wait("return document.querySelector('.figures')").await;
        browser
    }

    /// A browser in which nothing is opened.
    pub(crate) async fn window(&self, language: &str, width: u32) -> Browser {
        let browser = self.driver.browser(language, width).await;
        self.browsers.lock().expect("the browsers").push(browser.clone());
        browser
    }

    /// Anna's browser, in English.
    pub(crate) async fn anna(&self) -> Browser {
        self.browser(&self.token, "en", 1280).await
    }
}

/// Shows the page behind `#`.
pub(crate) async fn show(browser: &Browser, hash: &str) {
    browser.run("location.hash = arguments[0]", json!([hash])).await;
}

/// Shows the queue with these filters, and waits for its first product.
pub(crate) async fn queue(browser: &Browser, filters: &str) {
    show(browser, &format!("#/queue?{filters}")).await;
    browser.wait("return document.querySelector('article .about')").await;
}

/// Waits until so many are decided by people in a taxonomy, as the page's session sees it.
pub(crate) async fn decided(browser: &Browser, taxonomy: &str, number: usize) {
    let count = format!(
        "return fetch('{BASE}/assignments/{taxonomy}?assignmentStatus=ALL&strategy=MANUAL&count=true', \
         {{headers: {{'X-Console': '1'}}}}).then((one) => one.json()).then((one) => one.total === {number})"
    );
    browser.wait(&count).await;
}

/// Takes requests of the page whose method and address hold a text: they wait in `held` or are answered with 503, until
/// `release` is called.
const TAKE_REQUESTS: &str = "const [part, refused] = arguments; const send = window.fetch; window.held = []; \
    window.release = () => { window.fetch = send; for (const go of held) go(); }; \
    window.fetch = (url, options) => { \
      if (!`${options?.method ?? 'GET'} ${url}`.includes(part)) return send(url, options); \
      const away = () => new Response(JSON.stringify({message: 'the database is away'}), {status: 503}); \
      if (refused) return Promise.resolve(away()); \
      return new Promise((go) => held.push(go)).then(() => send(url, options)); }";

/// Lets requests of the page whose method and address hold this text wait until `release`.
pub(crate) async fn hold(browser: &Browser, part: &str) {
    browser.run(TAKE_REQUESTS, json!([part, false])).await;
}

/// Answers such requests with 503 until `release`.
pub(crate) async fn refuse(browser: &Browser, part: &str) {
    browser.run(TAKE_REQUESTS, json!([part, true])).await;
}

/// Sends what waits, and all that follows.
pub(crate) async fn release(browser: &Browser) {
    browser.run("release()", json!([])).await;
}
