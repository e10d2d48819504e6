//! What the columns of a file mean: our own names, those of well-known exports, and those that a mapping tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::Taxonomy;

/// Customs codes, by the names of their fields.
const CODES: [&str; 6] = ["customsTariffCode", "taricCode", "eztCode", "taresCode", "ukgtCode", "tolletatenCode"];
/// Fields of an assignment that an export shows and an import leaves.
const RESULTS: [&str; 4] = ["status", "productClass", "confidence", "autoAssignment"];
/// Fields of a language.
const TEXTS: [&str; 4] = ["productName", "productDescription", "productTags", "merchantProductAttributes"];
/// Fields without a language.
static PLAIN: [(&str, Column); 17] = [
    ("productId", Column::ProductId),
    ("shopId", Column::ShopId),
    ("shopIds", Column::ShopIds),
    ("manufacturerName", Column::Text(&["productDetails", "manufacturerName"])),
    ("gtin", Column::Uid("gtin")),
    ("asin", Column::Uid("asin")),
    ("productUids", Column::Json(&["productDetails", "productUids"])),
    ("countryOfOrigin", Column::Text(&["productDetails", "customs", "countryOfOrigin"])),
    ("unit", Column::Text(&["productDetails", "customs", "physicalMeasure", "unit"])),
    ("amount", Column::Amount),
    ("btiId", Column::Text(&["productDetails", "customs", "btiId"])),
    ("measureConditionTaric", Column::List(&["productDetails", "customs", "measureCondition", "taric"])),
    ("platformCode", Column::Code("platformCode.code")),
    ("platformCodeTaxonomy", Column::Text(&["productDetails", "customsCodes", "platformCode", "taxonomy"])),
    ("merchantProductAttributes", Column::Json(&["productDetails", "merchantProductAttributes"])),
    ("reviewWeight", Column::Weight),
    ("measure", Column::Measure),
];

/// Names of other programs, in lower case, and ours for the same; `*` stands for the language of the file.
///
/// Shopify's product export and its inventory columns, and the attributes of a Google Merchant feed, whose prefix `g:`
/// is left out.
const FOREIGN: [(&str, &str); 32] = [
    ("variant sku", "productId"),
    ("sku", "productId"),
    ("id", "productId"),
    ("artikelnummer", "productId"),
    ("title", "*:productName"),
    ("name", "*:productName"),
    ("artikelname", "*:productName"),
    ("bezeichnung", "*:productName"),
    ("body (html)", "*:productDescription"),
    ("body html", "*:productDescription"),
    ("description", "*:productDescription"),
    ("beschreibung", "*:productDescription"),
    ("tags", "*:productTags"),
    ("product type", "*:productTags"),
    ("product_type", "*:productTags"),
    ("product category", "*:productTags"),
    ("type", "*:productTags"),
    ("vendor", "manufacturerName"),
    ("brand", "manufacturerName"),
    ("hersteller", "manufacturerName"),
    ("gtin", "gtin"),
    ("variant barcode", "gtin"),
    ("barcode", "gtin"),
    ("ean", "gtin"),
    ("variant grams", "grams"),
    ("variant hs code", "customsTariffCode"),
    ("hs code", "customsTariffCode"),
    ("zolltarifnummer", "customsTariffCode"),
    ("country of origin", "countryOfOrigin"),
    ("coo", "countryOfOrigin"),
    ("ursprungsland", "countryOfOrigin"),
    ("shipping_weight", "measure"),
];

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The product's id.
    ProductId,
    /// The shop of a local product.
    ShopId,
    /// Shops of a global product.
    ShopIds,
    /// A text at a place of the document.
    Text(&'static [&'static str]),
    /// A list at a place of the document.
    List(&'static [&'static str]),
    /// Any JSON at a place of the document.
    Json(&'static [&'static str]),
    /// An identifier by its kind.
    Uid(&'static str),
    /// The amount of the physical measure.
    Amount,
    /// Amount and unit together, such as `1.5 kg`.
    Measure,
    /// Grams.
    Grams,
    /// How much the product matters.
    Weight,
    /// A customs code by its field.
    Code(&'static str),
    /// A field of a language.
    Language(String, &'static str),
    /// What an export shows and an import leaves.
    Shown,
    /// Nothing that this service knows.
    Unknown,
}

/// Columns that a mapping names, and cannot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// It is not written as a pair.
    #[error("\"{0}\" is not written as column=field")]
    NoPair(String),
    /// The file does not have it.
    #[error("the file has no column \"{0}\"; it has {1}")]
    NoColumn(String, String),
    /// Not a field of a product.
    #[error("\"{0}\" is no field; fields are {fields}", fields = names())]
    NoField(String),
    /// Two columns for one field.
    #[error(
        "the columns \"{0}\" and \"{1}\" both stand for {2}; a mapping chooses: {2} from one of them, and the other mapped to nothing"
    )]
    Twice(String, String, String),
    /// There is no id.
    #[error("no column stands for productId; map one, or name it productId")]
    NoId,
}

/// How columns are named beside the names of our own.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// By the name of the column: the field that it is to stand for; empty for none.
    pub mapping: BTreeMap<String, String>,
    /// The language of columns that do not name theirs.
    pub language: String,
}

impl Given {
    /// Reads pairs of the form `column=field`.
    ///
    /// # Errors
    /// When one is no pair.
    pub fn parse(pairs: &[String], language: &str) -> Result<Given, MappingError> {
        let pair = |pair: &String| {
            let (column, field) = pair.rsplit_once('=').ok_or_else(|| MappingError::NoPair(pair.clone()))?;
            Ok((column.trim().to_owned(), field.trim().to_owned()))
        };
        let mapping = pairs.iter().map(pair).collect::<Result<_, _>>()?;
        Ok(Given { mapping, language: language.to_owned() })
    }
}

/// The columns of a file, by their places.
#[derive(Clone, Debug)]
pub struct Columns {
    /// What each holds.
    pub meanings: Vec<Column>,
    /// Their names.
    pub names: Vec<String>,
    /// Names of those that are left because they mean nothing here.
    pub left: Vec<String>,
}

impl Columns {
    /// Finds out what the columns of a header mean.
    ///
    /// # Errors
    /// When the mapping does not go with the header, two columns mean the same, or there is no id.
    pub fn of(names: &[String], given: &Given) -> Result<Columns, MappingError> {
        if let Some(column) = given.mapping.keys().find(|column| !names.contains(column)) {
            return Err(MappingError::NoColumn(column.clone(), names.join(", ")));
        }
        let mut meanings = Vec::new();
        for name in names {
            meanings.push(match given.mapping.get(name).map(String::as_str) {
                Some("") => Column::Shown,
                Some(field) => match own(field) {
                    Some(column) if column != Column::Shown => column,
                    _ => return Err(MappingError::NoField(field.to_owned())),
                },
                None => own(name).unwrap_or(Column::Unknown),
            });
        }
        // Names of other programs stand for what nothing else stands for: the first of them that the file has.
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for (foreign, ours) in FOREIGN {
            let meaning = match ours {
                "grams" => Column::Grams,
                _ => own(&ours.replace('*', &given.language)).unwrap_or(Column::Unknown),
            };
            let is_free = !meanings.contains(&meaning);
            let at = names.iter().enumerate().position(|(at, name)| {
                let plain = name.to_lowercase();
                let plain = plain.strip_prefix("g:").unwrap_or(&plain);
                meanings[at] == Column::Unknown
                    && !taken.contains(&at)
                    && plain.split('(').next().map(str::trim) == foreign.split('(').next().map(str::trim)
            });
            if let Some(at) = at.filter(|_| is_free) {
                meanings[at] = meaning;
                taken.insert(at);
            }
        }
        for (at, meaning) in meanings.iter().enumerate() {
            let is_shown = matches!(meaning, Column::Shown | Column::Unknown);
            if let Some(first) = meanings[..at].iter().position(|other| other == meaning && !is_shown) {
                return Err(MappingError::Twice(names[first].clone(), names[at].clone(), field(meaning)));
            }
        }
        if !meanings.contains(&Column::ProductId) {
            return Err(MappingError::NoId);
        }
        let left = names.iter().zip(&meanings).filter(|(_, meaning)| **meaning == Column::Unknown);
        Ok(Columns { left: left.map(|(name, _)| name.clone()).collect(), names: names.to_vec(), meanings })
    }
}

/// The meaning of a name of our own.
fn own(name: &str) -> Option<Column> {
    if let Some((_, column)) = PLAIN.iter().find(|(known, _)| *known == name) {
        return Some(column.clone());
    }
    if let Some(code) = CODES.iter().find(|code| **code == name) {
        return Some(Column::Code(code));
    }
    let (before, after) = name.split_once(':')?;
    if Taxonomy::from_name(before).is_some() {
        return RESULTS.contains(&after).then_some(Column::Shown);
    }
    let is_language = matches!(before.len(), 2 | 3) && before.bytes().all(|byte| byte.is_ascii_lowercase());
    let text = TEXTS.iter().find(|text| **text == after)?;
    is_language.then(|| Column::Language(before.to_owned(), text))
}

/// The field that a column stands for, as a mapping names it.
fn field(column: &Column) -> String {
    let plain = PLAIN.iter().find(|(_, known)| known == column).map(|(name, _)| (*name).to_owned());
    plain.unwrap_or_else(|| match column {
        Column::Code(code) => (*code).to_owned(),
        Column::Language(language, text) => format!("{language}:{text}"),
        _ => "the weight".to_owned(),
    })
}

fn names() -> String {
    let plain = PLAIN.iter().map(|(name, _)| (*name).to_owned());
    let texts = TEXTS.iter().map(|text| format!("de:{text}"));
    plain.chain(CODES.map(str::to_owned)).chain(texts).collect::<Vec<_>>().join(", ")
}

/// The names of the columns of an export in these languages.
pub fn header(languages: &[String]) -> Vec<String> {
    let plain = PLAIN.iter().map(|(name, _)| (*name).to_owned()).filter(|name| name != "measure");
    let codes = CODES.iter().map(|name| (*name).to_owned());
    let texts = languages.iter().flat_map(|key| TEXTS.map(|field| format!("{key}:{field}")));
    let results = Taxonomy::ALL.iter().flat_map(|taxonomy| RESULTS.map(|field| format!("{taxonomy}:{field}")));
    plain.chain(codes).chain(texts).chain(results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(header: &str, mapping: &[&str]) -> Result<Columns, MappingError> {
        let names: Vec<String> = header.split(';').map(str::to_owned).collect();
        let pairs: Vec<String> = mapping.iter().map(|pair| (*pair).to_owned()).collect();
        Columns::of(&names, &Given::parse(&pairs, "de")?)
    }

    #[test]
    fn every_column_of_an_export_is_known_and_none_twice() {
        let names = header(&["de".into(), "en".into()]);
        let columns = Columns::of(&names, &Given::default()).expect("columns");
        assert_eq!((columns.left, columns.meanings.len()), (vec![], names.len()));
    }

    #[test]
    fn the_headers_of_other_programs_are_understood_and_the_rest_is_left() {
        let name = Column::Language("de".into(), "productName");
        let shopify = "Handle;Title;Body (HTML);Vendor;Type;Tags;Variant SKU;Variant Grams;Variant Barcode;Image Src";
        let found = columns(shopify, &[]).expect("columns");
        assert_eq!(found.left, ["Handle", "Type", "Image Src"]);
        assert_eq!(
            (&found.meanings[1], &found.meanings[6], &found.meanings[7]),
            (&name, &Column::ProductId, &Column::Grams)
        );
        let inventory = columns("Handle;Title;SKU;HS Code;COO;Location", &[]).expect("columns");
        let origin = Column::Text(&["productDetails", "customs", "countryOfOrigin"]);
        assert_eq!(inventory.left, ["Handle", "Location"]);
        assert_eq!((&inventory.meanings[3], &inventory.meanings[4]), (&Column::Code("customsTariffCode"), &origin));
        let found = columns("g:id;g:title;g:gtin;g:price;g:shipping_weight", &[]).expect("columns");
        assert_eq!(found.left, ["g:price"]);
        let found = columns("id;title;gtin;brand;price", &[]).expect("columns");
        assert_eq!(found.left, ["price"]);
        // A name of our own is never given to another column.
        let found = columns("productId;SKU;de:productName;Title", &[]).expect("columns");
        assert_eq!(found.left, ["SKU", "Title"]);
    }

    #[test]
    fn a_mapping_goes_before_names() {
        let found =
            columns("Nr;Text;Title;price", &["Nr=productId", "Text=de:productName", "price="]).expect("columns");
        assert_eq!((found.meanings[0].clone(), found.left), (Column::ProductId, vec!["Title".to_owned()]));
        for (header, mapping, told) in [
            ("a;b", vec!["a"], "column=field"),
            ("a;b", vec!["c=productId"], "no column \"c\""),
            ("a;b", vec!["a=id"], "is no field"),
            ("a;b", vec!["a=TARIC:status"], "is no field"),
            ("a;b", vec!["a=productId", "b=productId"], "both stand for productId"),
            ("gtin;gtin;productId", vec![], "both stand for gtin"),
            ("a;b", vec![], "productId"),
        ] {
            let error = columns(header, &mapping).map(|_| ()).expect_err("refused").to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
