//! Which indices are fed, and who may rebuild them.

use sqlx::FromRow;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use crate::store::{Store, StoreError};

/// The number of the advisory lock that one service holds while it rebuilds an index.
const REBUILD_LOCK: i64 = 0x7661_7463_6c61_7373;

/// An index that changes are written to.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct IndexRecord {
    /// Its name.
    pub name: String,
    /// The prefix of indices in Elasticsearch, or the family of the projection in the database.
    pub family: String,
    /// The version of the mapping with which it was made.
    pub mapping_version: i32,
    /// Whether it is not complete yet.
    pub building: bool,
}

/// The right to rebuild, until it is dropped.
pub struct RebuildLock {
    connection: Option<PoolConnection<Postgres>>,
}

impl Drop for RebuildLock {
    fn drop(&mut self) {
        // The lock ends with its session.
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl Store {
    /// Every index that is fed or built.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn search_indexes(&self) -> Result<Vec<IndexRecord>, StoreError> {
        let indexes =
            sqlx::query_as("select name, family, mapping_version, building from search_indexes order by name");
        Ok(indexes.fetch_all(self.pool()).await?)
    }

    /// The right to rebuild; none while another service has it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lock_rebuild(&self) -> Result<Option<RebuildLock>, StoreError> {
        let mut connection = self.pool().acquire().await?;
        let locked: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
            .bind(REBUILD_LOCK)
            .fetch_one(&mut *connection)
            .await?;
        Ok(locked.then_some(RebuildLock { connection: Some(connection) }))
    }

    /// From when this returns, every change that is not yet claimed is written to the index, too.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_search_index(&self, index: &IndexRecord) -> Result<(), StoreError> {
        sqlx::query(
            "insert into search_indexes (name, family, mapping_version, building) values ($1, $2, $3, $4)
             on conflict (name) do update set mapping_version = excluded.mapping_version, building = excluded.building",
        )
        .bind(&index.name)
        .bind(&index.family)
        .bind(index.mapping_version)
        .bind(index.building)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Makes an index the only one that is fed.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_search_index(&self, name: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query("delete from search_indexes where name <> $1").bind(name).execute(&mut *tx).await?;
        sqlx::query("update search_indexes set building = false where name = $1").bind(name).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(())
    }

    /// No longer feeds an index.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn remove_search_index(&self, name: &str) -> Result<(), StoreError> {
        sqlx::query("delete from search_indexes where name = $1").bind(name).execute(self.pool()).await?;
        Ok(())
    }
}
