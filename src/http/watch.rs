//! Watching the database, so that nobody waits for one that is away.
//!
//! A request that meets a frozen or absent database would wait for its connection or its answer until some limit far
//! off. Instead one connection of its own asks for a sign of life several times a second. When there is none, requests
//! under way and those that come are answered 503 at once, until the database answers again.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::store::pulse::Pulse;

/// Pause between two questions.
const ROUND: Duration = Duration::from_millis(250);
/// The same while the database is away: until it is known to be back, everybody is refused. One connection that is refused
/// costs a fraction of a millisecond.
const ROUND_WHILE_AWAY: Duration = Duration::from_millis(50);
/// How long the database may take for a sign of life. With [`ROUND`], a request is answered within 2 s.
const LONGEST_SILENCE: Duration = Duration::from_millis(1_500);

/// What is known of the database; cheap to clone.
#[derive(Clone, Debug)]
pub struct DatabaseWatch {
    answers: watch::Sender<bool>,
}

impl Default for DatabaseWatch {
    /// Answers as far as is known.
    fn default() -> DatabaseWatch {
        DatabaseWatch { answers: watch::Sender::new(true) }
    }
}

impl DatabaseWatch {
    /// Whether the database answers, as far as is known.
    pub fn answers(&self) -> bool {
        *self.answers.borrow()
    }

    /// Notes whether the database answers. Requests under way hear of it.
    pub fn note(&self, answers: bool) {
        let changed = self.answers.send_if_modified(|known| std::mem::replace(known, answers) != answers);
        match (changed, answers) {
            (true, true) => tracing::info!("the database answers again"),
            (true, false) => tracing::error!("the database does not answer"),
            _ => {}
        }
    }

    /// Asks the database until the service stops.
    pub async fn keep(self, mut pulse: Pulse, shutdown: CancellationToken) {
        let asking = async {
            loop {
                let answers = pulse.beats(LONGEST_SILENCE).await;
                self.note(answers);
                tokio::time::sleep(if answers { ROUND } else { ROUND_WHILE_AWAY }).await;
            }
        };
        shutdown.run_until_cancelled(asking).await;
    }

    /// What the work comes to, unless the database goes away meanwhile.
    pub(super) async fn unless_away<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut answers = self.answers.subscribe();
        tokio::select! {
            biased;
            _ = answers.wait_for(|answers| !answers) => None,
            outcome = work => Some(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_under_way_and_new_work_end_when_the_database_goes_away_and_go_on_when_it_is_back() {
        let watch = DatabaseWatch::default();
        let mut under_way = Box::pin(watch.unless_away(std::future::pending::<()>()));
        assert!(futures::poll!(under_way.as_mut()).is_pending());
        watch.note(false);
        assert_eq!(under_way.await, None);
        assert_eq!(watch.unless_away(async { 1 }).now_or_never().expect("at once"), None);
        watch.note(true);
        assert_eq!(watch.unless_away(async { 1 }).await, Some(1));
    }
}
