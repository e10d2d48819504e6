//! Signing in and out.

use serde_json::json;

use crate::desk::at_a_desk;

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
        crate::desk::queue(&browser, "").await;
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
