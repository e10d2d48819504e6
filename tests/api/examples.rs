//! The examples of the OpenAPI document: each request, sent as it stands, gets the answer beside it.
//!
//! `RECORD_EXAMPLES=1 cargo test --release --test api examples` writes the answers anew.

use std::collections::BTreeMap;

use axum::body::Body;
use serde_json::{Map, Value, json};
use vat_classification::http::BASE_PATH;

use crate::app::{Answer, App};
use crate::pictures::picture;

/// Where the examples lie.
const FILE: &str = "src/http/openapi/examples.json";
/// What depends on the model, the facts or the moment: of these only the form is compared.
const LOOSE: [&str; 23] = [
    "confidence",
    "weight",
    "similarity",
    "impact",
    "candidates",
    "countries",
    "segments",
    "vatRates",
    "model",
    "corpus",
    "evidence",
    "nextChange",
    "ruleSet",
    "asOf",
    "checkedFrom",
    "sequence",
    "next",
    "secret",
    "modelVersion",
    "path",
    "queued",
    "month",
    "used",
];
/// Operations whose answers are facts or the model's own, so that only their form is compared.
const LOOSE_OPERATIONS: [&str; 7] =
    ["getVatRates", "countAssignments", "listProductClasses", "classify", "version", "listChanges", "listTokens"];
/// Items that an example of a long list shows.
const SHOWN: usize = 2;
/// A uuid of an example: the same for the same object, whatever it is in a run.
const UUID: &str = "019ab1b0-0000-7000-8000-";

/// The uuids of a run, and how the examples write them.
#[derive(Default)]
struct Names {
    by_actual: BTreeMap<String, String>,
}

impl Names {
    /// A text of an example, with the uuids of this run.
    fn actual(&self, text: &str) -> String {
        self.by_actual.iter().fold(text.to_owned(), |text, (actual, shown)| text.replace(shown, actual))
    }

    /// A value of this run as an example shows it. New uuids get names in the order in which they appear.
    fn shown(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.shown_text(text)),
            Value::Array(items) => items.iter().map(|item| self.shown(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| (name.clone(), self.shown(field))).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    fn shown_text(&mut self, text: &str) -> String {
        if is_instant(text) {
            return "2026-11-22T09:00:00.000Z".to_owned();
        }
        if text.starts_with("whsec_") {
            return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        }
        let mut shown = text.to_owned();
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for at in ends {
            let Some(part) = text.get(at..at + 36).filter(|part| is_uuid(part)) else { continue };
            let number = self.by_actual.len() + 1;
            let name = self.by_actual.entry(part.to_owned()).or_insert_with(|| format!("{UUID}{number:012}"));
            shown = shown.replace(part, name);
        }
        shown
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text
            .char_indices()
            .all(|(at, c)| if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() })
}

fn is_instant(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

/// Whether an answer is what the example says, as far as that does not depend on the moment.
fn same(found: &Value, example: &Value, is_loose: bool, place: &str) {
    match (found, example) {
        (Value::Object(found), Value::Object(example)) => {
            let names = |object: &Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            if !is_loose {
                assert_eq!(names(found), names(example), "{place}");
            }
            for (name, field) in example {
                let is_loose = is_loose || LOOSE.contains(&name.as_str());
                let Some(found) = found.get(name) else {
                    assert!(is_loose, "{place}.{name} is missing");
                    continue;
                };
                same(found, field, is_loose, &format!("{place}.{name}"));
            }
        }
        (Value::Array(found), Value::Array(example)) if is_loose => {
            for (found, example) in found.iter().zip(example) {
                same(found, example, true, place);
            }
        }
        (Value::Array(found), Value::Array(example)) => {
            assert_eq!(found.len(), example.len(), "{place}");
            for (at, (found, example)) in found.iter().zip(example).enumerate() {
                same(found, example, false, &format!("{place}[{at}]"));
            }
        }
        (found, example) if is_loose => {
            let kind = |value: &Value| (value.is_string(), value.is_number(), value.is_boolean(), value.is_array());
            assert!(kind(found) == kind(example) || found.is_null() || example.is_null(), "{place}: {found} {example}");
        }
        _ => assert_eq!(found, example, "{place}"),
    }
}

/// Shortens what would be long.
fn short(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().take(SHOWN).map(short).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, short(field))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

/// The method and path of each operation.
fn routes(document: &Value) -> BTreeMap<String, (String, String, Value)> {
    let mut routes = BTreeMap::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("an id").to_owned();
            routes.insert(id, (method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    routes
}

async fn send(app: &App, names: &Names, route: &(String, String, Value), example: &Value) -> Answer {
    let (method, path, operation) = route;
    let (mut path, mut query) = (path.clone(), Vec::new());
    for (name, value) in example["parameters"].as_object().into_iter().flatten() {
        let described =
            operation["parameters"].as_array().into_iter().flatten().find(|one| one["name"] == name.as_str());
        let described = described.unwrap_or_else(|| panic!("{} has no parameter {name}", operation["operationId"]));
        assert!(records() || &described["example"] == value, "{name} of {}", operation["operationId"]);
        let text = |value: &Value| names.actual(value.as_str().unwrap_or(&value.to_string()));
        let encode =
            |text: String| percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string();
        match value {
            Value::Array(items) => query.extend(items.iter().map(|item| format!("{name}={}", encode(text(item))))),
            value if described["in"] == "path" => path = path.replace(&format!("{{{name}}}"), &encode(text(value))),
            value => query.push(format!("{name}={}", encode(text(value)))),
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let kind = example["type"].as_str().unwrap_or("application/json");
    let body = match (&example["body"], kind) {
        (Value::Null, _) => Body::empty(),
        (_, "multipart/form-data") => {
            let mut form = b"--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n".to_vec();
            form.extend(picture(image::ImageFormat::Png));
            form.extend(b"\r\n--x--\r\n");
            let path = format!("http://service.example{path}");
            return app.raw(&app.token, method, &path, "multipart/form-data; boundary=x", form.into()).await;
        }
        (Value::String(text), _) => Body::from(text.clone()),
        (body, _) => Body::from(names.actual(&body.to_string())),
    };
    app.raw(&app.token, method, &format!("http://service.example{path}"), kind, body).await
}

/// Whether the answers are to be written anew.
fn records() -> bool {
    std::env::var_os("RECORD_EXAMPLES").is_some()
}

/// Names in parameters what an earlier answer has made: `$actionId` is the latest.
fn name_made(parameters: Option<&mut Value>, made: &BTreeMap<String, Value>) {
    for value in parameters.and_then(Value::as_object_mut).into_iter().flat_map(|fields| fields.values_mut()) {
        if let Some(name) = value.as_str().and_then(|text| text.strip_prefix('$')) {
            *value = made[name].clone();
        }
    }
}

#[tokio::test]
async fn every_example_gets_the_answer_beside_it() {
    let app = App::start().await;
    let document = app.get("http://service.example/openapi.json").await.expect(200).body;
    let routes = routes(&document);
    let text = std::fs::read_to_string(FILE).expect("the examples");
    let mut examples: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let (mut names, mut made) = (Names::default(), BTreeMap::new());
    for example in &mut examples {
        let id = example["operation"].as_str().expect("an operation").to_owned();
        match example["before"].as_str() {
            Some("assign") => app.assign().await,
            Some("index") => app.index().await,
            _ => {}
        }
        name_made(example.get_mut("parameters"), &made);
        let status = u16::try_from(example["status"].as_u64().expect("a status")).expect("a status");
        let answer = send(&app, &names, &routes[&id], example).await.expect(status);
        let kind =
            answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let found = match kind.split(';').next().unwrap_or_default() {
            "application/json" => names.shown(&answer.body),
            "text/csv" => json!(String::from_utf8(answer.bytes.to_vec()).expect("text")),
            _ => continue,
        };
        let is_loose = LOOSE_OPERATIONS.contains(&id.as_str());
        for name in ["actionId", "webhookId"] {
            if let Some(value) = found.get(name) {
                made.insert(name.to_owned(), value.clone());
            }
        }
        if records() {
            example["answer"] = if is_loose { short(found) } else { found };
            if !kind.starts_with("application/json") {
                example["answerType"] = json!(kind.split(';').next());
            }
        } else if kind.starts_with("application/json") {
            same(&found, &example["answer"], is_loose, &id);
        } else {
            assert_eq!(found, example["answer"], "{id}");
        }
    }
    if records() {
        let mut text = serde_json::to_string_pretty(&examples).expect("JSON");
        text.push('\n');
        std::fs::write(FILE, text).expect("written");
    }
    let told: Vec<&str> = examples.iter().filter_map(|example| example["operation"].as_str()).collect();
    for id in routes.keys().filter(|id| !id.contains("Local") && *id != "metrics") {
        assert!(told.contains(&id.as_str()), "{id} has no example");
    }
}

#[tokio::test]
async fn every_operation_says_what_it_is_for_and_each_of_its_errors_by_an_example() {
    let app = App::start().await;
    let document = app.get("http://service.example/openapi.json").await.expect(200).body;
    let tags: Vec<&str> =
        document["tags"].as_array().expect("tags").iter().filter_map(|tag| tag["name"].as_str()).collect();
    assert_eq!(tags[0], "Products");
    assert!(document["info"]["description"].as_str().expect("an introduction").contains("Access token"));
    assert!(
        document["webhooks"]["change"]["post"]["requestBody"]["content"]["application/json"]["example"].is_object()
    );
    for (id, (_, path, operation)) in routes(&document) {
        for part in ["summary", "description"] {
            assert!(operation[part].as_str().is_some_and(|text| text.len() > 5), "{id} has no {part}");
        }
        assert!(tags.contains(&operation["tags"][0].as_str().expect("a tag")), "{id}");
        for (status, response) in operation["responses"].as_object().expect("responses") {
            assert!(response["headers"]["X-Request-Id"].is_object(), "{id} {status}");
            if !status.starts_with(['4', '5']) {
                continue;
            }
            let examples = response["content"]["application/json"]["examples"].as_object();
            let examples = examples.unwrap_or_else(|| panic!("{id} {status} has no example"));
            assert!(!examples.is_empty(), "{id} {status}");
            for example in examples.values() {
                assert_eq!(example["value"]["path"], path.as_str(), "{id} {status}");
                for field in ["status", "code", "message", "instance"] {
                    assert!(example["value"][field].is_string(), "{id} {status} {field}");
                }
            }
        }
        let takes_token = path.starts_with(BASE_PATH);
        assert_eq!(operation["responses"]["401"].is_object(), takes_token, "{id}");
        assert_eq!(operation["responses"]["429"].is_object(), takes_token, "{id}");
    }
}

#[tokio::test]
async fn the_examples_of_filter_criteria_find_what_they_say() {
    let app = App::start().await;
    let data: Value =
        serde_json::from_str(include_str!("../../src/http/openapi/filter_criteria.json")).expect("the examples");
    app.post("/products/global", data["products"].clone()).await.expect(201);
    app.index().await;
    for example in data["examples"].as_array().expect("examples") {
        let body = json!({"filterCriteria": example["criteria"], "detail": "Small"});
        let found = app.post("/products/global/search", body).await.expect(200).body;
        let ids: Vec<&Value> =
            found["items"].as_array().expect("items").iter().map(|item| &item["productId"]).collect();
        assert_eq!(json!(ids), example["finds"], "{example}");
    }
    for example in data["refused"].as_array().expect("examples") {
        app.post("/products/global/search", json!({"filterCriteria": example["criteria"]})).await.expect(400);
    }
    let page = app.get("http://service.example/docs/filter-criteria").await.expect(200);
    let text = String::from_utf8(page.bytes.to_vec()).expect("text");
    assert!(text.contains("&quot;coffee beans") || text.contains("coffee beans"), "{text}");
    assert_eq!(text.matches("<tr><td>").count(), 6 + 19 + 6 + 6);
}
