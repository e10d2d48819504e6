//! Many products at once: searching by a body, changing, deleting, and creating what can be created.

use std::sync::Arc;

use axum::body::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::jobs::projection;

use crate::app::{App, german};

const GLOBAL: &str = "/products/global";
const LOCAL: &str = "/shops/7/products/local";

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().into_iter().flatten().filter_map(|item| item["productId"].as_str()).collect()
}

/// Of each result its product, its status, and its version or the code of its error.
fn results(answer: &Value) -> Vec<String> {
    let result = |result: &Value| {
        let told = if result["version"].is_null() { &result["error"]["code"] } else { &result["version"] };
        format!("{} {} {told}", result["productId"].as_str().unwrap_or("-"), result["status"])
    };
    answer["results"].as_array().expect("results").iter().map(result).collect()
}

/// Feeds the search index until nothing waits and searches are answered.
async fn index(app: &App) {
    let stop = CancellationToken::new();
    let feeding =
        tokio::spawn(projection::run(app.store.clone(), app.search.clone(), Arc::new(Notify::new()), stop.clone()));
    while app.store.search_queue_length().await.expect("a count") > 0
        || app.get("/products/global?filterCriteria=%5B%5D").await.status != 200
    {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    feeding.await.expect("the job ends");
}

#[tokio::test]
async fn a_search_by_a_body_answers_as_the_list_does() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let names = ["a", "b", "c", "d", "e"];
        let products = names.map(|name| (name.to_owned(), german(&format!("Leder {name}"))));
        app.post(list, Value::Object(products.into_iter().collect())).await.expect(201);
        index(&app).await;
        let path = format!("{list}/search");
        let all = app.post(&path, json!({})).await.expect(200).body;
        let listed = app.get(list).await.expect(200).body;
        assert_eq!(all["items"], listed["items"]);
        for (body, found) in [
            (json!({"productIds": ["e", "a", "none"]}), vec!["a", "e"]),
            (json!({"productIds": []}), vec![]),
            (json!({"filterCriteria": [{"languageKey": "de", "productName": "leder -b"}]}), vec!["a", "c", "d", "e"]),
            (json!({"filterCriteria": [], "productIds": ["b"]}), vec!["b"]),
            (json!({"filterCriteria": [{"productId": "C"}], "detail": "small"}), vec!["c"]),
        ] {
            let answer = app.post(&path, body.clone()).await.expect(200).body;
            assert_eq!(ids(&answer), found, "{body}");
            let mut counted = body.clone();
            (counted["count"], counted["size"]) = (json!(true), json!(1));
            assert_eq!(app.post(&path, counted).await.expect(200).body["total"], found.len(), "{body}");
            assert_eq!(answer.get("total"), None);
        }
        // A link is followed with the same body, or its cursor is put into the body.
        let body =
            json!({"size": 2, "filterCriteria": [{"languageKey": "de", "productName": "leder"}], "detail": "Small"});
        let first = app.post(&path, body.clone()).await.expect(200).body;
        let next = first["links"]["next"].as_str().expect("a link").to_owned();
        assert!(next.contains("/search?cursor="), "{next}");
        let second = app.post(&next, body.clone()).await.expect(200).body;
        assert_eq!((ids(&first), ids(&second)), (vec!["a", "b"], vec!["c", "d"]));
        let mut by_body = body.clone();
        by_body["cursor"] = json!(next.split_once("cursor=").expect("a cursor").1);
        assert_eq!(app.post(&path, by_body).await.expect(200).body["items"], second["items"]);
        let back = app.post(second["links"]["prev"].as_str().expect("a link"), body).await.expect(200).body;
        assert_eq!(back["items"], first["items"]);
        for bad in [
            json!([]),
            json!({"size": 0}),
            json!({"size": 1001}),
            json!({"detail": "Huge"}),
            json!({"cursor": "x"}),
            json!({"filterCriteria": [{}]}),
            json!({"filterCriteria": "[]"}),
            json!({"productIDs": []}),
            json!({"productIds": "a"}),
            json!({"productIds": vec!["x"; 10_001]}),
            json!({"count": 1}),
            json!({"shopIds": [0]}),
        ] {
            app.post(&path, bad.clone()).await.expect(400);
        }
        // It stores nothing, so a reader may.
        let reader = app.token("shop", "rita", Level::Read).await;
        app.raw(&reader, "POST", &path, "application/json", Body::from("{}")).await.expect(200);
        app.raw(&reader, "POST", &format!("{list}/updates"), "application/json", Body::from("{}")).await.expect(403);
    }
}

#[tokio::test]
async fn lists_select_by_shop_and_count() {
    let app = App::start().await;
    let of = |shops: Value| json!({"shopIds": shops, "productDetails": {"languageAttributes": {"de": {"productName": "Tee"}}}});
    app.post(GLOBAL, json!({"one": of(json!([1])), "both": of(json!([1, 2])), "none": of(json!([]))}))
        .await
        .expect(201);
    app.post(LOCAL, json!({"mine": of(json!([]))})).await.expect(201);
    index(&app).await;
    for (list, query, found) in [
        (GLOBAL, "shopIds=1", vec!["both", "one"]),
        (GLOBAL, "shopIds=2,3", vec!["both"]),
        (GLOBAL, "shopIds=2&shopIds=1", vec!["both", "one"]),
        (GLOBAL, "shopIds=9", vec![]),
        (GLOBAL, "shopIds=", vec![]),
        (GLOBAL, "shopIds=1&productIds=one,none", vec!["one"]),
        (GLOBAL, "shopIds=1&filterCriteria=%5B%5D", vec!["both", "one"]),
        (GLOBAL, "shopIds=1&filterCriteria=%5B%7B%22productId%22%3A%22ot%22%7D%5D", vec!["both"]),
        (LOCAL, "shopIds=7", vec!["mine"]),
        (LOCAL, "shopIds=8", vec![]),
        (LOCAL, "shopIds=7&filterCriteria=%5B%5D", vec!["mine"]),
        (LOCAL, "shopIds=8&filterCriteria=%5B%5D", vec![]),
    ] {
        let page = app.get(&format!("{list}?{query}&count=true&size=1")).await.expect(200).body;
        assert_eq!(page["total"], found.len(), "{list} {query}");
        let page = app.get(&format!("{list}?{query}")).await.expect(200).body;
        assert_eq!(ids(&page), found, "{list} {query}");
        assert_eq!(page.get("total"), None);
    }
    for bad in ["shopIds=x", "shopIds=0", "shopIds=-1", "shopIds=1.5", "count=yes"] {
        app.get(&format!("{GLOBAL}?{bad}")).await.expect(400);
    }
}

#[tokio::test]
async fn updates_are_all_or_none_unless_what_fails_is_to_be_skipped() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let products = ["a", "b", "c"].map(|name| (name.to_owned(), german("Kaffee")));
        app.post(list, Value::Object(products.into_iter().collect())).await.expect(201);
        let path = format!("{list}/updates");
        let update =
            |id: &str, version: i64, patch: Value| json!({"productId": id, "currentVersion": version, "patch": patch});
        let name = |name: &str| json!({"productDetails": {"manufacturerName": name}});
        let wrong = json!({"productDetails": {"customs": {"countryOfOrigin": "XX"}}});
        let mixed = json!([
            update("c", 1, name("C")),
            update("none", 1, name("x")),
            update("a", 7, name("x")),
            update("b", 1, wrong),
        ]);
        let refused = app.post(&path, json!({"updates": mixed})).await.expect(404);
        assert_eq!(refused.faults(), ["productId UNKNOWN_PRODUCT"]);
        let stale = app.post(&path, json!({"updates": [mixed[0], mixed[2], mixed[3]], "onConflict": "FAIL"})).await;
        assert_eq!(stale.status, 409);
        assert_eq!(stale.body["errors"][0]["currentVersion"], 1);
        app.post(&path, json!({"updates": [mixed[0], mixed[3]]})).await.expect(422);
        assert_eq!(app.get(&format!("{list}/c")).await.body["version"], 1);

        let skipped = app.post(&path, json!({"updates": mixed, "onConflict": "skip"})).await.expect(200).body;
        assert_eq!(
            results(&skipped),
            ["c 200 2", "none 404 \"UNKNOWN_PRODUCT\"", "a 409 \"STALE_VERSION\"", "b 422 \"UNKNOWN_COUNTRY\""]
        );
        assert_eq!(skipped["results"][2]["error"]["currentVersion"], 1);
        assert_eq!(app.get(&format!("{list}/c")).await.body["productDetails"]["manufacturerName"], "C");
        let done = app
            .post(&path, json!({"updates": [update("b", 1, json!({"shopIds": null})), update("a", 1, json!({}))]}))
            .await
            .expect(200)
            .body;
        assert_eq!(results(&done), ["b 200 2", "a 200 2"]);
        for (bad, places) in [
            (json!({"updates": []}), vec!["updates MALFORMED"]),
            (json!({}), vec!["updates MISSING"]),
            (
                json!({"updates": [update("a", 2, json!({})), update("a", 2, json!({}))]}),
                vec!["updates[1].productId DUPLICATE"],
            ),
            (json!({"updates": [update("a", -1, json!({}))]}), vec!["updates[0].currentVersion MALFORMED"]),
            (
                json!({"updates": [update("a", 2, json!({"unknown": 1, "shopIds": "x"})), update("b", 2, json!([]))]}),
                vec![
                    "updates[0].patch.shopIds MALFORMED",
                    "updates[0].patch.unknown MALFORMED",
                    "updates[1].patch MALFORMED",
                ],
            ),
            (json!({"updates": [update("a", 2, json!({}))], "onConflict": "x"}), vec!["onConflict MALFORMED"]),
        ] {
            let mut told = app.post(&path, bad.clone()).await.expect(400).faults();
            told.sort_unstable();
            assert_eq!(told, places, "{bad}");
        }
        let many: Vec<Value> = (0..1_001).map(|at| update(&at.to_string(), 1, json!({}))).collect();
        app.post(&path, json!({"updates": many})).await.expect(400);
    }
}

#[tokio::test]
async fn an_update_queues_again_what_depends_on_the_product() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee"), ("q", "Kaffee")]).await;
    app.assign().await;
    let update = |id: &str, patch: Value| json!({"productId": id, "currentVersion": 1, "patch": patch});
    let body = json!({"updates": [
        update("p", json!({"productDetails": {"customsCodes": {"taricCode": "0901 21"}}})),
        update("q", json!({"productDetails": {"manufacturerName": "M"}})),
    ]});
    app.post(&format!("{GLOBAL}/updates"), body).await.expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["autoAssignment"], "PENDING");
    assert_eq!(app.assignment("TARIC", "q").await["autoAssignment"], "DONE");
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "p").await["productClassCode"], "090121");
}

#[tokio::test]
async fn deletions_are_all_or_none_unless_what_fails_is_to_be_skipped() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let products = ["a", "b", "c"].map(|name| (name.to_owned(), german("Kaffee")));
        app.post(list, Value::Object(products.into_iter().collect())).await.expect(201);
        let path = format!("{list}/deletions");
        let named = |id: &str, version: i64| json!({"productId": id, "currentVersion": version});
        app.post(&path, json!({"products": [named("a", 1), named("none", 1)]})).await.expect(404);
        let stale = app.post(&path, json!({"products": [named("a", 1), named("b", 2)]})).await.expect(409).body;
        assert!(stale["currentVersion"].is_null() && stale["errors"][0]["currentVersion"] == 1, "{stale}");
        let stale = app.post(&path, json!({"products": [named("b", 2)]})).await.expect(409).body;
        assert_eq!(stale["currentVersion"], 1);
        app.get(&format!("{list}/a")).await.expect(200);
        let body = json!({"products": [named("b", 2), named("a", 1), named("none", 1)], "onConflict": "SKIP"});
        let skipped = app.post(&path, body).await.expect(200).body;
        assert_eq!(results(&skipped), ["b 409 \"STALE_VERSION\"", "a 204 null", "none 404 \"UNKNOWN_PRODUCT\""]);
        app.get(&format!("{list}/a")).await.expect(404);
        let done = app.post(&path, json!({"products": [named("b", 1), named("c", 1)]})).await.expect(200).body;
        assert_eq!(results(&done), ["b 204 null", "c 204 null"]);
        assert_eq!(app.get(list).await.body["items"], json!([]));
        for bad in
            [json!({"products": []}), json!({"products": [named("a", 1), named("a", 1)]}), json!({"updates": []})]
        {
            app.post(&path, bad).await.expect(400);
        }
    }
}

#[tokio::test]
async fn a_creation_can_skip_what_fails() {
    let app = App::start().await;
    app.create(&[("there", "Kaffee")]).await;
    let wrong = json!({"productDetails": {"customs": {"countryOfOrigin": "XX"}, "productUids": {"gtin": "1"}}});
    let body = json!({"there": german("Tee"), "new": german("Tee"), "": german("x"), "wrong": wrong});
    app.post(&format!("{GLOBAL}?onConflict=FAIL"), body.clone()).await.expect(422);
    app.get("/products/global/new").await.expect(404);
    let mut made = app.post(&format!("{GLOBAL}?onConflict=SKIP"), body.clone()).await.expect(201).body;
    assert_eq!(made["results"][3]["errors"].as_array().map(Vec::len), Some(1), "{made}");
    let told = |made: &Value| {
        let mut told = results(made);
        told.sort_unstable();
        told
    };
    assert_eq!(
        told(&made),
        [" 422 \"EMPTY\"", "new 201 1", "there 422 \"PRODUCT_EXISTS\"", "wrong 422 \"INVALID_GTIN\""]
    );
    let url =
        made["results"].as_array_mut().expect("results").iter().find_map(|one| one["url"].as_str()).expect("a URL");
    app.get(url).await.expect(200);
    let path = format!("{GLOBAL}?onConflict=skip&updateIfExists=true");
    let made = app.post(&path, body.clone()).await.expect(201).body;
    assert_eq!(told(&made)[1..3], ["new 200 2", "there 200 2"]);
    app.post(&format!("{GLOBAL}?onConflict=SKIP"), body).await.expect(200);
    app.post(&format!("{GLOBAL}?onConflict=SKIP"), json!({"x": {"productDetails": 1}})).await.expect(400);
    app.post(&format!("{GLOBAL}?onConflict=SKIP&applications=NONE"), json!({"x": german("x")})).await.expect(422);
    app.post(&format!("{GLOBAL}?onConflict=LATER"), json!({"x": german("x")})).await.expect(400);
    app.assign().await;
    assert_eq!(app.history("TARIC", "new").await[0], "anna CREATE UNASSIGNED");
}

#[tokio::test]
async fn skipping_does_not_pass_the_limit_of_a_plan() {
    let app = App::with_plan(Plan::FreeTrial).await;
    let products =
        |from: usize, to: usize| Value::Object((from..to).map(|at| (format!("p{at:03}"), german("Kaffee"))).collect());
    app.post(&format!("{GLOBAL}?onConflict=SKIP"), products(0, 99)).await.expect(201);
    app.post(&format!("{GLOBAL}?onConflict=SKIP"), products(98, 101)).await.expect(429);
    app.get("/products/global/p099").await.expect(404);
    let update = |at: usize| json!({"productId": format!("p{at:03}"), "currentVersion": 1, "patch": german("Tee")});
    app.post(&format!("{GLOBAL}/updates"), json!({"updates": [update(0), update(1)], "onConflict": "SKIP"}))
        .await
        .expect(429);
    app.post(&format!("{GLOBAL}/updates"), json!({"updates": [update(0)]})).await.expect(200);
}

#[tokio::test]
async fn a_product_may_be_called_as_an_operation_is() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let names = ["search", "updates", "deletions"];
        let products = names.map(|name| (name.to_owned(), german("Kaffee")));
        let made = app.post(list, Value::Object(products.into_iter().collect())).await.expect(201).body;
        for name in names {
            let read = app.get(made[name].as_str().expect("a URL")).await.expect(200).body;
            assert_eq!(read["productId"], name);
            app.get(&format!("{list}/{name}?detail=Small")).await.expect(200);
        }
    }
}

#[tokio::test]
async fn everything_that_is_malformed_about_a_product_is_named_at_once() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let malformed = json!({"shopIds": [1, "x", 2.5], "version": -1, "unknown": 1, "productDetails": {
        "manufacturerName": 7, "customs": null, "languageAttributes": {"de": {"productTags": ["a", null], "name": "x"}}}});
    let expected = [
        "productDetails.customs",
        "productDetails.languageAttributes.de.name",
        "productDetails.languageAttributes.de.productTags[1]",
        "productDetails.manufacturerName",
        "shopIds[1]",
        "shopIds[2]",
        "unknown",
        "version",
    ];
    for answer in [
        app.post(GLOBAL, json!({"new": malformed, "fine": german("x")})).await,
        app.put(&format!("{GLOBAL}?productId=p&currentVersion=1"), malformed.clone()).await,
    ] {
        let answer = answer.expect(400);
        let items = answer.body["errors"].as_array().expect("errors");
        let mut places: Vec<&str> = items.iter().filter_map(|item| item["field"].as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, expected);
        assert!(items.iter().all(|item| item["productId"].is_string()));
    }
    let patch = json!({"unknown": null, "version": "x", "productDetails": {"manufacturerName": 1, "customs": null}});
    let answer = app.patch(&format!("{GLOBAL}?productId=p&currentVersion=1"), patch).await.expect(400);
    assert_eq!(answer.body["errors"].as_array().map(Vec::len), Some(3), "{}", answer.body);
}
