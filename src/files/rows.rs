//! Lines as what they say of products: a merge patch for each, which leaves alone what the file does not speak of.

use serde_json::{Map, Number, Value, json};

use crate::domain::ShopId;
use crate::domain::identity::MAX_PRODUCT_ID_CHARACTERS;
use crate::domain::nul::holds_nul;
use crate::files::{Column, Columns, FileError, Line, Lines, MAX_COLUMNS, id_again, split, unsafe_again, zeros};

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

    /// The next row, or what is wrong with it; none at the end. Lines that say nothing are passed over.
    ///
    /// # Errors
    /// When the file cannot be read any further.
    pub fn next_row(&mut self) -> Result<Option<Result<Row, Vec<RowFault>>>, FileError> {
        while let Some(line) = self.lines.next_line()? {
            if !says_nothing(&self.columns, &line) {
                return Ok(Some(patch(&self.columns, &line)));
            }
        }
        Ok(None)
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

/// Whether there is nothing in any cell that means something here, as in the lines of further pictures in an export of a
/// shop.
fn says_nothing(columns: &Columns, line: &Line) -> bool {
    let mut known = columns.meanings.iter().zip(&line.cells).filter(|(meaning, _)| !is_left(meaning));
    line.cells.len() == columns.names.len() && known.all(|(_, cell)| cell.is_empty())
}

fn is_left(meaning: &Column) -> bool {
    matches!(meaning, Column::Shown | Column::Unknown)
}

/// What a line says of its product. Empty cells say nothing.
///
/// # Errors
/// Everything that is wrong with its cells.
pub fn patch(columns: &Columns, line: &Line) -> Result<Row, Vec<RowFault>> {
    let mut faults = Vec::new();
    let id_at = columns.meanings.iter().position(|meaning| *meaning == Column::ProductId);
    let product_id =
        id_at.and_then(|at| line.cells.get(at)).map(|cell| id_again(cell).into_owned()).unwrap_or_default();
    let mut fault = |column: &str, message: String| {
        faults.push(RowFault::new(line.number, &product_id, column, &message));
    };
    if line.cells.len() != columns.names.len() {
        let (found, named) = (line.cells.len(), columns.names.len());
        let more = if found > MAX_COLUMNS { "more than " } else { "" };
        fault("", format!("the line has {more}{} cells, the header names {named}", found.min(MAX_COLUMNS)));
    }
    let bytes = line.cells.iter().map(String::len).sum();
    let mut row =
        Row { line: line.number, shop: ShopId::GLOBAL, product_id: product_id.clone(), patch: json!({}), bytes };
    for (at, ((meaning, name), cell)) in columns.meanings.iter().zip(&columns.names).zip(&line.cells).enumerate() {
        if cell.is_empty() || is_left(meaning) {
            continue;
        }
        let cell = match meaning {
            Column::ProductId | Column::Uid(_) | Column::Code(_) => id_again(cell),
            _ => unsafe_again(cell),
        };
        let done = match meaning {
            _ if line.faults.contains_key(&at) => Err(line.faults[&at].clone()),
            _ if cell.contains('\0') => Err(NUL.to_owned()),
            Column::ProductId => Ok(()),
            Column::ShopId => match cell.trim().parse().ok().and_then(ShopId::local) {
                Some(shop) => {
                    row.shop = shop;
                    Ok(())
                }
                None => Err("is a whole number of at least 1".to_owned()),
            },
            _ => value(meaning, &cell).and_then(|(path, value)| {
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
        Column::Uid("gtin") => json!(zeros::trade_number(cell.trim())),
        Column::Uid(_) => json!(cell.trim()),
        Column::Code(_) => json!(zeros::code(cell)),
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
mod tests;
