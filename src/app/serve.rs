//! The service: starts what it needs, serves, and stops in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::accounts::new_token;
use crate::app::database::Database;
use crate::app::models::load_engine;
use crate::app::settings::ServeSettings;
use crate::app::{demonstration, first_token, logging, memory, metrics, reload};
use crate::embedded_postgres::DataDirLock;
use crate::exchange::Spool;
use crate::http::serve::{ServeLimits, serve};
use crate::http::{
    Admission, AppState, BASE_PATH, DatabaseWatch, Links, Services, Waiting, Wake, keep_metrics, operations, router,
    traces,
};
use crate::jobs;
use crate::pictures::{Inspector, PictureStore};
use crate::search;
use crate::store::pulse::Pulse;
use crate::webhooks;

/// The account that the first start makes, and the user of its token.
const FIRST_ACCOUNT: &str = "demo";
/// Where files lie while they come in, in the data directory.
const SPOOL: &str = "spool";

/// Connections that may wait to be accepted, as far as the system allows. One for which there is no room is not told so:
/// its client tries again after a second, and a probe of health has taken the service for dead by then.
const BACKLOG: u32 = 8_192;
/// Jobs of auto-assignment at one time: while the database stores the results of one, the other decides.
const ASSIGNERS: usize = 2;

/// What happens once the service is ready.
pub(super) enum Then {
    /// Nothing but serving.
    Serve,
    /// The samples are loaded and shown.
    Demonstrate,
}

pub(super) async fn run(settings: ServeSettings, then: Then) -> anyhow::Result<()> {
    let began = Instant::now();
    logging::start(&settings.log)?;
    let data_dir = &settings.database.data_dir;
    std::fs::create_dir_all(data_dir).with_context(|| format!("cannot make {}", data_dir.display()))?;
    let _lock = match settings.database.database_url {
        None => Some(DataDirLock::acquire(data_dir)?),
        Some(_) => None,
    };
    let listener = listen(settings.bind_addr).with_context(|| format!("cannot listen on {}", settings.bind_addr))?;
    let operations_listener = settings.metrics_addr.map(bind_operations).transpose()?;
    let address = listener.local_addr()?;
    let public_url = settings.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let shutdown = CancellationToken::new();
    stop_on_signals(shutdown.clone())?;

    let models = settings.models.clone();
    let loading = tokio::task::spawn_blocking(move || load_engine(&models));
    let database = Database::open(&settings.database).await?;
    let done = async {
        let engine = Arc::new(loading.await.context("loading the model")??);
        reload::keep_up_to_date(engine.clone(), settings.models.clone(), shutdown.clone())?;
        let recorder = metrics::record()?;
        let info = engine.model();
        metrics::tell_build(info.version, info.corpus);
        let state = AppState::from(Services {
            store: database.store.clone(),
            engine: engine.clone(),
            search: search::Engine::new(&settings.search, &database.store)?,
            search_deadline: settings.search.deadline(),
            pictures: Arc::new(PictureStore::open(data_dir, &settings.pictures)?),
            spool: Spool::new(&data_dir.join(SPOOL)),
            inspector: Arc::new(Inspector::new()),
            admission: Admission::new(&settings.admission),
            database: DatabaseWatch::default(),
            links: Arc::new(Links::new(&public_url)),
            wake: Wake::default(),
            waiting: Waiting::new(shutdown.clone()),
            webhooks: webhooks::Sender::new(&settings.webhooks)?,
            metrics: recorder,
            metrics_apart: settings.metrics_addr.is_some(),
        });
        let mut jobs = start_jobs(&state, &shutdown);
        jobs.spawn(traces::export(settings.traces.clone(), shutdown.clone()));
        if let Some(listener) = operations_listener {
            jobs.spawn_blocking({
                let (state, shutdown) = (state.clone(), shutdown.clone());
                move || serve_operations(listener, state, shutdown)
            });
        }
        greet(&database, &public_url, &settings).await?;
        if let Then::Demonstrate = then {
            demonstration::start(&database, engine, address).await?;
        }
        tracing::info!(%address, seconds = began.elapsed().as_secs_f64(), "ready");
        let limits = ServeLimits::new(&settings.connections, open_files());
        tracing::debug!(connections = limits.connections, "may be open at one time");
        let report = serve(listener, router(state), limits, shutdown.clone()).await;
        tracing::info!(connections = report.accepted, cut = report.cut, "stopping");
        shutdown.cancel();
        while jobs.join_next().await.is_some() {}
        anyhow::Ok(())
    };
    let done = done.await;
    database.close().await;
    done
}

/// Listens for clients, of whom many may come at one moment.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A service that starts again at once finds connections of the one before that are not quite closed.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn bind_operations(address: SocketAddr) -> anyhow::Result<std::net::TcpListener> {
    let listener =
        std::net::TcpListener::bind(address).with_context(|| format!("cannot listen for operators on {address}"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves health and metrics on a thread of its own, where nothing else can keep them waiting.
fn serve_operations(listener: std::net::TcpListener, state: AppState, shutdown: CancellationToken) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            serve(listener, operations(state), ServeLimits::default(), shutdown).await;
            Ok(())
        })
    });
    if let Err(error) = served {
        tracing::error!(%error, "health and metrics are not served");
    }
}

/// Raises the limit of open files as far as the system allows, and tells it.
fn open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// Jobs that go on until the service stops; each finishes what it has in hand.
fn start_jobs(state: &AppState, shutdown: &CancellationToken) -> JoinSet<()> {
    let mut running = JoinSet::new();
    let mut keep = |name: &'static str, begin: fn(AppState, CancellationToken) -> BoxFuture<'static, ()>| {
        let (state, shutdown) = (state.clone(), shutdown.clone());
        running.spawn(jobs::keep(name, shutdown.clone(), move || begin(state.clone(), shutdown.clone())));
    };
    keep("memory of the process", |_, shutdown| memory::give_back(shutdown).boxed());
    keep("database", |state, shutdown| state.database.clone().keep(Pulse::of(&state.store), shutdown).boxed());
    keep("metrics", |state, shutdown| keep_metrics(state.metrics.clone(), shutdown).boxed());
    keep("auto-assignment", |state, shutdown| assign(&state, true, shutdown));
    for _ in 1..ASSIGNERS {
        keep("auto-assignment", |state, shutdown| assign(&state, false, shutdown));
    }
    keep("projection", |state, shutdown| {
        let wake = state.wake.projection.clone();
        jobs::projection::run(state.store.clone(), state.search.clone(), wake, shutdown).boxed()
    });
    keep("sampling", |state, shutdown| jobs::sampling::run(state.store.clone(), shutdown).boxed());
    keep("memory of decisions", |state, shutdown| {
        let (wake, assigns) = (state.wake.memory.clone(), state.wake.auto_assignment.clone());
        jobs::memory::run(state.store.clone(), state.engine.clone(), wake, assigns, shutdown).boxed()
    });
    keep("review", |state, shutdown| {
        jobs::review::run(state.store.clone(), state.wake.review.clone(), shutdown).boxed()
    });
    keep("webhooks", |state, shutdown| {
        jobs::webhooks::run(state.store.clone(), state.webhooks.clone(), shutdown).boxed()
    });
    keep("rule changes", |state, shutdown| {
        jobs::rule_changes::run(state.store.clone(), state.engine.clone(), shutdown).boxed()
    });
    keep("past of the database", |state, shutdown| jobs::past::run(state.store.clone(), shutdown).boxed());
    keep("housekeeping", |state, shutdown| {
        jobs::housekeeping::run(state.store.clone(), state.pictures.clone(), shutdown).boxed()
    });
    running
}

/// Assigns; the first of several looks after what all have in common.
fn assign(state: &AppState, is_first: bool, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
    let (store, engine, wake) = (state.store.clone(), state.engine.clone(), state.wake.auto_assignment.clone());
    jobs::auto_assignment::run(store, engine, wake, is_first, shutdown).boxed()
}

/// On the first start, makes an account and tells its token, which nobody can be told again.
async fn greet(database: &Database, public_url: &str, settings: &ServeSettings) -> anyhow::Result<()> {
    if database.store.has_accounts().await? {
        return Ok(());
    }
    let (token, hash) = new_token()?;
    // Written before the account is made, so that a token in force is never lost for want of a file.
    let file = first_token::file(settings).map(|path| first_token::Written::new(path, &token)).transpose()?;
    if !database.store.create_first_account(FIRST_ACCOUNT, FIRST_ACCOUNT, &hash).await? {
        return Ok(());
    }
    let is_told = settings.first_token_file.is_none();
    let kept = file.map(first_token::Written::keep).transpose()?;
    let url = format!("{}{BASE_PATH}", public_url.trim_end_matches('/'));
    let (shown, sent) = if is_told {
        ("It is shown only now".to_owned(), token.clone())
    } else {
        let path = kept.unwrap_or_default();
        (format!("It is in the file {}", path.display()), format!("$(cat '{}')", path.display()))
    };
    let line = if is_told { format!("\n\n    {token}") } else { String::new() };
    println!(
        "The account \"{FIRST_ACCOUNT}\" was made, with an ADMIN token. {shown}:{line}\n\n\
         Classify a product:\n\n\
         curl -s {url}/classifications -H \"Authorization: Bearer {sent}\" -H 'Content-Type: application/json' \\\n  \
         -d '{{\"taxonomy\":\"TARIC\",\"items\":[{{\"languageAttributes\":{{\"de\":{{\"productName\":\"Herren T-Shirt Baumwolle\"}}}}}}]}}'\n"
    );
    Ok(())
}

fn stop_on_signals(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        shutdown.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    /// Less than the second after which a client tries again.
    const AT_ONCE: Duration = Duration::from_millis(900);

    #[tokio::test]
    async fn a_crowd_that_comes_at_one_moment_is_let_in_by_the_system() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("Linux");
        let allowed = allowed.trim().parse::<usize>().expect("a number").min(BACKLOG as usize);
        // Each has two ends in this process.
        let files = usize::try_from(open_files()).unwrap_or(usize::MAX);
        let crowd = allowed.min(1_500).min(files / 3);
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("it listens");
        let address = listener.local_addr().expect("an address");
        let connect = |number| {
            TcpStream::connect_timeout(&address, AT_ONCE).unwrap_or_else(|error| panic!("number {number}: {error}"))
        };
        let connected: Vec<TcpStream> = (0..crowd).map(connect).collect();
        assert_eq!(connected.len(), crowd);
    }
}
