//! Query parameters, read strictly: valid UTF-8, no NUL, no parameter twice where one is meant, and none that the
//! operation does not know.
//!
//! What an operation knows stands in one place: in the `params(…)` of its `utoipa::path`. `http::openapi::only_known`
//! lies around every operation and refuses what is not described there, so that a handler takes [`Params`] (or none) and
//! has nothing to declare a second time.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use crate::domain::Fault;
use crate::domain::applications::Application;
use crate::http::error::ApiError;
use crate::store::products::Asked;

/// Items of a page when `size` is absent.
pub(super) const DEFAULT_PAGE_SIZE: usize = 50;
/// Most items of a page.
pub(super) const MAX_PAGE_SIZE: usize = 1_000;
/// Most values of one list parameter.
pub(super) const MAX_LIST_VALUES: usize = 10_000;

/// The parameters of a filter that may have several values.
const LISTS: [&str; 5] = ["assignmentStatus", "productIds", "labels", "strategy", "autoAssignment"];
/// Those of them that are numbers, and those that are true or false, where they are fields of a body.
const NUMBERS: [&str; 3] = ["shopId", "confidenceFrom", "confidenceTo"];
const SWITCHES: [&str; 1] = ["reviewNeeded"];

/// The query of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Params {
    pairs: Vec<(String, String)>,
    /// Whether the values were told apart where they come from, so that no list is split at commas.
    whole: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Params::parse(parts.uri.query().unwrap_or_default())
    }
}

/// What is said of a parameter that an operation does not know.
pub(super) fn unknown_parameter(name: &str, known: &[String]) -> ApiError {
    let takes = match known {
        [] => "it takes none".to_owned(),
        known => format!("it takes {}", known.join(", ")),
    };
    let message = format!("is no parameter of this operation; {takes}");
    let fault = Fault::at(name, "UNKNOWN_PARAMETER", &message);
    ApiError::BadRequest(format!("{name} {message}"), vec![fault])
}

/// Refuses a part of a path with the one character that the database cannot hold.
pub(super) fn require_no_nul(field: &str, text: &str) -> Result<(), ApiError> {
    if text.contains('\0') { Err(ApiError::malformed_at(field, "holds the character U+0000")) } else { Ok(()) }
}

impl Params {
    /// Refuses the first parameter whose name is not among these.
    pub(super) fn only(&self, known: &[String]) -> Result<(), ApiError> {
        let unknown = self.pairs.iter().find(|(name, _)| !known.contains(name));
        unknown.map_or(Ok(()), |(name, _)| Err(unknown_parameter(name, known)))
    }

    /// Decodes a query string.
    pub(super) fn parse(query: &str) -> Result<Params, ApiError> {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            match percent_decode(spaced.as_bytes()).decode_utf8() {
                Ok(decoded) if decoded.contains('\0') => {
                    Err(ApiError::malformed("the query holds the character U+0000"))
                }
                Ok(decoded) => Ok(decoded.into_owned()),
                Err(_) => Err(ApiError::malformed("the query is not percent-encoded UTF-8")),
            }
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Params { pairs: pairs.collect::<Result<Vec<_>, ApiError>>()?, whole: false })
    }

    /// Reads fields of a body that mean what parameters of the same names mean, numbers and switches as such: a string is
    /// one value, or a comma-separated list; the items of an array of strings are taken whole; `filterCriteria` is JSON as it
    /// is. Of no products at all none is meant; another list without a value is refused, since nobody means everything by it.
    pub(super) fn of_fields(fields: &Map<String, Value>) -> Result<Params, ApiError> {
        let mut params = Params { pairs: Vec::new(), whole: true };
        for (name, value) in fields {
            let is_one_of = |names: &[&str]| names.contains(&name.as_str());
            let mut items: Vec<String> = match value {
                _ if name == "filterCriteria" => vec![value.to_string()],
                Value::Array(items) if is_one_of(&LISTS) && items.iter().all(Value::is_string) => {
                    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                Value::String(text) if is_one_of(&LISTS) => {
                    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
                }
                Value::Number(_) if is_one_of(&NUMBERS) => vec![value.to_string()],
                Value::Bool(_) if is_one_of(&SWITCHES) => vec![value.to_string()],
                Value::String(text) if !is_one_of(&NUMBERS) && !is_one_of(&SWITCHES) => vec![text.clone()],
                _ => return Err(ApiError::malformed_at(name, "is not of the type that this field has")),
            };
            if items.is_empty() && name == "productIds" {
                // No product has an id without a character.
                items.push(String::new());
            }
            if items.is_empty() {
                return Err(ApiError::malformed_at(name, "has no value"));
            }
            params.pairs.extend(items.into_iter().map(|item| (name.clone(), item)));
        }
        Ok(params)
    }

    /// Every value of a parameter.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a parameter.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(ApiError::malformed_at(name, "is given more than once")),
        }
    }

    /// The only value of a parameter that must be there.
    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.one(name)?.ok_or_else(|| ApiError::malformed_at(name, "is required"))
    }

    /// A list: one occurrence is comma-separated; when repeated, each value is one item.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let values: Vec<String> = match self.all(name).as_slice() {
            [] => return Ok(None),
            [value] if !self.whole => value.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect(),
            many => many.iter().map(|value| (*value).to_owned()).collect(),
        };
        if values.len() > MAX_LIST_VALUES {
            return Err(ApiError::malformed_at(name, format!("has at most {MAX_LIST_VALUES} values")));
        }
        Ok(Some(values))
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.one(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(ApiError::malformed_at(name, "is true or false")),
        }
    }

    /// A whole number within bounds.
    pub(super) fn integer(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let digits = text.strip_prefix('-').unwrap_or(text);
        match number {
            Some(number) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Some(number)),
            _ => Err(ApiError::malformed_at(name, format!("is a whole number from {least} to {most}"))),
        }
    }

    /// `size`.
    pub(super) fn size(&self) -> Result<usize, ApiError> {
        let size = self.integer("size", 1, MAX_PAGE_SIZE as i64)?;
        Ok(size.and_then(|size| usize::try_from(size).ok()).unwrap_or(DEFAULT_PAGE_SIZE))
    }

    /// `shopIds`: numbers of at least 1.
    pub(super) fn shop_ids(&self) -> Result<Option<Vec<i64>>, ApiError> {
        let Some(texts) = self.list("shopIds")? else { return Ok(None) };
        let number = |text: &String| text.parse().ok().filter(|shop| *shop >= 1 && !text.starts_with('+'));
        let shops = texts.iter().map(number).collect::<Option<Vec<i64>>>();
        shops.map(Some).ok_or_else(|| ApiError::malformed_at("shopIds", "has whole numbers of at least 1"))
    }

    /// `currentVersion`, which is required.
    pub(super) fn current_version(&self) -> Result<i64, ApiError> {
        let version = self.integer("currentVersion", 0, i64::MAX)?;
        version.ok_or_else(|| ApiError::malformed_at("currentVersion", "is required"))
    }

    /// `productId`, which is required; whether it is a possible id is another question.
    pub(super) fn product_id(&self) -> Result<&str, ApiError> {
        self.required("productId")
    }

    /// `applications`. That one of them does not exist is told later: a 422 comes after other checks.
    pub(super) fn applications(&self) -> Result<Asked, ApiError> {
        let mut asked = Asked::default();
        for name in self.list("applications")?.unwrap_or_default() {
            match Application::from_name(&name) {
                Some(application) if asked.applications.contains(&application) => {}
                Some(application) => asked.applications.push(application),
                None => {
                    let names = Application::ALL.map(Application::name).join(", ");
                    let message = format!("there is no application \"{name}\"; there are {names}");
                    asked.faults.push(Fault::at("applications", "UNKNOWN_APPLICATION", message));
                }
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::parse(query).expect("a query")
    }

    #[test]
    fn lists_are_comma_separated_once_and_whole_when_repeated() {
        let ids = |query: &str| params(query).list("productIds").ok().flatten();
        assert_eq!(ids(""), None);
        assert_eq!(ids("productIds=a,b"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(ids("productIds=a%2Cb"), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(ids("productIds=a,b&productIds=c"), Some(vec!["a,b".to_owned(), "c".to_owned()]));
        assert_eq!(ids("productIds="), Some(vec![]));
    }

    #[test]
    fn numbers_and_switches_are_read_strictly() {
        for bad in [
            "size=0",
            "size=1001",
            "size=",
            "size=1.5",
            "size=x",
            "size=1&size=2",
            "size=+1",
            "size=99999999999999999999",
        ] {
            assert!(params(bad).size().is_err(), "{bad}");
        }
        assert_eq!(params("size=1000").size().ok(), Some(1_000));
        assert_eq!(params("a=b").size().ok(), Some(DEFAULT_PAGE_SIZE));
        for bad in ["x=TRUE", "x=1", "x=", "x"] {
            assert!(params(bad).boolean("x").is_err(), "{bad}");
        }
        assert!(params("").current_version().is_err() && params("currentVersion=-1").current_version().is_err());
    }

    #[test]
    fn what_is_not_utf8_is_refused() {
        assert!(Params::parse("a=%ff").is_err());
        assert!(Params::parse("a=%00").is_err());
        assert_eq!(params("a=%C3%A4+b").all("a"), ["ä b"]);
    }
}
