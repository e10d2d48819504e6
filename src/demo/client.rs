//! The three requests that the demonstration makes.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Sample;

const BASE_PATH: &str = "/api/vat-classification/v1";
/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// Ids in one request for assignments: they stand in its URL.
const IDS_AT_ONCE: usize = 200;

/// A service, and the right to use it.
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
}

/// What an assignment list says of one product, as far as the table shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Assignment {
    product_id: String,
    /// Absent for global products, which the samples are.
    shop_id: Option<i64>,
    pub(super) assignment_status: String,
    pub(super) strategy: Option<String>,
    pub(super) product_class_code: Option<String>,
    pub(super) confidence: Option<f64>,
    auto_assignment: String,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Assignment>,
    links: Links,
}

#[derive(Deserialize)]
struct Links {
    next: Option<String>,
}

impl Assignment {
    pub(super) fn is_pending(&self) -> bool {
        self.auto_assignment == "PENDING"
    }
}

impl Client {
    pub(super) fn new(base_url: &str, token: &str) -> Result<Client> {
        Url::parse(base_url).with_context(|| format!("{base_url} is not a URL"))?;
        let base = base_url.trim_end_matches('/');
        let base = if base.ends_with(BASE_PATH) { base.to_owned() } else { format!("{base}{BASE_PATH}") };
        let http = reqwest::Client::builder().timeout(REQUEST_LIMIT).build()?;
        Ok(Client { http, base, token: token.to_owned() })
    }

    /// Creates products, and replaces those that exist.
    pub(super) async fn create(&self, samples: &[Sample]) -> Result<()> {
        let url = format!("{}/products/global?updateIfExists=true", self.base);
        let products: Map<String, Value> =
            samples.iter().map(|sample| (sample.product_id.clone(), sample.body())).collect();
        let _created: Value = self.send(self.http.post(url).json(&products)).await?;
        Ok(())
    }

    /// The TARIC assignments of these products in all states, by productId.
    pub(super) async fn assignments(&self, ids: &[&str]) -> Result<HashMap<String, Assignment>> {
        let mut found = HashMap::new();
        for ids in ids.chunks(IDS_AT_ONCE) {
            let query = [
                ("assignmentStatus", "UNASSIGNED,ASSIGNED,APPROVED,REJECTED,DENIED"),
                ("size", "1000"),
                ("productIds", &ids.join(",")),
            ];
            let mut next =
                Some(Url::parse_with_params(&format!("{}/assignments/TARIC", self.base), query)?.to_string());
            while let Some(url) = next {
                let page: Page = self.send(self.http.get(url)).await?;
                next = page.links.next;
                let global = page.items.into_iter().filter(|assignment| assignment.shop_id.is_none());
                found.extend(global.map(|assignment| (assignment.product_id.clone(), assignment)));
            }
        }
        Ok(found)
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let answer = request.bearer_auth(&self.token).send().await?;
        let status = answer.status();
        let body = answer.text().await?;
        if !status.is_success() {
            bail!("the service answered {status}: {body}");
        }
        serde_json::from_str(&body).context("the service's answer is not understood")
    }
}
