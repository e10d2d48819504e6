//! The subcommands `account` and `token`; they work beside a running service and without one.

use std::time::Duration;

use anyhow::{Context, bail};
use chrono::{DateTime, Days, SecondsFormat, Utc};

use crate::app::database::{check_url, on};
use crate::app::remembered;
use crate::app::settings::{AccountCommand, NamedAccount, TokenCommand};
use crate::domain::access::{TOKEN_RANDOM_BYTES, TokenHash, hash_token, write_token};
use crate::store::Store;
use crate::store::operators::{AccountRow, TokenListing, Tokens};

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
            on(&database, async |store| Ok(store.create_account_with(&name, plan, precision).await?)).await?;
            println!("{name}");
        }
        AccountCommand::Precision { name, precision, database } => {
            on(&database, async |store| Ok(store.set_precision(&name, precision).await?)).await?;
            println!("{name} {:.2}", precision.share());
        }
        AccountCommand::Plan { name, plan, database } => {
            on(&database, async |store| Ok(store.set_plan(&name, plan).await?)).await?;
            println!("{name} {}", plan.name());
        }
        AccountCommand::List { database } => {
            for account in on(&database, async |store| Ok(store.accounts().await?)).await? {
                println!("{}", account_line(&account));
            }
        }
        AccountCommand::Disable(NamedAccount { name, database }) => {
            on(&database, async |store| Ok(store.set_disabled(&name, true).await?)).await?;
            println!("{name} disabled");
        }
        AccountCommand::Enable(NamedAccount { name, database }) => {
            on(&database, async |store| Ok(store.set_disabled(&name, false).await?)).await?;
            println!("{name} active");
        }
        AccountCommand::Delete(NamedAccount { name, database }) => {
            let products = on(&database, async |store| Ok(store.delete_account(&name).await?)).await?;
            println!("{name} deleted with {products} products");
        }
        AccountCommand::Move { account: NamedAccount { name, database }, to, wait_s } => {
            check_url(&to)?;
            let products = on(&database, async |store| {
                let target =
                    Store::connect_with(&to, &database.pool).await.context("cannot connect to the other database")?;
                target.migrate().await.context("cannot bring the other database's schema up to date")?;
                let told = |table: &str, rows| eprintln!("{table}: {rows}");
                let moved = store.move_account(&name, &target, Duration::from_secs(wait_s), told).await;
                target.pool().close().await;
                Ok(moved?)
            });
            println!("{name} moved with {} products", products.await?);
        }
        AccountCommand::Memory { command } => remembered::run(command).await?,
    }
    Ok(())
}

fn account_line(account: &AccountRow) -> String {
    let AccountRow { name, plan, .. } = account;
    let state = match (account.moving, account.disabled) {
        (true, _) => "moving",
        (false, true) => "disabled",
        (false, false) => "active",
    };
    format!("{name}\t{plan}\t{:.2}\t{state}\t{}", account.precision().share(), instant(Some(account.created_at)))
}

pub(super) async fn token(command: TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create { account, user, level, expires_days, database } => {
            let (token, hash) = new_token()?;
            let expires_at = expires_days.and_then(|days| Utc::now().checked_add_days(Days::new(u64::from(days))));
            on(&database, async |store| Ok(store.create_token(&account, &user, level, &hash, expires_at).await?))
                .await?;
            println!("{token}");
        }
        TokenCommand::List { account, database } => {
            for token in on(&database, async |store| Ok(store.tokens(account.as_deref()).await?)).await? {
                println!("{}", token_line(&token));
            }
        }
        TokenCommand::Revoke { token: Some(token), database, .. } => {
            let Some(hash) = hash_token(&token) else { bail!("this is not a token of this service") };
            on(&database, async |store| Ok(store.revoke_token(&hash).await?)).await?;
        }
        TokenCommand::Revoke { token: None, id, account, user, database } => {
            let which = match (&id, &account, &user) {
                (Some(id), _, _) => Tokens::Id(id),
                (None, Some(account), Some(user)) => Tokens::User { account, user },
                _ => bail!("name a token, its --id, or its --account and --user"),
            };
            let ended = on(&database, async |store| Ok(store.revoke_tokens(which).await?)).await?;
            println!("{ended}");
        }
    }
    Ok(())
}

fn token_line(token: &TokenListing) -> String {
    let TokenListing { token_id, account, user_name, level, .. } = token;
    let times = [Some(token.created_at), token.expires_at, token.last_used_at, token.revoked_at].map(instant);
    format!("{token_id}\t{account}\t{user_name}\t{level}\t{}", times.join("\t"))
}

fn instant(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}
