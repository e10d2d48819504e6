//! Both engines and the reference evaluator select the same products.

use rayon::prelude::*;
use serde_json::json;
use vat_classification::domain::filter::Criteria;
use vat_classification::domain::{Details, Product, ShopId};
use vat_classification::search::{Engine, Search};
use vat_classification::store::pages::Position;
use vat_classification::store::products::{Asked, NewProduct};

use crate::catalogue::{self, Random};
use crate::fixture::{Fixture, criteria, details};

/// How many random criteria are tried; `SEARCH_CRITERIA` names another number.
const CRITERIA: usize = 2_000;
const PRODUCTS: usize = 300;
const SEED: u64 = 0x5eed;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Ids of the products that satisfy criteria, by the reference evaluator.
fn expected(criteria: &Criteria, products: &[(String, Details)]) -> Vec<String> {
    let holds = |product: &&(String, Details)| criteria.matches(&product.0, &product.1);
    let mut ids: Vec<String> = products.iter().filter(holds).map(|product| product.0.clone()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_agree_on_random_criteria() {
    let fixture = Fixture::new().await;
    let mut random = Random(setting("SEARCH_SEED", SEED as usize) as u64);
    let products = catalogue::products(&mut random, PRODUCTS);
    fixture.create(ShopId::GLOBAL, &products).await;
    let (postgres, elastic) = (fixture.postgres(), fixture.elasticsearch().await);
    let tried: Vec<(String, Criteria)> =
        (0..setting("SEARCH_CRITERIA", CRITERIA)).map(|_| catalogue::criteria(&mut random, &products)).collect();
    let expected: Vec<Vec<String>> = tried.par_iter().map(|(_, criteria)| expected(criteria, &products)).collect();
    // One after the other: changes go to one index, and the other is not known to be complete.
    for engine in [&postgres, &elastic] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        for ((json, criteria), expected) in tried.iter().zip(&expected) {
            let all = fixture.all(engine, 0, criteria, 1_000).await;
            assert_eq!(&all, expected, "{json} by {}", name(engine));
        }
    }
    let found = expected.iter().filter(|found| !found.is_empty() && found.len() < products.len()).count();
    assert!(found * 4 > tried.len(), "only {found} of {} criteria told products apart", tried.len());
}

fn name(engine: &Engine) -> &'static str {
    match engine {
        Engine::Postgres(_) => "PostgreSQL",
        Engine::Elasticsearch(_) => "Elasticsearch",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_forwards_and_backwards_in_code_point_order() {
    let fixture = Fixture::new().await;
    let ids = ["a", "B", "ä", "\u{ffee}", "\u{1f44d}", "b", "A", "Z 1"];
    let product = details(json!({"languageAttributes": {"en": {"productName": "thing"}}}));
    let products: Vec<(String, Details)> = ids.iter().map(|id| ((*id).to_owned(), product.clone())).collect();
    fixture.create(ShopId::GLOBAL, &products).await;
    fixture.create(ShopId::local(7).expect("a shop"), &products[..2]).await;
    let mut sorted: Vec<&str> = ids.to_vec();
    sorted.sort_unstable();
    let things = criteria(json!({"keywords": "thing"}));
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        assert_eq!(fixture.all(&engine, 0, &things, 3).await, sorted);
        assert_eq!(fixture.all(&engine, 7, &things, 3).await, ["B", "a"]);
        assert_eq!(fixture.all(&engine, 8, &things, 3).await, Vec::<String>::new());
        let before = Position::Before(sorted[5].to_owned());
        let page = fixture.page(&engine, 0, &things, &before, 3).await;
        assert_eq!(
            (page.items, page.more_before, page.more_after),
            (sorted[2..5].iter().map(|id| (*id).to_owned()).collect(), true, true)
        );
        let page = fixture.page(&engine, 0, &things, &Position::Before(sorted[2].to_owned()), 3).await;
        assert_eq!((page.items.len(), page.more_before, page.more_after), (2, false, true));

        let named = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<String>>();
        for (ids, count) in [(named(&["a", "b", "nobody"]), 2), (named(&[]), 0)] {
            let page = engine.page(&Search { product_ids: Some(&ids), ..fixture.search(&things) }).await;
            assert_eq!(page.expect("a page").items.len(), count);
        }
        let other = engine.page(&Search { account: fixture.caller.account + 1, ..fixture.search(&things) }).await;
        assert!(other.expect("a page").items.is_empty(), "another account's products are never found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_criteria_are_answered() {
    let fixture = Fixture::new().await;
    let name = "a b c d ".repeat(50);
    let product =
        details(json!({"languageAttributes": {"en": {"productName": name, "productTags": ["x".repeat(200)]}}}));
    fixture.create(ShopId::GLOBAL, &[("1".to_owned(), product)]).await;
    let alternating: Vec<_> = (0..32)
        .map(|i| json!({"keywords": "a -z or b", "operation": if i % 2 == 0 { "OR" } else { "AND" }}))
        .take(21)
        .chain((0..1).map(|_| json!({"keywords": "a"})))
        .collect();
    let cases = [
        (json!(alternating), true),
        (json!([{"keywords": "a ".repeat(64)}]), true),
        (json!([{"keywords": format!("\"{}a\"", "a b c d ".repeat(10).replace(' ', "-"))}]), true),
        (json!([{"keywords": format!("\"{}\"", "a ".repeat(2_000))}]), false),
        (json!([{"keywords": format!("\"a{}a\"", " ".repeat(195))}]), true),
        (json!([{"keywords": format!("\"a{}a\"", " ".repeat(8_000))}]), false),
        (json!([{"keywords": "y".repeat(8_000)}]), false),
        (json!([{"productTag": "x".repeat(200), "languageKey": "en"}]), true),
        (json!([{"productTag": "x".repeat(201), "languageKey": "en"}]), false),
    ];
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        for (json, found) in &cases {
            let criteria = Criteria::parse(&json.to_string()).expect("criteria");
            let page = fixture.page(&engine, 0, &criteria, &Position::Start, 50).await;
            assert_eq!(page.items.len(), usize::from(*found), "{json} by {}", self::name(&engine));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_and_shops_are_the_same_by_both() {
    let fixture = Fixture::new().await;
    let product = |name: &str| details(json!({"languageAttributes": {"en": {"productName": name}}}));
    let plain: Vec<(String, Details)> = (0..1_203).map(|at| (format!("p{at:04}"), product("plain thing"))).collect();
    fixture.create(ShopId::GLOBAL, &plain).await;
    for (id, shop_ids) in [("x1", vec![1]), ("x2", vec![1, 2]), ("x3", vec![3])] {
        let new = NewProduct {
            product_id: id.to_owned(),
            product: Product { shop_ids, product_details: product("shop's thing") },
        };
        let (asked, new) = (Asked::default(), [new]);
        let made = fixture.store.create_products(&fixture.caller, ShopId::GLOBAL, &new, &asked, false).await;
        made.expect("created");
    }
    for engine in [fixture.postgres(), fixture.elasticsearch().await] {
        engine.rebuild(&|_, _| {}).await.expect("an index");
        for (value, count) in
            [("thing", 1_206), ("plain", 1_203), ("\"plain\"", 1_203), ("shop -plain", 3), ("nothing", 0)]
        {
            let named = criteria(json!({"keywords": value}));
            let counted = engine.count(&Search { size: 1, ..fixture.search(&named) }).await.expect("a count");
            assert_eq!(counted, count, "{value} by {}", name(&engine));
        }
        let things = criteria(json!({"keywords": "thing"}));
        for (shops, found) in [(vec![1], "x1 x2"), (vec![2, 3], "x2 x3"), (vec![9], ""), (vec![], "")] {
            let search = Search { shop_ids: Some(&shops), ..fixture.search(&things) };
            let page = engine.page(&search).await.expect("a page");
            let ids: Vec<String> = page.items.into_iter().map(|found| found.product_id).collect();
            assert_eq!(ids.join(" "), found, "{shops:?} by {}", name(&engine));
            assert_eq!(
                engine.count(&search).await.expect("a count"),
                ids.len() as i64,
                "{shops:?} by {}",
                name(&engine)
            );
        }
    }
}
