//! A database with an account, and engines on it.

use std::time::Duration;

use serde_json::Value;
use vat_classification::domain::access::Plan;
use vat_classification::domain::filter::Criteria;
use vat_classification::domain::{Details, Precision, Product, ShopId};
use vat_classification::search::{Engine, Search, Settings};
use vat_classification::store::accounts::Caller;
use vat_classification::store::pages::{Page, Position};
use vat_classification::store::products::{Asked, NewProduct};
use vat_classification::store::{self, Store};

use crate::support;

/// Long enough for a busy machine; what the deadline does has a test of its own.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A database of its own.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) caller: Caller,
    // Deleted with its connections closed, so after the store.
    _database: support::TestDatabase,
}

impl Fixture {
    pub(crate) async fn new() -> Fixture {
        let database = support::database().await;
        let store = Store::connect(&database.url).await.expect("a store");
        store.create_account("shop", Plan::Unlimited).await.expect("an account");
        let account: i64 =
            sqlx::query_scalar("select account_id from accounts").fetch_one(store.pool()).await.expect("the account");
        let caller =
            Caller { account, plan: Plan::Unlimited, precision: Precision::default(), user: "tester".to_owned() };
        Fixture { store, caller, _database: database }
    }

    /// A store of its own on the same database, with so many connections.
    pub(crate) async fn store_with(&self, connections: u32) -> Store {
        let settings = store::Settings {
            database_connections: connections,
            database_acquire_timeout_ms: 30_000,
            ..store::Settings::default()
        };
        Store::connect_with(&self._database.url, &settings).await.expect("a store")
    }

    pub(crate) fn postgres(&self) -> Engine {
        Engine::new(&Settings::default(), &self.store).expect("an engine")
    }

    pub(crate) async fn elasticsearch(&self) -> Engine {
        let url = support::elasticsearch().await;
        self.elasticsearch_at(&url)
    }

    /// Elasticsearch, with an index that no other test uses.
    pub(crate) fn elasticsearch_at(&self, url: &str) -> Engine {
        self.engine(url, format!("test-{}", uuid::Uuid::new_v4().simple()))
    }

    /// Elasticsearch, and what the name of the index begins with.
    pub(crate) async fn elasticsearch_with_prefix(&self) -> (Engine, String) {
        let prefix = format!("test-{}", uuid::Uuid::new_v4().simple());
        (self.engine(&support::elasticsearch().await, prefix.clone()), prefix)
    }

    /// Elasticsearch with an index of so many shards, an account on so many of them.
    pub(crate) async fn elasticsearch_of_shards(&self, shards: u32, of_account: u32) -> Engine {
        let settings = Settings {
            elasticsearch_url: Some(support::elasticsearch().await.parse().expect("a URL")),
            elasticsearch_index_prefix: format!("test-{}", uuid::Uuid::new_v4().simple()),
            elasticsearch_shards: shards,
            elasticsearch_shards_per_account: of_account,
            ..Settings::default()
        };
        Engine::new(&settings, &self.store).expect("an engine")
    }

    fn engine(&self, url: &str, prefix: String) -> Engine {
        let settings = Settings {
            elasticsearch_url: Some(url.parse().expect("a URL")),
            elasticsearch_index_prefix: prefix,
            ..Settings::default()
        };
        Engine::new(&settings, &self.store).expect("an engine")
    }

    pub(crate) async fn create(&self, shop: ShopId, products: &[(String, Details)]) {
        let products: Vec<NewProduct> = products
            .iter()
            .map(|(id, details)| NewProduct {
                product_id: id.clone(),
                product: Product { shop_ids: Vec::new(), product_details: details.clone() },
            })
            .collect();
        for part in products.chunks(1_000) {
            self.store.create_products(&self.caller, shop, part, &Asked::default(), true).await.expect("created");
        }
    }

    /// Ids of every product that a search finds, page by page.
    pub(crate) async fn all(&self, engine: &Engine, shop: i64, criteria: &Criteria, size: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let mut position = Position::Start;
        loop {
            let page = self.page(engine, shop, criteria, &position, size).await;
            ids.extend(page.items.iter().cloned());
            match page.items.last() {
                Some(last) if page.more_after => position = Position::After(last.clone()),
                _ => return ids,
            }
        }
    }

    /// A search for the first products, which may take as long as it likes.
    pub(crate) fn search<'a>(&self, criteria: &'a Criteria) -> Search<'a> {
        let account = self.caller.account;
        let position = &Position::Start;
        Search { account, shop: 0, criteria, product_ids: None, shop_ids: None, position, size: 50, deadline: DEADLINE }
    }

    /// A page of ids.
    pub(crate) async fn page(
        &self,
        engine: &Engine,
        shop: i64,
        criteria: &Criteria,
        position: &Position<String>,
        size: usize,
    ) -> Page<String> {
        let search = Search { shop, position, size, ..self.search(criteria) };
        let page = engine.page(&search).await.expect("a page");
        page.map(|found| found.product_id)
    }
}

/// Criteria of one element.
pub(crate) fn criteria(element: Value) -> Criteria {
    Criteria::parse(&Value::from(vec![element]).to_string()).expect("criteria")
}

/// Details from JSON.
pub(crate) fn details(value: Value) -> Details {
    serde_json::from_value(value).expect("details")
}
