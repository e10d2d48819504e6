//! Files into the service and out of it.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use vat_classification::domain::access::Plan;
use vat_classification::exchange::{ImportSettings, Progress, Summary, export, import, import_as_far_as_possible};
use vat_classification::files::{self, CsvTable, Given, Table, XlsxTable};
use vat_classification::store::accounts::Caller;

use crate::app::App;

/// What is written stays readable here.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a buffer").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("a buffer").clone()
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("text")
    }
}

async fn caller(app: &App, account: &str) -> Caller {
    app.store.account_by_name(account, "import").await.expect("an answer").expect("an account")
}

fn settings(mapping: &[&str], dry_run: bool) -> ImportSettings {
    let pairs: Vec<String> = mapping.iter().map(|pair| (*pair).to_owned()).collect();
    let columns = Given::parse(&pairs, "de").expect("a mapping");
    ImportSettings { columns, dry_run, ..ImportSettings::default() }
}

/// Imports a file into an account; the summary and the report.
async fn load(app: &App, account: &str, file: impl Into<Vec<u8>>, settings: ImportSettings) -> (Summary, String) {
    let (report, progress) = (Kept::default(), Arc::new(Progress::default()));
    let source = Cursor::new(file.into());
    let caller = caller(app, account).await;
    let summary = import(&app.store, &caller, source, &settings, &progress, Some(Box::new(report.clone()))).await;
    (summary.expect("imported"), report.text())
}

fn counts(summary: &Summary) -> [u64; 4] {
    [summary.created, summary.updated, summary.unchanged, summary.refused]
}

async fn details(app: &App, id: &str) -> Value {
    let mut record = app.get(&format!("/products/global/{id}")).await.expect(200).body;
    let mut details = record["productDetails"].take();
    details.as_object_mut().expect("details").remove("productAssignments");
    details
}

#[tokio::test]
async fn a_file_of_a_german_spreadsheet_is_merged_and_nothing_else_is_erased() {
    let app = App::start().await;
    let before = json!({"productDetails": {
        "languageAttributes": {"de": {"productName": "Alt", "productTags": ["bio"]}, "fr": {"productName": "Café"}},
        "customs": {"btiId": "DE123"}, "productUids": {"gtin": "4006381333931", "mpn": "7"}}});
    app.post("/products/global", json!({"a": before, "b": {"shopIds": [3], "productDetails": {}}})).await.expect(201);
    // Windows-1252, as the encoder of the service's own reader writes it.
    let text = "Artikel-Nr;de:productName;Preis;asin\r\na;K\u{e4}se \u{2013} gro\u{df};1,99;B01\r\nc;Brot;2,49;\r\n\r\nb;;3;\r\n";
    let bytes: Vec<u8> =
        text.chars().map(|c| if c == '\u{2013}' { 0x96 } else { u8::try_from(c).expect("latin") }).collect();
    let (summary, report) = load(&app, "shop", bytes.clone(), settings(&["Artikel-Nr=productId"], false)).await;
    assert_eq!((counts(&summary), &summary.left_columns), ([1, 1, 1, 0], &vec!["Preis".to_owned()]));
    assert!(
        report.contains("Preis")
            && report.contains("2,a,updated")
            && report.contains("3,c,created")
            && report.contains("5,b,unchanged"),
        "{report}"
    );
    let merged = details(&app, "a").await;
    assert_eq!(merged["languageAttributes"]["de"], json!({"productName": "Käse – groß", "productTags": ["bio"]}));
    assert_eq!(merged["languageAttributes"]["fr"]["productName"], "Café");
    assert_eq!(
        (&merged["customs"]["btiId"], &merged["productUids"]),
        (&json!("DE123"), &json!({"gtin": "4006381333931", "mpn": "7", "asin": "B01"}))
    );
    assert_eq!(app.get("/products/global/b").await.expect(200).body["shopIds"], json!([3]));
    let (again, _) = load(&app, "shop", bytes, settings(&["Artikel-Nr=productId"], false)).await;
    assert_eq!(counts(&again), [0, 0, 3, 0], "a second time changes nothing");
    assert_eq!(app.get("/products/global/a").await.expect(200).body["version"], 2);
    app.assign().await;
    assert_eq!(app.assignment("TARIC", "c").await["autoAssignment"], "DONE");
}

#[tokio::test]
async fn every_bad_line_is_named_with_its_column_and_costs_no_other() {
    let app = App::start().await;
    let file = "productId,Ursprungsland,amount,unit,gtin,shopId\n\
                good,DE,1,kg,,\n\
                a,XX,much,kg,1,\n\
                ,DE,,,,\n\
                b,XX,,,1,\n\
                good,AT,,,,\n\
                good,AT,,,,7\n\
                short,DE\n\
                last,,,,,\n";
    for dry_run in [true, false] {
        let (summary, report) = load(&app, "shop", file, settings(&[], dry_run)).await;
        assert_eq!(counts(&summary), [3, 0, 0, 5], "{report}");
        for line in [
            "2,good,created",
            "3,a,refused,amount",
            "4,,refused,productId",
            "5,b,refused,Ursprungsland",
            "5,b,refused,gtin",
            "6,good,refused,productId",
            "7,good,created",
            "8,short,refused",
            "9,last,created",
        ] {
            assert!(report.lines().any(|found| found.starts_with(line)), "{line}: {report}");
        }
        assert!(report.contains("line 2 speaks of the same product"), "{report}");
        let lines: Vec<u64> = summary.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 4, 5, 5, 6, 8]);
        app.get("/products/global/good").await.expect(if dry_run { 404 } else { 200 });
    }
    assert_eq!(details(&app, "good").await["customs"]["countryOfOrigin"], "DE");
    app.get("/shops/7/products/local/good").await.expect(200);
    let few = ImportSettings { faults_shown: 4, ..settings(&[], true) };
    let (summary, _) = load(&app, "shop", file, few).await;
    assert_eq!((summary.faults.len(), summary.more_faults), (4, 2), "what is not named is counted");
}

#[tokio::test]
async fn what_is_exported_is_imported_again_without_a_loss() {
    let app = App::start().await;
    app.store.create_account("other", Plan::Unlimited).await.expect("an account");
    let rich = json!({"productDetails": {
        "languageAttributes": {
            "de": {"productName": "=1+1;\"x\"\nzwei", "productDescription": "@cmd <b>&amp;</b> 'q;=1\n-2\t'x", "productTags": ["a|b", "c\\", " d ", "e,f", ""]},
            "en": {"productName": "'+49"}},
        "customsCodes": {"taricCode": "0901 21", "customsTariffCode": "09012100", "eztCode": "09012100000", "taresCode": "09012100",
            "ukgtCode": "0901210000", "tolletatenCode": "09012100", "platformCode": {"code": "090121", "taxonomy": "UKGT"}},
        "manufacturerName": "-M", "reviewWeight": 2.5, "productUids": {"gtin": "4006381333931", "asin": "'B01", "mpn": "=7"},
        "customs": {"countryOfOrigin": "BR", "btiId": "DE1", "physicalMeasure": {"unit": "kg", "amount": 1.25},
            "measureCondition": {"taric": ["Y900", "C|1"]}}}});
    app.post("/products/global", json!({"-rich": rich, "plain": {"shopIds": [7, 8], "productDetails": {}}}))
        .await
        .expect(201);
    app.post("/shops/7/products/local", json!({"own": rich})).await.expect(201);
    let languages = ["de".to_owned(), "en".to_owned()];
    let account = caller(&app, "shop").await.account;
    let (csv, xlsx) = (Kept::default(), Kept::default());
    let tables: [Box<dyn Table>; 2] =
        [Box::new(CsvTable::new(csv.clone())), Box::new(XlsxTable::new(xlsx.clone()).expect("a table"))];
    for table in tables {
        assert_eq!(export(&app.store, account, &languages, table, |_| {}).await.expect("exported"), 3);
    }
    let text = csv.text();
    assert!(text.contains("TARIC:autoAssignment") && text.contains("PENDING"), "{text}");
    assert!(text.contains("\"'=1+1") && text.contains("'-rich") && text.contains("'-M"), "{text}");
    assert!(text.starts_with('\u{feff}') && text.contains("'q;'=1\n'-2\t''x"), "{text}");
    let other = caller(&app, "other").await.account;
    for (round, file) in [csv.bytes(), xlsx.bytes()].into_iter().enumerate() {
        let (summary, report) = load(&app, "shop", file.clone(), settings(&[], false)).await;
        assert_eq!((counts(&summary), summary.left_columns), ([0, 0, 3, 0], vec![]), "{report}");
        let (summary, report) = load(&app, "other", file, settings(&[], false)).await;
        assert_eq!(counts(&summary), if round == 0 { [3, 0, 0, 0] } else { [0, 0, 3, 0] }, "{report}");
        let again = Kept::default();
        export(&app.store, other, &languages, Box::new(CsvTable::new(again.clone())), |_| {}).await.expect("exported");
        assert_eq!(again.text(), text);
    }
}

#[tokio::test]
async fn exports_of_other_programs_are_read_as_they_are() {
    let app = App::start().await;
    let shopify = "Handle,Title,Body (HTML),Vendor,Product Category,Type,Tags,Published,Option1 Name,Variant SKU,Variant Grams,Variant Barcode,Variant Price\n\
        kaffee,Espresso Bohnen,<p>Ganze Bohnen</p>,Rösterei,Food > Coffee,Kaffee,\"bio, fair\",TRUE,Title,S-1,1000,'4006381333931,12.90\n\
        kaffee,,,,,,,,,,,,\n";
    let (summary, report) = load(&app, "shop", shopify, settings(&[], false)).await;
    assert_eq!(counts(&summary), [1, 0, 0, 0], "{report}");
    let read = details(&app, "S-1").await;
    assert_eq!(read["languageAttributes"]["de"]["productName"], "Espresso Bohnen");
    assert_eq!(read["languageAttributes"]["de"]["productTags"], json!(["bio", "fair"]));
    assert_eq!(read["customs"]["physicalMeasure"], json!({"unit": "g", "amount": 1000}));
    assert_eq!(
        (&read["manufacturerName"], &read["productUids"]["gtin"]),
        (&json!("Rösterei"), &json!("4006381333931"))
    );

    let tsv = "id\ttitle\tdescription\tbrand\tgtin\tprice\tshipping_weight\nG-1\tTee\tGrün\tTeehaus\t4006381333931\t3 EUR\t0.5 kg\n";
    let xml = "<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:g=\"http://base.google.com/ns/1.0\"><channel><item><g:id>G-2</g:id>\
        <g:title>Tee</g:title><g:description>Grün</g:description><g:brand>Teehaus</g:brand><g:gtin>4006381333931</g:gtin>\
        <g:shipping_weight>0.5 kg</g:shipping_weight><g:price>3 EUR</g:price></item></channel></rss>";
    for (id, feed) in [("G-1", tsv), ("G-2", xml)] {
        let (summary, report) = load(&app, "shop", feed, settings(&[], false)).await;
        assert_eq!(counts(&summary), [1, 0, 0, 0], "{report}");
        let read = details(&app, id).await;
        assert_eq!(read["languageAttributes"]["de"], json!({"productName": "Tee", "productDescription": "Grün"}));
        assert_eq!(read["customs"]["physicalMeasure"], json!({"unit": "kg", "amount": 0.5}));
    }
}

#[tokio::test]
async fn a_long_file_is_stored_in_parts_and_all_of_it_and_a_limit_stops_it() {
    let app = App::start().await;
    let mut file = "productId,shopId,de:productName\n".to_owned();
    for at in 0..5_003 {
        let shop = if at % 2_500 == 7 { "9" } else { "" };
        file.push_str(&format!("p{at},{shop},Kaffee {at}\n"));
    }
    let (summary, _) = load(&app, "shop", file.clone(), settings(&[], false)).await;
    assert_eq!(counts(&summary), [5_003, 0, 0, 0]);
    let shops = app.store.shops(caller(&app, "shop").await.account).await.expect("shops");
    assert_eq!(shops.iter().map(|(_, products)| *products).collect::<Vec<_>>(), [5_001, 2]);
    app.store.create_account("trial", Plan::FreeTrial).await.expect("an account");
    let caller = caller(&app, "trial").await;
    let stopped = import(&app.store, &caller, Cursor::new(file), &settings(&[], false), &Arc::default(), None).await;
    assert!(stopped.expect_err("stopped").to_string().contains("limit of 100 checks"));
    // The parts before the one that would pass the limit are there, and nothing of that one; a small one that was under
    // way with it may be.
    let stored = app.store.shops(caller.account).await.expect("shops");
    let stored: Vec<i64> = stored.iter().map(|(_, products)| *products).collect();
    assert!(stored == [7, 1] || stored == [7, 2], "{stored:?}");
}

/// A file that tells of each time it is read, before it gives anything, and then waits for leave. When nobody is left
/// to give leave it needs none.
struct Gated {
    file: Cursor<Vec<u8>>,
    reads: UnboundedSender<()>,
    leave: mpsc::Receiver<()>,
}

impl Gated {
    /// The file, which may be read so many times, what it tells, and what to drop so that it may be read on.
    fn with_leave(file: Vec<u8>, times: usize) -> (Gated, UnboundedReceiver<()>, mpsc::Sender<()>) {
        let ((reads, told), (give, leave)) = (unbounded_channel(), mpsc::channel());
        for _ in 0..times {
            give.send(()).expect("a listener");
        }
        (Gated { file: Cursor::new(file), reads, leave }, told, give)
    }
}

impl Read for Gated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A test that failed listens no more.
        let _ = self.reads.send(());
        let _ = self.leave.recv();
        self.file.read(buffer)
    }
}

impl Seek for Gated {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// How often a file is still read, once it may be, until it is given up.
async fn reads_left(mut told: UnboundedReceiver<()>, leave: mpsc::Sender<()>) -> usize {
    drop(leave);
    let mut reads = 0;
    while told.recv().await.is_some() {
        reads += 1;
    }
    reads
}

/// A sheet whose texts can hardly be packed, so that it is read many times.
fn sheet_of_many_reads() -> Vec<u8> {
    let file = Kept::default();
    let mut table = XlsxTable::new(file.clone()).expect("a table");
    table.row(&["productId", "noise"].map(str::to_owned)).expect("a row");
    let mut random = 1_u64;
    for at in 0..200 {
        let noise = (0..600).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:06x}", random >> 40)
        });
        table.row(&[format!("p{at}"), noise.collect()]).expect("a row");
    }
    Box::new(table).finish().expect("a file");
    file.bytes()
}

#[tokio::test]
async fn a_sheet_is_read_no_further_when_its_import_is_given_up_and_keeps_its_place_until_then() {
    let app = App::start().await;
    let file = sheet_of_many_reads();
    let (source, told, leave) = Gated::with_leave(file.clone(), 0);
    let reading = tokio::task::spawn_blocking(move || {
        let mut lines = files::open(source).expect("a sheet");
        while lines.next_line().expect("readable").is_some() {}
    });
    let whole = reads_left(told, leave).await;
    reading.await.expect("read to its end");
    assert!(whole > 40, "{whole}");
    // A sheet is read twice: to see that no cell is too long, and row by row.
    for moment in [whole / 4, whole * 3 / 4] {
        let (source, mut told, leave) = Gated::with_leave(file.clone(), moment);
        let (place, mut given_back) = unbounded_channel::<()>();
        let (store, caller) = (app.store.clone(), caller(&app, "shop").await);
        let importing = tokio::spawn(async move {
            let (settings, progress) = (settings(&[], true), Arc::default());
            import_as_far_as_possible(&store, &caller, source, place, &settings, &progress, None).await
        });
        for _ in 0..=moment {
            told.recv().await.expect("a read");
        }
        importing.abort();
        assert!(importing.await.expect_err("given up").is_cancelled());
        assert_eq!(given_back.try_recv(), Err(TryRecvError::Empty), "it is still being read");
        assert_eq!(reads_left(told, leave).await, 0, "after {moment} of {whole} reads");
        assert_eq!(given_back.recv().await, None);
    }
}

/// A file whose reader panics after so many reads.
struct Breaking {
    file: Cursor<Vec<u8>>,
    left: Arc<AtomicUsize>,
}

impl Read for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(self.left.fetch_sub(1, Relaxed) > 0, "the reader breaks off");
        self.file.read(buffer)
    }
}

impl Seek for Breaking {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[tokio::test]
async fn an_import_of_a_sheet_whose_reader_panics_has_not_come_to_its_end() {
    let app = App::start().await;
    let (caller, file) = (caller(&app, "shop").await, sheet_of_many_reads());
    let imported = async |reads: usize| {
        let left = Arc::new(AtomicUsize::new(reads));
        let source = Breaking { file: Cursor::new(file.clone()), left: left.clone() };
        let ended = import(&app.store, &caller, source, &settings(&[], true), &Arc::default(), None).await;
        (ended, reads.wrapping_sub(left.load(Relaxed)))
    };
    let (ended, whole) = imported(usize::MAX).await;
    assert_eq!(ended.expect("imported").created, 200);
    for reads in [whole / 4, whole * 3 / 4] {
        let told = imported(reads).await.0.expect_err("broken off").to_string();
        assert!(told.contains("broke off"), "after {reads} of {whole} reads: {told}");
    }
}
