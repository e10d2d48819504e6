//! Several addresses of one cluster, of which some are dead.

use serde_json::json;
use vat_classification::domain::ShopId;

use crate::fixture::{Fixture, criteria, details};
use crate::proxy::{Mode, Proxy};
use crate::support;

#[tokio::test(flavor = "multi_thread")]
async fn searches_go_on_while_any_node_answers_and_come_back_with_each() {
    let fixture = Fixture::new().await;
    let server = support::elasticsearch().await;
    let (first, second) = (Proxy::to(&server).await, Proxy::to(&server).await);
    let engine = fixture.elasticsearch_at(&format!("{},{}", first.url, second.url));
    let tea = details(json!({"languageAttributes": {"en": {"productName": "green tea"}}}));
    fixture.create(ShopId::GLOBAL, &[("tea".to_owned(), tea)]).await;
    first.set(Mode::Closed);
    engine.rebuild(&|_, _| {}).await.expect("an index, by the node that is left");
    let wanted = criteria(json!({"productName": "tea", "languageKey": "en"}));
    // The one that was passed over is asked when it alone is left.
    for (of_first, of_second) in [(Mode::Closed, Mode::Open), (Mode::Open, Mode::Closed), (Mode::Closed, Mode::Open)] {
        first.set(of_first);
        second.set(of_second);
        for _ in 0..4 {
            assert_eq!(fixture.all(&engine, 0, &wanted, 10).await, ["tea"], "{of_first:?} {of_second:?}");
        }
    }
    second.set(Mode::Closed);
    assert!(engine.page(&fixture.search(&wanted)).await.is_err(), "nobody is left");
}
