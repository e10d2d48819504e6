//! Assignments: auto-assignment, the actions of people, history.

use serde_json::{Value, json};

use crate::app::{App, action_body, german, version};

#[tokio::test]
async fn a_customs_code_decides_and_the_text_where_there_is_none() {
    let app = App::start().await;
    app.create(&[("text", "Herren Socken aus Baumwolle"), ("vague", "Geschenk")]).await;
    let coded = json!({"coded": {"productDetails": {"customsCodes": {"taresCode": "0901.2100"}}}});
    app.post("/products/global", coded).await.expect(201);
    let before = app.assignment("TARIC", "text").await;
    assert_eq!((&before["assignmentStatus"], &before["autoAssignment"]), (&json!("UNASSIGNED"), &json!("PENDING")));
    assert!(before.get("productClassCode").is_none() && before["strategy"].is_null());
    app.assign().await;
    let coded = app.assignment("TARES", "coded").await;
    assert_eq!(coded["strategy"], "CUSTOMS-CODE");
    assert_eq!(
        (&coded["productClass"], &coded["fixedWidthProductClass"]),
        (&json!("090121-00-000"), &json!("09012100"))
    );
    assert_eq!(app.assignment("UKGT", "coded").await["fixedWidthProductClass"], "0901210000");
    let text = app.assignment("TARIC", "text").await;
    assert_eq!(text["strategy"], "DESCRIPTION");
    assert!(text["productClassCode"].as_str().is_some_and(|code| code.starts_with("6115")), "{text}");
    assert_eq!((version(&text), &text["autoAssignment"]), (1, &json!("DONE")));
    let vague = app.assignment("TARIC", "vague").await;
    assert_eq!((&vague["assignmentStatus"], &vague["autoAssignment"]), (&json!("UNASSIGNED"), &json!("DONE")));
    assert_eq!(app.history("TARIC", "coded").await, ["anna CREATE UNASSIGNED", "auto-assignment AUTO_ASSIGN ASSIGNED"]);
}

#[tokio::test]
async fn actions_move_the_status_and_history_tells_who() {
    let app = App::start().await;
    let coded = json!({"p": {"productDetails": {"customsCodes": {"taricCode": "0901 21 00"}}}});
    app.post("/products/global", coded).await.expect(201);
    app.assign().await;
    for (action, before, status, after) in [
        ("RECONFIRM", 1, 422, None),
        ("REJECT", 0, 409, None),
        ("APPROVE", 1, 200, Some("APPROVED")),
        ("APPROVE", 2, 422, None),
        ("DENY", 2, 200, Some("DENIED")),
        ("DENY", 3, 200, Some("DENIED")),
        ("REJECT", 4, 422, None),
        ("UNASSIGN", 4, 422, None),
        ("ASSIGN&productClass=090121-00-000", 4, 422, None),
        ("RECONFIRM", 4, 200, Some("REJECTED")),
        ("UNASSIGN", 5, 200, Some("UNASSIGNED")),
        ("ASSIGN&productClass=0901210000-00-000", 6, 200, Some("APPROVED")),
    ] {
        let answer = app.act("TARIC", "p", action, before).await.expect(status);
        if let Some(after) = after {
            let product = &answer.body["products"][0];
            assert_eq!(product["assignmentStatus"], after, "{action}");
            assert_eq!(product["assignmentVersion"]["vatRules"], before + 1);
            assert_eq!(product.get("productClassCode").is_some(), after != "UNASSIGNED");
        }
    }
    let assignment = app.assignment("TARIC", "p").await;
    assert_eq!((&assignment["strategy"], &assignment["productClassCode"]), (&json!("MANUAL"), &json!("090121")));
    let expected = [
        "anna CREATE UNASSIGNED",
        "auto-assignment AUTO_ASSIGN ASSIGNED",
        "anna APPROVE APPROVED",
        "anna DENY DENIED",
        "anna DENY DENIED",
        "anna RECONFIRM REJECTED",
        "anna UNASSIGN UNASSIGNED",
        "anna ASSIGN APPROVED",
    ];
    assert_eq!(app.history("TARIC", "p").await, expected);
}

#[tokio::test]
async fn a_class_must_be_there_be_of_the_shape_and_of_the_taxonomy() {
    let app = App::start().await;
    app.create(&[("p", "Kaffee")]).await;
    app.assign().await;
    for (class, status) in [
        ("", 400),
        ("&productClass=0901", 400),
        ("&productClass=0901-0-000", 400),
        ("&productClass=999999-00-000", 422),
        ("&productClass=0901-77-000", 422),
        ("&productClass=610915-00-000", 422),
    ] {
        app.act("TARIC", "p", &format!("ASSIGN{class}"), 1).await.expect(status);
    }
    app.act("TARIC", "p", "PROMOTE", 1).await.expect(400);
    app.patch("/assignments/TARIC", action_body(&[("p", 1)])).await.expect(400);
    for body in [
        json!({}),
        json!({"products": []}),
        action_body(&[("p", 1), ("p", 1)]),
        json!({"products": [{"productId": "p"}]}),
    ] {
        app.patch("/assignments/TARIC?assignmentAction=DENY", body).await.expect(400);
    }
    assert_eq!(version(&app.assignment("TARIC", "p").await), 1);
}

#[tokio::test]
async fn an_action_on_several_products_is_all_or_none_and_names_each_that_fails() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    app.assign().await;
    let deny = "/assignments/TARIC?assignmentAction=DENY";
    let missing = app.patch(deny, action_body(&[("a", 1), ("x", 1), ("y", 9)])).await.expect(404);
    assert_eq!(missing.body["errors"].as_array().map(Vec::len), Some(2));
    let stale = app.patch(deny, action_body(&[("a", 1), ("b", 7)])).await.expect(409);
    assert_eq!(stale.body["errors"][0]["productId"], "b");
    assert_eq!(stale.body["errors"][0]["currentVersion"], 1);
    assert_ne!(app.assignment("TARIC", "a").await["assignmentStatus"], "DENIED");
    let done = app.patch(deny, action_body(&[("b", 1), ("a", 1)])).await.expect(200).body;
    let ids: Vec<&Value> =
        done["products"].as_array().into_iter().flatten().map(|product| &product["productId"]).collect();
    assert_eq!(ids, ["b", "a"]);
}

#[tokio::test]
async fn a_status_set_without_a_class_shows_null() {
    let app = App::start().await;
    app.create(&[("p", "Geschenk")]).await;
    app.assign().await;
    app.act("TARIC", "p", "REJECT", 1).await.expect(200);
    let assignment = app.assignment("TARIC", "p").await;
    for field in ["productClassCode", "productClass", "fixedWidthProductClass"] {
        assert_eq!(assignment.get(field), Some(&Value::Null), "{field}");
    }
}

#[tokio::test]
async fn a_changed_product_is_queued_again_unless_a_person_decided() {
    let app = App::start().await;
    let coded = json!({"p": {"productDetails": {"customsCodes": {"taricCode": "0901 21 00"}}}});
    app.post("/products/global", coded).await.expect(201);
    app.assign().await;
    app.act("UKGT", "p", "ASSIGN&productClass=090121-00-000", 1).await.expect(200);
    app.patch("/products/global?productId=p&currentVersion=1", json!({"productDetails": {"manufacturerName": "M"}}))
        .await
        .expect(200);
    assert_eq!(app.assignment("TARIC", "p").await["autoAssignment"], "DONE", "a manufacturer is no evidence");
    let other = json!({"productDetails": {"customsCodes": {"taricCode": "0902 10 00"}}});
    app.patch("/products/global?productId=p&currentVersion=2", other).await.expect(200);
    let pending = app.assignment("TARIC", "p").await;
    assert_eq!((&pending["autoAssignment"], &pending["productClassCode"]), (&json!("PENDING"), &json!("090121")));
    let manual = app.assignment("UKGT", "p").await;
    assert_eq!((&manual["reviewNeeded"], &manual["autoAssignment"]), (&json!(true), &json!("DONE")));
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "p").await["productClassCode"], "090210");
    let manual = app.assignment("UKGT", "p").await;
    assert_eq!((&manual["productClassCode"], &manual["assignmentStatus"]), (&json!("090121"), &json!("APPROVED")));
    assert_eq!(app.history("UKGT", "p").await.last().map(String::as_str), Some("anna PRODUCT_CHANGED APPROVED"));
    let list = app.get("/assignments/UKGT?assignmentStatus=APPROVED&reviewNeeded=true").await.body;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    app.act("UKGT", "p", "REJECT", version(&manual)).await.expect(200);
    assert_eq!(app.assignment("UKGT", "p").await["reviewNeeded"], false);
}

#[tokio::test]
async fn what_is_unassigned_can_be_queued_again() {
    let app = App::start().await;
    app.create(&[("p", "Geschenk")]).await;
    let coded = json!({"q": {"productDetails": {"customsCodes": {"taricCode": "0901 21 00"}}}});
    app.post("/products/global", coded).await.expect(201);
    app.assign().await;
    app.act("TARIC", "p", "REJECT", 1).await.expect(200);
    let queued = |ids: &[&str]| json!({"products": ids.iter().map(|id| json!({"productId": id})).collect::<Vec<_>>()});
    app.post("/assignments/auto-assignment", queued(&["p", "none"])).await.expect(404);
    app.post("/assignments/auto-assignment", queued(&[])).await.expect(400);
    app.post("/assignments/auto-assignment", queued(&["p", "p"])).await.expect(400);
    let answer = app.post("/assignments/auto-assignment", queued(&["p", "q"])).await.expect(200);
    assert_eq!(answer.body, json!({"queued": 1}));
    assert_eq!(app.assignment("TARIC", "p").await["autoAssignment"], "DONE");
    assert_eq!(app.assignment("UKGT", "p").await["autoAssignment"], "PENDING");
    app.assign().await;
    assert_eq!(app.history("UKGT", "p").await[2], "anna REQUEUE UNASSIGNED");
}

#[tokio::test]
async fn an_assignment_embeds_events_candidates_and_rates() {
    let app = App::start().await;
    app.create(&[("p", "Herren Socken aus Baumwolle")]).await;
    app.assign().await;
    let uuid = app.assignment("TARIC", "p").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let all = app.get(&format!("/assignments/TARIC/{uuid}?embed=EVENTS,CANDIDATES&embed=VAT_RATES")).await;
    assert_eq!(all.status, 400, "repeated values are not split");
    let path = format!("/assignments/TARIC/{uuid}?embed=EVENTS&embed=CANDIDATES&embed=VAT_RATES");
    let all = app.get(&path).await.expect(200).body;
    assert_eq!(all["vatRates"].as_array().map(Vec::len), Some(27));
    assert!(all["vatRates"][0]["rates"][0]["source"].is_string(), "the rule that applied: {}", all["vatRates"][0]);
    assert_eq!(all["vatRates"][0].get("completeness"), None, "an essay that /vat-rates tells");
    let best = &all["candidates"][0];
    assert!(
        best["path"].as_array().is_some_and(|path| path.len() == 3 && path[0]["productClassCode"] == "61"),
        "{best}"
    );
    assert!(best["evidence"][0]["word"].is_string() && all["model"]["version"].is_string());
    let similar = best["similar"].as_array().expect("texts that resemble the product");
    assert!((1..=3).contains(&similar.len()), "{best}");
    let likeness = |row: &Value| row["similarity"].as_f64().expect("a similarity");
    assert!(similar.windows(2).all(|pair| likeness(&pair[0]) >= likeness(&pair[1])), "{best}");
    assert!(similar[0]["text"].as_str().is_some_and(|text| text.to_lowercase().contains("socke")), "{best}");
    assert!(all["events"].is_array());
    app.get(&format!("/assignments/UKGT/{uuid}")).await.expect(404);
    app.get("/assignments/TARIC/not-a-uuid").await.expect(404);
    app.get("/assignments/not-a-uuid").await.expect(404);
    app.get(&format!("/assignments/TARIC/{uuid}?embed=ALL")).await.expect(400);
    app.get("/assignments/TARIC").await.expect(400);
    app.get("/assignments/TARIC?assignmentStatus=NEW").await.expect(400);
    app.post("/products/global", json!({"q": german("x")})).await.expect(201);
}
