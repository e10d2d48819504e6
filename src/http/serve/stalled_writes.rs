//! A stream whose writes fail when its peer takes nothing for too long, or too little on average.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::activity::Activity;
use super::pace::Pace;

/// Wraps a stream; reading is not touched.
///
/// The time for which writes may wait for the peer shrinks while they do, and grows with every byte that is taken: by as much
/// as the byte would take at the least rate, and up to the grace. So a peer that takes nothing is cut after the grace, and
/// one that takes a byte now and then, to hold the memory of its answer, a little later.
pub(super) struct StalledWrites<S> {
    stream: S,
    pace: Pace,
    /// Told when the peer takes nothing, and when it takes something again.
    activity: Activity,
    /// For how long writes may wait.
    left: Duration,
    /// Set while a write waits for the peer: since when, and until when it may.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> StalledWrites<S> {
    pub(super) fn new(stream: S, pace: Pace, activity: Activity) -> StalledWrites<S> {
        StalledWrites { stream, pace, activity, left: pace.grace, waiting: None }
    }

    /// Passes on the outcome of a write, or fails when none has come through in time.
    fn judge<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        taken: impl FnOnce(&T) -> usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(outcome) = outcome {
            if let Some((since, _)) = self.waiting.take() {
                self.left = self.left.saturating_sub(since.elapsed());
                self.activity.stall(None);
            }
            let bytes = outcome.as_ref().map_or(0, taken);
            let earned = Duration::from_secs_f64(bytes as f64 / self.pace.bytes_per_second.max(1) as f64);
            self.left = (self.left + earned).min(self.pace.grace);
            return Poll::Ready(outcome);
        }
        if self.waiting.is_none() {
            self.activity.stall(Some(std::time::Instant::now()));
        }
        let left = self.left;
        let (_, deadline) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + left)))
        });
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes too little")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StalledWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StalledWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(outcome, |taken| *taken, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(outcome, |taken| *taken, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(outcome, |()| 0, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(outcome, |()| 0, context)
    }
}
