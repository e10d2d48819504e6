//! The console: its pages, and the session that stands for a token.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use crate::app::App;

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).expect("a request")
}

async fn sign_in(app: &App, token: &str) -> crate::app::Answer {
    let headers = [("content-type", "application/json"), ("x-console", "1")];
    app.send(request("POST", "/console/session", &headers, Body::from(json!({"token": token}).to_string()))).await
}

#[tokio::test]
async fn the_page_loads_its_own_files_and_nothing_else() {
    let app = App::start().await;
    let page = app.send(request("GET", "/", &[], Body::empty())).await.expect(200);
    let policy = page.headers["content-security-policy"].to_str().expect("a policy").to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers["cache-control"], "no-cache");
    let text = String::from_utf8(page.bytes.to_vec()).expect("text");
    assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    let script = text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let file = app.send(request("GET", script, &[], Body::empty())).await.expect(200);
    assert!(file.headers["cache-control"].to_str().expect("text").contains("immutable"));
    let stale = "/console/assets/0000000000000000/main.js";
    app.send(request("GET", stale, &[], Body::empty())).await.expect(404);
}

#[tokio::test]
async fn a_session_is_a_cookie_that_only_the_console_can_use() {
    let app = App::start().await;
    let begun = sign_in(&app, &app.token).await.expect(200);
    assert_eq!((&begun.body["user"], &begun.body["level"]), (&json!("anna"), &json!("ADMIN")));
    let cookie = begun.headers[header::SET_COOKIE].to_str().expect("a cookie").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair");
    let usage = "/api/vat-classification/v1/usage";
    let with = [("cookie", pair), ("x-console", "1")];
    app.send(request("GET", usage, &with, Body::empty())).await.expect(200);
    app.send(request("GET", usage, &[("cookie", pair)], Body::empty())).await.expect(401);
    let present = app.send(request("GET", "/console/session", &with, Body::empty())).await.expect(200);
    assert_eq!((&present.body["user"], &present.body["level"]), (&json!("anna"), &json!("ADMIN")));
    let without = [("x-console", "1")];
    app.send(request("GET", "/console/session", &without, Body::empty())).await.expect(401);
    let foreign = [("cookie", pair), ("x-console", "1"), ("sec-fetch-site", "cross-site")];
    app.send(request("GET", usage, &foreign, Body::empty())).await.expect(401);
    let ended = app.send(request("DELETE", "/console/session", &with, Body::empty())).await.expect(204);
    assert!(ended.headers[header::SET_COOKIE].to_str().expect("a cookie").contains("Max-Age=0"));
}

#[tokio::test]
async fn what_is_no_token_begins_no_session() {
    let app = App::start().await;
    let refused = sign_in(&app, "vatc_nothing").await.expect(401);
    assert!(!refused.headers.contains_key(header::SET_COOKIE));
    let without = [("content-type", "application/json")];
    let body = Body::from(json!({"token": app.token}).to_string());
    app.send(request("POST", "/console/session", &without, body)).await.expect(403);
}
