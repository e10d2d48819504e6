//! The service as its users meet it: the program, over HTTP.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use reqwest::{Client, Method};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");
const BASE_PATH: &str = "/api/vat-classification/v1";
/// How long the service may take to be ready.
const READY_LIMIT: Duration = Duration::from_secs(120);

/// A running service; it ends with the value.
pub(crate) struct Service {
    child: Child,
    client: Client,
    base: String,
    port: u16,
    /// Of the account that owns the assignments.
    token: String,
    /// Of another account, with nothing.
    pub(crate) other: String,
}

pub(crate) fn run(database: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(PROGRAM).args(arguments).env("DATABASE_URL", database).output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn spawn(database: &str, port: u16) -> anyhow::Result<Child> {
    let child = Command::new(PROGRAM)
        .env("DATABASE_URL", database)
        .env("BIND_ADDR", format!("127.0.0.1:{port}"))
        .env("DATA_DIR", std::env::temp_dir().join("bench-desk-data"))
        .env("RUST_LOG", "warn")
        .env_remove("ELASTICSEARCH_URL")
        .stdout(Stdio::null())
        .spawn()?;
    Ok(child)
}

impl Service {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(database: &str) -> anyhow::Result<Service> {
        let token_of = |account: &str| {
            run(database, &["token", "create", "--account", account, "--user", "b", "--level", "ADMIN"])
        };
        let (token, other) = (token_of("bench")?, token_of("other")?);
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let base = format!("http://127.0.0.1:{port}");
        let child = spawn(database, port)?;
        let service = Service { child, client: Client::new(), base, port, token, other };
        service.ready().await?;
        Ok(service)
    }

    /// Ends it as a crash does, and starts it again.
    pub(crate) async fn crash(&mut self, database: &str) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(database, self.port)?;
        self.ready().await
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let answer = self.client.get(format!("{}/health/ready", self.base)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            ensure!(begin.elapsed() < READY_LIMIT, "the service is not ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The answer to a request, and how long it took until it was there as a whole.
    pub(crate) async fn timed(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(Duration, Value)> {
        let mut request = self.client.request(method, format!("{}{BASE_PATH}{path}", self.base)).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let begin = Instant::now();
        let answer = request.send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?;
        let took = begin.elapsed();
        ensure!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
        Ok((took, serde_json::from_slice(&bytes).unwrap_or_else(|_| json!({}))))
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<(Duration, Value)> {
        self.timed(&self.token, Method::GET, path, None).await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> anyhow::Result<(Duration, Value)> {
        self.timed(&self.token, method, path, Some(body)).await
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
