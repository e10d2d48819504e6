//! The products of an account into a file, page by page.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use crate::domain::assignment::Status;
use crate::domain::{ShopId, Taxonomy};
use crate::files::{self, Table, join};
use crate::store::assignments::{
    AssignmentFilter, AssignmentOrder, AssignmentRecord, Embedded, ListRequest, SelectionError,
};
use crate::store::pages::Position;
use crate::store::products::ProductRecord;
use crate::store::{Store, StoreError};

/// Products of a page.
const PAGE: usize = 1_000;
/// How long reading a page of assignments may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The assignments.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The file.
    #[error("the file cannot be written: {0}")]
    Io(#[from] std::io::Error),
}

/// Products that were written.
pub type Exported = u64;

/// Writes all products of an account: global ones first, then those of each shop, each with what became of it.
///
/// What has no column: texts in other languages than these, and pictures. In XLSX a text that is longer than a cell can
/// be is left out as well. An import of the file leaves them alone.
///
/// # Errors
/// When the database or the file fails.
pub async fn export(
    store: &Store,
    account: i64,
    languages: &[String],
    table: Box<dyn Table>,
    mut written: impl FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut export = Export::begin(store.clone(), account, languages, table, PAGE).await?;
    while export.next_page().await? {
        written(export.count);
    }
    Ok(export.count)
}

/// An export under way, for whoever takes it page by page.
pub struct Export {
    store: Store,
    account: i64,
    languages: Vec<String>,
    /// None when all is written.
    table: Option<Box<dyn Table>>,
    /// Products of a page.
    page: usize,
    /// Where there are products that are not written yet.
    shops: VecDeque<ShopId>,
    /// How far the first of them is written.
    position: Position<String>,
    count: Exported,
}

impl Export {
    /// Writes the header.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub async fn begin(
        store: Store,
        account: i64,
        languages: &[String],
        mut table: Box<dyn Table>,
        page: usize,
    ) -> Result<Export, ExportError> {
        let shops = store.shops(account).await?.into_iter().map(|(shop, _)| shop).collect();
        table.header(&files::header(languages))?;
        let (languages, position) = (languages.to_vec(), Position::Start);
        Ok(Export { store, account, languages, table: Some(table), page, shops, position, count: 0 })
    }

    /// Writes the next products; whether there may be more. At the end the file is whole.
    ///
    /// # Errors
    /// When the database or the file fails.
    pub async fn next_page(&mut self) -> Result<bool, ExportError> {
        let Some(table) = &mut self.table else { return Ok(false) };
        let Some(&shop) = self.shops.front() else {
            self.table.take().map_or(Ok(()), Table::finish)?;
            return Ok(false);
        };
        let page = self.store.products(self.account, shop, None, None, &self.position, self.page).await?;
        let keys = page.page.items.iter().map(|record| record.product_key).collect();
        let assignments = assignments(&self.store, self.account, keys).await?;
        for record in &page.page.items {
            table.row(&row(record, shop, &self.languages, &assignments))?;
        }
        self.count += page.page.items.len() as u64;
        match page.ends {
            Some((_, last)) if page.page.more_after => self.position = Position::After(last),
            _ => {
                self.shops.pop_front();
                self.position = Position::Start;
            }
        }
        Ok(true)
    }
}

/// By the key of the product.
type Assignments = BTreeMap<(i64, Taxonomy), AssignmentRecord>;

/// The assignments of these products. They are asked for by their keys: one id may be a product of every shop.
async fn assignments(store: &Store, account: i64, keys: Vec<i64>) -> Result<Assignments, SelectionError> {
    let mut found = Assignments::new();
    let filter = AssignmentFilter { statuses: Status::ALL.to_vec(), product_keys: Some(keys), ..Default::default() };
    for taxonomy in Taxonomy::ALL {
        let request = ListRequest { account, taxonomy, filter: &filter, order: AssignmentOrder::Product, size: PAGE };
        let mut position = Position::Start;
        loop {
            let page = store.assignments(&request, &position, Embedded::default(), PAGE_TIMEOUT).await?.page;
            let Some(last) = page.items.last() else { break };
            position = Position::After(last.key(request.order));
            let more = page.more_after;
            found.extend(page.items.into_iter().map(|record| ((record.product_key, taxonomy), record)));
            if !more {
                break;
            }
        }
    }
    Ok(found)
}

/// The cells of a product, in the order of [`files::header`].
fn row(record: &ProductRecord, shop: ShopId, languages: &[String], assignments: &Assignments) -> Vec<String> {
    let details = &record.details.0;
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    let joined = |items: Option<&Vec<String>>| join(items.into_iter().flatten().map(String::as_str));
    let json = |value: Option<Value>| value.map(|value| value.to_string()).unwrap_or_default();
    let uids = details.product_uids.clone().unwrap_or_default();
    let others: BTreeMap<_, _> = uids.iter().filter(|(key, _)| !["gtin", "asin"].contains(&key.as_str())).collect();
    let customs = details.customs.clone().unwrap_or_default();
    let measure = customs.physical_measure.unwrap_or_default();
    let given = details.customs_codes.clone().unwrap_or_default();
    let platform = given.platform_code.unwrap_or_default();
    let shop_ids: Vec<String> = record.shop_ids.iter().map(i64::to_string).collect();
    let mut cells = vec![
        record.product_id.clone(),
        shop.number().map(|shop| shop.to_string()).unwrap_or_default(),
        joined(Some(&shop_ids)),
        text(details.manufacturer_name.as_ref()),
        text(uids.get("gtin")),
        text(uids.get("asin")),
        json((!others.is_empty()).then(|| serde_json::json!(others))),
        text(customs.country_of_origin.as_ref()),
        text(measure.unit.as_ref()),
        measure.amount.map(|amount| amount.to_string()).unwrap_or_default(),
        text(customs.bti_id.as_ref()),
        joined(customs.measure_condition.unwrap_or_default().taric.as_ref()),
        text(platform.code.as_ref()),
        text(platform.taxonomy.as_ref()),
        json(details.merchant_product_attributes.clone().map(Value::Object)),
        details.review_weight.as_ref().map(ToString::to_string).unwrap_or_default(),
        text(given.customs_tariff_code.as_ref()),
        text(given.taric_code.as_ref()),
        text(given.ezt_code.as_ref()),
        text(given.tares_code.as_ref()),
        text(given.ukgt_code.as_ref()),
        text(given.tolletaten_code.as_ref()),
    ];
    for key in languages {
        let texts = details.language(key).cloned().unwrap_or_default();
        cells.push(text(texts.product_name.as_ref()));
        cells.push(text(texts.product_description.as_ref()));
        cells.push(joined(texts.product_tags.as_ref()));
        cells.push(json(texts.merchant_product_attributes.map(Value::Object)));
    }
    for taxonomy in Taxonomy::ALL {
        let assignment = assignments.get(&(record.product_key, taxonomy));
        cells.push(assignment.map(|assignment| assignment.status.to_string()).unwrap_or_default());
        cells.push(text(assignment.and_then(|assignment| assignment.product_class.as_ref())));
        let confidence = assignment.and_then(|assignment| assignment.confidence);
        cells.push(confidence.map(|confidence| format!("{confidence:.4}")).unwrap_or_default());
        cells.push(assignment.map(|assignment| assignment.auto_state.to_string()).unwrap_or_default());
    }
    cells
}
