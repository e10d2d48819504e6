//! Labels of assignments.

use serde_json::json;

use crate::app::App;

const DEFINITIONS: &str = "/assignments/assignment-labels";

#[tokio::test]
async fn a_label_is_defined_once_with_one_colour() {
    let app = App::start().await;
    let label = json!({"label": "to check", "color": "#00AAFF"});
    assert_eq!(app.post(DEFINITIONS, label.clone()).await.expect(201).body, label);
    app.post(DEFINITIONS, label.clone()).await.expect(200);
    app.post(DEFINITIONS, json!({"label": "to check", "color": "#000000"})).await.expect(409);
    for (name, color) in [("", "#000000"), ("a,b", "#000000"), ("!a", "#000000"), ("a", "red"), ("a", "#00000G")] {
        app.post(DEFINITIONS, json!({"label": name, "color": color})).await.expect(422);
    }
    app.post(DEFINITIONS, json!({"label": "x".repeat(101), "color": "#000000"})).await.expect(422);
    app.post(DEFINITIONS, json!({"label": "a"})).await.expect(400);
    assert_eq!(app.get(DEFINITIONS).await.expect(200).body, json!({"items": [label]}));
}

#[tokio::test]
async fn labels_are_attached_and_detached_all_or_none_and_select_assignments() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    for label in ["red", "hot"] {
        app.post(DEFINITIONS, json!({"label": label, "color": "#FF0000"})).await.expect(201);
    }
    let a = app.assignment("TARIC", "a").await;
    let b = app.assignment("TARIC", "b").await;
    let body = |uuids: &[&serde_json::Value], labels: &[&str]| json!({"assignmentUuids": uuids, "labels": labels});
    let (a, b) = (&a["assignmentUuid"], &b["assignmentUuid"]);
    let missing = json!("00000000-0000-0000-0000-000000000000");
    app.put("/assignments", body(&[a, &missing], &["red"])).await.expect(404);
    app.put("/assignments", body(&[a, &json!("x")], &["none"])).await.expect(404);
    app.put("/assignments", body(&[a], &["red", "none"])).await.expect(422);
    app.put("/assignments", body(&[], &["red"])).await.expect(400);
    assert_eq!(app.assignment("TARIC", "a").await["labels"], json!([]));

    let sent = body(&[a, b], &["red", "hot"]);
    assert_eq!(app.put("/assignments", sent.clone()).await.expect(200).body, sent);
    app.put("/assignments", sent).await.expect(200);
    app.call("DELETE", "/assignments", body(&[b], &["hot"])).await.expect(200);
    for (labels, found) in [("red", "a b"), ("red,hot", "a"), ("!hot", "b"), ("red&labels=!hot", "b"), ("none", "")] {
        let list = app.get(&format!("/assignments/TARIC?assignmentStatus=UNASSIGNED&labels={labels}")).await;
        let items = list.body["items"].as_array().expect("items").clone();
        let ids: Vec<&str> = items.iter().filter_map(|item| item["productId"].as_str()).collect();
        assert_eq!(ids.join(" "), found, "{labels}");
    }
    let versions = app.assignment("TARIC", "a").await;
    assert_eq!(crate::app::version(&versions), 0, "labels do not touch the version");
}

#[tokio::test]
async fn an_account_has_a_limited_number_of_labels() {
    let app = App::start().await;
    sqlx::query(
        "insert into assignment_labels (account_id, label, color)
         select account_id, 'l' || n, '#000000' from accounts, generate_series(1, 1000) n",
    )
    .execute(app.store.pool())
    .await
    .expect("a thousand");
    let refused =
        app.post("/assignments/assignment-labels", json!({"label": "one more", "color": "#000000"})).await.expect(422);
    assert_eq!(refused.faults(), ["label TOO_MANY_LABELS"]);
}

#[tokio::test]
async fn an_assignment_carries_a_limited_number_of_labels() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    sqlx::query(
        "insert into assignment_labels (account_id, label, color)
         select account_id, 'l' || n, '#000000' from accounts, generate_series(1, 60) n",
    )
    .execute(app.store.pool())
    .await
    .expect("sixty");
    let labels = |range: std::ops::RangeInclusive<u32>| range.map(|n| format!("l{n}")).collect::<Vec<_>>();
    let (a, b) = (app.assignment("TARIC", "a").await, app.assignment("TARIC", "b").await);
    let (a, b) = (&a["assignmentUuid"], &b["assignmentUuid"]);
    app.put("/assignments", json!({"assignmentUuids": [a], "labels": labels(1..=50)})).await.expect(200);
    let both = json!({"assignmentUuids": [a, b], "labels": labels(50..=51)});
    let refused = app.put("/assignments", both.clone()).await.expect(422);
    assert_eq!(refused.faults(), ["labels TOO_MANY_LABELS"]);
    assert_eq!(refused.body["errors"][0]["productId"], "a");
    let message = refused.body["errors"][0]["message"].as_str().expect("a message");
    assert!(message.contains(a.as_str().expect("a uuid")) && message.contains("51"), "{message}");
    assert_eq!(app.assignment("TARIC", "b").await["labels"], json!([]), "all or none");
    // What an assignment has already is no label more, whether it has fifty or, from before, more than that.
    app.put("/assignments", json!({"assignmentUuids": [a], "labels": labels(1..=50)})).await.expect(200);
    sqlx::query("update assignments set labels = labels || array['l52'] where assignment_uuid::text = $1")
        .bind(a.as_str())
        .execute(app.store.pool())
        .await
        .expect("set");
    app.put("/assignments", json!({"assignmentUuids": [a], "labels": labels(50..=50)})).await.expect(200);
    app.put("/assignments", both.clone()).await.expect(422);
    // What is full can be emptied, and then takes others.
    app.call("DELETE", "/assignments", json!({"assignmentUuids": [a], "labels": labels(1..=10)})).await.expect(200);
    app.put("/assignments", both).await.expect(200);
    assert_eq!(app.assignment("TARIC", "a").await["labels"].as_array().expect("labels").len(), 42);
}

#[tokio::test]
async fn a_label_gets_another_colour_and_another_name_everywhere() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee"), ("b", "Tee")]).await;
    for label in ["red", "hot"] {
        app.post(DEFINITIONS, json!({"label": label, "color": "#FF0000"})).await.expect(201);
    }
    let uuids = [app.assignment("TARIC", "a").await["assignmentUuid"].clone()];
    app.put("/assignments", json!({"assignmentUuids": uuids, "labels": ["red", "hot"]})).await.expect(200);
    let red = format!("{DEFINITIONS}/red");
    let coloured = app.patch(&red, json!({"color": "#00FF00"})).await.expect(200).body;
    assert_eq!(coloured, json!({"label": "red", "color": "#00FF00"}));
    app.patch(&red, json!({"label": "hot"})).await.expect(409);
    for (body, status) in [
        (json!({}), 400),
        (json!({"colour": "#000000"}), 400),
        (json!({"color": "green"}), 422),
        (json!({"label": "a,b"}), 422),
    ] {
        app.patch(&red, body).await.expect(status);
        app.patch(&format!("{DEFINITIONS}/none"), json!({"color": "green"})).await.expect(404);
    }
    let renamed = app.patch(&red, json!({"label": "to check"})).await.expect(200).body;
    assert_eq!(renamed, json!({"label": "to check", "color": "#00FF00"}));
    assert_eq!(app.assignment("TARIC", "a").await["labels"], json!(["hot", "to check"]));
    app.patch(&red, json!({"color": "#000000"})).await.expect(404);
    let history = app.history("TARIC", "a").await;
    assert_eq!(history[1..], ["anna LABEL UNASSIGNED", "anna UNLABEL UNASSIGNED", "anna LABEL UNASSIGNED"]);
    // The old name is free again.
    app.post(DEFINITIONS, json!({"label": "red", "color": "#0000FF"})).await.expect(201);
}

#[tokio::test]
async fn a_removed_label_is_detached_everywhere_and_is_for_administrators() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee")]).await;
    app.post(DEFINITIONS, json!({"label": "a/b", "color": "#FF0000"})).await.expect(201);
    let uuids = [app.assignment("TARIC", "a").await["assignmentUuid"].clone()];
    app.put("/assignments", json!({"assignmentUuids": uuids, "labels": ["a/b"]})).await.expect(200);
    let path = format!("{DEFINITIONS}/a%2Fb");
    let editor = app.token("shop", "eve", vat_classification::domain::access::Level::Edit).await;
    for method in ["PATCH", "DELETE"] {
        let refused = app.raw(&editor, method, &path, "application/json", axum::body::Body::from("{}")).await;
        refused.expect(403);
    }
    app.delete(&path).await.expect(204);
    app.delete(&path).await.expect(404);
    app.delete(&format!("{DEFINITIONS}/a%00b")).await.expect(400);
    app.patch(&format!("{DEFINITIONS}/a%00b"), json!({"label": "c"})).await.expect(400);
    assert_eq!(app.assignment("TARIC", "a").await["labels"], json!([]));
    assert_eq!(app.get(DEFINITIONS).await.expect(200).body, json!({"items": []}));
    app.put("/assignments", json!({"assignmentUuids": uuids, "labels": ["a/b"]})).await.expect(422);
}

#[tokio::test]
async fn a_label_that_still_leaves_is_not_attached_and_not_defined_anew() {
    let app = App::start().await;
    app.create(&[("a", "Kaffee")]).await;
    app.post(DEFINITIONS, json!({"label": "red", "color": "#FF0000"})).await.expect(201);
    let uuids = [app.assignment("TARIC", "a").await["assignmentUuid"].clone()];
    let labelling = json!({"assignmentUuids": uuids, "labels": ["red"]});
    app.put("/assignments", labelling.clone()).await.expect(200);
    // As when the service ends before the label has left.
    app.store.remove_label(&app.caller("anna").await, "red").await.expect("removed");
    app.put("/assignments", labelling).await.expect(422);
    app.post(DEFINITIONS, json!({"label": "red", "color": "#FF0000"})).await.expect(409);
    while app.store.shed_label(None).await.expect("shed") {}
    assert_eq!(app.assignment("TARIC", "a").await["labels"], json!([]));
    app.post(DEFINITIONS, json!({"label": "red", "color": "#FF0000"})).await.expect(201);
}

#[tokio::test]
async fn a_label_that_others_still_become_leaves_when_they_have() {
    for third in [None, Some("third")] {
        let app = App::start().await;
        app.create(&[("a", "Kaffee")]).await;
        app.post(DEFINITIONS, json!({"label": "old", "color": "#FF0000"})).await.expect(201);
        let uuids = [app.assignment("TARIC", "a").await["assignmentUuid"].clone()];
        app.put("/assignments", json!({"assignmentUuids": uuids, "labels": ["old"]})).await.expect(200);
        // One request is still putting the new name on assignments as another takes that name away.
        let caller = app.caller("anna").await;
        app.store.change_label(&caller, "old", Some("new"), None).await.expect("renamed");
        match third {
            None => app.store.remove_label(&caller, "new").await.expect("removed"),
            Some(third) => drop(app.store.change_label(&caller, "new", Some(third), None).await.expect("renamed")),
        }
        while app.store.shed_label(None).await.expect("shed") {}
        let labels: Vec<&str> = third.into_iter().collect();
        assert_eq!(app.assignment("TARIC", "a").await["labels"], json!(labels));
    }
}
