//! Reading request bodies strictly: UTF-8, one JSON value, no key twice, no NUL, no nulls where none are meant.
//!
//! A body is read twice: once to look at all of it without building anything ([`scan`]), and once straight into the type
//! that is meant. In between stands the question whether there is memory for what it will become. A general tree of
//! values, which can take a hundred times what was sent, is made of merge patches only, which are small.

mod integers;
mod misfits;
mod scan;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use futures::StreamExt;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::computing;
use crate::domain::Fault;
use crate::domain::validation::first_null;
use crate::http::admission::Tab;
use crate::http::error::ApiError;
use crate::http::serve;
use integers::Integers;
use scan::{Extent, Refusal, scan};

/// Most MiB of a body where an operation says nothing else.
pub(super) const BODY_MIB: usize = 2;
/// Most MiB of the body of a single product: up to 1 MiB as stored, several times that when every character is escaped.
pub(super) const PRODUCT_MIB: usize = 8;
/// Most MiB of a body of many products.
pub(super) const PRODUCTS_MIB: usize = 32;
/// Most values of a body of [`PRODUCTS_MIB`], counted as [`scan`] does; smaller ones may have as much less.
const MAX_VALUES: usize = 2_000_000;
/// Memory that one value takes beside its text, about.
pub(super) const VALUE_BYTES: usize = 96;
/// Memory is asked for in steps of this many bytes while a body arrives.
const STEP_BYTES: usize = 256 << 10;

/// A JSON text that is known to be acceptable, and not yet a value.
#[derive(Debug)]
pub(super) struct Document {
    text: String,
    first_null: Option<String>,
}

/// A JSON body of at most so many MiB, with `application/json` as its type.
pub(super) struct JsonBody<const MIB: usize = BODY_MIB>(pub Document);

/// A JSON merge patch of at most so many MiB, with `application/json` or `application/merge-patch+json` as its type.
pub(super) struct PatchBody<const MIB: usize = PRODUCT_MIB>(pub Document);

impl<S: Send + Sync, const MIB: usize> FromRequest<S> for JsonBody<MIB> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        read(request, &["application/json"], MIB).await.map(JsonBody)
    }
}

impl<S: Send + Sync, const MIB: usize> FromRequest<S> for PatchBody<MIB> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        read(request, &["application/json", "application/merge-patch+json"], MIB).await.map(PatchBody)
    }
}

async fn read(request: Request, types: &[&str], mib: usize) -> Result<Document, ApiError> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !types.contains(&essence.as_str()) {
        return Err(ApiError::UnsupportedMediaType(format!("send the body as {}", types.join(" or "))));
    }
    // Nothing here unpacks, so that a small body stays a small one.
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(ApiError::UnsupportedMediaType("send the body as it is, without Content-Encoding".to_owned()));
    }
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > mib << 20) {
        return Err(too_large(mib));
    }
    let tab = request.extensions().get::<Tab>().cloned();
    let bytes = collect(request.into_body(), mib, tab.as_ref()).await?;
    if let Some(tab) = &tab {
        if length.is_none() {
            tab.count_more(bytes.len());
        }
        tab.enter().await?;
    }
    let (most, size) = (MAX_VALUES / PRODUCTS_MIB * mib, bytes.len());
    // What the body was promised is held until it is parsed, whether or not anybody waits for that.
    let held = tab.clone();
    let parse = move || {
        let _held = held;
        parse(bytes, most)
    };
    let (document, values) = aside(size, parse).await??;
    if let Some(tab) = &tab {
        tab.charge(values * VALUE_BYTES).await?;
    }
    Ok(document)
}

fn too_large(mib: usize) -> ApiError {
    ApiError::PayloadTooLarge(format!("this body has at most {} bytes", mib << 20))
}

/// The bytes of a body, as many as it may have and as there is memory for.
async fn collect(body: Body, mib: usize, tab: Option<&Tab>) -> Result<Vec<u8>, ApiError> {
    let mut chunks = body.into_data_stream();
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(broken_off)?;
        let length = bytes.len() + chunk.len();
        if length > mib << 20 {
            return Err(too_large(mib));
        }
        if length > bytes.capacity() {
            let more = (length - bytes.capacity()).max(bytes.capacity().min(STEP_BYTES));
            if let Some(tab) = tab {
                tab.charge(more).await?;
            }
            bytes.reserve_exact(bytes.capacity() - bytes.len() + more);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Why the rest of a body cannot be read.
pub(super) fn broken_off(error: axum::Error) -> ApiError {
    match serve::is_too_slow(&error) {
        true => ApiError::RequestTimeout,
        false => ApiError::malformed(format!("the body did not arrive whole: {error}")),
    }
}

/// Computes over this many bytes without keeping connections from being served.
pub(super) async fn aside<T: Send + 'static>(
    bytes: usize,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    computing::beside(bytes, compute).await.map_err(|error| ApiError::Internal(format!("computing: {error}")))
}

/// Looks at a JSON text; with how many values it has.
///
/// # Errors
/// [`ApiError::BadRequest`] with the line and column; [`ApiError::PayloadTooLarge`] with the place.
fn parse(bytes: Vec<u8>, most_values: usize) -> Result<(Document, usize), ApiError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        ApiError::malformed(format!("the body is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })?;
    match scan(&text, most_values) {
        Ok(Extent { values, first_null }) => Ok((Document { text, first_null }, values)),
        Err(Refusal::Malformed(error)) => Err(ApiError::malformed(format!("the body is not acceptable JSON: {error}"))),
        Err(Refusal::TooMany(place)) => {
            Err(ApiError::PayloadTooLarge(format!("the body has too many values; they end at \"{place}\"")))
        }
    }
}

impl Document {
    /// The entries of the object that the text is, in their order, each still a text; none when it is no object.
    pub(super) fn entries(&self) -> Option<Vec<(String, Part<'_>)>> {
        let mut parser = serde_json::Deserializer::from_str(&self.text);
        let has_null = self.first_null.is_some();
        let entries = parser.deserialize_map(Entries).ok()?;
        Some(entries.into_iter().map(|(key, text)| (key, Part { text: text.get(), has_null })).collect())
    }

    /// The whole as a part.
    pub(super) fn whole(&self) -> Part<'_> {
        Part { text: &self.text, has_null: self.first_null.is_some() }
    }

    /// Bytes of the text.
    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    /// A general value, for merge patches.
    pub(super) fn value(&self) -> Value {
        // The text was found acceptable when it was read.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The same for one that may be large.
    pub(super) async fn into_value(self) -> Result<Value, ApiError> {
        aside(self.length(), move || self.value()).await
    }
}

/// The text of a value inside a document.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    text: &'a str,
    /// Whether there may be a null in it.
    has_null: bool,
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            list.push(entry);
        }
        Ok(list)
    }
}

/// Reads a part of a document as a type, naming the place where it does not fit. `place` precedes the path.
///
/// # Errors
/// The fault.
pub(super) fn part_as<T: DeserializeOwned>(part: Part<'_>, place: &str) -> Result<T, Fault> {
    if part.has_null
        && let Ok(Extent { first_null: Some(path), .. }) = scan(part.text, usize::MAX)
    {
        return Err(no_null(place, &path));
    }
    let mut parser = serde_json::Deserializer::from_str(part.text);
    fit(&mut parser, place)
}

/// Turns a JSON value into a type, naming the place where it does not fit. `place` precedes the path.
///
/// # Errors
/// The fault.
pub(super) fn value_as<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, Fault> {
    match first_null(&value) {
        Some(path) => Err(no_null(place, &path)),
        None => value_with_nulls_as(value, place),
    }
}

/// As [`value_as`], where null has a meaning.
pub(super) fn value_with_nulls_as<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, Fault> {
    fit(value, place)
}

/// Everything about a part of a document that does not fit a type, of which something is known not to.
pub(super) fn misfits_of<T: DeserializeOwned>(part: Part<'_>) -> Vec<Fault> {
    let value = serde_json::from_str(part.text).unwrap_or_default();
    misfits::misfits::<T>(value, "", false)
}

/// Everything about a value that does not fit a type; none when it fits. Null has a meaning in it.
pub(super) fn misfits_with_nulls<T: DeserializeOwned>(value: Value) -> Vec<Fault> {
    misfits::misfits::<T>(value, "", true)
}

/// What is said of a null where none is meant.
const NO_NULL: &str = "null is not allowed here; leave the field out";

fn no_null(place: &str, path: &str) -> Fault {
    Fault::at(join(place, path), "MALFORMED", NO_NULL)
}

/// An error of serde in words. The path says better where it is, and lines are counted from the beginning of a part; the
/// names of our types say nothing to a client.
fn words(error: &impl std::fmt::Display) -> String {
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    match told.split_once(", expected struct ") {
        Some((found, _)) => format!("{found}, expected an object"),
        None => told.to_owned(),
    }
}

fn fit<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D, place: &str) -> Result<T, Fault> {
    serde_path_to_error::deserialize(Integers(deserializer)).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path.replace(".?", "") };
        misfit(join(place, &path), words(error.inner()))
    })
}

/// A misfit at a place. Of a field that is missing the place is that field.
fn misfit(place: String, words: String) -> Fault {
    match words.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(name) => Fault::at(join(&place, name), "MISSING", "is required"),
        None => Fault::at(place, "MALFORMED", words),
    }
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
pub(super) async fn body_as<T: DeserializeOwned + Send + 'static>(document: Document) -> Result<T, ApiError> {
    let shaped = aside(document.length(), move || part_as(document.whole(), "")).await?;
    shaped.map_err(|fault| malformed(vec![fault]))
}

/// A 400 that names these faults.
pub(super) fn malformed(faults: Vec<Fault>) -> ApiError {
    let message = match faults.as_slice() {
        [only] => match only.field.as_deref() {
            None | Some("") => only.message.clone(),
            Some(field) => format!("{field}: {}", only.message),
        },
        many => format!("{} items are malformed", many.len()),
    };
    ApiError::BadRequest(message, faults)
}

/// The same 400 for fields that lie in an object of the body: the places that it names begin with the object's.
pub(super) fn within(object: &str, error: ApiError) -> ApiError {
    let ApiError::BadRequest(_, mut faults) = error else { return error };
    for fault in &mut faults {
        fault.field = fault.field.take().map(|field| format!("{object}.{field}"));
    }
    malformed(faults)
}

#[cfg(test)]
mod tests;
