//! Nothing that is done often reads what it does not need: no large table is scanned.

use vat_classification::store::{Settings, Store};

use crate::support::{TestDatabase, database};

/// Tables that grow with products.
const LARGE: [&str; 6] = ["products", "assignments", "journal", "pictures", "search_documents", "orphaned_objects"];

/// A database of 20 accounts with 1,000 products each, and one connection to it, whose reads can be told.
struct Large {
    store: Store,
    _database: TestDatabase,
}

impl Large {
    async fn new() -> Large {
        let database = database().await;
        let settings = Settings { database_connections: 1, ..Settings::default() };
        let store = Store::connect_with(&database.url, &settings).await.expect("a connection");
        for statement in [
            "insert into accounts (name, plan) select 'account ' || n, 'UNLIMITED' from generate_series(1, 20) n",
            "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                                   application_tags, application_issues)
             select account_id, 0, 'p' || n, 1, '{}', '{}', '{}', '{}', '[]'
             from accounts, generate_series(1, 1000) n",
            "insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, auto_state)
             select gen_random_uuid(), account_id, product_key, taxonomy, product_id, 0, 'DONE'
             from products, generate_series(0, 2) taxonomy",
            "insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, version)
             select journal_sequence(row_number() over ()), account_id, product_key, product_id, 0, taxonomy, 'CREATE',
                    'x', 0
             from assignments",
            "insert into pictures (product_key, object_key, content_type, width, height, size, etag)
             select product_key, gen_random_uuid()::text, 'image/png', 1, 1, 1, 'x' from products",
            "insert into search_documents (product_key, account_id, shop_id, product_id, version, id_text, keyword_texts,
                    name_texts, tag_texts, keyword_words, name_words, tag_words, all_keywords, all_names, all_tags)
             select product_key, account_id, 0, product_id, 1, product_id, '{}', '{}', '{}', '{}', '{}', '{}', '', '', ''
             from products",
            "analyze",
        ] {
            sqlx::raw_sql(statement).execute(store.pool()).await.expect(statement);
        }
        Large { store, _database: database }
    }

    /// How often each large table was read from end to end.
    async fn scans(&self) -> Vec<(String, i64)> {
        sqlx::query("select pg_stat_force_next_flush()").execute(self.store.pool()).await.expect("flushed");
        sqlx::query_as(
            "select relname::text, seq_scan from pg_stat_user_tables where relname = any($1) order by relname",
        )
        .bind(LARGE)
        .fetch_all(self.store.pool())
        .await
        .expect("statistics")
    }

    /// Does something, which must not scan a large table.
    async fn without_scan<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let before = self.scans().await;
        let done = work.await;
        assert_eq!(self.scans().await, before, "{what} scans a table");
        done
    }
}

#[tokio::test]
async fn starting_does_not_read_the_journal() {
    let large = Large::new().await;
    // The first start in a cluster finds the end of the journal, account by account; the next knows it.
    large.without_scan("the first start", large.store.migrate()).await.expect("migrated");
    large.without_scan("another start", large.store.migrate()).await.expect("migrated");
}

#[tokio::test]
async fn after_a_restore_sequences_go_on_above_the_highest() {
    let large = Large::new().await;
    let highest: i64 =
        sqlx::query_scalar("update journal set sequence = sequence + 131072::bigint * 1000000000 returning sequence")
            .fetch_all(large.store.pool())
            .await
            .expect("moved")
            .into_iter()
            .max()
            .expect("rows");
    sqlx::raw_sql("update journal_base set cluster = 1; analyze")
        .execute(large.store.pool())
        .await
        .expect("another cluster");
    large.without_scan("a start after a restore", large.store.migrate()).await.expect("migrated");
    let next: i64 =
        sqlx::query_scalar("select journal_sequence(0)").fetch_one(large.store.pool()).await.expect("a sequence");
    assert!(next > highest, "{next} {highest}");
}
