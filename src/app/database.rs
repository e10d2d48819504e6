//! The database of a program: the one that is named, or a private one.

use anyhow::{Context, ensure};

use crate::app::settings::DatabaseSettings;
use crate::embedded_postgres::EmbeddedPostgres;
use crate::store::Store;

/// A connected, migrated database.
pub(super) struct Database {
    pub store: Store,
    private: Option<EmbeddedPostgres>,
}

impl Database {
    pub(super) async fn open(settings: &DatabaseSettings) -> anyhow::Result<Database> {
        let (url, private) = match &settings.database_url {
            Some(url) => {
                check_url(url)?;
                (url.clone(), None)
            }
            None => {
                let private = EmbeddedPostgres::start(&settings.data_dir).await?;
                (private.url(), Some(private))
            }
        };
        let opened = async {
            let store = Store::connect_with(&url, &settings.pool).await.context("cannot connect to the database")?;
            store.migrate().await.context("cannot bring the database's schema up to date")?;
            anyhow::Ok(store)
        };
        match opened.await {
            Ok(store) => Ok(Database { store, private }),
            Err(error) => {
                if let Some(private) = private {
                    private.stop().await;
                }
                Err(error)
            }
        }
    }

    /// Lets go of it; a private one that nobody else uses is stopped.
    pub(super) async fn close(self) {
        self.store.pool().close().await;
        if let Some(private) = self.private {
            private.stop().await;
        }
    }
}

/// Does something with the database, and lets go of it whatever comes of that.
pub(super) async fn on<T>(
    settings: &DatabaseSettings,
    work: impl AsyncFnOnce(&Store) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let database = Database::open(settings).await?;
    let done = work(&database.store).await;
    database.close().await;
    done
}

/// Refuses the URL of another kind of database. What it holds besides is not told: there may be a password in it.
pub(super) fn check_url(url: &str) -> anyhow::Result<()> {
    let is_known = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
    ensure!(is_known, "DATABASE_URL: must begin with postgres:// or postgresql://");
    Ok(())
}
