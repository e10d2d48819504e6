//! The subcommand `demo`.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::app::accounts::new_token;
use crate::app::database::Database;
use crate::app::models::load_reference;
use crate::app::settings::ServeSettings;
use crate::decision::Engine;
use crate::demo;
use crate::domain::access::{Level, Plan};
use crate::domain::{ClassCode, Taxonomy};
use crate::reference::Reference;
use crate::store::accounts::AccountError;

/// The account and the user of the demonstration.
const NAME: &str = "demo";

/// Demonstrates on a running service.
pub(super) async fn remote(url: &str, token: &str, settings: &ServeSettings) -> anyhow::Result<()> {
    let reference = load_reference(&settings.models)?;
    demo::run(url, token, |code| label(&reference, code)).await
}

/// Demonstrates on the service of this process, which goes on serving.
pub(super) async fn start(database: &Database, engine: Arc<Engine>, address: SocketAddr) -> anyhow::Result<()> {
    match database.store.create_account(NAME, Plan::Unlimited).await {
        Ok(()) | Err(AccountError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let (token, hash) = new_token()?;
    database.store.create_token(NAME, NAME, Level::Edit, &hash, None).await?;
    let store = database.store.clone();
    tokio::spawn(async move {
        let url = format!("http://{address}");
        if let Err(error) = demo::run(&url, &token, |code| label(&engine.reference(), code)).await {
            eprintln!("error: the demonstration ended early: {error:#}");
        } else {
            println!("\nServing on {url}; end with Ctrl-C.");
        }
        // The token was for this once.
        if let Err(error) = store.revoke_token(&hash).await {
            tracing::warn!(%error, "the token of the demonstration stays in force");
        }
    });
    Ok(())
}

fn label(reference: &Reference, code: &str) -> Option<String> {
    let labels = reference.nomenclature(Taxonomy::Taric).labels(ClassCode::new(code)?)?;
    Some(labels.en.to_owned())
}
