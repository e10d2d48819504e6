//! Lists: pages and links.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use vat_classification::jobs::projection;

use crate::app::App;

fn ids(page: &Value) -> Vec<String> {
    page["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["productId"].as_str())
        .map(str::to_owned)
        .collect()
}

async fn walk(app: &App, first: &str, direction: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut next = Some(first.to_owned());
    while let Some(path) = next {
        let page = app.get(&path).await.expect(200);
        let link = page.headers["link"].to_str().expect("a header").to_owned();
        assert!(link.contains("rel=\"self\""), "{link}");
        assert_eq!(link.contains("rel=\"next\""), page.body["links"]["next"].is_string());
        pages.push(ids(&page.body));
        next = page.body["links"][direction].as_str().map(str::to_owned);
    }
    pages
}

#[tokio::test]
async fn walking_the_links_visits_each_product_once_in_code_point_order() {
    let app = App::start().await;
    let names = ["b", "a", "B", "ä", "z", "Z", "10", "9", "\u{ffff}", "😀", "a b", "a,b"];
    app.create(&names.map(|name| (name, "x"))).await;
    let mut sorted: Vec<String> = names.map(str::to_owned).to_vec();
    sorted.sort();
    for size in [1, 5, 12, 1_000] {
        let pages = walk(&app, &format!("/products/global?size={size}&detail=Small"), "next").await;
        assert_eq!(pages.concat(), sorted);
        assert!(pages.iter().all(|page| page.len() <= size));
        let pages = walk(&app, &format!("/assignments/UKGT?assignmentStatus=UNASSIGNED&size={size}"), "next").await;
        assert_eq!(pages.concat(), sorted);
        let sort = format!("/assignments/UKGT?assignmentStatus=UNASSIGNED&size={size}&sort=confidence");
        assert_eq!(walk(&app, &sort, "next").await.concat(), sorted);
    }
    let first = app.get("/products/global?size=5").await.body;
    let second = app.get(first["links"]["next"].as_str().expect("a link")).await.body;
    let third = app.get(second["links"]["next"].as_str().expect("a link")).await.body;
    let back = walk(&app, third["links"]["prev"].as_str().expect("a link"), "prev").await;
    assert_eq!(back.into_iter().rev().collect::<Vec<_>>().concat(), sorted[..10]);
    assert_eq!(first["links"]["prev"], Value::Null);
}

#[tokio::test]
async fn ids_select_and_unknown_ones_select_nothing() {
    let app = App::start().await;
    app.create(&[("a", "x"), ("b", "x"), ("a,b", "x")]).await;
    for (query, found) in [
        ("productIds=b,a,none", "a|b"),
        ("productIds=a,b&productIds=none", "a,b"),
        ("productIds=none", ""),
        ("productIds=", ""),
    ] {
        assert_eq!(
            ids(&app.get(&format!("/products/global?{query}")).await.expect(200).body).join("|"),
            found,
            "{query}"
        );
    }
    for bad in ["size=0", "size=1001", "size=x", "cursor=x", "detail=Huge", "size=1&size=2"] {
        app.get(&format!("/products/global?{bad}")).await.expect(400);
    }
}

#[tokio::test]
async fn filter_criteria_select_and_what_is_wrong_with_them_is_named() {
    let app = App::start().await;
    app.create(&[("a", "Damenlederjacke schwarz"), ("b", "Lederschuh braun"), ("c", "Wollschal schwarz")]).await;
    app.get("/products/global?filterCriteria=%5B%5D").await.expect(503);
    let stop = CancellationToken::new();
    let feeding =
        tokio::spawn(projection::run(app.store.clone(), app.search.clone(), Arc::new(Notify::new()), stop.clone()));
    while app.store.search_queue_length().await.expect("a count") > 0
        || app.get("/products/global?filterCriteria=%5B%5D").await.status != 200
    {
        tokio::task::yield_now().await;
    }
    let search = |criteria: Value| {
        let criteria = criteria.to_string();
        let criteria = percent_encoding::utf8_percent_encode(&criteria, percent_encoding::NON_ALPHANUMERIC);
        format!("/products/global?size=1&filterCriteria={criteria}")
    };
    for (criteria, found) in [
        (json!([]), "abc"),
        (json!([{"languageKey": "de", "productName": "LEDER"}]), "ab"),
        (json!([{"languageKey": "de", "productName": "schwarz -leder"}]), "c"),
        (json!([{"languageKey": "de", "productName": "braun", "operation": "OR"}, {"productId": "c"}]), "bc"),
        (json!([{"keywords": "schwarz"}]), ""),
    ] {
        assert_eq!(walk(&app, &search(criteria.clone()), "next").await.concat().concat(), found, "{criteria}");
    }
    let both = format!("{}&productIds=b,c", search(json!([{"languageKey": "de", "productName": "leder"}])));
    assert_eq!(ids(&app.get(&both).await.expect(200).body), ["b"]);
    for bad in
        [json!({}), json!([{}]), json!([{"productName": "x"}]), json!([{"keywords": "\"a"}]), json!([{"keyword": "a"}])]
    {
        let refused = app.get(&search(bad.clone())).await.expect(400);
        assert!(
            refused.body["message"].as_str().is_some_and(|text| text.contains("filterCriteria")),
            "{}",
            refused.body
        );
    }
    stop.cancel();
    feeding.await.expect("the job ends");
}

#[tokio::test]
async fn names_in_a_query_are_read_in_any_case() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    for query in [
        "assignmentStatus=unassigned",
        "assignmentStatus=Unassigned,ASSIGNED",
        "assignmentStatus=all&sort=UPDATEDAT&embed=events",
    ] {
        assert_eq!(ids(&app.get(&format!("/assignments/TARIC?{query}")).await.expect(200).body), ["p"], "{query}");
    }
    for path in ["/products/global?detail=LARGE", "/changes?types=product_created&taxonomy=taric"] {
        app.get(path).await.expect(200);
    }
    app.act("TARIC", "p", "reject", 0).await.expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["assignmentStatus"], "REJECTED");
    app.get("/assignments/taric?assignmentStatus=ASSIGNED").await.expect(404);
}
