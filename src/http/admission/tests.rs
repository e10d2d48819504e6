use axum::body::Body;
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::http::serve::{ServeLimits, serve};

/// How long these tests let anybody wait.
const SHORT: Duration = Duration::from_millis(20);

/// How long memory may take to come back once a client is gone.
const UNTIL_GIVEN_BACK: Duration = Duration::from_secs(60);

fn small() -> Arc<Admission> {
    let settings = AdmissionSettings { max_requests: 4, request_memory_mib: 64, ..AdmissionSettings::default() };
    Admission::with_wait(&settings, SHORT)
}

fn is_refused<T>(outcome: Result<T, ApiError>) -> bool {
    matches!(outcome, Err(ApiError::Unavailable(_)))
}

#[tokio::test]
async fn who_finds_the_queue_full_is_refused_at_once_and_who_waits_too_long_a_little_later() {
    let turnstile = Turnstile::new(1, 1, SHORT);
    let first = turnstile.enter().await.expect("a place");
    let mut second = Box::pin(turnstile.enter());
    assert!(futures::poll!(second.as_mut()).is_pending());
    assert!(turnstile.is_full());
    assert!(turnstile.enter().now_or_never().expect("at once").is_none());
    drop(first);
    let second = second.await.expect("the place of the first");
    assert!(turnstile.enter().await.is_none(), "nobody leaves");
    drop(second);
    assert!(turnstile.enter().await.is_some());
}

#[tokio::test]
async fn an_account_leaves_a_quarter_to_the_others() {
    let admission = small();
    let tabs: Vec<Tab> = (0..4).map(|_| admission.tab(1)).collect();
    for tab in &tabs[..3] {
        tab.enter().await.expect("a place");
    }
    assert!(is_refused(tabs[3].enter().await));
    admission.tab(2).enter().await.expect("a place of the others");
    drop(tabs);
    admission.tab(1).enter().await.expect("a place again");
}

#[tokio::test]
async fn bytes_are_held_until_the_request_is_over_and_no_further() {
    let admission = small();
    let tab = admission.tab(1);
    tab.charge(30 << 20).await.expect("30 of 48 MiB");
    assert!(is_refused(admission.tab(1).charge(30 << 20).await));
    admission.tab(2).charge(30 << 20).await.expect("30 of the other's 34 MiB");
    let clone = tab.clone();
    drop(tab);
    assert!(is_refused(admission.tab(1).charge(30 << 20).await), "a clone still holds them");
    drop(clone);
    admission.tab(1).charge(30 << 20).await.expect("they came back");
}

#[tokio::test]
async fn what_is_larger_than_the_share_takes_all_of_it_and_does_not_wait_for_ever() {
    let admission = small();
    let tab = admission.tab(1);
    tab.charge(1 << 20).await.expect("a part");
    tab.charge(1 << 40).await.expect("the whole share");
    assert!(is_refused(admission.tab(1).charge(1).await));
}

#[tokio::test]
async fn a_request_waits_no_longer_for_several_things_than_for_one() {
    let admission = small();
    let (holder, tab) = (admission.tab(1), admission.tab(1));
    holder.charge(48 << 20).await.expect("the whole share");
    assert!(is_refused(tab.charge(1).await));
    // It has waited for as long as it may; what is there it still gets.
    assert!(is_refused(tab.charge(1).now_or_never().expect("at once")));
    tab.enter().now_or_never().expect("at once").expect("a place");
    drop(holder);
    tab.charge(1).now_or_never().expect("at once").expect("bytes");
}

#[tokio::test]
async fn a_large_answer_is_charged_until_it_is_dropped() {
    let admission = small();
    let large = || Response::new(Body::from(vec![0; 40 << 20]));
    let answer = admission.tab(1).send(large(), false).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(admission.tab(1).send(large(), false).await.status(), 503);
    assert_eq!(admission.tab(1).send(Response::new(Body::from("small")), false).await.status(), 200);
    drop(answer);
    assert_eq!(admission.tab(1).send(large(), false).await.status(), 200);
}

#[tokio::test]
async fn who_holds_memory_waits_for_nobody_who_holds_none() {
    let admission = small();
    let (lists, late) = ([admission.tab(1), admission.tab(1)], admission.tab(1));
    for list in &lists {
        list.charge(24 << 20).await.expect("half of the 48 MiB");
    }
    let mut waiting = Box::pin(late.charge(24 << 20));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    let [first, second] = lists;
    first.cover(20 << 20).now_or_never().expect("at once").expect("it holds more");
    let page = Response::new(Body::from(vec![0; 20 << 20]));
    let answer = first.send(page, false).now_or_never().expect("at once");
    assert_eq!(answer.status(), 200);
    drop((answer, first));
    waiting.await.expect("what the first held");
    assert!(is_refused(second.cover(25 << 20).await), "there is no more");
}

#[tokio::test]
async fn a_change_that_was_made_is_told_whatever_memory_there_is() {
    let admission = small();
    let holder = admission.tab(1);
    holder.charge(48 << 20).await.expect("the whole share");
    let large = || Response::new(Body::from(vec![0; 40 << 20]));
    assert_eq!(admission.tab(1).send(large(), false).await.status(), 503);
    assert_eq!(admission.tab(1).send(large(), true).await.status(), 200);
}

#[tokio::test]
async fn a_large_answer_is_charged_while_its_client_does_not_read_it() {
    let admission = small();
    let tab = admission.tab(1);
    let large = move || {
        let tab = tab.clone();
        async move { tab.send(Response::new(Body::from(vec![0; 40 << 20])), false).await }
    };
    let app = axum::Router::new().route("/", axum::routing::get(large));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve(listener, app, ServeLimits::default(), CancellationToken::new()));
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("sent");
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("a status");
    assert_eq!(&status, b"HTTP/1.1 200");
    assert!(is_refused(admission.tab(1).charge(40 << 20).await), "nobody has read it");
    drop(client);
    let began = Instant::now();
    while is_refused(admission.tab(1).charge(40 << 20).await) {
        assert!(began.elapsed() < UNTIL_GIVEN_BACK, "it is not given back");
    }
}

#[tokio::test]
async fn work_of_a_request_that_was_given_up_takes_no_further_turn() {
    let admission = small();
    let work = admission.tab(1).work().await.expect("a place");
    let (told, turns) = std::sync::mpsc::channel();
    let long = async {
        for turn in 0..1_000 {
            let told = told.clone();
            work.turn(move || told.send(turn)).await.expect("a turn").expect("the test listens");
        }
    };
    let mut long = Box::pin(long);
    while turns.try_recv().is_err() {
        assert!(futures::poll!(long.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    drop(long);
    drop(told);
    assert!(turns.iter().count() < 1_000);
}

#[tokio::test]
async fn a_panic_of_the_work_is_an_error_and_gives_its_turn_back() {
    let admission = small();
    let work = admission.tab(1).work().await.expect("a place");
    for _ in 0..100 {
        let outcome = work.turn(|| panic!("a fault")).await;
        assert!(matches!(outcome, Err::<(), _>(ApiError::Internal(_))));
    }
}

#[tokio::test]
async fn an_account_without_a_place_is_known_to_have_none_by_its_token() {
    let admission = small();
    let (token, other) = ([1; 32], [2; 32]);
    admission.remember(token, 1);
    admission.remember(other, 2);
    assert!(!admission.is_full(|| Some(token)));
    let tabs: Vec<Tab> = (0..3).map(|_| admission.tab(1)).collect();
    for tab in &tabs {
        tab.enter().await.expect("a place");
    }
    // Three quarters of eight for each of four places.
    let waiting: Vec<Tab> = (0..24).map(|_| admission.tab(1)).collect();
    let mut waiting: Vec<_> = waiting.iter().map(|tab| Box::pin(tab.enter())).collect();
    for wait in &mut waiting {
        assert!(futures::poll!(wait.as_mut()).is_pending());
    }
    assert!(admission.is_full(|| Some(token)));
    // Another account has places, and nobody knows whose a request without a token is.
    assert!(!admission.is_full(|| Some(other)) && !admission.is_full(|| None));
    drop(waiting);
    assert!(!admission.is_full(|| Some(token)), "there is room to wait");
}

#[tokio::test]
async fn reads_that_come_while_an_account_has_no_place_wait_for_it() {
    let admission = Admission::new(&AdmissionSettings::default());
    let writing: Vec<Tab> = (0..24).map(|_| admission.tab(1)).collect();
    for tab in &writing {
        tab.enter().await.expect("a place");
    }
    // What comes in 0.4 s at 500 reads a second. Each leaves when it has had its place.
    let read = |tab: Tab| Box::pin(async move { tab.enter().await });
    let mut reading: Vec<_> = (0..192).map(|_| read(admission.tab(1))).collect();
    for wait in &mut reading {
        assert!(futures::poll!(wait.as_mut()).is_pending());
    }
    assert!(is_refused(admission.tab(1).enter().now_or_never().expect("at once")));
    drop(writing);
    for wait in reading {
        wait.await.expect("a place");
    }
}
