//! The errors that an operation can have, said beside its handler: `Errors<{ PRODUCT | STALE | BODY }>` among its
//! `responses(…)`. What every operation can have is in each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::response::Response;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

use crate::domain::Fault;
use crate::http::error::ApiError;
use crate::http::params::unknown_parameter;

/// Errors of these kinds, besides those of every operation that takes a token.
pub(in crate::http) struct Errors<const KINDS: u32>;

/// No others than those of every operation that takes a token.
pub(in crate::http) const PLAIN: u32 = 0;
/// It names a product.
pub(in crate::http) const PRODUCT: u32 = 1;
/// It names a picture.
pub(in crate::http) const PICTURE: u32 = 1 << 1;
/// It names an assignment.
pub(in crate::http) const ASSIGNMENT: u32 = 1 << 2;
/// It names a taxonomy in its path.
pub(in crate::http) const TAXONOMY: u32 = 1 << 3;
/// It names a class in its path.
pub(in crate::http) const CLASS: u32 = 1 << 4;
/// It names a label.
pub(in crate::http) const LABEL: u32 = 1 << 5;
/// It names an attribute.
pub(in crate::http) const ATTRIBUTE: u32 = 1 << 6;
/// It names an action.
pub(in crate::http) const ACTION: u32 = 1 << 7;
/// It names a webhook.
pub(in crate::http) const WEBHOOK: u32 = 1 << 8;
/// It sends a version that may be of the past.
pub(in crate::http) const STALE: u32 = 1 << 9;
/// It makes what may be there already.
pub(in crate::http) const TAKEN: u32 = 1 << 10;
/// It removes what may be in use.
pub(in crate::http) const IN_USE: u32 = 1 << 11;
/// It says how many it expects.
pub(in crate::http) const COUNTED: u32 = 1 << 12;
/// It has a body.
pub(in crate::http) const BODY: u32 = 1 << 13;
/// It has products, whose values may be wrong though they are well-formed.
pub(in crate::http) const WRONG: u32 = 1 << 14;
/// It may be asked for what is not allowed in the state of an assignment.
pub(in crate::http) const STATE: u32 = 1 << 15;
/// It counts against the plan.
pub(in crate::http) const QUOTA: u32 = 1 << 16;
/// It searches.
pub(in crate::http) const SEARCH: u32 = 1 << 17;
/// It creates products that may be there already.
pub(in crate::http) const EXISTING: u32 = 1 << 18;

/// It needs a token of level EDIT.
pub(in crate::http) const EDIT: u32 = 1 << 19;
/// It needs a token of level ADMIN.
pub(in crate::http) const ADMIN: u32 = 1 << 20;
/// It names a class in its body or query.
pub(in crate::http) const WRONG_CLASS: u32 = 1 << 21;
/// It has labels.
pub(in crate::http) const WRONG_LABEL: u32 = 1 << 22;
/// It declares an attribute.
pub(in crate::http) const WRONG_ATTRIBUTE: u32 = 1 << 23;
/// It has a picture.
pub(in crate::http) const WRONG_PICTURE: u32 = 1 << 24;
/// It has a file.
pub(in crate::http) const WRONG_FILE: u32 = 1 << 25;
/// It has an address of a webhook.
pub(in crate::http) const WRONG_ADDRESS: u32 = 1 << 26;
/// It selects by labels.
pub(in crate::http) const WRONG_FILTER: u32 = 1 << 27;
/// It is about an action that may still run.
pub(in crate::http) const RUNNING: u32 = 1 << 28;

/// An example of an error: its name, and what goes with it.
type Told = (&'static str, ApiError);

impl<const KINDS: u32> IntoResponses for Errors<KINDS> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let always = [
            ("a parameter that there is not", unknown_parameter("nonsense", &[])),
            (
                "no credential",
                ApiError::Unauthorized("send a valid access token: Authorization: Bearer <ACCESS_TOKEN>"),
            ),
            ("a token that is withdrawn", withdrawn()),
            ("too many requests", ApiError::RateLimited(Duration::from_secs(12))),
            ("a mistake of the service", ApiError::Internal(String::new())),
            ("away or full", ApiError::Unavailable("there is more to do here at present than can be done")),
        ];
        let all = (0..u32::BITS).map(|bit| 1_u32 << bit).filter(|bit| KINDS & bit != 0).flat_map(of_kind);
        let mut told: BTreeMap<u16, Vec<Told>> = BTreeMap::new();
        for (name, error) in always.into_iter().chain(all) {
            told.entry(error.status().as_u16()).or_default().push((name, error));
        }
        told.into_iter().map(|(status, told)| (status.to_string(), RefOr::T(response(status, told)))).collect()
    }
}

/// The errors of one kind.
fn of_kind(kind: u32) -> Vec<Told> {
    match kind {
        PRODUCT => vec![missing("no such product", "productId", "UNKNOWN_PRODUCT", "there is no product \"tea-9\"")],
        PICTURE => vec![missing("no picture", "productId", "UNKNOWN_PICTURE", "the product \"tea-9\" has no picture")],
        ASSIGNMENT => {
            let message = "there is no assignment \"01920000-0000-7000-8000-000000000000\"";
            vec![missing("no such assignment", "assignmentUuid", "UNKNOWN_ASSIGNMENT", message)]
        }
        TAXONOMY => {
            let message = "there is no taxonomy \"HS\"; there are TARIC, TARES and UKGT";
            vec![missing("no such taxonomy", "taxonomy", "UNKNOWN_TAXONOMY", message)]
        }
        CLASS => {
            vec![missing(
                "no such class",
                "productClass",
                "UNKNOWN_PRODUCT_CLASS",
                "there is no product class \"990000\"",
            )]
        }
        LABEL => vec![missing("no such label", "label", "UNKNOWN_LABEL", "there is no label \"urgent\"")],
        ATTRIBUTE => {
            vec![missing("no such attribute", "fieldName", "UNKNOWN_ATTRIBUTE", "there is no attribute \"season\"")]
        }
        ACTION => {
            let message = "there is no action 01920000-0000-7000-8000-000000000000";
            vec![missing("no such action", "actionId", "UNKNOWN_ACTION", message)]
        }
        WEBHOOK => {
            let message = "there is no webhook \"01920000-0000-7000-8000-000000000000\"";
            vec![missing("no such webhook", "webhookId", "UNKNOWN_WEBHOOK", message)]
        }
        STALE => {
            let message = "the product has version 3, not 1";
            let fault = Fault { current_version: Some(3), ..Fault::at("currentVersion", "STALE_VERSION", message) };
            let fault = fault.on("tea-1");
            vec![("modified meanwhile", ApiError::Conflict(format!("currentVersion: {message}"), vec![fault], Some(3)))]
        }
        TAKEN => vec![("there already", conflict("ALREADY_THERE", "there is one of this name already"))],
        IN_USE => vec![("in use", conflict("ATTRIBUTE_IN_USE", "a product uses this attribute"))],
        COUNTED => {
            vec![("another count", conflict("COUNT_DIFFERS", "the filter selects 41 assignments, not 40"))]
        }
        BODY => vec![
            ("not sent in time", ApiError::RequestTimeout),
            ("too large", ApiError::PayloadTooLarge("this body is larger than it may be".to_owned())),
            ("another format", ApiError::UnsupportedMediaType("send the body as application/json".to_owned())),
        ],
        WRONG => {
            let message = "\"XX\" is no country of ISO 3166-1";
            let fault = Fault::at("productDetails.customs.countryOfOrigin", "UNKNOWN_COUNTRY", message).on("tea-1");
            vec![("a wrong value", ApiError::Unprocessable(message.to_owned(), vec![fault]))]
        }
        WRONG_CLASS => {
            vec![unusable("no such class", "productClass", "UNKNOWN_PRODUCT_CLASS", "610999 is no class of TARIC")]
        }
        WRONG_LABEL => {
            vec![unusable("a wrong colour", "color", "INVALID_COLOR", "a colour is written #RRGGBB, such as #00AAFF")]
        }
        WRONG_ATTRIBUTE => {
            vec![unusable(
                "a wrong name",
                "fieldName",
                "INVALID_FIELD_NAME",
                "begins with a letter, then letters, digits and _",
            )]
        }
        WRONG_PICTURE => vec![unusable("not readable", "file", "INVALID_PICTURE", "the picture cannot be read")],
        WRONG_FILE => vec![unusable(
            "not readable",
            "file",
            "UNREADABLE_FILE",
            "line 1: the file has no header that names its columns",
        )],
        WRONG_ADDRESS => vec![unusable("a private address", "url", "PRIVATE_ADDRESS", "leads to a private address")],
        WRONG_FILTER => vec![unusable("no such label", "labels", "UNDEFINED_LABEL", "there is no label \"urgent\"")],
        RUNNING => vec![unusable(
            "still running",
            "actionId",
            "ACTION_RUNNING",
            "the action still runs; take it back when it is done",
        )],
        STATE => {
            let message = "APPROVE is not allowed while the assignment is UNASSIGNED";
            let fault = Fault::at("assignmentAction", "ACTION_NOT_ALLOWED", message).on("tea-1");
            vec![("not in this state", ApiError::Unprocessable(message.to_owned(), vec![fault]))]
        }
        EXISTING => {
            let message = "a product with this id exists; send updateIfExists=true to replace it";
            let fault = Fault::at("productId", "PRODUCT_EXISTS", message).on("tea-1");
            vec![("there already", ApiError::Unprocessable(message.to_owned(), vec![fault]))]
        }
        QUOTA => {
            let message = "the limit of 100 checks a month would be passed: 98 are used, 5 were asked for";
            vec![("the plan's limit", ApiError::LimitExceeded(message.to_owned(), Duration::from_secs(751_357)))]
        }
        EDIT => vec![too_low("EDIT")],
        ADMIN => vec![too_low("ADMIN")],
        SEARCH => {
            vec![("a slow search", ApiError::SearchTooSlow), ("no search engine", ApiError::SearchUnavailable)]
        }
        _ => Vec::new(),
    }
}

fn missing(name: &'static str, field: &str, code: &str, message: &str) -> Told {
    (name, ApiError::NotFound(message.to_owned(), vec![Fault::at(field, code, message)]))
}

fn unusable(name: &'static str, field: &str, code: &str, message: &str) -> Told {
    (name, ApiError::Unprocessable(message.to_owned(), vec![Fault::at(field, code, message)]))
}

fn conflict(code: &str, message: &str) -> ApiError {
    ApiError::Conflict(message.to_owned(), vec![Fault::of(code, message)], None)
}

/// What a request with an `Idempotency-Key` can be told.
pub(in crate::http) fn of_keys() -> [Told; 2] {
    [("a key that another request had", ApiError::KeyReused), ("a key in use", ApiError::KeyInUse)]
}

/// What a request is told whose token has too low a level.
fn too_low(level: &str) -> Told {
    let message = format!("this needs an access token of level {level}; this one has the level READ");
    ("a level that is too low", ApiError::Forbidden(message))
}

fn withdrawn() -> ApiError {
    ApiError::Forbidden("this access token no longer has access to the account".to_owned())
}

/// The response with a status, and an example for each of its causes.
pub(in crate::http) fn response(status: u16, told: Vec<Told>) -> Response {
    let schema = Ref::from_schema_name("ErrorBody");
    let mut content = ContentBuilder::new().schema(Some(schema));
    for (name, error) in told {
        content = content.examples_from_iter([(name, RefOr::T(example(error)))]);
    }
    ResponseBuilder::new().description(description(status)).content("application/json", content.build()).build()
}

/// Adds examples to a response, which is made where there is none.
pub(in crate::http) fn add(responses: &mut BTreeMap<String, RefOr<Response>>, told: Told) {
    let (name, error) = told;
    let status = error.status().as_u16();
    let made = || RefOr::T(response(status, Vec::new()));
    if let RefOr::T(response) = responses.entry(status.to_string()).or_insert_with(made)
        && let Some(content) = response.content.get_mut("application/json")
    {
        content.examples.insert(name.to_owned(), RefOr::T(example(error)));
    }
}

fn example(error: ApiError) -> Example {
    let mut value = error.shown();
    // Of a moment and a request that are as good as any.
    value["timestamp"] = json!("2026-11-22T09:00:00.000Z");
    value["instance"] = json!("019ab1b0-7f4a-7c2e-9d3f-5b6a1c2d3e4f");
    ExampleBuilder::new().summary(value["message"].as_str().unwrap_or_default()).value(Some(value)).build()
}

fn description(status: u16) -> &'static str {
    match status {
        400 => "Malformed: not JSON, a wrong type, an unknown field or parameter.",
        401 => "Without an access token that is in force.",
        403 => "With an access token that may not do this.",
        404 => "About something that does not exist in the account.",
        408 => "The body was not sent in time.",
        409 => "The state that the request is about has passed.",
        413 => "Larger than it may be.",
        415 => "In a format that is not understood.",
        422 => "Well-formed and wrong.",
        429 => "Beyond the account's rate, or the plan's limit; `Retry-After` says when to ask again.",
        503 => "Not available now; `Retry-After` says when to ask again.",
        _ => "A mistake of the service; its log has more under the `instance`.",
    }
}

/// The errors of an operation that takes no token.
pub(in crate::http) fn without_token(may_be_away: bool) -> BTreeMap<String, RefOr<Response>> {
    let mut responses = BTreeMap::new();
    add(&mut responses, ("a mistake of the service", ApiError::Internal(String::new())));
    if may_be_away {
        add(&mut responses, ("not ready", ApiError::NotReady("the database does not answer".to_owned())));
    }
    responses
}

/// Puts the path of an operation into the examples of its errors.
pub(in crate::http) fn name_path(responses: &mut BTreeMap<String, RefOr<Response>>, path: &str) {
    for response in responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        for content in response.content.values_mut() {
            for example in content.examples.values_mut() {
                if let RefOr::T(Example { value: Some(value), .. }) = example
                    && value.get("instance").is_some_and(Value::is_string)
                {
                    value["path"] = json!(path);
                }
            }
        }
    }
}
