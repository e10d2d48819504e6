//! Classifying without storing, the taxonomies, and VAT rates.

use serde_json::{Value, json};
use vat_classification::domain::Precision;

use crate::app::App;

#[tokio::test]
async fn a_classification_decides_as_auto_assignment_does_and_stores_nothing() {
    let app = App::start().await;
    let texts =
        [("socks", "Herren Socken aus Baumwolle"), ("gift", "Geschenk"), ("coffee", "Kaffee geröstet, ganze Bohnen")];
    let items: Vec<Value> =
        texts.iter().map(|(id, name)| json!({"id": id, "languageAttributes": {"de": {"productName": name}}})).collect();
    let answer = app.post("/classifications", json!({"taxonomy": "TARIC", "items": items})).await.expect(200).body;
    assert_eq!(app.get("/products/global").await.body["items"], json!([]));
    app.create(&texts).await;
    app.assign().await;
    for (index, (id, _)) in texts.iter().enumerate() {
        let item = &answer["items"][index];
        assert_eq!(item["id"], *id);
        let stored = app.assignment("TARIC", id).await;
        for field in
            ["assignmentStatus", "strategy", "productClassCode", "productClass", "fixedWidthProductClass", "confidence"]
        {
            assert_eq!(item["decision"].get(field), stored.get(field), "{id} {field}");
        }
    }
    assert!(answer["model"]["version"].is_string() && answer["model"]["corpus"].is_string());
}

#[tokio::test]
async fn the_words_of_a_product_settle_the_side_of_a_partial_rule() {
    let app = App::start().await;
    let item = |name: &str| json!({"languageAttributes": {"en": {"productName": name}}, "customsCodes": {"ukgtCode": "6109100010"}});
    let names = ["Men's T-shirt", "T-shirt, age 3-4", "T-shirt for boys"];
    let items: Vec<Value> = names.iter().map(|name| item(name)).collect();
    let answer = app.post("/classifications", json!({"taxonomy": "UKGT", "items": items})).await.expect(200).body;
    let told: Vec<String> = (0..names.len())
        .map(|index| {
            let decision = &answer["items"][index]["decision"];
            format!("{} {}", decision["productClass"].as_str().unwrap_or_default(), decision["assignmentStatus"])
        })
        .collect();
    assert_eq!(
        told,
        ["6109100010-02-000 \"ASSIGNED\"", "6109100010-03-000 \"ASSIGNED\"", "6109100010-00-000 \"REJECTED\"",]
    );
}

#[tokio::test]
async fn an_account_chooses_how_sure_its_decisions_are_and_a_request_may_choose_otherwise() {
    let app = App::start().await;
    let names = [
        "Herren Socken aus Baumwolle",
        "Kanne",
        "Schlauch schwarz",
        "Platte aus Holz",
        "Halter für Kabel",
        "Baumwolle Tuch",
        "Creme",
        "Deckel für Topf",
        "Lampe",
        "Gummi Band",
        "Kinder Set Löffel",
        "Stoff mit Blumen",
    ];
    let items: Vec<Value> =
        names.iter().map(|name| json!({"languageAttributes": {"de": {"productName": name}}})).collect();
    let decided = |answer: &Value| -> Vec<Option<String>> {
        let items = answer["items"].as_array().expect("items").iter();
        items.map(|item| item["decision"]["productClassCode"].as_str().map(str::to_owned)).collect()
    };
    let asked = json!({"taxonomy": "TARIC", "items": items});
    let mut last: Option<Vec<Option<String>>> = None;
    for (share, precision) in [(0.90, Precision::P90), (0.95, Precision::P95), (0.98, Precision::P98)] {
        let mut with = asked.clone();
        with["precision"] = json!(share);
        let explicit = decided(&app.post("/classifications", with).await.expect(200).body);
        app.store.set_precision("shop", precision).await.expect("set");
        assert_eq!(app.get("/usage").await.expect(200).body["decisionPrecision"], json!(share));
        assert_eq!(decided(&app.post("/classifications", asked.clone()).await.expect(200).body), explicit);
        assert!(explicit.iter().flatten().all(|code| code.len() >= 4), "{explicit:?}");
        if let Some(looser) = last.replace(explicit.clone()) {
            let is_no_deeper = |(strict, loose): (&Option<String>, &Option<String>)| match (strict, loose) {
                (Some(strict), Some(loose)) => loose.starts_with(strict.as_str()),
                (strict, _) => strict.is_none(),
            };
            assert!(explicit.iter().zip(&looser).all(is_no_deeper), "{explicit:?} {looser:?}");
        }
    }
    let unknown = app.store.set_precision("nobody", Precision::P90).await;
    assert!(unknown.is_err());
}

#[tokio::test]
async fn candidates_are_distinct_at_the_depth_asked_for() {
    let app = App::start().await;
    let item = json!({"languageAttributes": {"de": {"productName": "Socken aus Baumwolle"}}});
    for digits in [2, 4, 6] {
        let body = json!({"taxonomy": "UKGT", "digits": digits, "limit": 3, "items": [item, {}]});
        let answer = app.post("/classifications", body).await.expect(200).body;
        let candidates = answer["items"][0]["candidates"].as_array().expect("candidates").clone();
        let mut codes: Vec<&str> = candidates.iter().filter_map(|one| one["productClassCode"].as_str()).collect();
        assert!(!codes.is_empty() && codes.len() <= 3 && codes.iter().all(|code| code.len() == digits), "{codes:?}");
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), candidates.len());
        assert!(candidates[0]["labels"]["de"].is_string() && candidates[0]["labels"]["en"].is_string());
        assert_eq!(answer["items"][1]["candidates"], json!([]));
        assert_eq!(answer["items"][1]["decision"]["assignmentStatus"], "UNASSIGNED");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_classification_is_named() {
    let app = App::start().await;
    assert_eq!(app.post("/classifications", json!({"items": [{}]})).await.expect(400).faults(), ["taxonomy MISSING"]);
    for bad in [
        json!({"taxonomy": "TARIC", "items": []}),
        json!({"taxonomy": "TARIC", "precision": "0.95", "items": [{}]}),
        json!({"taxonomy": "TARIC", "items": [{"x": 1}]}),
        json!({"taxonomy": "TARIC", "items": vec![json!({}); 1_001]}),
    ] {
        app.post("/classifications", bad).await.expect(400);
    }
    for (more, fault) in [
        (json!({"taxonomy": "HS"}), "taxonomy UNKNOWN_TAXONOMY"),
        (json!({"digits": 5}), "digits INVALID_DIGITS"),
        (json!({"limit": 0}), "limit INVALID_LIMIT"),
        (json!({"limit": 21}), "limit INVALID_LIMIT"),
        (json!({"precision": 0.97}), "precision INVALID_PRECISION"),
    ] {
        let mut body = json!({"taxonomy": "TARIC", "items": [{}]});
        vat_classification::domain::merge_patch::apply(&mut body, more);
        assert_eq!(app.post("/classifications", body).await.expect(422).faults(), [fault]);
    }
    let with_attributes = json!({"de": {"productName": "Kaffee", "merchantProductAttributes": {"season": "winter"}}});
    let body = json!({"taxonomy": "TARIC", "items": [{"languageAttributes": with_attributes}]});
    app.post("/classifications", body).await.expect(200);
    let body = json!({"taxonomy": "TARIC", "items": [{}, {"languageAttributes": {"german": {}}, "customsCodes": {"taricCode": "1"}}]});
    let refused = app.post("/classifications", body).await.expect(422);
    assert_eq!(
        refused.faults(),
        ["items[1].languageAttributes.german UNKNOWN_LANGUAGE", "items[1].customsCodes.taricCode INVALID_CUSTOMS_CODE"]
    );
}

#[tokio::test]
async fn rates_follow_from_a_class_and_the_taxonomy_can_be_browsed() {
    let app = App::start().await;
    let rates = app.get("/vat-rates/UKGT/490199-00-000").await.expect(200).body;
    assert_eq!((&rates["productClass"], &rates["countries"][0]["country"]), (&json!("490199-00-000"), &json!("GB")));
    let germany = app.get("/vat-rates/TARIC/080390").await.expect(200).body;
    let germany =
        germany["countries"].as_array().and_then(|all| all.iter().find(|one| one["country"] == "DE")).cloned();
    assert_eq!(germany.map(|one| one["rate"].clone()), Some(json!(7)));
    assert!(rates["ruleSetDate"].is_string() && rates["countries"][0]["rateType"] == "ZERO");
    for (path, status) in [
        ("/vat-rates/TARIC/4901?territories=maybe", 400),
        ("/vat-rates/HS/4901", 404),
        ("/vat-rates/TARIC/9999", 404),
        ("/vat-rates/TARIC/x", 404),
        ("/vat-rates/TARIC/4901?date=yesterday", 400),
        ("/vat-rates/TARIC/4901?date=2026-01-01", 200),
        ("/product-classes/HS", 404),
        ("/product-classes/TARIC?under=x", 400),
    ] {
        app.get(path).await.expect(status);
    }
    let chapters = app.get("/product-classes/TARES?size=1000").await.expect(200).body;
    assert_eq!(chapters["items"].as_array().map(Vec::len), Some(96));
    let below = app.get("/product-classes/TARES?under=0901").await.expect(200).body;
    assert!(below["items"].as_array().is_some_and(|items| items.iter().all(|item| {
        item["productClassCode"].as_str().is_some_and(|code| code.starts_with("0901") && code.len() == 6)
    })));
    // Zeros at the end of a code say "and all below".
    for (full, short) in [("query=8517130000", "query=851713"), ("under=6109100000", "under=610910")] {
        let [full, short] = [full, short].map(|query| format!("/product-classes/TARIC?{query}"));
        let [full, short] = [app.get(&full).await.expect(200).body, app.get(&short).await.expect(200).body];
        assert!(short["items"].as_array().is_some_and(|items| !items.is_empty()), "{short}");
        assert_eq!(full["items"], short["items"]);
    }
    let found = app.get("/product-classes/TARIC?query=Kaffee").await.expect(200).body;
    assert!(found["items"].as_array().is_some_and(|items| !items.is_empty()));
}

#[tokio::test]
async fn classes_are_found_by_the_words_of_shops_page_by_page_and_with_their_segments() {
    let app = App::start().await;
    let codes = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().into_iter().flatten();
        items.filter_map(|item| item["productClassCode"].as_str()).map(str::to_owned).collect()
    };
    for (query, heading) in [("Handy", "8517"), ("tshirt", "6109"), ("sneaker", "64"), ("Bluetooth-Box", "8518")] {
        let page = app.get(&format!("/product-classes/TARIC?query={query}&size=10")).await.expect(200).body;
        assert!(codes(&page).iter().any(|code| code.starts_with(heading)), "{query}: {:?}", codes(&page));
        let led = page["items"].as_array().into_iter().flatten().filter(|item| item["confidence"].is_number()).count();
        assert!(led > 0, "{query}: {page}");
    }
    // What lies below a class alone, each once, and back again.
    let mut walked = Vec::new();
    let mut next = Some("/product-classes/TARIC?query=Kaffee&size=3".to_owned());
    let mut last = Value::Null;
    while let Some(path) = next {
        last = app.get(&path).await.expect(200).body;
        walked.extend(codes(&last));
        next = last["links"]["next"].as_str().map(str::to_owned);
    }
    let whole = codes(&app.get("/product-classes/TARIC?query=Kaffee&size=1000").await.expect(200).body);
    assert!(whole.len() > 3, "{whole:?}");
    assert_eq!(walked, whole);
    let back = app.get(last["links"]["prev"].as_str().expect("a link")).await.expect(200).body;
    assert_eq!(codes(&back).len(), 3);
    let below = codes(&app.get("/product-classes/TARIC?query=Kaffee&under=0901").await.expect(200).body);
    assert!(!below.is_empty() && below.iter().all(|code| code.starts_with("0901")), "{below:?}");
    // Every depth of the list that ships, by digits however they are written.
    let lines = codes(&app.get("/product-classes/TARIC?query=6109.10%2000").await.expect(200).body);
    assert!(lines.iter().all(|code| code.starts_with("61091000")) && !lines.is_empty(), "{lines:?}");
    let shirts = app.get("/product-classes/UKGT?query=610910").await.expect(200).body;
    let segments = shirts["items"][0]["segments"].as_array().expect("segments");
    assert!(segments.iter().any(|one| one["productClass"] == "610910-03-000" && one["labels"]["en"].is_string()));
    app.get(&format!("/product-classes/TARIC?query={}", "x".repeat(201))).await.expect(400);
    app.get("/product-classes/TARIC?cursor=x").await.expect(400);
}

#[tokio::test]
async fn rates_tell_what_is_missing_what_is_not_known_and_what_will_change() {
    let app = App::start().await;
    let country = |body: &Value, code: &str| {
        body["countries"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["country"] == code))
            .cloned()
            .unwrap_or_default()
    };
    let shirts = app.get("/vat-rates/UKGT/610910").await.expect(200).body;
    assert_eq!(shirts["sufficient"], false);
    assert!(
        shirts["countries"][0]["rates"].as_array().is_some_and(|all| all.iter().any(|one| one["missing"] == "age"))
    );
    // What a file does not know is told as such.
    let maps = country(&app.get("/vat-rates/TARIC/490590").await.expect(200).body, "BG");
    assert_eq!((&maps["sufficient"], &maps["rate"]), (&json!(false), &Value::Null));
    let rates = maps["rates"].as_array().cloned().unwrap_or_default();
    assert!(
        rates.iter().any(|one| one["category"] == "UNKNOWN" && one["rate"].is_null() && one.get("rateType").is_none())
    );
    // Rules that are enacted for a day to come are told before it, and answer for it.
    let bread = app.get("/vat-rates/TARIC/190590-19-000?date=2026-11-22").await.expect(200).body;
    assert_eq!(country(&bread, "SE")["nextChange"], "2028-01-01");
    assert_eq!(bread["nextChange"], "2027-07-01");
    let later = app.get("/vat-rates/TARIC/190590-19-000?date=2028-01-01").await.expect(200).body;
    assert_eq!(country(&later, "SE")["rate"], 12);
    // Before the day from which the history was checked there are no rates, and a reason.
    let before = country(&app.get("/vat-rates/TARIC/190590-19-000?date=2011-01-01").await.expect(200).body, "ES");
    assert_eq!(before["rates"], json!([]));
    assert!(before["reason"].as_str().is_some_and(|reason| reason.contains("2025-01-01")), "{before}");
}

#[tokio::test]
async fn territories_follow_the_countries_when_they_are_asked_for() {
    let app = App::start().await;
    let plain = app.get("/vat-rates/TARIC/847130").await.expect(200).body;
    assert_eq!(plain["countries"].as_array().map(Vec::len), Some(27));
    let body = app.get("/vat-rates/TARIC/847130?territories=true").await.expect(200).body;
    assert_eq!(body["sufficient"], plain["sufficient"]);
    let found = |code: &str| {
        let all = body["countries"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["country"] == code).unwrap_or_default();
        one["rate"]
            .as_f64()
            .map_or_else(|| one["reason"].as_str().unwrap_or("?").chars().take(15).collect(), |rate| rate.to_string())
    };
    for (code, wanted) in [
        ("AT-JUNGHOLZ", "19"),
        ("AT-MITTELBERG", "19"),
        ("DE-BUESINGEN", "Outside the VAT"),
        ("DE-HELGOLAND", "Outside the VAT"),
        ("ES-CE", "Outside the VAT"),
        ("ES-CN", "Outside the VAT"),
        ("ES-ML", "Outside the VAT"),
        ("FI-01", "25.5"),
        ("FR-20R", "20"),
        ("GF", "VAT is for the "),
        ("GP", "8.5"),
        ("GR-69", "Outside the VAT"),
        ("GR-AEGEAN", "17"),
        ("GR-LEROS", "17"),
        ("IT-CAMPIONE", "Outside the VAT"),
        ("IT-LIVIGNO", "Outside the VAT"),
        ("MC", "20"),
        ("MQ", "8.5"),
        ("PT-20", "16"),
        ("PT-30", "22"),
        ("RE", "8.5"),
        ("XI", "20"),
        ("YT", "VAT is for the "),
    ] {
        assert_eq!(found(code), wanted, "{code}");
    }
    let ukgt = app.get("/vat-rates/UKGT/847130?territories=true").await.expect(200).body;
    let codes: Vec<&str> =
        ukgt["countries"].as_array().into_iter().flatten().filter_map(|one| one["country"].as_str()).collect();
    assert_eq!(codes, ["GB", "IM", "XI"]);
}
