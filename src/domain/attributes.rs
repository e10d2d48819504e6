//! Merchant product attributes: their declaration, and the check of values against it.

use email_address::{EmailAddress, Options};
use serde_json::Value;
use url::Url;

use crate::domain::{Fault, dates};

/// Most characters of a field name.
pub const MAX_FIELD_NAME_CHARACTERS: usize = 64;
/// Most characters of a display name, and of a tag.
pub const MAX_DISPLAY_CHARACTERS: usize = 200;
/// Most characters of a description.
pub const MAX_DESCRIPTION_CHARACTERS: usize = 2_000;
/// Most tags of a declaration.
pub const MAX_TAGS: usize = 100;

/// What kind of JSON value an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A string that is a calendar date, `2026-01-31`.
    Date,
}

impl ObjectType {
    /// Every type.
    pub const ALL: [ObjectType; 4] = [ObjectType::Text, ObjectType::Number, ObjectType::Boolean, ObjectType::Date];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            ObjectType::Text => "Text",
            ObjectType::Number => "Number",
            ObjectType::Boolean => "Boolean",
            ObjectType::Date => "Date",
        }
    }
}

/// What a value must look like beyond its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing further.
    None,
    /// An absolute URL with a host.
    Url,
    /// An e-mail address.
    Email,
    /// A calendar date, `2026-01-31`.
    IsoDate,
    /// A whole number.
    Integer,
    /// A number in decimal notation.
    Decimal,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::None, Format::Url, Format::Email, Format::IsoDate, Format::Integer, Format::Decimal];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Format::None => "None",
            Format::Url => "URL",
            Format::Email => "EMAIL",
            Format::IsoDate => "ISO_DATE",
            Format::Integer => "INTEGER",
            Format::Decimal => "DECIMAL",
        }
    }

    /// Whether values of that type can have this format at all.
    pub fn fits(self, object_type: ObjectType) -> bool {
        match object_type {
            ObjectType::Text => true,
            ObjectType::Number => matches!(self, Format::None | Format::Integer | Format::Decimal),
            ObjectType::Boolean => self == Format::None,
            ObjectType::Date => matches!(self, Format::None | Format::IsoDate),
        }
    }
}

/// A declared attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// `[A-Za-z][A-Za-z0-9_]{0,63}`, unique in the account.
    pub field_name: String,
    /// For people.
    pub display_name: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// Whether values stand beside the texts of a language or directly in productDetails.
    pub is_language_specific: bool,
    /// The format of values.
    pub format: Format,
    /// The type of values.
    pub object_type: ObjectType,
    /// For people.
    pub tags: Vec<String>,
}

/// A declaration as it was sent, before it is checked.
#[derive(Clone, Debug, Default)]
pub struct DeclarationInput {
    /// See [`Declaration::field_name`].
    pub field_name: Option<String>,
    /// See [`Declaration::display_name`].
    pub display_name: Option<String>,
    /// See [`Declaration::description`].
    pub description: Option<String>,
    /// Absent means false.
    pub is_language_specific: Option<bool>,
    /// Absent means `None`.
    pub format: Option<String>,
    /// Absent means `Text`.
    pub object_type: Option<String>,
    /// See [`Declaration::tags`].
    pub tags: Vec<String>,
}

impl DeclarationInput {
    /// Checks the declaration.
    ///
    /// # Errors
    /// Every fault found.
    pub fn check(self) -> Result<Declaration, Vec<Fault>> {
        let mut faults = Vec::new();
        let field_name = self.field_name.unwrap_or_default();
        if !is_field_name(&field_name) {
            let message = "fieldName is required: a letter, then at most 63 letters, digits or underscores";
            faults.push(Fault::at("fieldName", "INVALID_FIELD_NAME", message));
        }
        let object_type = match self.object_type.as_deref() {
            None => Some(ObjectType::Text),
            Some(name) => ObjectType::ALL.into_iter().find(|known| known.name() == name),
        };
        if object_type.is_none() {
            let message = "objectType is one of Text, Number, Boolean, Date";
            faults.push(Fault::at("objectType", "UNKNOWN_OBJECT_TYPE", message));
        }
        let format = match self.format.as_deref() {
            None => Some(Format::None),
            Some(name) => Format::ALL.into_iter().find(|known| known.name() == name),
        };
        if format.is_none() {
            let message = "format is one of None, URL, EMAIL, ISO_DATE, INTEGER, DECIMAL";
            faults.push(Fault::at("format", "UNKNOWN_FORMAT", message));
        }
        if let (Some(format), Some(object_type)) = (format, object_type)
            && !format.fits(object_type)
        {
            let message = format!("a {} cannot have the format {}", object_type.name(), format.name());
            faults.push(Fault::at("format", "FORMAT_DOES_NOT_FIT", message));
        }
        let mut too_long = |field: String, text: &str, most: usize| {
            if text.chars().count() > most {
                faults.push(Fault::at(field, "TOO_LONG", format!("at most {most} characters")));
            }
        };
        too_long("displayName".to_owned(), self.display_name.as_deref().unwrap_or_default(), MAX_DISPLAY_CHARACTERS);
        too_long("description".to_owned(), self.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION_CHARACTERS);
        for (index, tag) in self.tags.iter().enumerate() {
            too_long(format!("tags[{index}]"), tag, MAX_DISPLAY_CHARACTERS);
        }
        if self.tags.len() > MAX_TAGS {
            faults.push(Fault::at("tags", "TOO_MANY", format!("at most {MAX_TAGS} tags")));
        }
        match (format, object_type) {
            (Some(format), Some(object_type)) if faults.is_empty() => Ok(Declaration {
                field_name,
                display_name: self.display_name,
                description: self.description,
                is_language_specific: self.is_language_specific.unwrap_or(false),
                format,
                object_type,
                tags: self.tags,
            }),
            _ => Err(faults),
        }
    }
}

fn is_field_name(text: &str) -> bool {
    text.len() <= MAX_FIELD_NAME_CHARACTERS
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

impl Declaration {
    /// Checks a value; the error says what was expected.
    ///
    /// # Errors
    /// When the value is not of the declared type or format.
    pub fn check_value(&self, value: &Value) -> Result<(), String> {
        let expected = match (self.object_type, value) {
            (ObjectType::Boolean, Value::Bool(_)) => return Ok(()),
            (ObjectType::Boolean, _) => "true or false",
            (ObjectType::Number, Value::Number(number)) => match self.format {
                Format::Integer if !(number.is_i64() || number.is_u64()) => "a whole number",
                _ => return Ok(()),
            },
            (ObjectType::Number, _) => "a number",
            (ObjectType::Date, Value::String(text)) if is_iso_date(text) => return Ok(()),
            (ObjectType::Date, _) => "a date such as 2026-01-31",
            (ObjectType::Text, Value::String(text)) => match self.format {
                Format::Url if !is_url(text) => "an absolute URL",
                Format::Email if !is_email(text) => "an e-mail address",
                Format::IsoDate if !is_iso_date(text) => "a date such as 2026-01-31",
                Format::Integer if !is_decimal(text, false) => "a whole number",
                Format::Decimal if !is_decimal(text, true) => "a decimal number",
                _ => return Ok(()),
            },
            (ObjectType::Text, _) => "a text",
        };
        Err(format!("the attribute {} takes {expected}", self.field_name))
    }
}

fn is_iso_date(text: &str) -> bool {
    dates::day(text).is_some()
}

/// An address alone, without a name before it, and of a host by its name.
fn is_email(text: &str) -> bool {
    let alone = Options::default().without_display_text().without_domain_literal();
    EmailAddress::parse_with_options(text, alone).is_ok()
}

fn is_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| url.has_host() && !text.contains(char::is_whitespace))
}

fn is_decimal(text: &str, fraction: bool) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match digits.split_once('.') {
        Some((whole, part)) => fraction && all_digits(whole) && all_digits(part),
        None => all_digits(digits),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(name: &str, object_type: &str, format: &str) -> DeclarationInput {
        DeclarationInput {
            field_name: Some(name.to_owned()),
            object_type: Some(object_type.to_owned()),
            format: Some(format.to_owned()),
            ..DeclarationInput::default()
        }
    }

    #[test]
    fn a_declaration_names_every_fault() {
        for name in ["a", "Z9_", &"x".repeat(64)] {
            assert!(input(name, "Text", "URL").check().is_ok(), "{name}");
        }
        for name in ["", "9a", "_a", "a-b", "ä", &"x".repeat(65)] {
            assert!(input(name, "Text", "URL").check().is_err(), "{name}");
        }
        assert_eq!(input("9", "text", "url").check().map_err(|faults| faults.len()), Err(3));
        assert!(input("a", "Boolean", "URL").check().is_err());
        assert!(input("a", "Number", "EMAIL").check().is_err());
    }

    #[test]
    fn values_are_held_to_type_and_format() {
        for (object_type, format, good, bad) in [
            ("Text", "None", vec![json!(""), json!("x")], vec![json!(1), json!(null), json!(["x"]), json!({})]),
            (
                "Text",
                "URL",
                vec![json!("https://example.org/a?b")],
                vec![json!("example.org"), json!("mailto:a@b.c"), json!("")],
            ),
            (
                "Text",
                "EMAIL",
                vec![json!("a@example.org")],
                vec![json!("a@"), json!("a"), json!("Jo <jo@example.org>"), json!("a@[1.2.3.4]")],
            ),
            (
                "Text",
                "ISO_DATE",
                vec![json!("2024-02-29")],
                vec![json!("2023-02-29"), json!("2024-2-9"), json!("29.02.2024")],
            ),
            ("Text", "INTEGER", vec![json!("-12")], vec![json!("1.0"), json!(""), json!("١")]),
            ("Text", "DECIMAL", vec![json!("1.50"), json!("3")], vec![json!("1,5"), json!(".5"), json!("1e3")]),
            ("Number", "None", vec![json!(1), json!(1.5)], vec![json!("1"), json!(true)]),
            ("Number", "INTEGER", vec![json!(1), json!(-1)], vec![json!(1.5)]),
            ("Boolean", "None", vec![json!(true)], vec![json!("true"), json!(0)]),
            ("Date", "None", vec![json!("2026-11-21")], vec![json!("yesterday"), json!(2026)]),
        ] {
            let declaration = input("a", object_type, format).check().expect("a declaration");
            for value in good {
                assert_eq!(declaration.check_value(&value), Ok(()), "{object_type} {format} {value}");
            }
            for value in bad {
                assert!(declaration.check_value(&value).is_err(), "{object_type} {format} {value}");
            }
        }
    }
}
