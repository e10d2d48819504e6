//! What a reviewer reads: lists with their filters, orders and embeds.

use serde_json::{Value, json};

use crate::app::{App, german};

fn ids(page: &Value) -> String {
    let items = page["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["productId"].as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) async fn list(app: &App, query: &str) -> Value {
    app.get(&format!("/assignments/TARIC?assignmentStatus=ALL&{query}")).await.expect(200).body
}

/// Coffee and tea by code (ASSIGNED), an insufficient heading by code (REJECTED), and something without a class.
pub(crate) async fn mixed() -> App {
    let app = App::start().await;
    let coded =
        |code: &str, shops: Value| json!({"shopIds": shops, "productDetails": {"customsCodes": {"taricCode": code}}});
    let products = json!({"coffee": coded("0901 21 00", json!([7])), "tea": coded("0902 10 00", json!([7, 8])),
        "bread": coded("1905", json!([])), "vague": german("Geschenk")});
    app.post("/products/global", products).await.expect(201);
    app.post("/shops/7/products/local", json!({"coffee": coded("0901 21 00", json!([]))})).await.expect(201);
    app.assign().await;
    app
}

#[tokio::test]
async fn a_status_given_five_times_selects_that_status() {
    let app = mixed().await;
    let five = ["assignmentStatus=UNASSIGNED"; 5].join("&");
    assert_eq!(ids(&app.get(&format!("/assignments/TARIC?{five}")).await.expect(200).body), "vague");
    assert_eq!(ids(&list(&app, "").await), "bread coffee coffee tea vague");
}

#[tokio::test]
async fn filters_select() {
    let app = mixed().await;
    app.act("TARIC", "tea", "APPROVE", 1).await.expect(200);
    let tomorrow = (chrono::Utc::now() + chrono::TimeDelta::days(1)).format("%Y-%m-%d").to_string();
    for (query, found) in [
        ("strategy=MANUAL", "tea"),
        ("strategy=CUSTOMS-CODE", "bread coffee coffee"),
        ("strategy=CUSTOMS-CODE,MANUAL", "bread coffee coffee tea"),
        ("autoAssignment=PENDING", ""),
        ("autoAssignment=DONE", "bread coffee coffee tea vague"),
        ("autoAssignment=DONE,PENDING", "bread coffee coffee tea vague"),
        ("productClass=09", "coffee coffee tea"),
        ("productClass=0901", "coffee coffee"),
        ("productClass=09012", "coffee coffee"),
        ("productClass=1", "bread"),
        ("shopId=7", "coffee coffee tea"),
        ("shopId=8", "tea"),
        ("shopId=9", ""),
        ("confidenceFrom=0", "bread coffee coffee tea"),
        ("confidenceFrom=1", ""),
        ("confidenceTo=0.1", ""),
        ("reviewNeeded=true", ""),
        ("reviewNeeded=false&productClass=19", "bread"),
        (&format!("updatedFrom={tomorrow}"), ""),
        (&format!("updatedTo={tomorrow}"), "bread coffee coffee tea vague"),
        ("updatedTo=2026-01-01T00:00:00Z", ""),
    ] {
        let counted = list(&app, &format!("{query}&count=true")).await;
        assert_eq!(ids(&counted), found, "{query}");
        assert_eq!(counted["total"], found.split_whitespace().count(), "{query}");
    }
    let sure = list(&app, "productIds=tea").await["items"][0]["confidence"].as_f64().expect("a confidence");
    assert!(ids(&list(&app, &format!("confidenceFrom={sure}&confidenceTo={sure}")).await).contains("tea"));
    for bad in ["sort=name", "strategy=x", "confidenceFrom=2", "updatedFrom=x", "productClass=x", "count=1", "shop=7"] {
        app.get(&format!("/assignments/TARIC?assignmentStatus=ALL&{bad}")).await.expect(400);
    }
}

#[tokio::test]
async fn every_order_walks_through_everything_once_and_back() {
    let app = mixed().await;
    app.act("TARIC", "tea", "APPROVE", 1).await.expect(200);
    for sort in ["", "&sort=confidence", "&sort=-confidence", "&sort=updatedAt", "&sort=-updatedAt", "&sort=impact"] {
        for statuses in ["ALL", "ASSIGNED", "ASSIGNED,REJECTED"] {
            let path = format!("/assignments/TARIC?assignmentStatus={statuses}&size=1000{sort}");
            let whole = app.get(&path).await.expect(200).body;
            let mut walked = Vec::new();
            let mut next = Some(path.replace("size=1000", "size=2"));
            let mut last = Value::Null;
            while let Some(path) = next {
                last = app.get(&path).await.expect(200).body;
                walked.extend(last["items"].as_array().expect("items").clone());
                next = last["links"]["next"].as_str().map(str::to_owned);
            }
            assert_eq!(json!(walked), whole["items"], "{statuses} {sort}");
            if let Some(prev) = last["links"]["prev"].as_str() {
                let before = app.get(prev).await.expect(200).body;
                let end = walked.len() - last["items"].as_array().map_or(0, Vec::len);
                assert_eq!(before["items"], json!(walked[end - 2..end]), "{statuses} {sort} backwards");
            }
        }
    }
    let down = list(&app, "sort=-updatedAt").await;
    assert_eq!(down["items"][0]["productId"], "tea", "what changed last");
    let confidences: Vec<f64> = list(&app, "sort=-confidence").await["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["confidence"].as_f64().unwrap_or(-1.0))
        .collect();
    assert!(confidences.windows(2).all(|pair| pair[0] >= pair[1]), "{confidences:?}");
}

#[tokio::test]
async fn filter_criteria_look_at_the_product() {
    let app = mixed().await;
    app.create(&[("socks", "Herren Socken aus Baumwolle")]).await;
    app.index().await;
    let criteria = |criteria: Value| {
        percent_encoding::utf8_percent_encode(&criteria.to_string(), percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    for (sent, found) in [
        (json!([{"languageKey": "de", "productName": "socken"}]), "socks"),
        (json!([{"productId": "coffee"}]), "coffee coffee"),
        (json!([{"productId": "nothing"}]), ""),
        (json!([]), "bread coffee coffee socks tea vague"),
    ] {
        let page = list(&app, &format!("count=true&filterCriteria={}", criteria(sent.clone()))).await;
        assert_eq!(ids(&page), found, "{sent}");
        assert_eq!(page["total"], found.split_whitespace().count(), "{sent}");
    }
    let none = criteria(json!([{"productId": "coffee"}]));
    assert_eq!(ids(&list(&app, &format!("productIds=tea&filterCriteria={none}")).await), "");
    app.get(&format!("/assignments/TARIC?assignmentStatus=ALL&filterCriteria={}", criteria(json!([{}]))))
        .await
        .expect(400);
    let body =
        json!({"action": "DENY", "filter": {"assignmentStatus": "ALL", "filterCriteria": [{"productId": "sock"}]}});
    assert_eq!(app.post("/assignments/TARIC/actions", body).await.expect(202).body["done"], 1);
    assert_eq!(app.assignment("TARIC", "socks").await["assignmentStatus"], "DENIED");
}

#[tokio::test]
async fn lists_embed_what_a_reviewer_needs() {
    let app = mixed().await;
    let long = json!({"long": {"productDetails": {"languageAttributes": {"de": {"productName": "Socken aus Baumwolle",
        "productDescription": "ä".repeat(1_000), "productTags": ["Strumpf"]}}}}});
    app.post("/products/global", long).await.expect(201);
    app.assign().await;
    let page = list(&app, "embed=PRODUCT,EVENTS,CANDIDATES,VAT_RATES&size=1000").await;
    let items = page["items"].as_array().expect("items");
    assert_eq!(items.len(), 6);
    for item in items {
        for field in ["product", "events", "candidates", "vatRates", "model"] {
            assert!(!item[field].is_null(), "{field}: {item}");
        }
        assert_eq!(item["product"]["version"], 1);
        assert_eq!(item["events"][0]["action"], "CREATE");
    }
    let of = |id: &str| items.iter().find(|item| item["productId"] == id).expect("an item");
    let texts = &of("long")["product"]["languageAttributes"]["de"];
    assert_eq!(texts["productDescription"].as_str().map(|text| text.chars().count()), Some(300));
    assert_eq!((&texts["productName"], &texts["productTags"]), (&json!("Socken aus Baumwolle"), &json!(["Strumpf"])));
    assert!(of("long")["candidates"][0]["path"].is_array());
    assert_eq!(of("coffee")["product"]["customsCodes"]["taricCode"], "0901 21 00");
    let local = items.iter().find(|item| item["shopId"] == 7).expect("the local product");
    assert_eq!(local["product"]["shopIds"], json!([7]), "a local product is of its shop whatever was sent");
    let rates = of("coffee")["vatRates"].as_array().expect("rates");
    let countries: usize = rates.iter().map(|rate| rate["countries"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(countries, 27);
    assert!(rates.len() < 27 && rates.iter().all(|rate| rate["rate"].is_number()), "{rates:?}");
    assert!(of("bread")["vatRates"].as_array().expect("rates").iter().any(|rate| rate["rate"].is_null()));
    assert_eq!(of("vague")["vatRates"], json!([]));
    let plain = list(&app, "").await;
    assert!(plain["items"][0].get("product").is_none() && plain.get("total").is_none());
    app.get("/assignments/TARIC?assignmentStatus=ALL&embed=ALL").await.expect(400);
}

#[tokio::test]
async fn a_page_with_candidates_holds_at_most_200() {
    let app = App::start().await;
    let products: serde_json::Map<String, Value> =
        (0..205).map(|i| (format!("p{i:03}"), json!({"productDetails": {}}))).collect();
    app.post("/products/global", Value::Object(products)).await.expect(201);
    let page = list(&app, "embed=CANDIDATES&size=1000").await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(200));
    let rest = app.get(page["links"]["next"].as_str().expect("a link")).await.expect(200).body;
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn what_weighs_more_is_reviewed_first() {
    let app = App::start().await;
    let product = |name: &str, weight: Value| json!({"productDetails": {"reviewWeight": weight, "languageAttributes": {"de": {"productName": name}}}});
    // Bread or cake: one heading with several rates.
    let products = json!({"heavy": product("Kuchenbrot", json!(1_000)), "light": product("Kuchenbrot", json!(0.5)),
        "none": {"productDetails": {"languageAttributes": {"de": {"productName": "Kuchenbrot"}}}},
        "zero": product("Kuchenbrot", json!(0))});
    app.post("/products/global", products).await.expect(201);
    app.assign().await;
    let page = list(&app, "sort=impact").await;
    let statuses: Vec<&Value> =
        page["items"].as_array().expect("items").iter().map(|item| &item["assignmentStatus"]).collect();
    assert!(statuses.windows(2).all(|pair| pair[0] == pair[1]), "{statuses:?}");
    assert_eq!(ids(&page), "heavy none light zero");
    let impact = |index: usize| page["items"][index]["impact"].as_f64().expect("an impact");
    assert!(impact(1) > 0.0 && (impact(0) / impact(1) - 1_000.0).abs() < 5.0 && impact(3) == 0.0, "{page}");
    // Another weight counts at once, and queues nothing.
    let weight = json!({"productDetails": {"reviewWeight": 5_000}});
    app.patch("/products/global?productId=zero&currentVersion=1", weight).await.expect(200);
    let page = list(&app, "sort=impact").await;
    assert_eq!(ids(&page), "zero heavy none light");
    assert_eq!(page["items"][0]["autoAssignment"], "DONE");
    let wrong = json!({"w": product("Brot", json!(-1))});
    let refused = app.post("/products/global", wrong).await.expect(422);
    assert_eq!(refused.faults(), ["productDetails.reviewWeight INVALID_REVIEW_WEIGHT"]);
}
