//! The subcommand `queue`: work that was set aside.

use chrono::Utc;

use crate::app::database::Database;
use crate::app::settings::{ParkedSettings, QueueCommand};
use crate::domain::ShopId;
use crate::store::Store;
use crate::store::parked::{PARKED_AT_ONCE, Queue};

pub(super) async fn run(command: QueueCommand) -> anyhow::Result<()> {
    let (QueueCommand::Parked(settings) | QueueCommand::Retry(settings)) = &command;
    let database = Database::open(&settings.database).await?;
    let done = async {
        // An account that is not there has nothing parked either, but whoever names it means another.
        if let Some(name) = &settings.account {
            database.store.require_account(name, name).await?;
        }
        match &command {
            QueueCommand::Parked(settings) => show(&database.store, settings).await,
            QueueCommand::Retry(settings) => retry(&database.store, settings).await,
        }
    };
    let done = done.await;
    database.close().await;
    done
}

fn queues(settings: &ParkedSettings) -> Vec<Queue> {
    settings.queue.map_or_else(|| Queue::ALL.to_vec(), |queue| vec![queue])
}

async fn show(store: &Store, settings: &ParkedSettings) -> anyhow::Result<()> {
    for queue in queues(settings) {
        let mut after = i64::MIN;
        loop {
            let parked = store.parked(queue, settings.account.as_deref(), after).await?;
            for work in &parked {
                let product = work.product_id.as_deref().unwrap_or("(deleted)");
                let shop = work.shop_id.and_then(|shop| ShopId::from_stored(shop).number());
                let shop = shop.map(|shop| shop.to_string()).unwrap_or_default();
                let reason = work.reason.replace(['\t', '\n', '\r'], " ");
                println!("{}\t{}\t{product}\t{shop}\t{}\t{reason}", queue.name(), work.account, work.parked_at);
            }
            match parked.last() {
                Some(last) if parked.len() as i64 == PARKED_AT_ONCE => after = last.product_key,
                _ => break,
            }
        }
    }
    Ok(())
}

async fn retry(store: &Store, settings: &ParkedSettings) -> anyhow::Result<()> {
    // What fails again meanwhile is not sent a second time.
    let (began, mut sent) = (Utc::now(), 0);
    for queue in queues(settings) {
        loop {
            let now = store.retry_parked(queue, settings.account.as_deref(), began).await?;
            sent += now;
            if now < PARKED_AT_ONCE.unsigned_abs() {
                break;
            }
        }
    }
    println!("{sent}");
    Ok(())
}
