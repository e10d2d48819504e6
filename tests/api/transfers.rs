//! Files over HTTP.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use vat_classification::domain::access::{Level, Plan};
use vat_classification::http::BASE_PATH;

use crate::app::{Answer, App};

const FILE: &str = "Artikelnr;Name;Preis;Ursprungsland\n\
    a;Kaffee, ganze Bohnen;1,99;BR\n\
    b;Herren T-Shirt Baumwolle;9,99;XX\n\
    c;Stichsäge;79;DE\n";

fn request(app: &App, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method("POST")
        .uri(format!("{BASE_PATH}{path}"))
        .header("authorization", format!("Bearer {}", app.token))
}

async fn send(app: &App, path: &str, accept: &str, file: impl Into<Body>) -> Answer {
    let request = request(app, path).header(header::ACCEPT, accept).header(header::CONTENT_TYPE, "text/csv");
    app.send(request.body(file.into()).expect("a request")).await
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.bytes).expect("text")
}

fn counts(body: &Value) -> [i64; 4] {
    ["created", "updated", "unchanged", "refused"].map(|field| body[field].as_i64().expect("a count"))
}

#[tokio::test]
async fn a_file_is_merged_and_its_report_names_every_bad_line() {
    let app = App::start().await;
    let path = "/imports?map=Artikelnr=productId&language=de";
    let dry = send(&app, &format!("{path}&dryRun=true"), "*/*", FILE).await.expect(200).body;
    assert_eq!((&dry["dryRun"], counts(&dry)), (&json!(true), [2, 0, 0, 1]));
    app.get("/products/global/a").await.expect(404);

    let answer = send(&app, path, "application/json", FILE).await.expect(200);
    let done = &answer.body;
    assert_eq!((&done["state"], &done["dryRun"], counts(done)), (&json!("DONE"), &json!(false), [2, 0, 0, 1]));
    assert_eq!(done["leftColumns"], json!(["Preis"]));
    assert_eq!(done["faults"][0]["line"], 3);
    assert_eq!((&done["faults"][0]["productId"], &done["faults"][0]["column"]), (&json!("b"), &json!("Ursprungsland")));
    assert!(done.get("error").is_none(), "{done}");
    let stored = app.get("/products/global/a").await.expect(200).body;
    assert_eq!(stored["productDetails"]["languageAttributes"]["de"]["productName"], "Kaffee, ganze Bohnen");

    let again = send(&app, path, "text/csv", FILE).await.expect(200);
    assert_eq!(again.headers[header::CONTENT_TYPE], "text/csv; charset=utf-8");
    let report = text(&again);
    for line in [
        "\u{feff}line,productId,outcome,column,message",
        "2,a,unchanged,,",
        "3,b,refused,Ursprungsland,",
        "4,c,unchanged,,",
    ] {
        assert!(report.lines().any(|found| found.starts_with(line)), "{line}: {report}");
    }

    let told = send(&app, path, "application/x-ndjson", FILE).await.expect(200);
    let last: Value = serde_json::from_str(text(&told).lines().last().expect("a line")).expect("JSON");
    assert_eq!(counts(&last), [0, 0, 2, 1]);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "c").await["autoAssignment"], "DONE");
}

#[tokio::test]
async fn what_cannot_be_read_stores_nothing_and_says_why() {
    let app = App::start().await;
    for (path, file, status, field) in [
        ("/imports", "", 400, ""),
        ("/imports?language=xx", FILE, 400, "language MALFORMED"),
        ("/imports?map=Artikelnr", FILE, 400, "map MALFORMED"),
        ("/imports?map=Artikelnr=id", FILE, 400, "map MALFORMED"),
        ("/imports?map=Nr=productId", FILE, 422, "map UNUSABLE_COLUMNS"),
        ("/imports", "x;y\n1;2\n", 422, "map UNUSABLE_COLUMNS"),
        ("/imports?dryRun=yes", FILE, 400, "dryRun MALFORMED"),
        ("/imports", "\n\n", 422, "file UNREADABLE_FILE"),
        ("/imports", "PK\u{3}\u{4} and nothing", 422, "file UNREADABLE_FILE"),
        ("/imports", "<html></html>", 422, "file UNREADABLE_FILE"),
    ] {
        let answer = send(&app, path, "*/*", file).await.expect(status);
        assert_eq!(answer.faults().join(""), field, "{path}: {}", answer.body);
    }
    for kind in ["multipart/form-data; boundary=x", "application/json"] {
        app.raw(&app.token, "POST", "/imports", kind, Body::from(FILE)).await.expect(415);
    }
    let chunk = axum::body::Bytes::from(vec![b' '; 1 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    let keyed = request(&app, "/imports").header("idempotency-key", "large");
    app.send(keyed.body(Body::from_stream(endless)).expect("a request")).await.expect(413);
    let reader = app.token("shop", "leser", Level::Read).await;
    app.raw(&reader, "POST", "/imports", "text/csv", Body::from(FILE)).await.expect(403);
    assert_eq!(app.get("/products/global").await.expect(200).body["items"], json!([]));
}

#[tokio::test]
async fn an_import_that_has_to_stop_says_how_far_it_came() {
    let app = App::with_plan(Plan::FreeTrial).await;
    let mut file = "productId,de:productName\n".to_owned();
    (0..101).for_each(|at| file.push_str(&format!("p{at},Kaffee {at}\n")));
    let refused = send(&app, "/imports", "*/*", file.clone()).await.expect(429);
    assert_eq!(refused.body["code"], "LIMIT_EXCEEDED");
    // Of two parts the first is within the limit.
    let mut file = "productId,shopId,de:productName\n".to_owned();
    (0..120).for_each(|at| file.push_str(&format!("p{at},{},Kaffee {at}\n", if at < 60 { 1 } else { 2 })));
    let stopped = send(&app, "/imports", "*/*", file).await.expect(200).body;
    assert_eq!((&stopped["state"], &stopped["error"]["code"]), (&json!("STOPPED"), &json!("LIMIT_EXCEEDED")));
    assert_eq!(counts(&stopped), [60, 0, 0, 0]);
}

#[tokio::test]
async fn an_import_with_a_key_is_answered_again_and_not_done_again() {
    let app = App::start().await;
    let keyed = |file: &'static str| {
        let request = request(&app, "/imports?map=Artikelnr=productId").header("idempotency-key", "one");
        app.send(request.header(header::CONTENT_TYPE, "text/csv").body(Body::from(file)).expect("a request"))
    };
    let first = keyed(FILE).await.expect(200);
    let again = keyed(FILE).await.expect(200);
    assert_eq!((counts(&first.body), again.bytes), ([2, 0, 0, 1], first.bytes));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    keyed("Artikelnr\nx\n").await.expect(422);
}

#[tokio::test]
async fn an_export_is_the_whole_account_and_comes_back_unchanged() {
    let app = App::start().await;
    let mut file = "productId,shopId,de:productName,fr:productName\n".to_owned();
    (0..700).for_each(|at| file.push_str(&format!("p{at},{},Kaffee {at},Café\n", if at % 2 == 0 { "" } else { "7" })));
    assert_eq!(counts(&send(&app, "/imports", "*/*", file).await.expect(200).body), [700, 0, 0, 0]);
    let reader = app.token("shop", "leser", Level::Read).await;
    for (format, kind) in [
        ("CSV", "text/csv; charset=utf-8"),
        ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ] {
        let path = format!("/exports?format={format}&languages=de,fr");
        let answer = app.raw(&reader, "GET", &path, "", Body::empty()).await.expect(200);
        assert_eq!(answer.headers[header::CONTENT_TYPE], kind);
        assert!(answer.headers[header::CONTENT_DISPOSITION].to_str().expect("text").starts_with("attachment"));
        let done = send(&app, "/imports", "*/*", answer.bytes.clone()).await.expect(200).body;
        assert_eq!(counts(&done), [0, 0, 700, 0], "{done}");
        if format == "CSV" {
            let header = text(&answer).lines().next().expect("a header");
            assert!(header.starts_with("\u{feff}productId,") && header.contains("fr:productName"), "{header}");
            assert_eq!(text(&answer).lines().count(), 701);
        }
    }
    for path in ["/exports?format=PDF", "/exports?languages=xx", "/exports?language=de"] {
        app.get(path).await.expect(400);
    }
}

#[tokio::test]
async fn what_a_spreadsheet_has_made_of_a_file_is_no_other_good_and_erases_nothing() {
    let app = App::start().await;
    let file =
        "productId;de:productName;taricCode;gtin\n1;Kaffee, geröstet;9012100;36000291452\n2;Büromöbel;9403600;\n";
    assert_eq!(counts(&send(&app, "/imports", "*/*", file).await.expect(200).body), [2, 0, 0, 0]);
    let stored = app.get("/products/global/1").await.expect(200).body["productDetails"].take();
    assert_eq!(stored["customsCodes"]["taricCode"], "09012100");
    assert_eq!(stored["productUids"]["gtin"], "036000291452");
    let other = app.get("/products/global/2").await.expect(200).body["productDetails"].take();
    assert_eq!(other["customsCodes"]["taricCode"], "9403600", "there is no heading 0940");
    app.assign().await;
    let class = app.assignment("TARIC", "1").await["productClassCode"].take();
    assert!(class.as_str().expect("a class").starts_with("0901"), "{class}");

    // A stray byte costs its line, and no umlaut of the others.
    let stray = [file.as_bytes(), b"3;K\xe4se;;\n"].concat();
    let answer = send(&app, "/imports", "*/*", stray).await.expect(200).body;
    assert_eq!((counts(&answer), &answer["faults"][0]["line"]), ([0, 0, 2, 1], &json!(4)), "{answer}");
    assert_eq!(answer["faults"][0]["column"], "de:productName");

    // A description that is longer than a cell of a sheet is left out, and stays.
    let long = "x".repeat(40_000);
    let product = json!({"productDetails": {"languageAttributes": {"de": {"productDescription": long}}}});
    app.post("/products/global", json!({"long": product})).await.expect(201);
    let sheet = app.get("/exports?format=XLSX").await.expect(200).bytes;
    assert_eq!(counts(&send(&app, "/imports", "*/*", sheet).await.expect(200).body), [0, 0, 3, 0]);
    let stored = app.get("/products/global/long").await.expect(200).body;
    let kept = stored["productDetails"]["languageAttributes"]["de"]["productDescription"].as_str();
    assert_eq!(kept.map(str::len), Some(40_000));
}

#[tokio::test]
async fn a_small_file_that_would_fill_the_memory_is_refused() {
    let app = App::start().await;
    let feed = format!("<rss><item><id>1</id>{}", "<a>".repeat(1 << 20));
    let answer = send(&app, "/imports?dryRun=true", "*/*", feed).await.expect(422);
    assert_eq!(answer.faults().join(""), "file UNREADABLE_FILE", "{}", answer.body);
}
