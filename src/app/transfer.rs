//! The subcommands `import` and `export`: products of an account as CSV, one product a line.
//!
//! Columns are named by the header, in any order: `productId`, `shopId` (of a local product), `shopIds`,
//! `manufacturerName`, `gtin`, `asin`, `countryOfOrigin`, `unit`, `amount`, the customs codes by their field names, and
//! for each language `de:productName`, `de:productDescription`, `de:productTags`. Lists are separated by `|`. An export
//! also has `TARIC:status`, `TARIC:productClass`, `TARIC:confidence` and the same for TARES and UKGT, which an import
//! passes over. What has no column (pictures, merchant attributes, BTI, platform codes) is not transferred.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Number;

use crate::app::database::Database;
use crate::app::settings::TransferSettings;
use crate::domain::assignment::Status;
use crate::domain::product::{Customs, CustomsCodes, Details, LanguageAttributes, PhysicalMeasure, Product};
use crate::domain::{ShopId, Taxonomy};
use crate::store::accounts::Caller;
use crate::store::assignments::{AssignmentFilter, AssignmentOrder, AssignmentRecord, ListRequest};
use crate::store::pages::Position;
use crate::store::products::{Asked, NewProduct, ProductPage, ProductRecord};
use crate::store::{Store, StoreError};

/// How long reading a page of assignments may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Products of one transaction of an import, and of one page of an export.
const BATCH: usize = 1_000;
/// Faults of a refused batch that are printed.
const FAULTS_SHOWN: usize = 20;
/// Separates the items of a list within a cell.
const SEPARATOR: char = '|';

const CODES: [&str; 6] = ["customsTariffCode", "taricCode", "eztCode", "taresCode", "ukgtCode", "tolletatenCode"];
const PLAIN: [&str; 9] =
    ["productId", "shopId", "shopIds", "manufacturerName", "gtin", "asin", "countryOfOrigin", "unit", "amount"];
const TEXTS: [&str; 3] = ["productName", "productDescription", "productTags"];
const RESULTS: [&str; 3] = ["status", "productClass", "confidence"];

/// Loads a CSV file; products that exist are replaced.
pub(super) async fn import(file: &Path, settings: &TransferSettings) -> anyhow::Result<()> {
    let input = std::fs::File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let bar = bar(input.metadata()?.len(), "Importing {bytes}/{total_bytes} [{bar:40}] {elapsed}");
    let rows = read(bar.wrap_read(input))?;
    let database = Database::open(&settings.database).await?;
    let loaded = load(&database.store, settings, rows).await;
    database.close().await;
    let loaded = loaded?;
    bar.finish();
    println!("{loaded} products imported");
    Ok(())
}

async fn load(store: &Store, settings: &TransferSettings, rows: Vec<(ShopId, NewProduct)>) -> anyhow::Result<usize> {
    let caller = caller(store, settings).await?;
    let mut by_shop: BTreeMap<ShopId, Vec<NewProduct>> = BTreeMap::new();
    for (shop, product) in rows {
        by_shop.entry(shop).or_default().push(product);
    }
    let mut loaded = 0;
    for (shop, products) in by_shop {
        for batch in products.chunks(BATCH) {
            let done = store.create_products(&caller, shop, batch, &Asked::default(), true).await;
            if let Err(StoreError::Unprocessable(faults)) = &done {
                for fault in faults.iter().take(FAULTS_SHOWN) {
                    let product = fault.product_id.as_deref().unwrap_or_default();
                    eprintln!("{product}: {}: {}", fault.field.as_deref().unwrap_or_default(), fault.message);
                }
                bail!("{} faults; {loaded} products before them were imported, none of this batch", faults.len());
            }
            done?;
            loaded += batch.len();
        }
    }
    Ok(loaded)
}

async fn caller(store: &Store, settings: &TransferSettings) -> anyhow::Result<Caller> {
    let caller = store.account_by_name(&settings.account, &settings.user).await?;
    caller.with_context(|| format!("there is no account named {}", settings.account))
}

/// Reads a whole file, so that a mistake in its last line is found before its first is stored.
fn read(input: impl Read) -> anyhow::Result<Vec<(ShopId, NewProduct)>> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(input);
    let header = reader.headers().context("line 1")?.clone();
    for name in &header {
        if !is_column(name) {
            bail!("line 1: there is no column \"{name}\"; see --help");
        }
    }
    if !header.iter().any(|name| name == "productId") {
        bail!("line 1: the column productId is missing");
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells: BTreeMap<&str, &str> = header.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()).collect();
        rows.push(product(&cells).with_context(|| format!("line {line}"))?);
    }
    Ok(rows)
}

fn is_column(name: &str) -> bool {
    match name.split_once(':') {
        None => PLAIN.contains(&name) || CODES.contains(&name),
        Some((prefix, rest)) if Taxonomy::from_name(prefix).is_some() => RESULTS.contains(&rest),
        Some((_, rest)) => TEXTS.contains(&rest),
    }
}

fn list(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(SEPARATOR).map(str::trim).filter(|item| !item.is_empty())
}

fn product(cells: &BTreeMap<&str, &str>) -> anyhow::Result<(ShopId, NewProduct)> {
    let cell = |name: &str| cells.get(name).map(|cell| (*cell).to_owned());
    let product_id = cell("productId").context("productId is empty")?;
    let shop = match cell("shopId") {
        None => ShopId::GLOBAL,
        Some(text) => text.parse().ok().and_then(ShopId::local).context("shopId is a whole number of at least 1")?,
    };
    let shop_ids = cells.get("shopIds").into_iter().flat_map(|cell| list(cell)).map(str::parse);
    let shop_ids = shop_ids.collect::<Result<Vec<i64>, _>>().context("shopIds are whole numbers separated by |")?;
    let mut languages: BTreeMap<String, LanguageAttributes> = BTreeMap::new();
    for (name, cell) in cells {
        let Some((key, field)) = name.split_once(':').filter(|(key, _)| Taxonomy::from_name(key).is_none()) else {
            continue;
        };
        let texts = languages.entry(key.to_owned()).or_default();
        match field {
            "productName" => texts.product_name = Some((*cell).to_owned()),
            "productDescription" => texts.product_description = Some((*cell).to_owned()),
            _ => texts.product_tags = Some(list(cell).map(str::to_owned).collect()),
        }
    }
    let codes = CustomsCodes {
        customs_tariff_code: cell("customsTariffCode"),
        taric_code: cell("taricCode"),
        ezt_code: cell("eztCode"),
        tares_code: cell("taresCode"),
        ukgt_code: cell("ukgtCode"),
        tolletaten_code: cell("tolletatenCode"),
        platform_code: None,
    };
    let amount = cell("amount").map(|text| text.parse::<Number>()).transpose().context("amount is a number")?;
    let measure = PhysicalMeasure { unit: cell("unit"), amount };
    let customs = Customs {
        physical_measure: (measure != PhysicalMeasure::default()).then_some(measure),
        country_of_origin: cell("countryOfOrigin"),
        ..Customs::default()
    };
    let uids: BTreeMap<String, String> =
        ["gtin", "asin"].into_iter().filter_map(|key| cell(key).map(|value| (key.to_owned(), value))).collect();
    let product_details = Details {
        language_attributes: (!languages.is_empty()).then_some(languages),
        customs_codes: (codes != CustomsCodes::default()).then_some(codes),
        manufacturer_name: cell("manufacturerName"),
        product_uids: (!uids.is_empty()).then_some(uids),
        customs: (customs != Customs::default()).then_some(customs),
        ..Details::default()
    };
    Ok((shop, NewProduct { product_id, product: Product { shop_ids, product_details } }))
}

/// Writes all products of an account, global ones first, then those of each shop.
pub(super) async fn export(file: &Path, languages: &[String], settings: &TransferSettings) -> anyhow::Result<()> {
    let output = std::fs::File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    let database = Database::open(&settings.database).await?;
    let written = write(&database.store, settings, languages, output).await;
    database.close().await;
    println!("{} products exported", written?);
    Ok(())
}

async fn write(
    store: &Store,
    settings: &TransferSettings,
    languages: &[String],
    output: impl Write,
) -> anyhow::Result<u64> {
    let caller = caller(store, settings).await?;
    let shops = store.shops(caller.account).await?;
    let bar = bar(
        shops.iter().map(|(_, products)| products.unsigned_abs()).sum(),
        "Exporting {pos}/{len} [{bar:40}] {elapsed}",
    );
    let mut writer = csv::Writer::from_writer(output);
    let texts = languages.iter().flat_map(|key| TEXTS.map(|field| format!("{key}:{field}")));
    let results = Taxonomy::ALL.iter().flat_map(|taxonomy| RESULTS.map(|field| format!("{taxonomy}:{field}")));
    let plain = PLAIN.iter().chain(&CODES).map(|name| (*name).to_owned());
    writer.write_record(plain.chain(texts).chain(results))?;
    for (shop, _) in shops {
        let mut position = Position::Start;
        loop {
            let ProductPage { page, ends } = store.products(caller.account, shop, None, None, &position, BATCH).await?;
            let Some((_, last)) = ends else { break };
            position = Position::After(last);
            let ids: Vec<String> = page.items.iter().map(|record| record.product_id.clone()).collect();
            let assignments = assignments(store, caller.account, shop, ids).await?;
            for record in &page.items {
                writer.write_record(row(record, shop, languages, &assignments))?;
                bar.inc(1);
            }
            if !page.more_after {
                break;
            }
        }
    }
    writer.flush()?;
    bar.finish();
    Ok(bar.position())
}

type Assignments = BTreeMap<(String, Taxonomy), AssignmentRecord>;

async fn assignments(store: &Store, account: i64, shop: ShopId, ids: Vec<String>) -> anyhow::Result<Assignments> {
    let mut found = Assignments::new();
    let filter = AssignmentFilter { statuses: Status::ALL.to_vec(), product_ids: Some(ids), ..Default::default() };
    for taxonomy in Taxonomy::ALL {
        // One id may be a product of every shop; only those of this one are wanted, so pages are followed to the end.
        let request = ListRequest { account, taxonomy, filter: &filter, order: AssignmentOrder::Product, size: BATCH };
        let mut position = Position::Start;
        loop {
            let page = store.assignments(&request, &position, PAGE_TIMEOUT).await?;
            let Some(last) = page.items.last() else { break };
            position = Position::After(last.key(request.order));
            let more = page.more_after;
            let own = page.items.into_iter().filter(|record| record.shop_id == shop.stored());
            found.extend(own.map(|record| ((record.product_id.clone(), taxonomy), record)));
            if !more {
                break;
            }
        }
    }
    Ok(found)
}

fn row(record: &ProductRecord, shop: ShopId, languages: &[String], assignments: &Assignments) -> Vec<String> {
    let details = &record.details.0;
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let joined = |items: Vec<String>| items.join(&SEPARATOR.to_string());
    let uid = |key: &str| text(details.product_uids.as_ref().and_then(|uids| uids.get(key)).map(String::as_str));
    let customs = details.customs.clone().unwrap_or_default();
    let measure = customs.physical_measure.unwrap_or_default();
    let mut cells = vec![
        record.product_id.clone(),
        shop.number().map(|shop| shop.to_string()).unwrap_or_default(),
        joined(record.shop_ids.iter().map(i64::to_string).collect()),
        text(details.manufacturer_name.as_deref()),
        uid("gtin"),
        uid("asin"),
        customs.country_of_origin.unwrap_or_default(),
        measure.unit.unwrap_or_default(),
        measure.amount.map(|amount| amount.to_string()).unwrap_or_default(),
    ];
    let given = details.customs_codes.clone().unwrap_or_default();
    cells.extend(CODES.map(|name| text(given.given().find(|(field, _)| *field == name).map(|(_, code)| code))));
    for key in languages {
        let texts = details.language(key).cloned().unwrap_or_default();
        cells.push(texts.product_name.unwrap_or_default());
        cells.push(texts.product_description.unwrap_or_default());
        cells.push(joined(texts.product_tags.unwrap_or_default()));
    }
    for taxonomy in Taxonomy::ALL {
        let assignment = assignments.get(&(record.product_id.clone(), taxonomy));
        cells.push(text(assignment.map(|assignment| assignment.status.as_str())));
        cells.push(text(assignment.and_then(|assignment| assignment.product_class.as_deref())));
        let confidence = assignment.and_then(|assignment| assignment.confidence);
        cells.push(confidence.map(|confidence| format!("{confidence:.4}")).unwrap_or_default());
    }
    cells
}

fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // A constant template: it cannot fail, and without it the bar looks plain.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_by_its_header() {
        let text = "productId,shopId,de:productName,de:productTags,fr:productName,taricCode,gtin,unit,amount,TARIC:status\n\
                    a,,\"Kaffee, ganz\",bio|fair,Café,0901 21,4006381333931,kg,1.5,ASSIGNED\nb,7,,,,,,,,\n";
        let rows = read(text.as_bytes()).expect("rows");
        let details = &rows[0].1.product.product_details;
        assert_eq!(rows[0].0, ShopId::GLOBAL);
        assert_eq!(details.language("de").and_then(|texts| texts.product_name.as_deref()), Some("Kaffee, ganz"));
        assert_eq!(
            details.language("de").and_then(|texts| texts.product_tags.clone()),
            Some(vec!["bio".to_owned(), "fair".to_owned()])
        );
        assert!(details.language("fr").is_some() && details.customs.is_some());
        assert_eq!((rows[1].0.number(), &rows[1].1.product.product_details), (Some(7), &Details::default()));
    }

    #[test]
    fn a_mistake_is_named_by_its_line() {
        for (text, place) in [
            ("id\nx\n", "line 1"),
            ("shopId\n1\n", "line 1"),
            ("productId,shopId\na,1\nb,x\n", "line 3"),
            ("productId,amount\na,much\n", "line 2"),
            ("productId\n\"\"\n", "line 2"),
            ("productId,gtin\na\n", "line: 2"),
        ] {
            let error = format!("{:#}", read(text.as_bytes()).expect_err("a mistake"));
            assert!(error.contains(place), "{text}: {error}");
        }
    }
}
