//! The subcommands `migrate` and `check-config`.

use std::sync::Arc;

use anyhow::Context;

use crate::app::database::{Database, check_url};
use crate::app::logging;
use crate::app::models::load_engine;
use crate::app::settings::{DatabaseSettings, ServeSettings};
use crate::pictures::PictureStore;
use crate::search;
use crate::store::{MIGRATIONS, Store};

/// Brings the schema up to date.
pub(super) async fn migrate(settings: &DatabaseSettings) -> anyhow::Result<()> {
    let database = Database::open(settings).await?;
    database.close().await;
    println!("the schema is up to date ({} migrations)", MIGRATIONS.iter().count());
    Ok(())
}

/// Judges what a start would judge, as far as that changes nothing.
pub(super) async fn config(settings: &ServeSettings) -> anyhow::Result<()> {
    logging::filter(&settings.log)?;
    let models = settings.models.clone();
    let engine = tokio::task::spawn_blocking(move || load_engine(&models)).await.context("loading the model")??;
    drop(Arc::new(engine));
    let database = &settings.database;
    match &database.database_url {
        None => println!("DATABASE_URL is not set: a private PostgreSQL in {}", database.data_dir.display()),
        Some(url) => {
            check_url(url)?;
            let store = Store::connect_with(url, &database.pool).await.context("DATABASE_URL: cannot connect")?;
            store.pool().close().await;
        }
    }
    search::Engine::check(&settings.search).context("ELASTICSEARCH_URL")?;
    if database.data_dir.is_dir() {
        PictureStore::open(&database.data_dir, &settings.pictures).context("the store of pictures")?;
    }
    println!("the settings are good");
    Ok(())
}
