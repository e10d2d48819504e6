//! All connections: how many there may be, how many of one peer, and who has to go when there are too many.
//!
//! Before the last places are taken, connections whose peer keeps the service waiting are closed, those that lie idle
//! first and each kind by how long it has waited. So a newcomer finds a place whatever others hold open; only connections
//! for which the service itself is at work are never closed for another.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::activity::{Activity, Waiting};

/// One of so many places is kept free for newcomers.
const SPARE: usize = 16;
/// How often a crowd without a free place looks again for somebody to close.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Places for connections; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: usize,
    per_peer: usize,
    patience: Duration,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    members: HashMap<u64, Member>,
    /// Members of each peer.
    peers: HashMap<IpAddr, usize>,
    /// Members that were told to go and have not gone yet.
    leaving: usize,
}

#[derive(Debug)]
struct Member {
    /// None for peers that may have any number of connections.
    peer: Option<IpAddr>,
    activity: Activity,
    leave: CancellationToken,
}

/// A place, until dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    crowd: Crowd,
    /// Cancelled when the connection has to go.
    pub(super) leave: CancellationToken,
}

/// The address that counts as one peer: of IPv6 a whole /64, which is what one customer of a network has.
pub(super) fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

impl Crowd {
    /// So many places in all, at least 1, and so many for each peer.
    /// Nobody is closed for another who has kept the service waiting for less than `patience`.
    pub(super) fn new(limit: usize, per_peer: usize, patience: Duration) -> Crowd {
        let inner = Inner {
            limit: limit.max(1),
            per_peer: per_peer.max(1),
            patience,
            state: Mutex::default(),
            left: Notify::new(),
        };
        Crowd { inner: Arc::new(inner) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when there is a free place, having closed others for it when need be.
    pub(super) async fn room(&self) {
        loop {
            let left = self.inner.left.notified();
            {
                let state = &mut *self.state();
                let (limit, spare) = (self.inner.limit, self.inner.limit / SPARE);
                // Those that were told to go and have not gone yet need no others to go with them.
                if state.members.len() - state.leaving + spare >= limit {
                    self.close_longest_waiting(state, spare.max(1), |_| true);
                }
                if state.members.len() < limit {
                    return;
                }
            }
            // A connection may begin to wait for its peer at any time, and tells nobody.
            let _ = tokio::time::timeout(LOOK_AGAIN, left).await;
        }
    }

    /// Gives a place to a connection of a peer; none when the peer has as many as it may, and the service is at work for
    /// all of them. Another of the peer's that keeps the service waiting is closed for it.
    pub(super) fn join(&self, number: u64, peer: Option<IpAddr>, activity: Activity) -> Option<Seat> {
        let state = &mut *self.state();
        if let Some(peer) = peer {
            let of_peer = |member: &Member| member.peer == Some(peer) && !member.leave.is_cancelled();
            let full = |count: usize| count >= self.inner.per_peer;
            if full(state.peers.get(&peer).copied().unwrap_or_default())
                && full(state.members.values().filter(|member| of_peer(member)).count())
                && self.close_longest_waiting(state, 1, of_peer) == 0
            {
                return None;
            }
            *state.peers.entry(peer).or_default() += 1;
        }
        let leave = CancellationToken::new();
        state.members.insert(number, Member { peer, activity, leave: leave.clone() });
        Some(Seat { number, crowd: self.clone(), leave })
    }

    /// Closes up to so many of those that wait for their peers, and tells how many.
    fn close_longest_waiting(&self, state: &mut State, most: usize, of: impl Fn(&Member) -> bool) -> usize {
        let State { members, leaving, .. } = state;
        let here = members.iter().filter(|(_, member)| !member.leave.is_cancelled() && of(member));
        let mut waiting: Vec<(Waiting, u64)> = here
            .filter_map(|(number, member)| Some((member.activity.waiting()?, *number)))
            .filter(|(waiting, _)| waiting.since().elapsed() >= self.inner.patience)
            .collect();
        waiting.sort_unstable();
        for (_, number) in waiting.iter().take(most) {
            if let Some(member) = members.get(number) {
                member.leave.cancel();
                *leaving += 1;
            }
        }
        waiting.len().min(most)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.crowd.state();
        if self.leave.is_cancelled() {
            state.leaving -= 1;
        }
        let peer = state.members.remove(&self.number).and_then(|member| member.peer);
        if let Some(peer) = peer
            && let Some(count) = state.peers.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                state.peers.remove(&peer);
            }
        }
        drop(state);
        self.crowd.inner.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn the_idle_go_first_then_the_slow_and_those_at_work_never() {
        let crowd = Crowd::new(4, 4, Duration::ZERO);
        let activities: Vec<Activity> = (0..4).map(|_| Activity::new()).collect();
        let seats: Vec<Seat> = activities
            .iter()
            .zip(0..)
            .map(|(activity, number)| crowd.join(number, peer(1), activity.share()).expect("a seat"))
            .collect();
        let slow = activities[0].begin();
        let body = activities[0].receive();
        let at_work = activities[1].begin();
        let close = || crowd.close_longest_waiting(&mut crowd.state(), 1, |_| true);
        let gone = || seats.iter().map(|seat| seat.leave.is_cancelled()).collect::<Vec<_>>();
        assert_eq!((close(), gone()), (1, vec![false, false, true, false]), "idle for longest");
        assert_eq!((close(), gone()), (1, vec![false, false, true, true]), "idle");
        assert_eq!((close(), gone()), (1, vec![true, false, true, true]), "slow to send");
        assert_eq!(close(), 0, "at work");
        drop((slow, body, at_work));
        assert_eq!((close(), gone()), (1, vec![true; 4]), "idle again");
        let patient = Crowd::new(4, 4, Duration::from_secs(3_600));
        let _seat = patient.join(1, peer(1), Activity::new()).expect("a seat");
        assert_eq!(patient.close_longest_waiting(&mut patient.state(), 1, |_| true), 0, "came a moment ago");
    }

    #[test]
    fn a_peer_has_a_limited_number_of_places_and_loses_its_own_first() {
        let crowd = Crowd::new(100, 2, Duration::ZERO);
        let join = |number, last| crowd.join(number, peer(last), Activity::new());
        let (first, second) = (join(1, 1).expect("a seat"), join(2, 1).expect("a seat"));
        let other = join(3, 2).expect("another peer's");
        let third = join(4, 1).expect("in place of the first");
        assert_eq!(
            [&first, &second, &third, &other].map(|seat| seat.leave.is_cancelled()),
            [true, false, false, false]
        );
        let busy = Activity::new();
        let _at_work = busy.begin();
        let crowd = Crowd::new(100, 1, Duration::ZERO);
        let _seat = crowd.join(1, peer(1), busy.share()).expect("a seat");
        assert!(crowd.join(2, peer(1), Activity::new()).is_none());
        assert!(crowd.join(3, None, Activity::new()).is_some(), "a trusted peer");
        assert!(crowd.join(4, None, Activity::new()).is_some(), "a trusted peer again");
    }

    #[test]
    fn addresses_of_one_customer_are_one_peer() {
        let same = |one: &str, other: &str| {
            peer_of(one.parse().expect("an address")) == peer_of(other.parse().expect("an address"))
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }
}
