//! The queue when answers come late or not at all, keys are held, and others are at work: nothing is decided that nobody saw.

use serde_json::{Value, json};

use crate::browser::{Browser, ENTER};
use crate::desk::{Desk, at_a_desk, decided, hold, queue, refuse, release, show};

const GOODS: [&str; 6] = [
    "Herren T-Shirt Baumwolle",
    "LED-Lampe E27 9 W warmweiß",
    "Spaghetti aus Hartweizengrieß 500 g",
    "Herren-Jeans Slim Fit, Denim dunkelblau",
    "Kriminalroman Taschenbuch",
    "Handcreme Kamille 75 ml",
];

/// The product that is shown.
async fn shown(browser: &Browser) -> String {
    let id = browser.wait("return document.querySelector('.about small')?.innerText").await;
    id.as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn enter_takes_the_first_hit_of_what_is_typed_and_of_nothing_older() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..2]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        let product = shown(&browser).await;
        browser.keys("s").await;
        browser.fill("#class-query", "85").await;
        browser.wait("return document.querySelector('.found button')").await;
        hold(&browser, "/product-classes/").await;
        browser.fill("#class-query", &format!("1310{ENTER}")).await;
        browser.wait("return held.length === 1").await;
        let open = "return document.querySelectorAll('dialog .found button').length";
        assert_eq!(browser.run(open, json!([])).await, 0, "hits of another text");
        browser.wait("return document.querySelector('#decided').innerText.startsWith('0')").await;
        release(&browser).await;
        decided(&browser, "TARIC", 1).await;
        assert_eq!(desk.assignment(&product).await["productClassCode"], "851310");
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_held_decides_once_and_goes_on_as_long_as_it_is_held() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        let script = "const id = () => document.querySelector('.about small').innerText; \
            const press = (key, repeat, on = document.body) => \
              on.dispatchEvent(new KeyboardEvent('keydown', {key, repeat, bubbles: true, cancelable: true})); \
            for (const repeat of [false, true, true]) press('r', repeat); \
            const decided = document.querySelector('#decided').innerText; \
            const next = id(); \
            for (const key of 'ard1xze?') press(key, true); \
            const stays = id() === next && !document.querySelector('dialog, .place strong'); \
            for (const repeat of [false, true]) press('n', repeat); \
            const went = id(); press('p', true); \
            const presses = press('Enter', true, document.querySelector('.candidate')); \
            return [decided, stays, went !== next && id() !== went, presses]";
        let held = browser.run(script, json!([])).await;
        assert_eq!(held, json!(["1 decided", true, true, false]));
        decided(&browser, "TARIC", 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_told_and_read_again() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..2]).await;
        let browser = desk.anna().await;
        refuse(&browser, "/assignments/TARIC?").await;
        show(&browser, "#/queue").await;
        browser.wait("return document.querySelector('.review .fault')?.innerText === 'the database is away'").await;
        let done = "return document.body.innerText.includes('All done')";
        assert_eq!(browser.run(done, json!([])).await, json!(false));
        release(&browser).await;
        browser.press("Try again").await;
        browser.wait("return document.querySelector('article .about')").await;
        browser.sees("1 of 2").await;
    })
    .await;
}

#[tokio::test]
async fn what_others_do_takes_neither_focus_nor_selection() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..3]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        browser.sees("1 of 3").await;
        let product = shown(&browser).await;
        let read = "document.querySelectorAll('.candidate')[1].focus(); window.said = document.querySelector('.texts .said'); \
                    getSelection().selectAllChildren(said)";
        browser.run(read, json!([])).await;
        let kept = "return document.activeElement === document.querySelectorAll('.candidate')[1] && \
                    said.isConnected && getSelection().toString() === said.innerText";
        let all = desk.get("/assignments/TARIC?assignmentStatus=ALL").await;
        let other = all["items"].as_array().expect("items").iter().find(|item| item["productId"] != product.as_str());
        desk.decide("DENY", other.expect("another")).await;
        browser.sees("1 of 2").await;
        assert_eq!(browser.run(kept, json!([])).await, json!(true), "another product");
        desk.decide("DENY", &desk.assignment(&product).await).await;
        browser.wait("return document.querySelector('#fate')").await;
        assert_eq!(browser.run(kept, json!([])).await, json!(true), "the one that is shown");
    })
    .await;
}

/// Shows the queue of a taxonomy, and waits for its first product.
async fn queue_of(browser: &Browser, taxonomy: &str) {
    show(browser, &format!("#/queue?taxonomy={taxonomy}")).await;
    let there = format!(
        "return document.querySelector('#taxonomy')?.value === '{taxonomy}' && document.querySelector('article .about')"
    );
    browser.wait(&there).await;
}

#[tokio::test]
async fn what_is_taken_back_is_of_the_taxonomy_that_is_shown() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..2]).await;
        let browser = desk.anna().await;
        for taxonomy in ["TARIC", "TARES"] {
            queue_of(&browser, taxonomy).await;
            browser.keys("r").await;
            decided(&browser, taxonomy, 1).await;
        }
        queue_of(&browser, "TARIC").await;
        browser.keys("z").await;
        decided(&browser, "TARIC", 0).await;
        decided(&browser, "TARES", 1).await;
        browser.sees("Undone").await;
        browser.keys("z").await;
        browser.sees("Nothing to undo.").await;
    })
    .await;
}

/// What a shop's product was decided by.
async fn strategy(desk: &Desk, shop: i64) -> Value {
    desk.get(&format!("/assignments/TARIC?assignmentStatus=ALL&shopId={shop}")).await["items"][0]["strategy"].clone()
}

#[tokio::test]
async fn shops_whose_ids_no_number_of_scripts_holds_are_not_mistaken_for_others() {
    at_a_desk(|desk| async move {
        let (other, shop) = (9_007_199_254_740_992, 9_007_199_254_740_993);
        for (shop, name) in [(other, "Regenschirm"), (shop, "Gitarre")] {
            let product = json!({"X": {"productDetails": {"languageAttributes": {"de": {"productName": name}}}}});
            desk.store_at(&format!("/shops/{shop}/products/local"), product).await;
        }
        let browser = desk.anna().await;
        queue(&browser, &format!("shopId={shop}")).await;
        browser.sees("Gitarre").await;
        let page = browser.run("return document.querySelector('.about a').getAttribute('href')", json!([])).await;
        browser.keys("r").await;
        decided(&browser, "TARIC", 1).await;
        assert_eq!(strategy(&desk, shop).await, "MANUAL");
        assert_ne!(strategy(&desk, other).await, "MANUAL");
        show(&browser, page.as_str().expect("an address")).await;
        browser.wait("return document.querySelector('h1')?.innerText === 'Gitarre'").await;
        // The same shop in the body of an action.
        show(&browser, &format!("#/table?assignmentStatus=ALL&shopId={shop}")).await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 1").await;
        browser.press("Remove the class").await;
        browser.sees("1 of 1 Products").await;
    })
    .await;
}
