//! Reading request bodies strictly: UTF-8, one JSON value, no key twice, no NUL, no nulls where none are meant.

use std::collections::HashSet;
use std::fmt;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::domain::Fault;
use crate::domain::validation::first_null;
use crate::http::error::ApiError;

/// Most bytes of a JSON body: 32 MiB.
pub(super) const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A JSON body, with `application/json` as its type.
pub(super) struct JsonBody(pub Value);

/// A JSON merge patch, with `application/json` or `application/merge-patch+json` as its type.
pub(super) struct PatchBody(pub Value);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        read(request, state, &["application/json"]).await.map(JsonBody)
    }
}

impl<S: Send + Sync> FromRequest<S> for PatchBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        read(request, state, &["application/json", "application/merge-patch+json"]).await.map(PatchBody)
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S, types: &[&str]) -> Result<Value, ApiError> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !types.contains(&essence.as_str()) {
        return Err(ApiError::UnsupportedMediaType(format!("send the body as {}", types.join(" or "))));
    }
    let too_large = || ApiError::PayloadTooLarge(format!("a body has at most {MAX_BODY_BYTES} bytes"));
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > MAX_BODY_BYTES as u64) {
        return Err(too_large());
    }
    let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status().as_u16() {
        413 => too_large(),
        _ => ApiError::malformed(rejection.body_text()),
    })?;
    parse(&bytes)
}

/// Parses a JSON text.
///
/// # Errors
/// [`ApiError::BadRequest`] with the line and column.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ApiError::malformed(format!("the body is not UTF-8 at byte {}", error.valid_up_to())))?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
    value.map_err(|error| ApiError::malformed(format!("the body is not acceptable JSON: {error}")))
}

/// Turns a JSON value into a type, naming the place where it does not fit. `place` precedes the path.
///
/// # Errors
/// The fault.
pub(super) fn shape<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, Fault> {
    if let Some(path) = first_null(&value) {
        return Err(Fault::at(join(place, &path), "MALFORMED", "null is not allowed here; leave the field out"));
    }
    shape_with_nulls(value, place)
}

/// As [`shape`], where null has a meaning.
pub(super) fn shape_with_nulls<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path.replace(".?", "") };
        Fault::at(join(place, &path), "MALFORMED", error.inner().to_string())
    })
}

fn join(place: &str, path: &str) -> String {
    match (place, path) {
        ("", path) => path.to_owned(),
        (place, "") => place.to_owned(),
        (place, path) if path.starts_with('[') => format!("{place}{path}"),
        (place, path) => format!("{place}.{path}"),
    }
}

/// A body of which nothing but one value of this type is expected.
///
/// # Errors
/// [`ApiError::BadRequest`] with the place.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    shape(value, "").map_err(|fault| bad(vec![fault]))
}

/// A 400 that names these faults.
pub(super) fn bad(faults: Vec<Fault>) -> ApiError {
    let message = match faults.as_slice() {
        [only] => match only.field.as_deref() {
            None | Some("") => only.message.clone(),
            Some(field) => format!("{field}: {}", only.message),
        },
        many => format!("{} items are malformed", many.len()),
    };
    ApiError::BadRequest(message, faults)
}

/// Builds a [`Value`], refusing what serde_json lets pass: a key twice in one object, and U+0000, which PostgreSQL
/// cannot hold. Depth is bounded by serde_json.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn without_nul<E: serde::de::Error>(text: String) -> Result<String, E> {
    if text.contains('\0') { Err(E::custom("the character U+0000 is not allowed")) } else { Ok(text) }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("the number is too large"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        without_nul(value.to_owned()).map(Value::String)
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        without_nul(value).map(Value::String)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let key = without_nul(key)?;
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key \"{key}\" stands twice in one object")));
            }
            map.insert(key, entries.next_value_seed(Strict)?);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_json_is_refused_and_plain_json_is_not() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_objects = "{\"a\":".repeat(100_000);
        for bad in [
            "",
            "{",
            "{} {}",
            "nul",
            "{\"a\":1,\"a\":2}",
            "{\"a\":{\"b\":1,\"b\":1}}",
            "{\"a\\u0000\":1}",
            "[\"\\u0000\"]",
            "[\"\u{0}\"]",
            "\"\\ud800\"",
            "\"\\udc00\\ud800\"",
            "[1e400]",
            "[01]",
            "[NaN]",
            "{a:1}",
            "\u{feff}{}",
            &deep,
            &deep_objects,
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{}", &bad[..bad.len().min(40)]);
        }
        assert!(parse(b"[\"\xff\"]").is_err());
        for good in
            ["{}", " [1, -9223372036854775808, 18446744073709551615, 1.5e300] ", "\"\\\\u0000\"", "\"\\ud83d\\ude00\""]
        {
            assert!(parse(good.as_bytes()).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_misfit_is_named_by_its_path() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Inner {
            #[allow(dead_code)]
            b: Vec<i64>,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[allow(dead_code)]
            a: Inner,
        }
        let place = |text: &str| {
            shape::<Outer>(parse(text.as_bytes()).expect("JSON"), "products.x").err().and_then(|fault| fault.field)
        };
        assert_eq!(place(r#"{"a":{"b":[1]}}"#), None);
        assert_eq!(place(r#"{"a":{"b":[1,"2"]}}"#).as_deref(), Some("products.x.a.b[1]"));
        assert_eq!(place(r#"{"a":{"b":[],"c":1}}"#).as_deref(), Some("products.x.a.c"));
        assert_eq!(place(r#"{"a":{"b":[null]}}"#).as_deref(), Some("products.x.a.b[0]"));
        assert_eq!(place(r#"{}"#).as_deref(), Some("products.x"));
    }
}
