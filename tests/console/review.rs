//! Reviewing: by keys, one at a time and many at once, beside others, and while the service is away.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::browser::{ENTER, ESCAPE};
use crate::desk::{at_a_desk, queue, show};

/// Goods whose texts speak clearly.
const GOODS: [&str; 24] = [
    "Herren T-Shirt Baumwolle",
    "LED-Lampe E27 9 W warmweiß",
    "Spaghetti aus Hartweizengrieß 500 g",
    "Ganze Kaffeebohnen Espresso, geröstet, 1 kg",
    "Herren-Jeans Slim Fit, Denim dunkelblau",
    "Kriminalroman Taschenbuch",
    "Handcreme Kamille 75 ml",
    "Badesalz Eukalyptus 500 g",
    "Rasierschaum 200 ml",
    "Windeln Größe 4, 84 Stück",
    "Haarbürste mit Naturborsten",
    "Fieberthermometer digital",
    "Wandkalender 2026 Berge",
    "Duftkerze im Glas, Vanille",
    "Kugelschreiber blau",
    "Mineralwasser 6 x 1,5 l",
    "Apfelsaft naturtrüb 1 l",
    "Honig Akazie 500 g",
    "Olivenöl nativ extra 750 ml",
    "Gitarre Konzertgitarre 4/4",
    "Fußball Größe 5",
    "Puzzle 1000 Teile",
    "Regenschirm Taschenschirm",
    "Sonnenbrille polarisiert",
];
/// Twenty decisions by keys take less.
const TWENTY_DECISIONS: Duration = Duration::from_secs(10);

#[tokio::test]
async fn twenty_are_decided_by_keys_alone_and_the_last_is_taken_back() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        let begun = Instant::now();
        for decided in 1..=20 {
            browser.keys("a").await;
            let next = format!(
                "return document.querySelector('#decided').innerText.startsWith('{decided} ') && \
                 document.querySelector('article .about')"
            );
            browser.wait(&next).await;
        }
        assert!(begun.elapsed() < TWENTY_DECISIONS, "{:?}", begun.elapsed());
        let decided = || async { desk.get("/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&count=true").await };
        while decided().await["total"] != 20 {
            assert!(begun.elapsed() < TWENTY_DECISIONS, "{}", decided().await["total"]);
        }
        assert_eq!(browser.run("return document.querySelectorAll('.toast.bad').length", json!([])).await, 0);
        browser.keys("z").await;
        browser.sees("Undone").await;
        assert_eq!(decided().await["total"], 19);
        browser.wait("return document.querySelector('#decided').innerText.startsWith('19')").await;
    })
    .await;
}

#[tokio::test]
async fn candidates_searched_classes_rejections_and_denials_have_keys() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..5]).await;
        let browser = desk.anna().await;
        queue(&browser, "sort=-confidence").await;
        let shown = "return document.querySelector('.about small').innerText";
        let mut products = Vec::new();
        for keys in ["1", "r"] {
            products.push(browser.wait(shown).await.as_str().expect("an id").to_owned());
            browser.keys(keys).await;
        }
        products.push(browser.wait(shown).await.as_str().expect("an id").to_owned());
        browser.keys("s").await;
        browser.fill("#class-query", "851310").await;
        browser.wait("return document.querySelector('.found button')").await;
        browser.keys(ENTER).await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('3')").await;
        products.push(browser.wait(shown).await.as_str().expect("an id").to_owned());
        browser.keys("d").await;
        browser.fill("#asked", "no longer sold").await;
        browser.keys(ENTER).await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('4')").await;
        // Keys do nothing to what is behind a dialog.
        browser.keys("?").await;
        browser.sees("Approve with a comment").await;
        browser.keys(&format!("a{ESCAPE}")).await;
        let until = Instant::now() + TWENTY_DECISIONS;
        while desk.count("DENIED").await == 0 {
            assert!(Instant::now() < until, "the denial is not stored");
        }
        assert_eq!(desk.assignment(&products[0]).await["strategy"], "MANUAL");
        assert_eq!(desk.assignment(&products[1]).await["assignmentStatus"], "REJECTED");
        assert_eq!(desk.assignment(&products[2]).await["productClassCode"], "851310");
        let denied = desk.assignment(&products[3]).await;
        let last = denied["events"].as_array().expect("events").last().expect("an event").clone();
        assert_eq!((&last["action"], &last["comment"]), (&json!("DENY"), &json!("no longer sold")));
        let all = desk.get("/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&count=true").await;
        assert_eq!(all["total"], 4);
    })
    .await;
}

#[tokio::test]
async fn the_second_reviewer_sees_what_the_first_did_and_loses_nothing() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..6]).await;
        let anna = desk.anna().await;
        let bert = desk.browser(&desk.token_of("bert", "EDIT").await, "en", 1280).await;
        queue(&anna, "").await;
        queue(&bert, "").await;
        anna.keys("r").await;
        bert.sees("Somebody else has just decided this one.").await;
        bert.keys("nr").await;
        anna.sees("Somebody else has just decided this one.").await;
        let decided = desk.get("/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&embed=EVENTS").await;
        let actors: Vec<&str> = decided["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| {
                item["events"]
                    .as_array()
                    .and_then(|events| events.last())
                    .and_then(|last| last["actor"].as_str())
                    .expect("an actor")
            })
            .collect();
        assert!(actors.contains(&"anna") && actors.contains(&"bert") && actors.len() == 2, "{actors:?}");
    })
    .await;
}

#[tokio::test]
async fn a_refused_decision_comes_back_with_the_reason() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..3]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        let product = browser.run("return document.querySelector('.about small').innerText", json!([])).await;
        let product = product.as_str().expect("an id");
        let version = desk.assignment(product).await["subscribedPlatformServices"]["vatRules"]["assignmentVersion"].clone();
        let denial = json!({"products": [{"productId": product, "assignmentVersion": {"vatRules": version}}]});
        desk.call("PATCH", "/assignments/TARIC?assignmentAction=DENY", denial).await;
        browser.keys("a").await;
        browser.wait("return document.querySelector('.toast.bad')?.innerText.includes('Refused')").await;
        let back = format!("return document.querySelector('.about').innerText.includes({}) && document.querySelector('.about .denied')", json!(product));
        browser.wait(&back).await;
        assert_eq!(desk.assignment(product).await["assignmentStatus"], "DENIED");
    })
    .await;
}

#[tokio::test]
async fn what_is_decided_while_the_service_is_away_is_stored_when_it_is_back() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..4]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        desk.stop().await;
        browser.keys("rr").await;
        browser.sees("The service does not answer.").await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('2')").await;
        desk.serve().await;
        browser.sees("The service is back.").await;
        let until = Instant::now() + TWENTY_DECISIONS;
        while desk.get("/assignments/TARIC?assignmentStatus=REJECTED&strategy=MANUAL&count=true").await["total"] != 2 {
            assert!(Instant::now() < until, "what was decided is lost");
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_group_is_corrected_at_once_and_taken_back() {
    at_a_desk(|desk| async move {
        let names: Vec<String> = (0..50).map(|size| format!("Taschenlampe LED Modell {size}")).collect();
        desk.stock(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let browser = desk.anna().await;
        show(&browser, "#/table?assignmentStatus=ALL").await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 50").await;
        browser.click("thead input").await;
        browser.sees("50 selected").await;
        browser.press("Assign").await;
        browser.fill("#class-query", "851310").await;
        browser.wait("return document.querySelector('.found button')").await;
        browser.keys(ENTER).await;
        browser.sees("50 Products: assigned").await;
        let all = "/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&productClass=851310&count=true";
        assert_eq!(desk.get(all).await["total"], 50);
        browser.press("Undo").await;
        browser.sees("Undone").await;
        assert_eq!(desk.get(all).await["total"], 0);
    })
    .await;
}

#[tokio::test]
async fn everything_in_a_filter_is_decided_after_its_number_is_shown() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS[..8]).await;
        let assigned = desk.count("ASSIGNED").await;
        assert!(assigned > 0);
        let browser = desk.anna().await;
        show(&browser, "#/table?assignmentStatus=ASSIGNED").await;
        browser.sees("everything in this filter").await;
        browser.press("Approve").await;
        browser.sees(&format!("{assigned} of {assigned} Products: approved")).await;
        assert_eq!(desk.count("APPROVED").await, 0);
        browser.press("OK").await;
        browser.sees(&format!("approved: {assigned} of {assigned}")).await;
        assert_eq!(desk.count("APPROVED").await, assigned);
    })
    .await;
}

#[tokio::test]
async fn what_is_alike_is_decided_with_one_key_after_it_was_shown() {
    at_a_desk(|desk| async move {
        let models: Vec<String> = (1..=12).map(|model| format!("Taschenlampe LED Alu Modell {model}")).collect();
        let mut names: Vec<&str> = models.iter().map(String::as_str).collect();
        names.extend(&GOODS[..4]);
        desk.stock(&names).await;
        let browser = desk.anna().await;
        let lamp = desk.assignment("P-003").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
        let alike = desk.get(&format!("/assignments/TARIC/{lamp}/alike")).await["items"].as_array().map_or(0, Vec::len);
        assert_eq!(alike, 11, "the others of its kind, and no other goods");
        queue(&browser, "productIds=P-003,P-004&assignmentStatus=ALL").await;
        browser.keys("e").await;
        browser.wait("return document.querySelectorAll('dialog .choices input:checked').length === 11").await;
        browser.sees("Taschenlampe LED Alu Modell 12").await;
        // One of them is none of these after all.
        browser.click("dialog .choices li:last-child input").await;
        browser.press("Apply to the marked").await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('11')").await;
        let decided = "/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&count=true";
        let until = Instant::now() + TWENTY_DECISIONS;
        while desk.get(decided).await["total"] != 11 {
            assert!(Instant::now() < until, "{}", desk.get(decided).await["total"]);
        }
        browser.keys("z").await;
        browser.sees("Undone").await;
        assert_eq!(desk.get(decided).await["total"], 0);
    })
    .await;
}

#[tokio::test]
async fn two_reviewers_on_one_queue_decide_everything_once() {
    at_a_desk(|desk| async move {
        desk.stock(&GOODS).await;
        let anna = desk.anna().await;
        let bert = desk.browser(&desk.token_of("bert", "EDIT").await, "en", 1280).await;
        queue(&anna, "").await;
        queue(&bert, "").await;
        let decided = "/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&embed=EVENTS&size=100&count=true";
        // Both work through the same list as fast as they can, from the same beginning, and pass over what the other has
        // decided by the time they see it.
        let work = async |browser: &crate::browser::Browser| {
            let state =
                "return document.querySelector('#fate') ? 'n' : document.querySelector('article .about') ? 'r' : ''";
            for _ in 0..GOODS.len() * 10 {
                match browser.run(state, json!([])).await.as_str() {
                    Some("") if desk.get(decided).await["total"] == GOODS.len() => return,
                    Some(key) => browser.keys(key).await,
                    None => panic!("no state"),
                }
            }
            panic!("the queue has no end");
        };
        // Each comes to the end of the list, where nothing waits.
        tokio::join!(work(&anna), work(&bert));
        let page = desk.get(decided).await;
        for item in page["items"].as_array().expect("items") {
            let events = item["events"].as_array().expect("events");
            let rejections = events.iter().filter(|event| event["action"] == "REJECT").count();
            assert_eq!(rejections, 1, "{}: {events:?}", item["productId"]);
        }
    })
    .await;
}
