//! Gives memory back to the system after it was needed.

use std::fs;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often it looks.
const ROUND: Duration = Duration::from_secs(3);
/// How much more than it had when it held least the process must hold before anything is given back.
const GROWTH_BYTES: usize = 24 << 20;
/// Giving back less than this was hardly worth the while: the next look that gives back is further off.
const GAIN_BYTES: usize = 8 << 20;
/// Most rounds from one time to the next, so that what a burst took is gone 20 s after its end.
const LONGEST_PAUSE: u32 = 4;
/// Bytes of a page, as the system counts in `/proc/self/statm`.
const PAGE_BYTES: usize = 4_096;

/// Runs until the service stops. The allocator keeps what was freed for the next time; after a burst that is most of
/// what the process holds, and the next burst may never come. The start is the first one.
pub(super) async fn give_back(shutdown: CancellationToken) {
    let mut known = Known::default();
    while shutdown.run_until_cancelled(tokio::time::sleep(ROUND)).await.is_some() {
        let Some(held) = resident() else { return };
        if !known.is_due(held) {
            continue;
        }
        if tokio::task::spawn_blocking(trim).await.is_err() {
            return;
        }
        known.note(held, resident().unwrap_or(held));
    }
}

/// What is known of the memory that the process holds, in bytes. How much of it is freed cannot be told: what was in use
/// in the middle of a burst is freed at its end without the process holding more or less.
#[derive(Default)]
struct Known {
    /// The least that it held.
    least: Option<usize>,
    /// What it held after the last time.
    left: usize,
    /// Rounds from the last time to the next, and how many of them are still to come.
    pause: u32,
    to_come: u32,
}

impl Known {
    /// Whether something is to be given back now, by what the process holds.
    fn is_due(&mut self, held: usize) -> bool {
        self.to_come = self.to_come.saturating_sub(1);
        let Some(least) = self.least else { return true };
        self.least = Some(least.min(held));
        let has_grown = held >= self.left + GROWTH_BYTES;
        has_grown || (held >= least + GROWTH_BYTES && self.to_come == 0)
    }

    /// Notes what the process held before something was given back, and after.
    fn note(&mut self, before: usize, after: usize) {
        let is_worth_it = before.saturating_sub(after) >= GAIN_BYTES;
        self.pause = if is_worth_it { 1 } else { (self.pause * 2).clamp(1, LONGEST_PAUSE) };
        self.to_come = self.pause;
        self.left = after;
        self.least = Some(self.least.map_or(after, |least| least.min(after)));
    }
}

/// Bytes of memory that the process holds; none where the system does not tell.
fn resident() -> Option<usize> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * PAGE_BYTES)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn trim() {
    // SAFETY: takes no pointer, and may be called from any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_at_the_end_of_a_burst_goes_back_and_what_stays_in_use_costs_little() {
        const MIB: usize = 1 << 20;
        let mut known = Known::default();
        let (mut needed, mut held, mut times) = (60 * MIB, 90 * MIB, 0);
        let mut rounds = |count: u32, needed: usize, held: &mut usize| {
            times = 0;
            for _ in 0..count {
                *held = needed.max(*held);
                if known.is_due(*held) {
                    let before = std::mem::replace(held, needed);
                    known.note(before, *held);
                    times += 1;
                }
            }
            times
        };
        assert_eq!(
            (rounds(10, needed, &mut held), held),
            (1, 60 * MIB),
            "the start is a burst, and quiet costs nothing"
        );
        needed = 500 * MIB;
        assert!(rounds(40, needed, &mut held) <= 12, "what is in use is seldom looked through");
        assert_eq!(held, 500 * MIB);
        needed = 70 * MIB;
        rounds(LONGEST_PAUSE, needed, &mut held);
        assert_eq!(held, 70 * MIB, "nothing grew, and what was freed is gone all the same");
        assert_eq!(rounds(20, needed, &mut held), 0);
    }

    #[test]
    fn what_was_freed_goes_back_to_the_system() {
        // Many pieces below the size that has pages of its own, with some of them kept.
        let pieces: Vec<Vec<u8>> = (0..200_000).map(|_| vec![1; 500]).collect();
        let full = resident().expect("a figure");
        let kept: Vec<Vec<u8>> = pieces.into_iter().step_by(10_000).collect();
        trim();
        let left = resident().expect("a figure");
        assert!(full - left > 50 << 20, "{full} bytes before, {left} after, {} pieces kept", kept.len());
    }
}
