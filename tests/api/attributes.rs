//! Merchant product attributes.

use serde_json::json;

use crate::app::App;

const PATH: &str = "/products/merchant-product-attributes";

#[tokio::test]
async fn an_attribute_is_declared_once_and_listed() {
    let app = App::start().await;
    let declaration = json!({"fieldName": "manual", "displayName": "Manual", "description": "Where it is.",
        "isLanguageSpecific": true, "format": "URL", "objectType": "Text", "tags": ["docs"]});
    assert_eq!(app.post(PATH, declaration.clone()).await.expect(201).body, declaration);
    let taken = app.post(PATH, declaration.clone()).await.expect(409);
    assert_eq!(taken.body["code"], "CONFLICT_ENTITY_MODIFIED");
    for bad in [
        json!({}),
        json!({"fieldName": "9"}),
        json!({"fieldName": "a", "format": "HTML"}),
        json!([]),
        json!({"fieldName": "a", "objectType": "Blob"}),
        json!({"fieldName": "a", "extra": 1}),
    ] {
        app.post(PATH, bad.clone()).await.expect(400);
    }
    assert_eq!(app.get(PATH).await.expect(200).body, json!({"items": [declaration]}));
}

#[tokio::test]
async fn values_must_be_declared_in_their_place_and_of_their_format() {
    let app = App::start().await;
    app.post(PATH, json!({"fieldName": "manual", "isLanguageSpecific": true, "format": "URL"})).await.expect(201);
    app.post(PATH, json!({"fieldName": "weight", "objectType": "Number"})).await.expect(201);
    let product = |details: serde_json::Value| json!({"p": {"productDetails": details}});
    let refused = app
        .post(
            "/products/global",
            product(json!({
            "merchantProductAttributes": {"manual": "https://example.org", "weight": "heavy", "other": 1}})),
        )
        .await
        .expect(422);
    assert_eq!(
        refused.faults(),
        [
            "productDetails.merchantProductAttributes.manual MISPLACED_ATTRIBUTE",
            "productDetails.merchantProductAttributes.other UNDECLARED_ATTRIBUTE",
            "productDetails.merchantProductAttributes.weight INVALID_ATTRIBUTE_VALUE",
        ]
    );
    app.post(
        "/products/global",
        product(json!({
        "merchantProductAttributes": {"weight": 1.5},
        "languageAttributes": {"de": {"merchantProductAttributes": {"manual": "https://example.org/m"}}}})),
    )
    .await
    .expect(201);
    let read = app.get("/products/global/p").await.expect(200).body;
    assert_eq!(read["productDetails"]["merchantProductAttributes"], json!({"weight": 1.5}));
}

#[tokio::test]
async fn an_account_has_a_limited_number_of_attributes() {
    let app = App::start().await;
    sqlx::query(
        "insert into merchant_product_attributes (account_id, field_name, is_language_specific, format, object_type, tags)
         select account_id, 'a' || n, false, 'None', 'Text', '{}' from accounts, generate_series(1, 1000) n",
    )
    .execute(app.store.pool())
    .await
    .expect("a thousand");
    let refused = app.post(PATH, json!({"fieldName": "one_more"})).await.expect(422);
    assert_eq!(refused.faults(), ["fieldName TOO_MANY_ATTRIBUTES"]);
}

#[tokio::test]
async fn what_a_declaration_tells_people_can_be_changed() {
    let app = App::start().await;
    app.post(
        PATH,
        json!({"fieldName": "weight", "displayName": "Weight", "description": "In kg.", "objectType": "Number"}),
    )
    .await
    .expect(201);
    let one = format!("{PATH}/weight");
    let changed =
        app.patch(&one, json!({"displayName": "Gewicht", "description": null, "tags": ["a"]})).await.expect(200);
    let expected = json!({"fieldName": "weight", "displayName": "Gewicht", "isLanguageSpecific": false, "format": "None",
        "objectType": "Number", "tags": ["a"]});
    assert_eq!(changed.body, expected);
    assert_eq!(app.patch(&one, json!({})).await.expect(200).body, expected);
    for bad in [json!({"format": "URL"}), json!({"displayName": 1}), json!({"displayName": "x".repeat(201)}), json!([])]
    {
        app.patch(&one, bad).await.expect(400);
    }
    app.patch(&format!("{PATH}/none"), json!({})).await.expect(404);
    assert_eq!(app.get(PATH).await.expect(200).body, json!({"items": [expected]}));
}

#[tokio::test]
async fn a_declaration_goes_when_no_product_uses_it() {
    let app = App::start().await;
    app.post(PATH, json!({"fieldName": "weight", "objectType": "Number"})).await.expect(201);
    app.post(PATH, json!({"fieldName": "manual", "isLanguageSpecific": true})).await.expect(201);
    let product = json!({"p": {"productDetails": {"merchantProductAttributes": {"weight": 1},
        "languageAttributes": {"de": {"merchantProductAttributes": {"manual": "x"}}}}}});
    app.post("/products/global", product).await.expect(201);
    for name in ["weight", "manual"] {
        let used = app.delete(&format!("{PATH}/{name}")).await.expect(409);
        assert_eq!(used.faults(), ["fieldName ATTRIBUTE_IN_USE"], "{name}");
    }
    let without = json!({"productDetails": {"merchantProductAttributes": null, "languageAttributes": null}});
    app.patch("/products/global?productId=p&currentVersion=1", without).await.expect(200);
    for name in ["weight", "manual"] {
        app.delete(&format!("{PATH}/{name}")).await.expect(204);
        app.delete(&format!("{PATH}/{name}")).await.expect(404);
    }
    assert_eq!(app.get(PATH).await.expect(200).body, json!({"items": []}));
    app.delete(&format!("{PATH}/a%00b")).await.expect(400);
    app.patch(&format!("{PATH}/a%00b"), json!({})).await.expect(400);
    let editor = app.token("shop", "eve", vat_classification::domain::access::Level::Edit).await;
    let path = format!("{PATH}/weight");
    app.raw(&editor, "DELETE", &path, "application/json", axum::body::Body::empty()).await.expect(403);
}
