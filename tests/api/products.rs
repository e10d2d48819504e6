//! Products, global and local: one life from creation to deletion, and what is refused on the way.

use serde_json::{Value, json};

use crate::app::{App, german};

const GLOBAL: &str = "/products/global";
const LOCAL: &str = "/shops/7/products/local";

#[tokio::test]
async fn what_was_read_can_be_sent_back_and_changes_nothing_but_the_version() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let product = json!({"shopIds": [7], "version": 3, "productDetails": {
            "languageAttributes": {
                "de": {"productName": "Kaffee", "productDescription": "Aus Peru.", "productTags": ["bio", "fair"]},
                "gsw": {"productName": "Kafi"}},
            "customsCodes": {"taricCode": "0901 21.00", "platformCode": {"code": "0901", "taxonomy": "UKGT"}},
            "manufacturerName": "M", "productUids": {"gtin": "4006381333931", "sku": "1"},
            "customs": {"physicalMeasure": {"unit": "kg", "amount": 1.5}, "countryOfOrigin": "PE", "btiId": "B",
                "measureCondition": {"taric": ["Y900"]}}}});
        let made =
            app.post(&format!("{list}?applications=CUSTOMS,MARKETPLACE"), json!({"a/b ä": product})).await.expect(201);
        let url = made.body["a/b ä"].as_str().expect("a URL").to_owned();
        assert!(url.ends_with("/a%2Fb%20%C3%A4"), "{url}");
        let read = app.get(&url).await.expect(200).body;
        let mut details = read["productDetails"].clone();
        assert_eq!(details["productAssignments"].as_array().map(Vec::len), Some(3));
        for assignment in read["productDetails"]["productAssignments"].as_array().expect("assignments") {
            app.get(assignment.as_str().expect("a URL")).await.expect(200);
        }
        details.as_object_mut().expect("details").remove("productAssignments");
        assert_eq!(details, product["productDetails"]);
        assert_eq!((&read["version"], &read["shopIds"]), (&json!(1), &json!([7])));
        assert_eq!(read["applicationTags"], json!(["CUSTOMS", "MARKETPLACE"]));

        let path = format!("{list}?productId=a%2Fb%20%C3%A4&currentVersion=1");
        let replaced = app.put(&path, read.clone()).await.expect(200).body;
        assert_eq!(replaced["version"], 2);
        assert_eq!(replaced["productDetails"], read["productDetails"]);
        assert_eq!(replaced["applicationTags"], json!([]), "a replace starts from none");
    }
}

#[tokio::test]
async fn versions_guard_replacing_patching_and_deleting() {
    for list in [GLOBAL, LOCAL] {
        let app = App::start().await;
        let at = |version: i64| format!("{list}?productId=p&currentVersion={version}");
        app.put(&at(1), german("x")).await.expect(404);
        app.patch(&at(0), json!({})).await.expect(404);
        app.delete(&at(1)).await.expect(404);
        app.put(&at(0), german("x")).await.expect(201);
        for version in [0, 2] {
            let stale = app.put(&at(version), german("y")).await.expect(409);
            assert_eq!(
                (&stale.body["code"], &stale.body["currentVersion"]),
                (&json!("CONFLICT_ENTITY_MODIFIED"), &json!(1))
            );
        }
        app.patch(&at(2), json!({})).await.expect(409);
        app.delete(&at(2)).await.expect(409);
        assert_eq!(app.patch(&at(1), json!({})).await.expect(200).body["version"], 2);
        assert_eq!(app.put(&at(2), german("z")).await.expect(200).body["version"], 3);
        app.delete(&at(3)).await.expect(204);
        app.get(&format!("{list}/p")).await.expect(404);
        assert_eq!(app.put(&at(0), german("new")).await.expect(201).body["version"], 1);
    }
}

#[tokio::test]
async fn checks_come_in_their_order() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let wrong = json!({"productDetails": {"customs": {"countryOfOrigin": "XX"}}});
    let at = |id: &str, version: i64| format!("{GLOBAL}?productId={id}&currentVersion={version}");
    app.put(&at("p", 9), json!({"productDetails": 1})).await.expect(400);
    app.put(&at("none", 9), wrong.clone()).await.expect(404);
    app.put(&at("p", 9), wrong.clone()).await.expect(409);
    app.put(&format!("{}&applications=NONE", at("p", 9)), german("x")).await.expect(409);
    let refused = app.put(&format!("{}&applications=NONE", at("p", 1)), wrong.clone()).await.expect(422);
    assert_eq!(
        refused.faults(),
        ["applications UNKNOWN_APPLICATION", "productDetails.customs.countryOfOrigin UNKNOWN_COUNTRY"]
    );
    app.put(&at(&"x".repeat(66), 0), german("x")).await.expect(422);
    app.put(&format!("{GLOBAL}?productId=p"), german("x")).await.expect(400);
    app.put(&format!("{GLOBAL}?currentVersion=1"), german("x")).await.expect(400);
    app.patch(&at("p", 9), wrong.clone()).await.expect(409);
    app.patch(&at("p", 1), wrong).await.expect(422);
    assert_eq!(app.get("/products/global/p").await.body["version"], 1);
}

#[tokio::test]
async fn a_creation_is_all_or_none_and_names_every_failing_product() {
    let app = App::start().await;
    app.create(&[("there", "Kaffee")]).await;
    let refused = app
        .post(
            GLOBAL,
            json!({"there": german("x"), "new": german("x"), "": german("x"), "..": german("x"),
            "odd": {"shopIds": [0], "productDetails": {"languageAttributes": {"xx": {}}}}}),
        )
        .await
        .expect(422);
    let mut ids: Vec<&str> = refused.body["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|fault| fault["productId"].as_str())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["", "..", "odd", "odd", "there"]);
    app.get("/products/global/new").await.expect(404);
    let malformed = app.post(GLOBAL, json!({"a": {"productDetails": 1}, "b": {}, "c": german("x")})).await.expect(400);
    assert_eq!(malformed.body["errors"].as_array().map(Vec::len), Some(2), "{}", malformed.body);

    app.post(&format!("{GLOBAL}?updateIfExists=true"), json!({"there": german("Tee"), "new": german("x")}))
        .await
        .expect(201);
    let there = app.get("/products/global/there").await.body;
    assert_eq!(there["version"], 2);
    assert_eq!(there["productDetails"]["languageAttributes"]["de"]["productName"], "Tee");
    assert_eq!(app.get("/products/global/new").await.body["version"], 1);
}

#[tokio::test]
async fn a_patch_merges_objects_removes_nulls_and_replaces_arrays() {
    let app = App::start().await;
    let product = json!({"shopIds": [1, 2], "productDetails": {"manufacturerName": "M",
        "productUids": {"sku": "1", "own": "2"},
        "languageAttributes": {"de": {"productName": "a", "productTags": ["x", "y"]}, "en": {"productName": "b"}}}});
    app.post(GLOBAL, json!({"p": product})).await.expect(201);
    let at = |version: i64| format!("{GLOBAL}?productId=p&currentVersion={version}");
    let patch = json!({"shopIds": null, "productDetails": {"manufacturerName": null, "productUids": {"own": null},
        "languageAttributes": {"de": {"productTags": ["z"], "productDescription": "d"}, "en": null, "fr": {"productName": "c"}}}});
    let sent = axum::body::Body::from(patch.to_string());
    let patched = app.raw(&app.token, "PATCH", &at(1), "application/merge-patch+json", sent).await.expect(200).body;
    let mut details = patched["productDetails"].clone();
    details.as_object_mut().expect("details").remove("productAssignments");
    assert_eq!(patched["shopIds"], json!([]));
    assert_eq!(
        details,
        json!({"productUids": {"sku": "1"}, "languageAttributes": {
        "de": {"productName": "a", "productDescription": "d", "productTags": ["z"]}, "fr": {"productName": "c"}}})
    );
    for (bad, status) in [
        (json!([]), 400),
        (json!("x"), 400),
        (json!({"unknown": null}), 400),
        (json!({"productDetails": null}), 400),
        (json!({"productDetails": {"unknown": null}}), 400),
        (json!({"productDetails": {"languageAttributes": {"de": {"unknown": null}}}}), 400),
        (json!({"productDetails": {"languageAttributes": {"de": {"productTags": [null]}}}}), 400),
        (json!({"shopIds": [0]}), 422),
        (json!({"productDetails": {"customs": {"physicalMeasure": {"amount": 1}}}}), 422),
    ] {
        let answer = app.patch(&at(2), bad.clone()).await;
        assert_eq!(answer.status, status, "{bad}: {}", answer.body);
    }
    assert_eq!(app.get("/products/global/p").await.body["version"], 2);
}

#[tokio::test]
async fn application_tags_follow_the_product() {
    let app = App::start().await;
    let made = json!({"p": german("Kaffee")});
    app.post(&format!("{GLOBAL}?applications=VAT_RULES&applications=CUSTOMS"), made).await.expect(201);
    let read = app.get("/products/global/p").await.body;
    assert_eq!(read["applicationTags"], json!(["VAT_RULES"]));
    assert_eq!(
        read["applicationIssues"],
        json!([{"application": "CUSTOMS", "missing": ["productDetails.customsCodes",
        "productDetails.customs.countryOfOrigin", "productDetails.customs.physicalMeasure"]}])
    );
    let at = |version: i64| format!("{GLOBAL}?productId=p&currentVersion={version}");
    let complete = json!({"productDetails": {"customsCodes": {"taricCode": "0901"},
        "customs": {"countryOfOrigin": "PE", "physicalMeasure": {"unit": "g", "amount": 1}}}});
    assert_eq!(app.patch(&at(1), complete).await.expect(200).body["applicationTags"], json!(["VAT_RULES", "CUSTOMS"]));
    let lacking = json!({"productDetails": {"customs": null}});
    assert_eq!(app.patch(&at(2), lacking).await.expect(200).body["applicationTags"], json!(["VAT_RULES"]));
    app.post(&format!("{GLOBAL}?applications=vat_rules"), json!({"q": german("x")})).await.expect(201);
    assert_eq!(app.get("/products/global/q").await.body["applicationTags"], json!(["VAT_RULES"]));
    app.post(&format!("{GLOBAL}?applications=vat-rules"), json!({"r": german("x")})).await.expect(422);
}

#[tokio::test]
async fn a_local_product_is_known_by_its_shop_and_id() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    let local = |ids: Value| json!({"p": {"shopIds": ids, "productDetails": {}}});
    app.post(LOCAL, local(json!([8]))).await.expect(422);
    app.post(LOCAL, local(json!([7, 8]))).await.expect(422);
    app.post(LOCAL, local(json!([7]))).await.expect(201);
    app.post("/shops/8/products/local", local(json!([]))).await.expect(201);
    for shop in [7, 8] {
        let record = app.get(&format!("/shops/{shop}/products/local/p")).await.expect(200).body;
        assert_eq!(record["shopIds"], json!([shop]), "a local product belongs to its shop");
    }
    app.get("/shops/9/products/local/p").await.expect(404);
    app.delete(&format!("{LOCAL}?productId=p&currentVersion=1")).await.expect(204);
    app.get("/shops/8/products/local/p").await.expect(200);
    app.get("/products/global/p").await.expect(200);
    let list = app.get("/assignments/TARIC?assignmentStatus=UNASSIGNED&productIds=p").await.body;
    let shops: Vec<Option<i64>> =
        list["items"].as_array().into_iter().flatten().map(|item| item["shopId"].as_i64()).collect();
    assert_eq!(shops, [None, Some(8)]);
}

#[tokio::test]
async fn levels_of_detail_show_less() {
    let app = App::start().await;
    let details = json!({"languageAttributes": {"de": {"productName": "n", "productDescription": "d"}},
        "customsCodes": {"taricCode": "0901"}, "manufacturerName": "M"});
    app.post(GLOBAL, json!({"p": {"productDetails": details}})).await.expect(201);
    let keys = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>().join(" "));
    for detail in ["Small", "small", "SMALL"] {
        let small = app.get(&format!("/products/global/p?detail={detail}")).await.expect(200).body;
        assert!(small.get("productDetails").is_none());
    }
    let medium = app.get("/products/global?detail=Medium").await.expect(200).body["items"][0].clone();
    assert_eq!(keys(&medium["productDetails"]).as_deref(), Some("customsCodes languageAttributes productAssignments"));
    assert_eq!(medium["productDetails"]["languageAttributes"], json!({"de": {"productName": "n"}}));
    assert_eq!(app.get("/products/global").await.body["items"][0]["productDetails"]["manufacturerName"], "M");
    app.get("/products/global?detail=").await.expect(400);
}

#[tokio::test]
async fn every_code_of_iso_639_is_a_language_and_german_and_english_are_read_under_each_of_theirs() {
    let app = App::start().await;
    let named = |key: &str| json!({"productDetails": {"languageAttributes": {key: {"productName": "Herren T-Shirt Baumwolle"}}}});
    let products = ["de", "deu", "ger", "gsw", "fre", "gem"].map(|key| (key.to_owned(), named(key)));
    app.post(&format!("{GLOBAL}?applications=VAT_RULES"), Value::Object(products.into_iter().collect()))
        .await
        .expect(201);
    app.post(GLOBAL, json!({"p": named("DE")})).await.expect(422);
    app.assign().await;
    let code = async |id: &str| app.assignment("TARIC", id).await["productClassCode"].clone();
    assert!(code("de").await.is_string());
    for (key, read) in [("deu", true), ("ger", true), ("gsw", false), ("fre", false), ("gem", false)] {
        let expected = if read { code("de").await } else { Value::Null };
        assert_eq!(code(key).await, expected, "{key}");
        let tags = app.get(&format!("{GLOBAL}/{key}")).await.body["applicationTags"].clone();
        assert_eq!(tags, if read { json!(["VAT_RULES"]) } else { json!([]) }, "{key}");
    }
}
