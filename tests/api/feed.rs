//! The feed of changes under writers that do not wait for each other.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use vat_classification::domain::access::Plan;
use vat_classification::domain::{Product, ShopId};
use vat_classification::store::accounts::Caller;
use vat_classification::store::changes::Selection;
use vat_classification::store::products::{Asked, NewProduct};

use crate::app::App;

const WRITERS: usize = 8;
/// Transactions of each writer, products of each transaction, and events of each product.
const TRANSACTIONS: usize = 157;
const PRODUCTS: usize = 10;
const EVENTS: usize = 4;
/// How long the end of the feed is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_polls_while_many_write_misses_no_event_and_sees_none_twice() {
    let app = App::start().await;
    let caller = caller(&app).await;
    let asked = Asked::default();
    let running = AtomicUsize::new(WRITERS);
    let writer = async |writer: usize| {
        for transaction in 0..TRANSACTIONS {
            let product =
                |i| NewProduct { product_id: format!("{writer}-{transaction}-{i}"), product: Product::default() };
            let products: Vec<NewProduct> = (0..PRODUCTS).map(product).collect();
            let created = app.store.create_products(&caller, ShopId::GLOBAL, &products, &asked, false);
            created.await.expect("created");
        }
        running.fetch_sub(1, Ordering::SeqCst);
    };
    let written = WRITERS * TRANSACTIONS * PRODUCTS * EVENTS;
    let selection = Selection::default();
    let reader = async {
        let (mut seen, mut after, mut progress) = (Vec::new(), 0, Instant::now());
        loop {
            let finished = running.load(Ordering::SeqCst) == 0;
            let page = app.store.changes(caller.account, after, 1_000, &selection).await.expect("a page").items;
            match page.last() {
                Some(last) => (after, progress) = (last.sequence, Instant::now()),
                // What other databases of the server are at may hold the end back for a while.
                None if finished && (seen.len() >= written || progress.elapsed() > PATIENCE) => return seen,
                None => {}
            }
            seen.extend(page);
        }
    };
    let (seen, _) = tokio::join!(reader, join_all((0..WRITERS).map(writer)));
    let order: Vec<i64> = seen.iter().map(|change| change.sequence).collect();
    assert!(order.is_sorted_by(|before, after| before < after), "out of order");
    let events: HashSet<_> = seen.iter().map(|change| (&change.product_id, change.taxonomy())).collect();
    assert_eq!((seen.len(), events.len()), (written, written));
}

async fn caller(app: &App) -> Caller {
    let account = app.store.account_by_name("shop", "anna").await.expect("an answer").expect("the account");
    assert_eq!(account.plan, Plan::Unlimited);
    account
}
