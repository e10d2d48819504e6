//! The service as its users meet it: the program, over HTTP.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::{Bench, PREFIX};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vat-classification");
const BASE_PATH: &str = "/api/vat-classification/v1";
/// How long the service may take to be ready; it may have to build an index.
const READY_LIMIT: Duration = Duration::from_secs(3_600);

/// A running service; it ends with the value.
pub(crate) struct Service {
    child: Child,
    pub(crate) client: Client,
    base: String,
    token: String,
}

/// Makes the account that owns the products.
pub(crate) fn make_account(database: &str) -> anyhow::Result<()> {
    run(database, &["account", "create", "bench"]).map(drop)
}

fn run(database: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(PROGRAM).args(arguments).env("DATABASE_URL", database).output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl Service {
    /// Starts it, with Elasticsearch or without, and waits until a search is answered.
    pub(crate) async fn start(bench: &Bench, elasticsearch: Option<&str>) -> anyhow::Result<Service> {
        let token = run(&bench.database, &["token", "create", "--account", "bench", "--user", "b", "--level", "EDIT"])?;
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new(PROGRAM);
        command
            .env("DATABASE_URL", &bench.database)
            .env("BIND_ADDR", format!("127.0.0.1:{port}"))
            .env("DATA_DIR", std::env::temp_dir().join(format!("{PREFIX}-data")))
            .env("ELASTICSEARCH_INDEX_PREFIX", PREFIX)
            .env_remove("ELASTICSEARCH_URL")
            .stdout(Stdio::null());
        if let Some(url) = elasticsearch {
            command.env("ELASTICSEARCH_URL", url);
        }
        let child = command.spawn()?;
        let service = Service { child, client: Client::new(), base: format!("http://127.0.0.1:{port}"), token };
        let begin = Instant::now();
        let any = json!([{"productId": "no product has this"}]);
        while !matches!(service.search(&any).await, Ok((StatusCode::OK, _))) {
            ensure!(begin.elapsed() < READY_LIMIT, "the service does not answer searches");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(service)
    }

    /// The first page of a search: its status, and its body as it came.
    pub(crate) async fn search(&self, criteria: &Value) -> anyhow::Result<(StatusCode, bytes::Bytes)> {
        let request = self.client.get(format!("{}{BASE_PATH}/products/global", self.base));
        let query = [("size", crate::PAGE.to_string()), ("filterCriteria", criteria.to_string())];
        let answer = request.query(&query).bearer_auth(&self.token).send().await?;
        Ok((answer.status(), answer.bytes().await?))
    }

    /// What a link or a path leads to.
    pub(crate) async fn get(&self, link: &str) -> anyhow::Result<Value> {
        let url = if link.starts_with("http") { link.to_owned() } else { format!("{}{BASE_PATH}{link}", self.base) };
        let answer = self.client.get(&url).bearer_auth(&self.token).send().await?;
        ensure!(answer.status().is_success(), "{url}: {}", answer.text().await?);
        Ok(answer.json().await?)
    }

    /// Creates products or replaces them, in one request.
    pub(crate) async fn write(&self, products: &[(String, Value)]) -> anyhow::Result<()> {
        let body: serde_json::Map<String, Value> =
            products.iter().map(|(id, details)| (id.clone(), json!({"productDetails": details}))).collect();
        let url = format!("{}{BASE_PATH}/products/global?updateIfExists=true", self.base);
        let answer = self.client.post(url).bearer_auth(&self.token).json(&body).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.text().await.context("a body")?);
        Ok(())
    }

    /// Deletes a product of version 1.
    pub(crate) async fn delete(&self, id: &str) -> anyhow::Result<()> {
        let url = format!("{}{BASE_PATH}/products/global?productId={id}&currentVersion=1", self.base);
        let answer = self.client.delete(url).bearer_auth(&self.token).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.text().await?);
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
