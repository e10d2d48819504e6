//! Threads for what computes for long. They give way to those that serve connections: when there is more to do than
//! processors, the kernel lets a thread that has only little to do wait behind none of these.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, LazyLock};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle};

/// How much these threads give way, in the steps of nice(2): each has a ninth of the weight of one that serves.
const NICENESS: i32 = 10;
/// The most that a thread can give way.
#[cfg(target_os = "linux")]
const MOST: i32 = 19;

/// Bytes from which looking at them leaves the threads that serve connections: those below take about as long as it takes
/// to change the thread.
pub const LARGE_BYTES: usize = 256 << 10;
/// Turns at [`beside`] for each processor: so much is held in memory, at most, for those who wait for it no longer.
const TURNS_PER_CORE: usize = 2;

static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Arc::new(Semaphore::new(cores * TURNS_PER_CORE))
});

/// Nobody drives this runtime: only its threads for work that blocks are used, which come and go with the work.
static THREADS: LazyLock<std::io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().thread_name("computing").on_thread_start(give_way).build());

/// Computes on a thread that gives way. What was begun goes on when nobody waits for it any longer.
pub fn spawn<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match &*THREADS {
        Ok(threads) => threads.spawn_blocking(compute),
        // A system that gives no files for another runtime: the work is done, on the threads that there are.
        Err(_) => tokio::task::spawn_blocking(compute),
    }
}

/// Computes over so many bytes: here when they are few, and on a thread that gives way when they are many.
///
/// # Errors
/// When it panics.
pub async fn beside<T: Send + 'static>(
    bytes: usize,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if bytes <= LARGE_BYTES {
        return Ok(compute());
    }
    // Nobody closes the semaphore, so that the turn is never missing.
    let turn = Arc::clone(&TURNS).acquire_owned().await;
    let compute = move || {
        let _turn = turn;
        compute()
    };
    spawn(compute).await
}

/// Computes over so many bytes that cannot be moved elsewhere. When they are many, what else waits for this thread goes to
/// another one; where there is one only, as in most tests, there is no other.
pub fn in_place<T>(bytes: usize, compute: impl FnOnce() -> T) -> T {
    let is_one_of_many = || Handle::try_current().is_ok_and(|own| own.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE_BYTES && is_one_of_many() { tokio::task::block_in_place(compute) } else { compute() }
}

/// Computes about one thing of many. A panic becomes what it said, and costs that thing alone: what is computed keeps nothing
/// from one thing to the next that a panic could leave half changed.
///
/// # Errors
/// What a panic said.
pub fn guarded<T>(compute: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(compute)).map_err(said)
}

/// What a panic said.
pub fn said(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}

/// Lets this thread give way from now on; a program that may not take that back cannot undo it.
#[cfg(target_os = "linux")]
fn give_way() {
    use rustix::process::{getpriority_process, setpriority_process};
    // To Linux each thread has a niceness of its own; to other systems this would be that of the whole program.
    let raised = getpriority_process(None).and_then(|own| setpriority_process(None, (own + NICENESS).min(MOST)));
    if let Err(error) = raised {
        tracing::debug!(%error, "a thread does not give way");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn many_bytes_are_looked_at_elsewhere_and_few_here() {
        let here = std::thread::current().id();
        let id = || std::thread::current().id();
        assert_eq!(beside(LARGE_BYTES, id).await.expect("no panic"), here);
        assert_ne!(beside(LARGE_BYTES + 1, id).await.expect("no panic"), here);
        assert!(beside(LARGE_BYTES + 1, || panic!("a fault")).await.is_err());
        assert_ne!(beside(LARGE_BYTES + 1, id).await.expect("the turn is free again"), here);
    }

    #[test]
    fn others_are_served_while_something_computes_in_place() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let (serve, served) = std::sync::mpsc::channel();
        let computes = runtime.spawn(async move {
            tokio::spawn(async move { serve.send(()) });
            in_place(LARGE_BYTES + 1, || served.recv_timeout(std::time::Duration::from_secs(30)))
        });
        runtime.block_on(computes).expect("no panic").expect("the other is served");
    }

    #[tokio::test]
    async fn what_computes_gives_way_and_nobody_else_does() {
        let niceness = || getpriority_process(None).expect("a niceness");
        let own = niceness();
        assert_eq!(spawn(niceness).await.expect("no panic"), (own + NICENESS).min(MOST));
        assert_eq!(tokio::task::spawn_blocking(niceness).await.expect("no panic"), own);
    }
}
