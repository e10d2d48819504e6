//! Signing in and out.

use serde_json::json;

use crate::desk::{at_a_desk, decided, hold, queue, refuse, release, show};

#[tokio::test]
async fn a_token_signs_in_and_is_nowhere_that_a_script_can_read() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        let secret = desk.token.split('_').next_back().expect("a secret").to_owned();
        let readable = "return location.href + document.cookie + JSON.stringify({...localStorage}) + \
                        JSON.stringify({...sessionStorage}) + document.documentElement.outerHTML";
        let readable = browser.run(readable, json!([])).await;
        assert!(!readable.as_str().expect("text").contains(&secret));
        // The session outlives the page, and ends where it is ended.
        browser.open(&desk.url).await;
        browser.wait("return document.querySelector('.figures')").await;
        browser.press("Sign out").await;
        browser.wait("return document.querySelector('#token')").await;
        browser.open(&desk.url).await;
        browser.wait("return document.querySelector('#token')").await;
    })
    .await;
}

#[tokio::test]
async fn what_is_no_token_is_refused_with_the_reason() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        browser.press("Sign out").await;
        browser.fill("#token", "vatc_nothing").await;
        browser.click("button.primary").await;
        browser.sees("this is no access token of the service, or it has expired").await;
    })
    .await;
}

#[tokio::test]
async fn a_token_that_may_only_read_is_told_so() {
    at_a_desk(|desk| async move {
        desk.stock(&["Herren T-Shirt Baumwolle"]).await;
        let token = desk.token_of("rita", "READ").await;
        let browser = desk.browser(&token, "en", 1280).await;
        queue(&browser, "").await;
        browser.keys("a").await;
        browser.wait("return document.querySelector('.toast.bad')?.innerText.includes('EDIT')").await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('0')").await;
        assert_eq!(desk.count("APPROVED").await, 0);
    })
    .await;
}

#[tokio::test]
async fn the_browsers_language_is_spoken_until_another_is_chosen() {
    at_a_desk(|desk| async move {
        let browser = desk.browser(&desk.token, "de", 1280).await;
        browser.sees("Übersicht").await;
        assert_eq!(browser.run("return document.documentElement.lang", json!([])).await, "de");
        let choose = "const one = document.getElementById('language'); one.value = 'en'; \
                      one.dispatchEvent(new Event('change'))";
        browser.run(choose, json!([])).await;
        browser.sees("Overview").await;
        browser.open(&desk.url).await;
        browser.sees("Overview").await;
    })
    .await;
}

/// What a person decided.
const REJECTED: &str = "REJECTED&strategy=MANUAL";

#[tokio::test]
async fn who_signs_out_leaves_nothing_undone_and_nothing_to_undo() {
    at_a_desk(|desk| async move {
        desk.stock(&["Herren T-Shirt Baumwolle", "Regenschirm"]).await;
        let bert = desk.token_of("bert", "EDIT").await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        hold(&browser, "PATCH").await;
        browser.keys("r").await;
        browser.press("Sign out").await;
        browser.sees("What you decided is still being stored.").await;
        assert_eq!(desk.count(REJECTED).await, 0);
        release(&browser).await;
        browser.wait("return document.querySelector('#token')").await;
        assert_eq!(desk.count(REJECTED).await, 1);
        // The next one at the same window.
        browser.fill("#token", &bert).await;
        browser.click("button.primary").await;
        browser.wait("return document.querySelector('article .about')").await;
        browser.keys("z").await;
        browser.sees("Nothing to undo.").await;
        assert_eq!(desk.count(REJECTED).await, 1);
    })
    .await;
}

#[tokio::test]
async fn who_cannot_be_signed_out_is_told_why() {
    at_a_desk(|desk| async move {
        desk.stock(&["Herren T-Shirt Baumwolle"]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        hold(&browser, "PATCH").await;
        browser.keys("r").await;
        browser.press("Sign out").await;
        browser.sees("What you decided is still being stored.").await;
        desk.decide("DENY", &desk.assignment("P-001").await).await;
        release(&browser).await;
        browser.sees("Not all of it could be stored, so you are still signed in.").await;
        refuse(&browser, "DELETE /console/session").await;
        browser.press("Sign out").await;
        browser.sees("You are still signed in: the database is away").await;
        release(&browser).await;
        browser.press("Sign out").await;
        browser.wait("return document.querySelector('#token')").await;
    })
    .await;
}

#[tokio::test]
async fn whose_session_has_ended_leaves_nothing_for_the_next() {
    at_a_desk(|desk| async move {
        desk.stock(&["Herren T-Shirt Baumwolle", "Regenschirm"]).await;
        let bert = desk.token_of("bert", "EDIT").await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        browser.keys("r").await;
        decided(&browser, "TARIC", 1).await;
        // As in another tab.
        let end = "return fetch('/console/session', {method: 'DELETE', headers: {'X-Console': '1'}}).then(() => true)";
        browser.run(end, json!([])).await;
        show(&browser, "#/table").await;
        browser.fill("#token", &bert).await;
        browser.click("button.primary").await;
        browser.wait("return document.querySelector('tbody tr')").await;
        browser.press("Undo").await;
        browser.sees("Nothing to undo.").await;
    })
    .await;
}
