//! Every page: what it shows, that everybody can use it, and that products are texts.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::browser::{Browser, PLAIN_HOST, program};
use crate::desk::{Desk, at_a_desk, hold, queue, release, show};

/// The checks of accessibility.
const AXE: &str = "axe-core@4.10.3";
/// The rules that hold: WCAG 2.2, levels A and AA.
const RULES: [&str; 5] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/// What the start page may weigh, uncached.
const START_BYTES: i64 = 150_000;

/// The script of axe, fetched into the target folder by the first test that needs it.
fn axe() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(AXE.replace('@', "-"));
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        let npm = program("npm", "npm");
        let fetched = folder.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&fetched).expect("a folder");
        let mut command = Command::new(npm);
        command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&fetched).arg(AXE);
        let done = command.output().expect("npm");
        assert!(done.status.success(), "npm cannot fetch {AXE}: {}", String::from_utf8_lossy(&done.stderr));
        // Another test may have been quicker; its copy is as good.
        let _ = std::fs::rename(&fetched, &folder);
    }
    std::fs::read_to_string(script).expect("axe")
}

/// The pages, with something on each.
async fn pages(desk: &Desk) -> Vec<(&'static str, String, &'static str)> {
    let uuid = desk.assignment("P-001").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
    let page = |name, hash: &str, there| (name, hash.to_owned(), there);
    vec![
        page("start", "#/start", ".figures"),
        page("queue", "#/queue", "article .about"),
        page("table", "#/table?assignmentStatus=ALL", "tbody tr"),
        page("search", "#/search", ".criteria input"),
        page("product", &format!("#/product/{uuid}"), ".history li"),
        page("upload", "#/upload", "main .card"),
        page("account", "#/account", "main .pairs"),
        page("missing", "#/missing", "main .empty"),
    ]
}

async fn stock(desk: &Desk) {
    desk.store(json!({
        "P-001": {"productDetails": {
            "languageAttributes": {
                "de": {"productName": "Herren T-Shirt Baumwolle", "productDescription": "Aus Bio-Baumwolle.", "productTags": ["Mode"]},
                "en": {"productName": "T-shirt for men, cotton"}},
            "customsCodes": {"taricCode": "6109100010", "customsTariffCode": "85131000"}}},
        "P-002": {"productDetails": {"languageAttributes": {"de": {"productName": "LED-Lampe E27 9 W warmweiß"}}}},
        "P-003": {"productDetails": {"languageAttributes": {"en": {"productName": "Wine glass set of six"}}}},
    }))
    .await;
}

async fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run(axe, json!([])).await;
    let script = "return axe.run(document, {runOnly: arguments[0]}).then((found) => found.violations.map((one) => \
                  one.id + ': ' + one.nodes.map((node) => node.html.slice(0, 200)).join(' | ')))";
    let found = browser.run(script, json!([RULES])).await;
    found.as_array().expect("a list").iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn every_page_satisfies_wcag_in_light_and_dark_and_for_a_phone() {
    let axe = axe();
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let shots: Option<PathBuf> = std::env::var_os("CONSOLE_SCREENSHOTS").map(PathBuf::from);
        for width in [1280, 500] {
            let browser = desk.browser(&desk.token, "en", width).await;
            for theme in ["light", "dark"] {
                browser
                    .run("localStorage.setItem('theme', arguments[0]); location.hash = '#/none'", json!([theme]))
                    .await;
                browser.open(&desk.url).await;
                for (name, hash, there) in pages(&desk).await {
                    show(&browser, &hash).await;
                    browser.wait(&format!("return document.querySelector({})", json!(there))).await;
                    let found = violations(&browser, &axe).await;
                    assert!(found.is_empty(), "{name}, {theme}, {width}: {found:#?}");
                    let spills = "return document.documentElement.scrollWidth - innerWidth";
                    assert!(browser.run(spills, json!([])).await.as_i64() <= Some(0), "{name} is wider than {width}");
                    if let Some(folder) = &shots {
                        browser.screenshot(&folder.join(format!("{name}-{theme}-{width}.png"))).await;
                    }
                }
            }
            browser.press("Sign out").await;
            browser.wait("return document.querySelector('#token')").await;
            let found = violations(&browser, &axe).await;
            assert!(found.is_empty(), "signing in, {width}: {found:#?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_products_page_tells_why_it_has_its_class() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        let uuid = desk.assignment("P-001").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
        show(&browser, &format!("#/product/{uuid}")).await;
        // What each country takes and where that stands, the history, the codes and what contradicts, both languages.
        for seen in ["VAT rates", "IE", "created", "classified", "contradicts", "T-shirt for men, cotton", "Candidates"]
        {
            browser.sees(seen).await;
        }
        let rows = browser.run("return document.querySelectorAll('.rules li').length", json!([])).await;
        assert!(rows.as_i64() >= Some(27), "{rows}");
    })
    .await;
}

#[tokio::test]
async fn words_that_spoke_are_marked_where_they_stand() {
    at_a_desk(|desk| async move {
        desk.stock(&["Damen Winterjacke mit Kapuze, gefüttert"]).await;
        let browser = desk.anna().await;
        queue(&browser, "").await;
        let marked = "return [...document.querySelectorAll('article mark')].map((one) => one.innerText).join(' ')";
        let marked = browser.wait(marked).await;
        assert!(marked.as_str().expect("text").contains("Winterjacke"), "{marked}");
    })
    .await;
}

#[tokio::test]
async fn hostile_texts_are_texts_everywhere() {
    at_a_desk(|desk| async move {
        let script = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>";
        let turned = "Tasse \u{202e}txet\u{202c} mit\u{200b}Griff 😀";
        desk.store(json!({
            "P-001": {"productDetails": {"languageAttributes": {"de": {"productName": script, "productTags": [script]}}}},
            "P-002": {"productDetails": {"languageAttributes": {"de": {"productName": turned}}}},
            "<b>P-003</b>": {"productDetails": {"languageAttributes": {"de": {
                "productName": "Tasse", "productDescription": "Tasse ".repeat(8_300)}}}},
        }))
        .await;
        let browser = desk.anna().await;
        for (_, hash, there) in pages(&desk).await {
            show(&browser, &hash).await;
            browser.wait(&format!("return document.querySelector({})", json!(there))).await;
            let made = "return window.hacked ?? document.querySelectorAll('main script, main b:not(.sure b), main img').length";
            assert_eq!(browser.run(made, json!([])).await, json!(0), "{hash}");
        }
        show(&browser, "#/table?assignmentStatus=ALL").await;
        for text in [script, "<b>P-003</b>", "Tasse ⟨U+202E⟩txet⟨U+202C⟩ mit⟨U+200B⟩Griff 😀"] {
            browser.sees(text).await;
        }
        let long = desk.assignment("%3Cb%3EP-003%3C%2Fb%3E").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
        show(&browser, &format!("#/product/{long}")).await;
        browser.wait("return document.querySelector('.description')?.innerText.length > 2000").await;
    })
    .await;
}

#[tokio::test]
async fn criteria_are_built_by_clicking_and_shown_as_the_interface_takes_them() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        let browser = desk.anna().await;
        show(&browser, "#/search").await;
        browser.fill(".criteria .wide", "baumwolle").await;
        browser.run("const one = document.querySelector('.criteria input'); one.value = 'de'; one.dispatchEvent(new Event('input'))", json!([])).await;
        let shown = browser.run("return document.querySelector('.json').innerText", json!([])).await;
        let shown: Value = serde_json::from_str(shown.as_str().expect("text")).expect("JSON");
        assert_eq!(shown, json!([{"languageKey": "de", "productName": "baumwolle"}]));
        browser.click("form button.primary").await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 1").await;
        browser.sees("P-001").await;
    })
    .await;
}

#[tokio::test]
async fn a_field_that_is_chosen_by_keys_keeps_the_focus() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        show(&browser, "#/search").await;
        browser.fill(".criteria .wide", "tasse").await;
        let choose = "const one = document.querySelector('.criteria select'); one.focus(); one.value = arguments[0]; \
                      one.dispatchEvent(new Event('change')); \
                      return document.activeElement === one && JSON.parse(document.querySelector('.json').innerText)";
        for (field, shown) in [
            ("productId", json!([{"productId": "tasse"}])),
            ("keywords", json!([{"languageKey": "en", "keywords": "tasse"}])),
        ] {
            assert_eq!(browser.run(choose, json!([field])).await, shown);
        }
    })
    .await;
}

#[tokio::test]
async fn more_is_read_once_however_often_it_is_asked_for() {
    at_a_desk(|desk| async move {
        let names: Vec<String> = (0..51).map(|model| format!("Taschenlampe LED Modell {model}")).collect();
        desk.stock(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let browser = desk.anna().await;
        show(&browser, "#/table?assignmentStatus=ALL").await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 50").await;
        hold(&browser, "cursor=").await;
        let twice = "const more = [...document.querySelectorAll('button')].find((one) => one.innerText === 'More'); \
                     more.click(); more.click(); return held.length";
        assert_eq!(browser.run(twice, json!([])).await, 1);
        release(&browser).await;
        browser.wait("return document.querySelectorAll('tbody tr').length === 51").await;
    })
    .await;
}

#[tokio::test]
async fn pictures_are_shown_without_tls_too() {
    at_a_desk(|desk| async move {
        stock(&desk).await;
        desk.picture("P-001").await;
        let browser = desk.window("en", 1280).await;
        browser.open(&desk.url.replace("127.0.0.1", PLAIN_HOST)).await;
        browser.fill("#token", &desk.token).await;
        browser.click("button.primary").await;
        browser.wait("return document.querySelector('.figures')").await;
        assert_eq!(browser.run("return isSecureContext", json!([])).await, json!(false));
        let uuid = desk.assignment("P-001").await["assignmentUuid"].as_str().expect("a uuid").to_owned();
        for (hash, there) in
            [("#/queue?productIds=P-001,P-001".to_owned(), ".keys"), (format!("#/product/{uuid}"), ".history")]
        {
            show(&browser, &hash).await;
            let picture = format!(
                "return document.querySelector('{there}') && document.querySelector('.picture')?.naturalWidth === 3"
            );
            browser.wait(&picture).await;
        }
    })
    .await;
}

#[tokio::test]
async fn addresses_that_lead_nowhere_say_so_and_break_nothing() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        for hash in ["#/constructor", "#/product/%", "#/nothing"] {
            show(&browser, hash).await;
            browser.sees("There is no such page.").await;
            show(&browser, "#/account").await;
            browser.wait("return document.querySelector('main .pairs')").await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_start_page_is_light() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        browser.open(&desk.url).await;
        browser.wait("return document.querySelector('.figures')").await;
        let weight = "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))\
                      .reduce((sum, one) => sum + one.encodedBodySize, 0)";
        let weight = browser.run(weight, json!([])).await;
        assert!(weight.as_i64().is_some_and(|bytes| bytes > 10_000 && bytes < START_BYTES), "{weight}");
    })
    .await;
}

#[tokio::test]
async fn a_file_is_checked_then_stored_and_its_report_names_bad_lines() {
    at_a_desk(|desk| async move {
        let browser = desk.anna().await;
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("products.csv");
        let text = "Artikelnummer;de:productName;taricCode;Regal\n\
                    F-1;Herren T-Shirt Baumwolle;;A7\nF-2;Kaffeebohnen;0901 21 00;A8\nF-3;Glas;12x;B1\n;ohne Nummer;;B2\n";
        std::fs::write(&file, text).expect("a file");
        show(&browser, "#/upload").await;
        browser.fill("#file", file.to_str().expect("a path")).await;
        browser.click("summary").await;
        browser.fill("#columns", "Artikelnummer=productId\nRegal=").await;
        browser.click("[name=dry]").await;
        browser.press("Send").await;
        browser.sees("The file was checked and nothing stored.").await;
        let figure = |name: &str| format!("return document.querySelector('#import-{name}').innerText");
        assert_eq!(browser.run(&figure("created"), json!([])).await, "2");
        assert_eq!(desk.get("/products/global").await["items"], json!([]));
        let axe = axe();
        let found = violations(&browser, &axe).await;
        assert!(found.is_empty(), "{found:#?}");
        browser.click("[name=dry]").await;
        browser.press("Send").await;
        browser.sees("The file is stored.").await;
        assert_eq!(browser.run(&figure("refused"), json!([])).await, "2");
        let lines = "return [...document.querySelectorAll('#faults tbody th')].map((one) => one.innerText).join(' ')";
        assert_eq!(browser.run(lines, json!([])).await, "4 5");
        let stored = desk.get("/products/global/F-2").await;
        assert_eq!(stored["productDetails"]["customsCodes"]["taricCode"], "0901 21 00");
        // The same again changes nothing; what is no file of products is told so.
        browser.press("Send").await;
        browser.wait("return document.querySelector('#import-unchanged')?.innerText === '2'").await;
        let picture = folder.path().join("picture.csv");
        std::fs::write(&picture, b"\x89PNG\r\n\x1a\n").expect("a file");
        browser.fill("#file", picture.to_str().expect("a path")).await;
        browser.press("Send").await;
        browser.sees("It stopped before the end").await;
    })
    .await;
}

#[tokio::test]
async fn tokens_are_listed_by_their_ids_to_those_who_administer() {
    at_a_desk(|desk| async move {
        let token = desk.token_of("bert", "EDIT").await;
        let browser = desk.anna().await;
        show(&browser, "#/account").await;
        browser.wait("return document.querySelectorAll('#tokens tbody tr').length === 2").await;
        let listed = desk.get("/tokens").await;
        for item in listed["items"].as_array().expect("items") {
            browser.sees(item["tokenId"].as_str().expect("an id")).await;
        }
        let secret = token.split('_').next_back().expect("a secret");
        assert!(!listed.to_string().contains(secret));
        let bert = desk.browser(&token, "en", 1280).await;
        show(&bert, "#/account").await;
        bert.sees("Who has the level ADMIN sees the ids of all tokens here.").await;
    })
    .await;
}
