//! The accept loop: HTTP/1.1 and HTTP/2 (without TLS, by prior knowledge) over TCP, bounded in every direction.
//!
//! axum's own has no limit on how long a client may take to send its headers, nor on the number of connections. Here a
//! connection is cut when its first request does not arrive in time, when it lies idle, when a body arrives too slowly,
//! when its peer takes nothing of what is sent to it or too little, and when others need its place while it waits for its
//! peer. How long a request may take in itself, body included, is for the router to say.

mod activity;
mod crowd;
mod limits;
mod linger;
mod pace;
mod stalled_writes;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use activity::Activity;
use crowd::{Crowd, Seat};
pub use limits::{ConnectionSettings, ServeLimits};
use linger::Lingering;
pub use pace::Pace;
use pace::Paced;
pub(in crate::http) use pace::is_too_slow;
use stalled_writes::StalledWrites;

/// Bytes of a request's line and headers together. A percent-encoded filterCriteria of 8 KiB takes 24 KiB of line.
const HEADER_BYTES: usize = 128 << 10;
/// Number of headers of one request.
const HEADERS: usize = 100;
/// Requests under way at one time on one HTTP/2 connection.
const STREAMS: u32 = 64;
/// How often an HTTP/2 peer is asked for a sign of life, and how long it may take to give one.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));
/// The least and the greatest pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// How a [`serve`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeReport {
    /// Connections accepted from start to end.
    pub accepted: u64,
    /// Connections with requests under way that were cut when the time to drain was over.
    pub cut: usize,
}

/// Serves `app` on `listener` until `shutdown`, then accepts no more, closes idle connections, lets requests under way
/// finish for at most [`ServeLimits::drain`], and cuts what is left.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
) -> ServeReport {
    let crowd = Crowd::new(limits.connections, limits.per_peer, limits.patience);
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let mut accepted = 0;
    while let Some((stream, peer)) = shutdown.run_until_cancelled(accept(&listener, &crowd)).await {
        let activity = Activity::new();
        let Some(seat) = crowd.join(accepted, limits.peer(peer.ip()), activity.share()) else { continue };
        accepted += 1;
        let connection = serve_connection(stream, app.clone(), limits.clone(), shutdown.clone(), activity, seat);
        let cut = cut.clone();
        connections.spawn(async move {
            cut.run_until_cancelled(connection).await;
        });
    }
    drop(listener);
    connections.close();
    let drained = tokio::time::timeout(limits.drain, connections.wait()).await;
    let left = if drained.is_ok() { 0 } else { connections.len() };
    if left > 0 {
        tracing::warn!(connections = left, "cutting connections whose requests did not finish in time");
    }
    cut.cancel();
    connections.wait().await;
    ServeReport { accepted, cut: left }
}

/// Waits for a free place first and a connection then, so that those who find no place wait outside.
async fn accept(listener: &TcpListener, crowd: &Crowd) -> (TcpStream, SocketAddr) {
    let mut failures = 0;
    loop {
        crowd.room().await;
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                if let Some(pause) = pause_after(&error, failures) {
                    tracing::error!(%error, "cannot accept a connection");
                    failures += 1;
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// How long to wait after the failure to accept that follows `failures` others: not at all when only the one client that
/// was to be accepted is gone, and ever longer when the system lacks something.
fn pause_after(error: &io::Error, failures: u32) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return None;
    }
    let (shortest, longest) = ACCEPT_PAUSE;
    Some(shortest.saturating_mul(2_u32.saturating_pow(failures)).min(longest))
}

async fn serve_connection(
    stream: TcpStream,
    app: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
    activity: Activity,
    seat: Seat,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection ended before it began");
        return;
    }
    let service = service_fn(|request: Request<Incoming>| {
        let under_way = activity.begin();
        let receiving = (!request.body().is_end_stream()).then(|| activity.receive());
        // A client that asks first sends nothing after a refusal; reading on would be telling it to send.
        let lingers = receiving.is_some() && !request.headers().contains_key(header::EXPECT);
        let answer = app.clone().oneshot(request.map(|body| {
            let body = Body::new(Paced::new(body, limits.pace, receiving));
            if lingers { Body::new(Lingering::new(body)) } else { body }
        }));
        async move { Ok::<_, Infallible>(under_way.until_sent(answer.await?)) }
    });
    let builder = builder(&limits);
    let io = TokioIo::new(StalledWrites::new(stream, limits.answers, activity.share()));
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut idle = pin!(activity.idle_for_too_long(limits.first_request, limits.idle));
    let mut shutting_down = false;
    loop {
        tokio::select! {
            outcome = &mut connection => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = &mut idle => return,
            () = seat.leave.cancelled() => return,
            () = shutdown.cancelled(), if !shutting_down => {
                shutting_down = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn builder(limits: &ServeLimits) -> auto::Builder<TokioExecutor> {
    let (ping, pong) = PING;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_headers(HEADERS)
        .max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES as u32)
        .keep_alive_interval(ping)
        .keep_alive_timeout(pong);
    builder
}

#[cfg(test)]
mod tests;
