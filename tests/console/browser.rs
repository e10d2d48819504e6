//! A real browser: Chromium without a window, driven over the WebDriver protocol.
//!
//! The client is ours: the crates for it bring MPL-2.0 and two dozen crates, and a test of pages takes seven requests.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// How long anything on a page may take to come about.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(25);
/// The name of the protocol for a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A name of this machine. What is served there without TLS is no secure origin, as 127.0.0.1 is to browsers.
pub(crate) const PLAIN_HOST: &str = "desk.test";

/// Keys that are no characters, as the protocol writes them.
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";

/// A port that nobody uses.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The program of this name in PATH.
///
/// # Panics
///
/// When it is not there: nothing is skipped.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is missing, which the tests of the console need: apt-get install {package} (as .ci/run does)")
    })
}

/// The driver of browsers. What it has started ends with it.
pub(crate) struct Driver {
    _child: Child,
    url: String,
    http: reqwest::Client,
}

impl Driver {
    pub(crate) async fn start() -> Driver {
        let port = free_port();
        let mut command = Command::new(program("chromedriver", "chromium-driver"));
        command.arg(format!("--port={port}")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.kill_on_drop(true).spawn().expect("a driver");
        let driver = Driver { _child: child, url: format!("http://127.0.0.1:{port}"), http: reqwest::Client::new() };
        let until = Instant::now() + PATIENCE;
        while driver.http.get(format!("{}/status", driver.url)).send().await.is_err() {
            assert!(Instant::now() < until, "chromedriver does not answer");
            tokio::time::sleep(LOOK).await;
        }
        driver
    }

    /// A browser of this language and width, with a profile of its own.
    pub(crate) async fn browser(&self, language: &str, width: u32) -> Browser {
        let chromium = program("chromium", "chromium");
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--accept-lang={language}"),
            format!("--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1"),
            format!("--window-size={width},900"),
        ];
        let options = json!({"binary": chromium, "args": arguments});
        let capabilities = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options,
            "timeouts": {"script": PATIENCE.as_millis() as u64}}}});
        let session = request(&self.http, "POST", &format!("{}/session", self.url), capabilities).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        Browser { http: self.http.clone(), url: format!("{}/session/{id}", self.url) }
    }
}

async fn request(http: &reqwest::Client, method: &str, url: &str, body: Value) -> Value {
    let method = method.parse().expect("a method");
    let mut request = http.request(method, url);
    if !body.is_null() {
        request = request.json(&body);
    }
    let answer: Value = request.send().await.expect("an answer of the driver").json().await.expect("JSON");
    assert!(answer["value"]["error"].is_null(), "{url}: {}: {}", answer["value"]["error"], answer["value"]["message"]);
    answer["value"].clone()
}

/// A window of a browser.
#[derive(Clone)]
pub(crate) struct Browser {
    http: reqwest::Client,
    url: String,
}

impl Browser {
    async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        request(&self.http, method, &format!("{}{path}", self.url), body).await
    }

    pub(crate) async fn open(&self, url: &str) {
        self.send("POST", "/url", json!({"url": url})).await;
    }

    /// What a script returns, a promise's value included.
    pub(crate) async fn run(&self, script: &str, arguments: Value) -> Value {
        self.send("POST", "/execute/sync", json!({"script": script, "args": arguments})).await
    }

    /// Waits until a script returns something that is true, and returns it.
    #[track_caller]
    pub(crate) fn wait(&self, script: &str) -> impl Future<Output = Value> + use<> {
        let (browser, script, caller) = (self.clone(), script.to_owned(), std::panic::Location::caller());
        async move {
            let until = Instant::now() + PATIENCE;
            loop {
                let value = browser.run(&script, json!([])).await;
                let empty = value.is_null() || value == json!(false) || value == json!(0) || value == json!("");
                if !empty {
                    return value;
                }
                if Instant::now() >= until {
                    let page = browser.run("return document.body.innerText", json!([])).await;
                    panic!("{caller}: never came about: {script}\non the page: {}", page.as_str().unwrap_or_default());
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Waits until something on the page has this text; the innermost such elements are looked at.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> impl Future<Output = Value> + use<> {
        self.wait(&format!("return document.body.innerText.includes({})", json!(text)))
    }

    /// Waits for the element of a selector.
    async fn element(&self, selector: &str) -> String {
        self.wait(&format!("return document.querySelector({})", json!(selector))).await;
        let found = self.send("POST", "/element", json!({"using": "css selector", "value": selector})).await;
        found[ELEMENT].as_str().expect("an element").to_owned()
    }

    pub(crate) async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.send("POST", &format!("/element/{element}/click"), json!({})).await;
    }

    /// Clicks the button with this text.
    pub(crate) async fn press(&self, text: &str) {
        let of_text = format!(
            "return [...document.querySelectorAll('button, a')].find((one) => one.innerText.trim() === {})",
            json!(text)
        );
        let found = self.wait(&of_text).await;
        let element = found[ELEMENT].as_str().expect("an element").to_owned();
        self.send("POST", &format!("/element/{element}/click"), json!({})).await;
    }

    /// Types into a field, or names the file of a file field.
    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.send("POST", &format!("/element/{element}/value"), json!({"text": text})).await;
    }

    /// Types on the keyboard, wherever the focus is.
    pub(crate) async fn keys(&self, keys: &str) {
        let pressed = |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(pressed).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.send("POST", "/actions", json!({"actions": [keyboard]})).await;
    }

    pub(crate) async fn screenshot(&self, file: &Path) {
        let picture = self.send("GET", "/screenshot", Value::Null).await;
        let bytes = BASE64.decode(picture.as_str().expect("a picture").as_bytes()).expect("base 64");
        std::fs::write(file, bytes).expect("a file");
    }

    /// Ends the browser.
    pub(crate) async fn close(&self) {
        let _ended = self.http.delete(&self.url).send().await;
    }
}
