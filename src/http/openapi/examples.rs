//! Examples of requests and answers. They are data: `tests/api/examples.rs` sends each request as it stands, in their
//! order, and compares the answer with the one beside it; it also writes them, when it is asked to.

use serde_json::{Map, Value, json};

/// One request after the other, each with its answer.
const EXAMPLES: &str = include_str!("examples.json");

/// Puts the examples into the written document.
pub(super) fn place(document: &mut Value) {
    // The text is part of the program, and a test reads it.
    let examples: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap_or_default();
    for item in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            let id = operation["operationId"].as_str().unwrap_or_default();
            // A local product is used as a global one is, below its shop.
            let (id, is_local) = (id.replacen("Local", "Global", 1), id.contains("Local"));
            if let Some(example) = examples.iter().find(|example| example["operation"] == id.as_str()) {
                place_one(operation, example, is_local);
            }
        }
    }
}

fn place_one(operation: &mut Value, example: &Value, is_local: bool) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        if let Some(value) = example["parameters"].get(name) {
            parameter["example"] = value.clone();
        } else if name == "shopId" && is_local {
            parameter["example"] = json!(7);
        }
    }
    let sent = example["type"].as_str();
    let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
    for (kind, content) in contents.into_iter().flatten() {
        let fits = sent.is_none_or(|sent| sent == kind);
        // A picture is bytes, which JSON cannot show.
        if let Some(body) = example.get("body").filter(|_| fits && kind != "multipart/form-data") {
            content["example"] = body.clone();
        }
    }
    if is_local {
        // Its answers have the same form, and the URLs of another path.
        return;
    }
    let place = format!("/responses/{}/content", example["status"]);
    let Some(answer) = example.get("answer") else { return };
    if let Some(contents) = operation.pointer_mut(&place).and_then(Value::as_object_mut) {
        let wanted = example["answerType"].as_str().unwrap_or("application/json");
        if let Some(content) = contents.get_mut(wanted) {
            content["example"] = answer.clone();
        }
    }
}

/// Headers that answers have, by the name of their description.
fn headers() -> Value {
    let header = |description: &str, schema: Value, example: Value| json!({"description": description, "schema": schema, "example": example});
    let whole = || json!({"type": "integer", "minimum": 0});
    json!({
        "RequestId": header("The id of the request, as the log has it.", json!({"type": "string", "format": "uuid"}),
            json!("019ab1b0-7f4a-7c2e-9d3f-5b6a1c2d3e4f")),
        "RateLimitLimit": header("Requests that the account may send in a minute.", whole(), json!(60_000)),
        "RateLimitRemaining": header("Requests that it may still send in this minute.", whole(), json!(59_990)),
        "RateLimitReset": header("Seconds until the count begins anew.", whole(), json!(42)),
        "RetryAfter": header("Seconds after which to ask again.", whole(), json!(1)),
        "Challenge": header("How to give a credential.", json!({"type": "string"}), json!("Bearer")),
        "Replayed": header("Whether this is the answer that the same Idempotency-Key got before.",
            json!({"type": "string", "enum": ["true"]}), json!("true")),
        "Link": header("The same links as in the body.", json!({"type": "string"}),
            json!("<https://service.example/api/vat-classification/v1/products/global?size=2>; rel=\"self\"")),
        "ETag": header("Changes with the picture; send it as If-None-Match.", json!({"type": "string"}),
            json!("\"9f86d081884c7d659a2feaa0c55ad015\"")),
    })
}

/// Tells the headers of every answer.
pub(super) fn place_headers(document: &mut Value) {
    document["components"]["headers"] = headers();
    for item in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let takes_token = operation.get("security").is_some();
            let changes = method != "get";
            let is_page = operation["parameters"].as_array().into_iter().flatten().any(|one| one["name"] == "cursor");
            for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
                let is_success = status.starts_with('2');
                let is_binary = response["content"].get("image/png").is_some();
                let mut named = vec![("X-Request-Id", "RequestId")];
                if takes_token && status != "401" && status != "403" {
                    named.extend([
                        ("RateLimit-Limit", "RateLimitLimit"),
                        ("RateLimit-Remaining", "RateLimitRemaining"),
                        ("RateLimit-Reset", "RateLimitReset"),
                    ]);
                }
                if changes && is_success && takes_token {
                    named.push(("Idempotency-Replayed", "Replayed"));
                }
                if is_page && is_success {
                    named.push(("Link", "Link"));
                }
                if is_binary {
                    named.push(("ETag", "ETag"));
                }
                match status.as_str() {
                    "429" | "503" => named.push(("Retry-After", "RetryAfter")),
                    "401" => named.push(("WWW-Authenticate", "Challenge")),
                    _ => {}
                }
                let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
                let told: Map<String, Value> =
                    named.into_iter().map(|(header, name)| (header.to_owned(), reference(name))).collect();
                response["headers"] = Value::Object(told);
            }
        }
    }
}

/// What the service sends to webhooks.
pub(super) fn place_webhooks(document: &mut Value) {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": true, "description": description, "schema": {"type": "string"}});
    let body = json!({"type": "object", "required": ["type", "timestamp", "data"], "properties": {
        "type": {"type": "string", "description": "The type of the change."},
        "timestamp": {"type": "string", "format": "date-time", "description": "When it happened."},
        "data": {"$ref": "#/components/schemas/ChangeAnswer"}}});
    let (kind, at) = ("PRODUCT_CREATED", "2026-11-22T09:00:00.000Z");
    let data = json!({"sequence": "0000000000000042-000001", "type": kind, "productId": "tea-1", "version": 1, "timestamp": at});
    let example = json!({"type": kind, "timestamp": at, "data": data});
    document["webhooks"] = json!({"change": {"post": {
        "operationId": "receiveChange",
        "tags": ["Webhooks"],
        "summary": "Receive a change",
        "description": "What is sent to the URL of a webhook: one change, as the feed tells it. Signed as Standard Webhooks \
            says: `webhook-signature` holds `v1,` and the base64 of HMAC-SHA256, with the secret, over `id.timestamp.body`. \
            Answer 2xx within 10 seconds. Anything else is tried again with growing pauses for three days, 429 and 503 not before \
            their Retry-After; 410 disables the webhook. The same `webhook-id` may come more than once.",
        "parameters": [
            header("webhook-id", "The same at every attempt."),
            header("webhook-timestamp", "Seconds since 1970, of this attempt."),
            header("webhook-signature", "`v1,` and the signature."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": body, "example": example}}},
        "responses": {"2XX": {"description": "Received."}, "410": {"description": "No longer wanted: the webhook is disabled."}},
        "security": [],
    }}});
}
