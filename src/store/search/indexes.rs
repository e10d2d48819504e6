//! Which indices are fed, and who may rebuild them.

use sqlx_macros::FromRow;

use crate::store::limits::Limit;
use crate::store::{Store, StoreError, Tx};

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
    /// Whether it may hold what the database no longer does.
    pub stale: bool,
    /// The key of the last product that is safely in it, while it is being built.
    pub built_to: Option<i64>,
}

/// The right to rebuild, until it is dropped. It is that of a transaction, which has neither an id nor a snapshot: it
/// holds nothing else up, and works behind a pooler that gives each transaction another connection.
pub struct RebuildLock {
    tx: Tx,
}

impl RebuildLock {
    /// Gives the right back at once.
    ///
    /// # Errors
    /// When the database fails; the right then ends with the connection.
    pub async fn release(self) -> Result<(), StoreError> {
        Ok(self.tx.rollback().await?)
    }
}

impl Store {
    /// Every index that is fed or built.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn search_indexes(&self) -> Result<Vec<IndexRecord>, StoreError> {
        let indexes = sqlx::query_as(
            "select name, family, mapping_version, building, stale, built_to from search_indexes order by name",
        );
        Ok(indexes.fetch_all(self.pool()).await?)
    }

    /// The right to rebuild; none while another service has it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lock_rebuild(&self) -> Result<Option<RebuildLock>, StoreError> {
        let mut tx = self.begin_limited(&[Limit::Idle(None)]).await?;
        let locked: bool =
            sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(REBUILD_LOCK).fetch_one(&mut *tx).await?;
        Ok(locked.then_some(RebuildLock { tx }))
    }

    /// From when this returns, every change that is not yet claimed is written to the index, too.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_search_index(&self, index: &IndexRecord) -> Result<(), StoreError> {
        sqlx::query(
            "insert into search_indexes (name, family, mapping_version, building) values ($1, $2, $3, $4)
             on conflict (name) do update set mapping_version = excluded.mapping_version, building = excluded.building,
                 stale = false, built_to = null",
        )
        .bind(&index.name)
        .bind(&index.family)
        .bind(index.mapping_version)
        .bind(index.building)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// Notes how far an index in the making is complete.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_built_to(&self, name: &str, key: i64) -> Result<(), StoreError> {
        sqlx::query("update search_indexes set built_to = $2 where name = $1")
            .bind(name)
            .bind(key)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Makes an index the only one that is fed; false, and nothing is done, where it is no longer on the list.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_search_index(&self, name: &str) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let kept = sqlx::query("update search_indexes set building = false, built_to = null where name = $1")
            .bind(name)
            .execute(&mut *tx)
            .await?;
        if kept.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query("delete from search_indexes where name <> $1").bind(name).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(true)
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
