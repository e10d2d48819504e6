//! Two versions of the service on one database, of which the later has another shape of the index.

use serde_json::json;
use vat_classification::domain::ShopId;
use vat_classification::search::{Engine, EngineError, SearchError};
use vat_classification::store::search::{IndexRecord, Outcome};

use crate::fixture::{Fixture, criteria, details};

/// Hands all that waits to an engine, as the job does.
async fn feed(fixture: &Fixture, engine: &Engine) -> Result<(), EngineError> {
    let mut claim = fixture.store.claim_search_changes(10).await.expect("a claim").expect("rows");
    let changes: Vec<_> = claim.take().0.into_iter().map(|product| product.change()).collect();
    match engine.apply(&changes).await {
        Ok(outcomes) => {
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done)));
            claim.finish(&changes.into_iter().zip(outcomes).collect::<Vec<_>>()).await.expect("finished");
            Ok(())
        }
        Err(error) => {
            claim.release().await.expect("given back");
            Err(error)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_wait_for_a_later_version_that_builds_its_index_and_go_on_when_it_is_taken_back() {
    for is_shared in [true, false] {
        let fixture = Fixture::new().await;
        let (engine, family) = match is_shared {
            true => (fixture.postgres(), "postgresql".to_owned()),
            false => fixture.elasticsearch_with_prefix().await,
        };
        let tea = details(json!({"languageAttributes": {"en": {"productName": "green tea"}}}));
        fixture.create(ShopId::GLOBAL, &[("1".to_owned(), tea.clone())]).await;
        engine.rebuild(&|_, _| {}).await.expect("an index");
        feed(&fixture, &engine).await.expect("fed");
        fixture.create(ShopId::GLOBAL, &[("2".to_owned(), tea)]).await;

        let right = fixture.store.lock_rebuild().await.expect("an answer").expect("the right");
        let name = format!("{family}-1000-1");
        let later = IndexRecord { name, family, mapping_version: 1_000, building: true, stale: false, built_to: None };
        fixture.store.add_search_index(&later).await.expect("begun");
        let fed = feed(&fixture, &engine).await;
        assert!(matches!(fed, Err(EngineError::Newer)), "{fed:?}");
        assert!(matches!(engine.ensure(&|_, _| {}).await, Err(EngineError::Newer)));
        assert_eq!(
            fixture.store.search_queue_length().await.expect("a count"),
            1,
            "the change waits for the later one"
        );
        // In the database its documents may be among those that a search would look at.
        let wanted = criteria(json!({"productName": "tea", "languageKey": "en"}));
        match engine.page(&fixture.search(&wanted)).await {
            Ok(page) => assert!(!is_shared && page.items.len() == 1, "{page:?}"),
            Err(error) => assert!(is_shared && matches!(error, SearchError::Unavailable(_)), "{error:?}"),
        }

        assert!(!engine.take_back().await.expect("an answer"), "it is being built");
        right.release().await.expect("released");
        assert!(engine.take_back().await.expect("an answer"));
        assert!(!engine.take_back().await.expect("an answer"), "there is nothing left to take back");
        let is_made_anew = engine.ensure(&|_, _| {}).await.expect("an index");
        assert_eq!(is_made_anew, is_shared, "what a later version may have written to is made anew");
        feed(&fixture, &engine).await.expect("fed again");
        engine.refresh().await.expect("visible");
        assert_eq!(fixture.all(&engine, 0, &wanted, 10).await, ["1", "2"]);
        assert_eq!(engine.verify(&|_| {}).await.expect("verified").differences, 0);
        // Elasticsearch would be asked for half a minute whether the new index can be made small.
        if is_shared {
            let finished = IndexRecord { building: false, ..later };
            fixture.store.add_search_index(&finished).await.expect("finished");
            assert!(matches!(engine.ensure(&|_, _| {}).await, Err(EngineError::Newer)));
            assert!(!engine.take_back().await.expect("an answer"), "it is complete");
            engine.rebuild(&|_, _| {}).await.expect("what an operator asks for who has come back");
            assert_eq!(fixture.all(&engine, 0, &wanted, 10).await, ["1", "2"]);
        }
    }
}
