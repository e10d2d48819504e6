//! The subcommands `account` and `token`; they work beside a running service and without one.

use anyhow::{Context, bail};
use chrono::{Days, Utc};

use crate::app::database::Database;
use crate::app::settings::{AccountCommand, TokenCommand};
use crate::domain::access::{TOKEN_RANDOM_BYTES, TokenHash, hash_token, write_token};

/// A new token and the hash under which it is stored.
pub(super) fn new_token() -> anyhow::Result<(String, TokenHash)> {
    let mut random = [0; TOKEN_RANDOM_BYTES];
    getrandom::fill(&mut random).context("the system gives no random bytes")?;
    let token = write_token(&random);
    let hash = hash_token(&token).context("a token of our own is malformed")?;
    Ok((token, hash))
}

pub(super) async fn account(command: AccountCommand) -> anyhow::Result<()> {
    match command {
        AccountCommand::Create { name, plan, precision, database } => {
            let database = Database::open(&database).await?;
            let made = database.store.create_account_with(&name, plan, precision).await;
            database.close().await;
            made?;
            println!("{name}");
        }
        AccountCommand::Precision { name, precision, database } => {
            let database = Database::open(&database).await?;
            let set = database.store.set_precision(&name, precision).await;
            database.close().await;
            set?;
            println!("{name} {:.2}", precision.share());
        }
    }
    Ok(())
}

pub(super) async fn token(command: TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create { account, user, level, expires_days, database } => {
            let (token, hash) = new_token()?;
            let expires_at = expires_days.and_then(|days| Utc::now().checked_add_days(Days::new(u64::from(days))));
            let database = Database::open(&database).await?;
            let made = database.store.create_token(&account, &user, level, &hash, expires_at).await;
            database.close().await;
            made?;
            println!("{token}");
        }
        TokenCommand::Revoke { token, database } => {
            let Some(hash) = hash_token(&token) else { bail!("this is not a token of this service") };
            let database = Database::open(&database).await?;
            let ended = database.store.revoke_token(&hash).await;
            database.close().await;
            ended?;
        }
    }
    Ok(())
}
