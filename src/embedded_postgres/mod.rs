//! A private PostgreSQL server under the data directory, for when no `DATABASE_URL` is given.
//!
//! * The server programs are the machine's own, else a pinned bundle that is fetched once ([`programs`]).
//! * It listens on a Unix socket alone and asks for a password that lies in a file only its user may read.
//! * Every process that works with it holds a shared lock. The last one to leave stops the server, so a subcommand
//!   beside a running service, or a service started while a subcommand runs, takes nothing away from the other.
//! * A server that outlived its service (`kill -9`) is found by its pid file and adopted. One that dies is started again.
//!
//! Nothing here is known to the rest of the service, which sees a URL.

mod bundle;
mod cluster;
mod error;
mod lock;
mod pid_file;
mod place;
mod programs;
mod server;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use error::StartError;
pub use lock::{AlreadyRunning, DataDirLock};

use cluster::Cluster;
use lock::PlaceLocks;
use place::Place;
use server::Server;

/// The least and the greatest pause before a server that died is started again.
const RESTART_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// A running private PostgreSQL, and this process's claim that it goes on running.
///
/// Dropping it without [`EmbeddedPostgres::stop`] gives up the claim and leaves the server running; the next start
/// adopts it.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    place: Place,
    url: String,
    locks: PlaceLocks,
    stopping: CancellationToken,
    supervisor: JoinHandle<()>,
}

impl EmbeddedPostgres {
    /// Joins the server of `data_dir`, starting it, and creating its database cluster, where there is none.
    ///
    /// The directory is created when it is missing. Returns once the server accepts connections: about 0.2 s for an
    /// existing cluster, 2 s for a new one, longer after a crash with much to recover, or when the server programs have
    /// to be fetched first.
    ///
    /// # Errors
    ///
    /// See [`StartError`]; each message names what to do.
    pub async fn start(data_dir: &Path) -> Result<EmbeddedPostgres, StartError> {
        let place = Place::prepare(data_dir)?;
        let mut locks = PlaceLocks::open(place.root())?;
        let turn = locks.turn().await?;
        locks.join().await?;
        let cluster = Cluster::prepare(&place).await?;
        let server = Server::start_or_adopt(&place, cluster.programs()).await?;
        drop(turn);
        let url = cluster.url(&place);
        let stopping = CancellationToken::new();
        let supervisor = tokio::spawn(supervise(server, place.clone(), cluster, stopping.clone()));
        Ok(EmbeddedPostgres { place, url, locks, stopping, supervisor })
    }

    /// A connection URL that sqlx, psql and everything else on libpq understand. It holds the password.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Leaves the server, and stops it when no other process works with it. Open transactions are rolled back.
    ///
    /// Returns when the server has ended, after at most about half a minute. Failures are logged: there is nothing a
    /// caller could do about them, and the next start finds either state.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        if self.supervisor.await.is_err() {
            tracing::error!("the supervisor of the private PostgreSQL ended with a panic");
        }
        let turn = match self.locks.turn().await {
            Ok(turn) => turn,
            Err(error) => {
                tracing::error!(%error, "the private PostgreSQL was left running");
                return;
            }
        };
        if self.locks.leave_as_last() {
            server::stop(&self.place).await;
        }
        drop(turn);
    }
}

/// The URL of the server of `data_dir` when one is running and accepts connections; starts nothing.
pub fn running_url(data_dir: &Path) -> Option<String> {
    let place = Place::existing(data_dir)?;
    pid_file::PidFile::of_running(&place.cluster()).filter(pid_file::PidFile::is_ready)?;
    cluster::url(&place, &cluster::read_password(&place).ok()?).into()
}

/// Starts the server again whenever it ends unasked, until `stopping`.
async fn supervise(mut server: Server, place: Place, cluster: Cluster, stopping: CancellationToken) {
    while stopping.run_until_cancelled(server.ended()).await.is_some() {
        tracing::error!("the private PostgreSQL ended unexpectedly and is started again");
        match stopping.run_until_cancelled(restart(&place, &cluster)).await {
            Some(started) => server = started,
            None => return,
        }
    }
}

async fn restart(place: &Place, cluster: &Cluster) -> Server {
    let (mut pause, longest) = RESTART_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
        let started = async {
            let locks = PlaceLocks::open(place.root())?;
            let _turn = locks.turn().await?;
            Server::start_or_adopt(place, cluster.programs()).await
        };
        match started.await {
            Ok(server) => return server,
            Err(error) => tracing::error!(%error, "the private PostgreSQL does not start"),
        }
    }
}
