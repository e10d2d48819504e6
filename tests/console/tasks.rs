//! Five tasks of a new reviewer, from the start page on, with the steps that each takes: a click, a key, or a text typed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::browser::{Browser, ENTER};
use crate::desk::{Desk, at_a_desk};

/// How long a search may be behind.
const PATIENCE: Duration = Duration::from_secs(30);

/// A person at a browser, whose steps are counted.
struct Person {
    browser: Browser,
    task: &'static str,
    steps: usize,
    begun: Instant,
}

impl Person {
    /// Begins a task on the start page.
    async fn begin(desk: &Desk, browser: &Browser, task: &'static str) -> Person {
        // From another page, so that nothing is left of the one before.
        browser.open("about:blank").await;
        browser.open(&format!("{}/#/start", desk.url)).await;
        browser.wait("return document.querySelector('.figures')").await;
        Person { browser: browser.clone(), task, steps: 0, begun: Instant::now() }
    }

    async fn press(&mut self, text: &str) {
        self.steps += 1;
        self.browser.press(text).await;
    }

    async fn key(&mut self, key: &str) {
        self.steps += 1;
        self.browser.keys(key).await;
    }

    async fn fill(&mut self, selector: &str, text: &str) {
        self.steps += 1;
        self.browser.fill(selector, text).await;
    }

    /// Ends the task, which takes no more steps than this.
    #[track_caller]
    fn end(self, most: usize) {
        println!("{}: {} steps, {:.1} s", self.task, self.steps, self.begun.elapsed().as_secs_f64());
        assert!(self.steps <= most, "{}: {} steps", self.task, self.steps);
    }
}

/// Shops have many goods that are much the same, and some that are not.
async fn stock(desk: &Desk) {
    let mut names: Vec<String> = (0..50).map(|model| format!("Taschenlampe LED Modell {model}")).collect();
    let others = ["Herren T-Shirt Baumwolle", "Kaffeebohnen 1 kg", "Regenschirm", "Gitarre", "Fußball Größe 5"];
    names.extend(others.map(str::to_owned));
    desk.stock(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    // Searches see what is written a moment later.
    let lamps = "/products/global?size=100&detail=Small&filterCriteria=%5B%7B%22languageKey%22%3A%22de%22%2C\
                 %22productName%22%3A%22Taschenlampe%22%7D%5D";
    let until = Instant::now() + PATIENCE;
    while desk.get(lamps).await["items"].as_array().map(Vec::len) != Some(50) {
        assert!(Instant::now() < until, "not all are found");
    }
}

async fn text(browser: &Browser, script: &str) -> String {
    browser.run(script, json!([])).await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_least_sure_are_one_step_away() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        let mut person = Person::begin(&desk, &browser, "find the 20 least sure").await;
        person.press("List the least sure").await;
        browser.wait("return document.querySelectorAll('tbody tr td.figure').length >= 20").await;
        let script = "return [...document.querySelectorAll('tbody td.figure')].slice(0, 20).map((one) => parseInt(one.innerText))";
        let sure = browser.run(script, json!([])).await;
        let sure: Vec<i64> = sure.as_array().expect("figures").iter().filter_map(Value::as_i64).collect();
        assert!(sure.len() == 20 && sure.is_sorted(), "{sure:?}");
        person.end(1);
    })
    .await;
}

#[tokio::test]
async fn a_wrong_group_of_fifty_is_corrected_at_once() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        let mut person = Person::begin(&desk, &browser, "correct a wrong group of 50 at once").await;
        person.fill("#find", &format!("Taschenlampe{ENTER}")).await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 50").await;
        person.press("Assign").await;
        person.fill("#class-query", "851310").await;
        browser.wait("return document.querySelector('.found button')").await;
        person.key(ENTER).await;
        browser.sees("50 of 50 Products: assigned").await;
        person.press("OK").await;
        browser.sees("assigned: 50 of 50").await;
        let all = "/assignments/TARIC?assignmentStatus=ALL&strategy=MANUAL&productClass=851310&count=true";
        assert_eq!(desk.get(all).await["total"], 50);
        person.end(5);
    })
    .await;
}

#[tokio::test]
async fn why_a_product_has_its_class_is_told_behind_its_id() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        let mut person = Person::begin(&desk, &browser, "find out why a product got its class").await;
        person.fill("#find", &format!("P-051{ENTER}")).await;
        browser.sees("Herren T-Shirt Baumwolle").await;
        browser.wait("return document.querySelectorAll('article mark').length > 0").await;
        for seen in ["Candidates", "History", "classified"] {
            browser.sees(seen).await;
        }
        person.end(1);
    })
    .await;
}

#[tokio::test]
async fn a_mistake_is_taken_back_at_once_and_days_later() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        crate::desk::queue(&browser, "sort=-confidence").await;
        let product = text(&browser, "return document.querySelector('.about small').innerText").await;
        let before = desk.assignment(&product).await;
        let state = |now: &Value| (now["assignmentStatus"].clone(), now["productClass"].clone(), now["strategy"].clone());
        let mut person = Person {
            browser: browser.clone(),
            task: "undo a mistake at once",
            steps: 0,
            begun: Instant::now(),
        };
        browser.keys("r").await;
        person.key("z").await;
        browser.sees("Undone").await;
        assert_eq!(state(&desk.assignment(&product).await), state(&before));
        person.end(1);
        let back = format!("return document.querySelector('.about small').innerText === {}", json!(product));
        browser.wait(&back).await;
        // Somebody who comes later has nothing in hand but the product.
        browser.keys("r").await;
        browser.wait("return document.querySelector('#decided').innerText.startsWith('1')").await;
        let rejected = "return fetch('/api/vat-classification/v1/assignments/TARIC?assignmentStatus=REJECTED&strategy=MANUAL&count=true', \
                        {headers: {'X-Console': '1'}}).then((one) => one.json()).then((one) => one.total)";
        browser.wait(rejected).await;
        let bert = desk.browser(&desk.token_of("bert", "EDIT").await, "en", 1280).await;
        let mut person = Person::begin(&desk, &bert, "undo a mistake of another day").await;
        person.fill("#find", &format!("{product}{ENTER}")).await;
        bert.sees("History").await;
        person.press("Take back").await;
        bert.sees("Undone").await;
        let after = desk.assignment(&product).await;
        assert_eq!(state(&after), state(&before), "{}", after["events"]);
        person.end(2);
    })
    .await;
}

#[tokio::test]
async fn a_list_is_handed_to_a_colleague_by_its_link() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let anna = desk.anna().await;
        let mut person = Person::begin(&desk, &anna, "hand a list to a colleague").await;
        person.fill("#find", &format!("Taschenlampe{ENTER}")).await;
        anna.wait("return document.querySelectorAll('tbody tr').length === 50").await;
        // What is copied is not read back from the clipboard, which a page may not do; the link is taken on its way.
        anna.run(
            "window.copied = ''; Object.defineProperty(navigator, 'clipboard', \
             {value: {writeText: (text) => { window.copied = text; return Promise.resolve(); }}})",
            json!([]),
        )
        .await;
        person.press("Copy the link to this list").await;
        let link = anna.wait("return window.copied").await.as_str().expect("a link").to_owned();
        // The colleague has another language and has not signed in.
        let token = desk.token_of("bert", "READ").await;
        let bert = desk.browser(&token, "de", 1280).await;
        bert.press("Abmelden").await;
        bert.wait("return document.querySelector('#token')").await;
        bert.open("about:blank").await;
        bert.open(&link).await;
        person.browser = bert.clone();
        person.fill("#token", &format!("{token}{ENTER}")).await;
        bert.wait("return document.querySelectorAll('tbody tr').length === 50").await;
        bert.sees("Taschenlampe LED Modell 7").await;
        person.end(3);
    })
    .await;
}
