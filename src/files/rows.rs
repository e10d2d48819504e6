//! Lines as what they say of products: a merge patch for each, which leaves alone what the file does not speak of.

use serde_json::{Map, Number, Value, json};

use crate::domain::ShopId;
use crate::domain::identity::MAX_PRODUCT_ID_CHARACTERS;
use crate::domain::nul::holds_nul;
use crate::files::{Column, Columns, FileError, Line, Lines, split, unsafe_again};

/// Most characters of a message of a fault: a message may quote its cell, and a summary holds very many.
const MAX_MESSAGE_CHARACTERS: usize = 1_000;
/// What is wrong with a cell that the database cannot store.
const NUL: &str = "holds the character U+0000";

/// What a file says of one product.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its line.
    pub line: u64,
    /// Its shop.
    pub shop: ShopId,
    /// Its id.
    pub product_id: String,
    /// The patch of its document.
    pub patch: Value,
    /// Bytes of its cells.
    pub bytes: usize,
}

/// What is wrong with a line; its product is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// The line.
    pub line: u64,
    /// The product's id, as far as it is known and as long as an id may be.
    pub product_id: String,
    /// The name of the column, where it is one.
    pub column: String,
    /// The mistake in words.
    pub message: String,
}

impl RowFault {
    /// A fault of a line, cut to what a report can use: an id that is none may be as long as any cell, and a line may
    /// have a fault in each of its cells.
    pub fn new(line: u64, product_id: &str, column: impl Into<String>, message: &str) -> RowFault {
        RowFault {
            line,
            product_id: product_id.chars().take(MAX_PRODUCT_ID_CHARACTERS).collect(),
            column: column.into(),
            message: message.chars().take(MAX_MESSAGE_CHARACTERS).collect(),
        }
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.product_id.len() + self.column.len() + self.message.len()
    }
}

/// The rows of a file.
pub struct Rows {
    lines: Box<dyn Lines + Send>,
    columns: Columns,
}

impl Rows {
    /// Reads lines as products by what their columns mean.
    pub fn new(lines: Box<dyn Lines + Send>, columns: Columns) -> Rows {
        Rows { lines, columns }
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The next row, or what is wrong with it; none at the end.
    ///
    /// # Errors
    /// When the file cannot be read any further.
    pub fn next_row(&mut self) -> Result<Option<Result<Row, Vec<RowFault>>>, FileError> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        Ok(Some(patch(&self.columns, &line)))
    }

    /// The name of the column that speaks of a place of the document, such as `productDetails.customs.countryOfOrigin`.
    pub fn column_of(columns: &Columns, place: &str) -> String {
        let is_of =
            |path: &str| place == path || place.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
        let found = columns.meanings.iter().position(|meaning| path(meaning).is_some_and(|path| is_of(&path)));
        found.map_or_else(|| place.to_owned(), |at| columns.names[at].clone())
    }
}

/// The place of the document that a column speaks of.
fn path(column: &Column) -> Option<String> {
    Some(match column {
        Column::ProductId => "productId".to_owned(),
        Column::ShopIds => "shopIds".to_owned(),
        Column::Text(path) | Column::List(path) | Column::Json(path) => path.join("."),
        Column::Uid(kind) => format!("productDetails.productUids.{kind}"),
        Column::Amount => "productDetails.customs.physicalMeasure.amount".to_owned(),
        Column::Measure | Column::Grams => "productDetails.customs.physicalMeasure".to_owned(),
        Column::Weight => "productDetails.reviewWeight".to_owned(),
        Column::Code(field) => format!("productDetails.customsCodes.{field}"),
        Column::Language(key, field) => format!("productDetails.languageAttributes.{key}.{field}"),
        Column::ShopId | Column::Shown | Column::Unknown => return None,
    })
}

/// What a line says of its product. Empty cells say nothing.
///
/// # Errors
/// Everything that is wrong with its cells.
pub fn patch(columns: &Columns, line: &Line) -> Result<Row, Vec<RowFault>> {
    let mut faults = Vec::new();
    let id_at = columns.meanings.iter().position(|meaning| *meaning == Column::ProductId);
    let product_id =
        id_at.and_then(|at| line.cells.get(at)).map(|cell| unsafe_again(cell).to_owned()).unwrap_or_default();
    let mut fault = |column: &str, message: String| {
        faults.push(RowFault::new(line.number, &product_id, column, &message));
    };
    if line.cells.len() != columns.names.len() {
        let (found, named) = (line.cells.len(), columns.names.len());
        fault("", format!("the line has {found} cells, the header names {named}"));
    }
    let bytes = line.cells.iter().map(String::len).sum();
    let mut row =
        Row { line: line.number, shop: ShopId::GLOBAL, product_id: product_id.clone(), patch: json!({}), bytes };
    for ((meaning, name), cell) in columns.meanings.iter().zip(&columns.names).zip(&line.cells) {
        if cell.is_empty() {
            continue;
        }
        let cell = unsafe_again(cell);
        let done = match meaning {
            Column::Shown | Column::Unknown => Ok(()),
            _ if cell.contains('\0') => Err(NUL.to_owned()),
            Column::ProductId => Ok(()),
            Column::ShopId => match cell.trim().parse().ok().and_then(ShopId::local) {
                Some(shop) => {
                    row.shop = shop;
                    Ok(())
                }
                None => Err("is a whole number of at least 1".to_owned()),
            },
            _ => value(meaning, cell).and_then(|(path, value)| {
                if holds_nul(&value) {
                    return Err(NUL.to_owned());
                }
                set(&mut row.patch, &path, value);
                Ok(())
            }),
        };
        if let Err(message) = done {
            fault(name, message);
        }
    }
    if product_id.is_empty() {
        fault(id_at.map(|at| columns.names[at].as_str()).unwrap_or_default(), "is empty".to_owned());
    }
    if faults.is_empty() { Ok(row) } else { Err(faults) }
}

/// The place that a cell speaks of, and what it says.
fn value(meaning: &Column, cell: &str) -> Result<(String, Value), String> {
    let place = path(meaning).unwrap_or_default();
    let value = match meaning {
        Column::ShopIds => {
            let shops: Result<Vec<i64>, _> = split(cell).iter().map(|item| item.parse()).collect();
            json!(shops.map_err(|_| "holds whole numbers separated by |".to_owned())?)
        }
        Column::List(_) => json!(split(cell)),
        Column::Language(_, "productTags") => json!(tags(cell)),
        Column::Json(_) | Column::Language(_, "merchantProductAttributes") => {
            let read: Map<String, Value> =
                serde_json::from_str(cell).map_err(|error| format!("is an object in JSON: {error}"))?;
            Value::Object(read)
        }
        // Spreadsheets keep the zeros of a number by an apostrophe before it.
        Column::Uid(_) => json!(cell.trim().trim_start_matches('\'')),
        Column::Amount | Column::Weight => Value::Number(number(cell)?),
        Column::Grams => match number(cell)? {
            // What has no weight is written as 0 by whoever has to write something.
            zero if zero.as_f64() == Some(0.0) => return Ok((place, json!({}))),
            grams => json!({"unit": "g", "amount": grams}),
        },
        Column::Measure => {
            let (amount, unit) = cell.trim().split_once(' ').ok_or("is an amount and a unit, such as 1.5 kg")?;
            json!({"unit": unit.trim(), "amount": number(amount)?})
        }
        _ => json!(cell),
    };
    Ok((place, value))
}

/// Tags are separated by `|`, or by commas where there is none, as other programs write them.
fn tags(cell: &str) -> Vec<String> {
    if cell.contains('|') || cell.contains('\\') || !cell.contains(',') {
        return split(cell);
    }
    cell.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

/// A number, with a point or a comma.
fn number(cell: &str) -> Result<Number, String> {
    let plain = cell.trim();
    let pointed = if plain.contains('.') { plain.to_owned() } else { plain.replacen(',', ".", 1) };
    pointed.parse().map_err(|_| "is a number".to_owned())
}

/// Puts a value at a place of a document. Objects that are there already are filled up.
fn set(document: &mut Value, place: &str, value: Value) {
    let mut at = document;
    for name in place.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(name).or_insert(Value::Null);
    }
    match (at, value) {
        (Value::Object(there), Value::Object(new)) => there.extend(new),
        (at, value) => *at = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Given;

    fn read(header: &str, cells: &str) -> Result<Row, Vec<RowFault>> {
        let names: Vec<String> = header.split(';').map(str::to_owned).collect();
        let given = Given { language: "de".to_owned(), ..Given::default() };
        let columns = Columns::of(&names, &given).expect("columns");
        patch(&columns, &Line { number: 2, cells: cells.split(';').map(str::to_owned).collect() })
    }

    #[test]
    fn a_line_says_what_its_cells_say_and_no_more() {
        for (header, cells, expected) in [
            ("productId;de:productName;gtin", "a;;", json!({})),
            ("productId;shopIds", "a;1|2", json!({"shopIds": [1, 2]})),
            (
                "productId;unit;amount",
                "a;kg;1,5",
                json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "kg", "amount": 1.5}}}}),
            ),
            (
                "productId;Variant Grams",
                "a;250",
                json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "g", "amount": 250}}}}),
            ),
            (
                "productId;shipping_weight",
                "a;2 kg",
                json!({"productDetails": {"customs": {"physicalMeasure": {"unit": "kg", "amount": 2}}}}),
            ),
            (
                "id;title;tags",
                "a;'=1;x, y",
                json!({"productDetails": {"languageAttributes": {"de": {"productName": "=1", "productTags": ["x", "y"]}}}}),
            ),
            (
                "productId;gtin;productUids",
                "a;'0123;{\"mpn\":\"7\"}",
                json!({"productDetails": {"productUids": {"gtin": "0123", "mpn": "7"}}}),
            ),
            ("productId;price;TARIC:status", "a;7;ASSIGNED", json!({})),
        ] {
            assert_eq!(read(header, cells).expect("a row").patch, expected, "{header}");
        }
        assert_eq!(read("productId;shopId", "a;7").expect("a row").shop.number(), Some(7));
    }

    #[test]
    fn every_mistake_of_a_line_is_named_with_its_column() {
        let header = "productId;shopId;shopIds;amount;Variant Grams;merchantProductAttributes";
        let faults = read(header, ";x;1|b;much;heavy;[1]").expect_err("faults");
        let columns: Vec<&str> = faults.iter().map(|fault| fault.column.as_str()).collect();
        assert_eq!(columns, ["shopId", "shopIds", "amount", "Variant Grams", "merchantProductAttributes", "productId"]);
        assert!(read("productId;gtin", "a").expect_err("a fault")[0].message.contains("1 cells"));
    }

    #[test]
    fn what_the_database_cannot_store_is_a_fault_of_its_cell() {
        let header = "productId;de:productName;de:productTags;productUids";
        let faults = read(header, "a\0;b\0;c|d\0;{\"mpn\":\"\\u0000\"}").expect_err("faults");
        let columns: Vec<&str> = faults.iter().map(|fault| fault.column.as_str()).collect();
        assert_eq!(columns, header.split(';').collect::<Vec<_>>());
        assert!(read("productId;other", "a;\0").is_ok(), "nothing is stored of a column that nobody knows");
    }

    #[test]
    fn tags_are_read_as_they_were_written() {
        for tags in [&["Größe 1,5"][..], &["a, b"], &["a,b", "c"], &["a", "b"]] {
            assert_eq!(super::tags(&crate::files::join(tags.iter().copied())), tags);
        }
    }

    #[test]
    fn a_fault_is_short_however_long_its_line_is() {
        let long = "x".repeat(1 << 20);
        let cells = format!("{long};\"{long}\"");
        let faults = read("productId;merchantProductAttributes", &cells).expect_err("a fault");
        assert_eq!(faults[0].product_id.len(), MAX_PRODUCT_ID_CHARACTERS);
        assert_eq!(faults[0].message.len(), MAX_MESSAGE_CHARACTERS);
    }

    #[test]
    fn a_place_of_the_document_is_found_among_the_columns() {
        let names: Vec<String> = ["SKU", "Ursprungsland", "tags"].map(str::to_owned).into();
        let columns = Columns::of(&names, &Given { language: "de".into(), ..Given::default() }).expect("columns");
        for (place, column) in [
            ("productDetails.customs.countryOfOrigin", "Ursprungsland"),
            ("productDetails.languageAttributes.de.productTags[3]", "tags"),
            ("productId", "SKU"),
            ("productDetails.elsewhere", "productDetails.elsewhere"),
        ] {
            assert_eq!(Rows::column_of(&columns, place), column);
        }
    }
}
