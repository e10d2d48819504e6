//! Makes the database, and what the service is compared with: `wildcard` on a keyword, `ilike` with trigrams.

use std::time::Instant;

use elasticsearch::http::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor as _, PgConnection};
use vat_classification::search::{Engine, Settings};

use crate::{Bench, PAGE};

const DATABASE: &str = "vat_classification_bench_search";
const WILDCARD_INDEX: &str = "bench-wildcard";
/// Products that are written at once.
const BATCH: usize = 5_000;
/// Products beyond these have the texts of one of them, under an id of their own.
pub(crate) const DISTINCT: usize = 1_000_000;

/// The URL of the benchmark's database on a server.
pub(crate) async fn database(server: &str, anew: bool) -> anyhow::Result<String> {
    if anew {
        let mut connection = PgConnection::connect(server).await?;
        connection.execute(AssertSqlSafe(format!("drop database if exists {DATABASE} with (force)"))).await?;
        connection.execute(AssertSqlSafe(format!("create database {DATABASE}"))).await?;
    }
    let mut url: url::Url = server.parse()?;
    url.set_path(DATABASE);
    Ok(url.to_string())
}

/// The first products again, so many at most, with numbers that are larger, and their documents.
const COPIES: &str = "
with copied as (
    insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications, application_tags,
                          application_issues)
    select account_id, 0, left(product_id, -7) || lpad((right(product_id, 7)::bigint + $2)::text, 8, '0'), 1, '{}', details,
           '{}', '{}', '[]'
    from products where account_id = $1 and product_id ~ '-[0-9]{7}$' limit $3
    returning product_key, product_id
)
insert into search_documents (product_key, account_id, shop_id, product_id, version, country, id_text,
        keyword_texts, name_texts, tag_texts, keyword_words, name_words, tag_words, all_keywords, all_names, all_tags)
select copied.product_key, $1, 0, copied.product_id, 1, country, lower(copied.product_id),
        keyword_texts, name_texts, tag_texts, keyword_words, name_words, tag_words, all_keywords, all_names, all_tags
from copied join search_documents on account_id = $1 and shop_id = 0 and search_documents.product_id
    = left(copied.product_id, -8) || lpad((right(copied.product_id, 8)::bigint % $4)::text, 7, '0')";

impl Bench {
    pub(crate) async fn load(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let numbers: Vec<usize> = (0..self.products.min(DISTINCT)).collect();
        for part in numbers.chunks(BATCH) {
            let (ids, details): (Vec<String>, Vec<Value>) = part.iter().map(|n| self.corpus.product(*n)).unzip();
            sqlx::query(
                "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                                       application_tags, application_issues)
                 select $1, 0, id, 1, '{}', details, '{}', '{}', '[]' from unnest($2::text[], $3::jsonb[]) as new (id, details)",
            )
            .bind(self.account)
            .bind(&ids)
            .bind(&details)
            .execute(self.store.pool())
            .await?;
        }
        if self.products > DISTINCT {
            self.load_copies().await?;
        }
        self.administer("vacuum analyze products").await?;
        println!("{} products in PostgreSQL in {:.0} s", self.products, begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Copies the products and their documents of the engine in PostgreSQL, whose trigram indices are made afterwards.
    async fn load_copies(&self) -> anyhow::Result<()> {
        Engine::new(&Settings::default(), &self.store)?.rebuild(&|_, _| {}).await?;
        let mut connection = PgConnection::connect(&self.database).await?;
        connection.execute("set maintenance_work_mem = '2GB'").await?;
        let indices: Vec<(String, String)> = sqlx::query_as(
            "select indexname::text, indexdef from pg_indexes
             where tablename = 'search_documents' and indexdef like '%gin_trgm_ops%'",
        )
        .fetch_all(&mut connection)
        .await?;
        for (name, _) in &indices {
            connection.execute(AssertSqlSafe(format!("drop index {name}"))).await?;
        }
        for first in (DISTINCT..self.products).step_by(DISTINCT) {
            sqlx::query(COPIES)
                .bind(self.account)
                .bind(first as i64)
                .bind((self.products - first) as i64)
                .bind(DISTINCT as i64)
                .execute(&mut connection)
                .await?;
        }
        for (_, definition) in indices {
            connection.execute(AssertSqlSafe(definition)).await?;
        }
        Ok(())
    }

    /// Makes what the service is compared with.
    pub(crate) async fn load_compared(&self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let numbers: Vec<usize> = (0..self.products).collect();
        self.elastic(Method::Delete, WILDCARD_INDEX, None).await?;
        let body = json!({
            "settings": {"number_of_replicas": 0, "index.queries.cache.enabled": false, "refresh_interval": "-1"},
            "mappings": {"properties": {"text": {"type": "keyword"}, "id": {"type": "keyword"}}},
        });
        self.elastic(Method::Put, WILDCARD_INDEX, Some(body.to_string().into_bytes())).await?;
        self.store.pool().execute("create table bench_texts (id text collate \"C\" primary key, text text)").await?;
        for part in numbers.chunks(BATCH) {
            let rows: Vec<(String, String)> =
                part.iter().map(|n| (self.corpus.product(*n).0, self.corpus.text(*n).to_lowercase())).collect();
            let mut bulk = Vec::new();
            for (id, text) in &rows {
                bulk.extend_from_slice(format!("{{\"index\":{{}}}}\n{}\n", json!({"id": id, "text": text})).as_bytes());
            }
            self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_bulk?filter_path=errors"), Some(bulk)).await?;
            let (ids, texts): (Vec<String>, Vec<String>) = rows.into_iter().unzip();
            sqlx::query("insert into bench_texts select * from unnest($1::text[], $2::text[])")
                .bind(ids)
                .bind(texts)
                .execute(self.store.pool())
                .await?;
        }
        self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_forcemerge?max_num_segments=1"), None).await?;
        self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_refresh"), None).await?;
        self.administer("create index on bench_texts using gin (text gin_trgm_ops)").await?;
        self.administer("vacuum analyze bench_texts").await?;
        println!("what it is compared with, in {:.0} s", begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Runs a statement that may take longer than the service allows its own.
    pub(crate) async fn administer(&self, statement: &'static str) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.database).await?;
        connection.execute(statement).await?;
        Ok(())
    }

    /// Whether there is anything that the service is compared with.
    pub(crate) async fn is_compared(&self) -> anyhow::Result<bool> {
        let exists = sqlx::query_scalar("select to_regclass('bench_texts') is not null");
        Ok(exists.fetch_one(self.store.pool()).await?)
    }

    /// A page by `wildcard` on a keyword.
    pub(crate) async fn wildcard(&self, value: &str) -> anyhow::Result<()> {
        let escaped: String =
            value.chars().flat_map(|c| if "*?\\".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
        let body = json!({"query": {"bool": {"filter": [{"wildcard": {"text": format!("*{escaped}*")}}]}},
            "sort": [{"id": "asc"}], "size": PAGE + 1, "track_total_hits": false, "_source": false});
        self.elastic(Method::Post, &format!("{WILDCARD_INDEX}/_search"), Some(body.to_string().into_bytes())).await?;
        Ok(())
    }

    /// A page by `ilike`.
    pub(crate) async fn ilike(&self, value: &str) -> anyhow::Result<()> {
        let escaped = value.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        sqlx::query("select id from bench_texts where text ilike $1 order by id limit $2")
            .bind(format!("%{escaped}%"))
            .bind(PAGE as i64 + 1)
            .persistent(false)
            .fetch_all(self.store.pool())
            .await?;
        Ok(())
    }
}
