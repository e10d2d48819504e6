//! Criteria and their elements, and how they are read from JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::domain::filter::expression;
use crate::domain::filter::text;
use crate::domain::filter::value::ValueExpression;
use crate::domain::languages;
use crate::domain::{Fault, countries};

/// Most bytes of the JSON.
pub const MAX_CRITERIA_BYTES: usize = 8 * 1024;
/// Most elements.
pub const MAX_ELEMENTS: usize = 32;
/// Most values in all elements together: each value of an expression, each productId and countryOfOrigin.
pub const MAX_VALUES: usize = 64;
/// The language of keywords where none is given.
const DEFAULT_LANGUAGE: &str = "en";
/// The query parameter, with which the names of places begin.
const PARAMETER: &str = "filterCriteria";

/// What products must satisfy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// Elements in their order; none selects every product.
    pub elements: Vec<Element>,
}

/// Properties that must all hold, and how the next element is joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The language whose texts are searched.
    pub language: String,
    /// Searched in productName and productDescription.
    pub keywords: Option<ValueExpression>,
    /// Searched in productName.
    pub product_name: Option<ValueExpression>,
    /// Searched in each of productTags.
    pub product_tag: Option<ValueExpression>,
    /// A substring of the product's id, normalised.
    pub product_id: Option<String>,
    /// The country of origin.
    pub country_of_origin: Option<String>,
    /// How the next element is joined; says nothing on the last one.
    pub operation: Operation,
}

/// How two elements are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Both hold.
    #[default]
    And,
    /// One of them holds.
    Or,
}

impl Criteria {
    /// Reads criteria from their JSON.
    ///
    /// # Errors
    /// Every mistake, with the element and property at fault and the position within the value.
    pub fn parse(json: &str) -> Result<Criteria, Vec<Fault>> {
        if json.len() > MAX_CRITERIA_BYTES {
            let message = format!("filterCriteria has at most {MAX_CRITERIA_BYTES} bytes, not {}", json.len());
            return Err(vec![Fault::at(PARAMETER, "TOO_LONG", message)]);
        }
        let items: Vec<Item> = serde_json::from_str(json).map_err(|error| vec![not_json(&error)])?;
        if items.len() > MAX_ELEMENTS {
            let message = format!("filterCriteria has at most {MAX_ELEMENTS} elements, not {}", items.len());
            return Err(vec![Fault::at(PARAMETER, "TOO_MANY_ELEMENTS", message)]);
        }
        let mut faults = Vec::new();
        let elements: Vec<Element> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| Reader { index, faults: &mut faults }.element(item))
            .collect();
        let values: usize = elements.iter().map(Element::values).sum();
        if values > MAX_VALUES {
            let message = format!("filterCriteria has at most {MAX_VALUES} values in all, not {values}");
            faults.push(Fault::at(PARAMETER, "TOO_MANY_VALUES", message));
        }
        if faults.is_empty() { Ok(Criteria { elements }) } else { Err(faults) }
    }
}

impl Element {
    /// How many values it holds.
    fn values(&self) -> usize {
        let expressions = [&self.keywords, &self.product_name, &self.product_tag];
        let values: usize = expressions.into_iter().flatten().map(ValueExpression::len).sum();
        values + usize::from(self.product_id.is_some()) + usize::from(self.country_of_origin.is_some())
    }
}

/// An item of the array as it was written: an object with its members in order, or something else.
enum Item {
    Object(Vec<(String, Json)>),
    Other(Json),
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Item, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

/// Keeps what a JSON map would lose: members that are given twice.
struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Item::Object(members))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Item::Other(Json::Array(Vec::new())))
    }

    fn visit_str<E>(self, _: &str) -> Result<Item, E> {
        Ok(Item::Other(Json::String(String::new())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Item, E> {
        Ok(Item::Other(Json::Bool(value)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Item, E> {
        Ok(Item::Other(Json::from(0)))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Item, E> {
        Ok(Item::Other(Json::from(0)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Item, E> {
        Ok(Item::Other(Json::from(0)))
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item::Other(Json::Null))
    }
}

fn not_json(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    let message = format!(
        "filterCriteria is a JSON array of objects: {reason} at character {} of line {}",
        error.column(),
        error.line()
    );
    let code = if error.is_data() { "WRONG_TYPE" } else { "NOT_JSON" };
    Fault::at(PARAMETER, code, message)
}

/// Reads one element and notes what is wrong with it.
struct Reader<'a> {
    index: usize,
    faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, property: Option<&str>, code: &str, message: impl Into<String>) {
        let property = property.map_or(String::new(), |name| format!(".{name}"));
        self.faults.push(Fault::at(format!("{PARAMETER}[{}]{property}", self.index), code, message));
    }

    fn element(&mut self, item: Item) -> Element {
        let members = match item {
            Item::Object(members) => members,
            Item::Other(other) => {
                self.fault(None, "WRONG_TYPE", format!("an element is an object, not {}", kind(&other)));
                return Element::default();
            }
        };
        let mut element = Element::default();
        let mut language = None;
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in members {
            if seen.contains(&name) {
                self.fault(Some(&name), "DUPLICATE_PROPERTY", "the property is given twice");
                continue;
            }
            match name.as_str() {
                "languageKey" => language = self.language(&name, &value),
                "keywords" => element.keywords = self.expression(&name, &value),
                "productName" => element.product_name = self.expression(&name, &value),
                "productTag" => element.product_tag = self.expression(&name, &value),
                "productId" => element.product_id = self.product_id(&name, &value),
                "countryOfOrigin" => element.country_of_origin = self.country(&name, &value),
                "operation" => element.operation = self.operation(&name, &value),
                _ => {
                    let message = "the properties are languageKey, keywords, productId, productName, \
                                   countryOfOrigin, productTag and operation";
                    self.fault(Some(&name), "UNKNOWN_PROPERTY", message);
                }
            }
            seen.push(name);
        }
        let given = |name: &str| seen.iter().any(|seen| seen == name);
        for name in ["productName", "productTag"] {
            if given(name) && !given("languageKey") {
                self.fault(Some(name), "MISSING_LANGUAGE", format!("{name} needs a languageKey beside it"));
            }
        }
        if !seen.iter().any(|name| name != "languageKey" && name != "operation") {
            self.fault(None, "NO_PROPERTY", "the element has no property to match");
        }
        element.language = language.unwrap_or_else(|| DEFAULT_LANGUAGE.to_owned());
        element
    }

    fn string<'v>(&mut self, name: &str, value: &'v Json) -> Option<&'v str> {
        match value {
            Json::String(text) if text.contains('\0') => {
                let at = text.chars().take_while(|c| *c != '\0').count() + 1;
                self.fault(Some(name), "NUL", format!("at character {at}: NUL is not allowed"));
                None
            }
            Json::String(text) => Some(text),
            other => {
                self.fault(Some(name), "WRONG_TYPE", format!("{name} is a string, not {}", kind(other)));
                None
            }
        }
    }

    fn language(&mut self, name: &str, value: &Json) -> Option<String> {
        let text = self.string(name, value)?;
        if languages::is_known(text) {
            return Some(text.to_owned());
        }
        let message = "languageKey is an ISO 639 code in lower case, such as de or en";
        self.fault(Some(name), "UNKNOWN_LANGUAGE", message);
        None
    }

    fn expression(&mut self, name: &str, value: &Json) -> Option<ValueExpression> {
        let written = self.string(name, value)?;
        match expression::parse(&text::nfkc(written)) {
            Ok(parsed) => Some(parsed),
            Err(mistake) => {
                let at = character_of(written, mistake.at);
                self.fault(Some(name), "BAD_EXPRESSION", format!("at character {at}: {}", mistake.message));
                None
            }
        }
    }

    fn product_id(&mut self, name: &str, value: &Json) -> Option<String> {
        let text = self.string(name, value)?;
        if text.is_empty() {
            self.fault(Some(name), "EMPTY", "at character 1: the value is empty");
            return None;
        }
        Some(text::normalise(text))
    }

    fn country(&mut self, name: &str, value: &Json) -> Option<String> {
        let text = self.string(name, value)?;
        if countries::is_known(text) {
            return Some(text.to_owned());
        }
        let message = "countryOfOrigin is an ISO 3166-1 alpha-2 code in capitals, such as DE";
        self.fault(Some(name), "UNKNOWN_COUNTRY", message);
        None
    }

    fn operation(&mut self, name: &str, value: &Json) -> Operation {
        match self.string(name, value) {
            Some("OR") => Operation::Or,
            Some("AND") | None => Operation::And,
            Some(_) => {
                self.fault(Some(name), "UNKNOWN_OPERATION", "operation is AND or OR");
                Operation::And
            }
        }
    }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// The character, counted from 1, that stands in what was written for a byte of its NFKC form.
fn character_of(written: &str, byte: usize) -> usize {
    let ends: Vec<usize> = written.char_indices().map(|(at, character)| at + character.len_utf8()).collect();
    ends.partition_point(|end| text::nfkc(&written[..*end]).len() <= byte) + 1
}

#[cfg(test)]
mod tests;
