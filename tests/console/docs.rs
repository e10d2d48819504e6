//! The page that shows the interface, and "Try it out" on it.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::desk::at_a_desk;

/// Opens an operation and sends it as it stands there; status and answer, as the page shows them.
async fn tried(browser: &Browser, tag: &str, operation: &str) -> (String, Value) {
    let place = format!("#operations-{tag}-{operation}");
    browser.click(&format!("{place} .opblock-summary-control")).await;
    browser.click(&format!("{place} .btn.execute")).await;
    let status = format!("{place} .live-responses-table tbody .response-col_status");
    let status = browser.wait(&format!("return document.querySelector({})?.innerText", json!(status))).await;
    let answer = format!("{place} .live-responses-table tbody .response-col_description .highlight-code code");
    let answer = browser.wait(&format!("return document.querySelector({})?.innerText", json!(answer))).await;
    let answer = serde_json::from_str(answer.as_str().expect("text")).expect("JSON");
    (status.as_str().expect("text").lines().next().unwrap_or_default().to_owned(), answer)
}

#[tokio::test]
async fn with_the_token_pasted_the_examples_work_as_they_stand() {
    at_a_desk(|desk| async move {
        let browser = desk.window("en", 1280).await;
        browser.open(&format!("{}/docs/", desk.url)).await;
        let (status, refused) = tried(&browser, "Taxonomies", "listProductClasses").await;
        assert_eq!((status.as_str(), &refused["code"]), ("401", &json!("Unauthorized")), "{refused}");
        browser.open(&format!("{}/docs/", desk.url)).await;
        browser.click(".btn.authorize").await;
        browser.fill(".auth-container input", &desk.token).await;
        browser.click(".auth-btn-wrapper .btn.authorize").await;
        browser.click(".auth-btn-wrapper .btn-done").await;

        let (status, classes) = tried(&browser, "Taxonomies", "listProductClasses").await;
        assert_eq!((status.as_str(), classes["items"].as_array().map(Vec::len)), ("200", Some(2)), "{classes}");
        let (status, classified) = tried(&browser, "Classification", "classify").await;
        assert_eq!(status, "200", "{classified}");
        assert_eq!(classified["items"][0]["decision"]["productClassCode"], "610910", "{classified}");
    })
    .await;
}
