//! Gives memory back to the system after it was needed.

use std::fs;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often it looks.
const ROUND: Duration = Duration::from_secs(3);
/// How much more than after the last time the process must hold before anything is given back.
const GROWTH_BYTES: usize = 24 << 20;
/// Bytes of a page, as the system counts in `/proc/self/statm`.
const PAGE_BYTES: usize = 4_096;

/// Runs until the service stops. The allocator keeps what was freed for the next time; after a burst that is most of
/// what the process holds, and the next burst may never come. The start is the first one.
pub(super) async fn give_back(shutdown: CancellationToken) {
    let mut lowest = 0;
    while shutdown.run_until_cancelled(tokio::time::sleep(ROUND)).await.is_some() {
        let Some(held) = resident() else { return };
        if held < lowest + GROWTH_BYTES {
            lowest = lowest.min(held);
            continue;
        }
        if tokio::task::spawn_blocking(trim).await.is_err() {
            return;
        }
        lowest = resident().unwrap_or(held);
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
