//! The OpenAPI document, made from the handlers, and the page that shows it.

mod examples;
mod inputs;
mod query_page;
pub(super) mod schemas;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, Required};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::http::allowed::MAX_KEY_CHARACTERS;
use crate::http::described::errors;
use crate::http::error::ErrorBody;
use crate::http::links::BASE_PATH;
use crate::http::params::{Params, unknown_parameter};
use crate::http::state::AppState;
use crate::http::{
    actions, alike, assignment_counts, assignments, attributes, bulk_actions, changes, classifications, health, labels,
    pictures, product_classes, products, taxonomies, tokens, transfers, webhooks,
};

const GLOBAL: &str = "/products/global";
const LOCAL: &str = "/shops/{shopId}/products/local";
const TOKEN: &str = "accessToken";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Product VAT classification",
        description = "Finds the customs product class, and so the VAT rate, of each product."
    ),
    components(schemas(ErrorBody)),
    paths(
        products::create,
        products::listing::list,
        products::bulk::search,
        products::bulk::update,
        products::bulk::delete,
        products::read,
        products::replace,
        products::patch,
        products::delete,
        pictures::upload,
        pictures::replace,
        pictures::read,
        pictures::delete,
        attributes::declare,
        attributes::list,
        attributes::change,
        attributes::remove,
        assignments::list,
        assignments::read,
        alike::list,
        assignment_counts::count,
        actions::act,
        actions::requeue,
        bulk_actions::act,
        bulk_actions::read,
        bulk_actions::undo,
        labels::define,
        labels::list,
        labels::change,
        labels::remove,
        labels::attach,
        labels::detach,
        classifications::classify,
        taxonomies::vat_rates,
        product_classes::list,
        transfers::imports::import,
        transfers::exports::export,
        changes::list,
        changes::usage,
        tokens::list,
        webhooks::create,
        webhooks::list,
        webhooks::read,
        webhooks::update,
        webhooks::delete,
        webhooks::deliveries,
    )
)]
struct Api;

#[derive(OpenApi)]
#[openapi(paths(health::live, health::ready, health::version, health::metrics))]
struct Operations;

/// What somebody reads first.
const INTRODUCTION: &str = include_str!("openapi/introduction.md");
/// The groups of operations, in the order in which they are used.
const TAGS: &str = include_str!("openapi/tags.json");

/// Where the document is.
const DOCUMENT: &str = "/openapi.json";

/// The pages and the document.
pub(super) fn pages() -> Router<AppState> {
    let config = Config::new([DOCUMENT]).persist_authorization(true).try_it_out_enabled(true);
    let swagger = Router::from(SwaggerUi::new("/docs").config(config));
    swagger.route(DOCUMENT, get(written)).route("/docs/filter-criteria", get(query_page::page))
}

/// Refuses a request with a query parameter that the description of its operation does not name, and tells those that
/// it names. A path or method that is described nowhere is left to the router.
pub(super) async fn only_known(request: Request, next: Next) -> Response {
    if let (Some(query), Some(route)) = (request.uri().query(), request.extensions().get::<MatchedPath>())
        && let Some(known) = query_parameters(request.method(), route.as_str())
        && let Err(error) = Params::parse(query).and_then(|params| params.only(known))
    {
        return error.into_response();
    }
    next.run(request).await
}

/// The document as clients read it: with examples, headers and webhooks.
async fn written() -> impl IntoResponse {
    // Only what is sent is kept: as a tree the document takes ten times the memory.
    static WRITTEN: OnceLock<Bytes> = OnceLock::new();
    let written = WRITTEN.get_or_init(|| {
        let mut written = serde_json::to_value(document()).unwrap_or_default();
        written["info"]["description"] = INTRODUCTION.into();
        // The texts are part of the program.
        written["tags"] = serde_json::from_str(TAGS).unwrap_or_default();
        written["servers"] = serde_json::json!([{"url": "/", "description": "This service."}]);
        examples::place(&mut written);
        examples::place_headers(&mut written);
        examples::place_webhooks(&mut written);
        written.to_string().into()
    });
    ([(CONTENT_TYPE, "application/json")], written.clone())
}

/// The whole document, as the handlers say it.
pub(super) fn document() -> Document {
    let mut api = Api::openapi();
    inputs::narrow(&mut api);
    add_local_products(&mut api);
    for item in api.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            let known = in_query(operation);
            let responses = &mut operation.responses.responses;
            if method != "GET" {
                operation.parameters.get_or_insert_default().push(idempotency_key());
                errors::of_keys().into_iter().for_each(|told| errors::add(responses, told));
            }
            errors::add(responses, ("a parameter that there is not", unknown_parameter("nonsense", &known)));
            operation.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
        }
    }
    let under_base = std::mem::take(&mut api.paths.paths);
    api.paths.paths.extend(under_base.into_iter().map(|(path, item)| (format!("{BASE_PATH}{path}"), item)));
    let mut root = Operations::openapi();
    for (path, item) in &mut root.paths.paths {
        for (_, operation) in operations(item) {
            operation.responses.responses.extend(errors::without_token(path.contains("ready")));
        }
    }
    api.merge(root);
    for (path, item) in &mut api.paths.paths {
        operations(item)
            .into_iter()
            .for_each(|(_, operation)| errors::name_path(&mut operation.responses.responses, path));
    }
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer));
    api
}

/// The names of the query parameters that an operation takes.
fn in_query(operation: &Operation) -> Vec<String> {
    let parameters = operation.parameters.iter().flatten();
    let named = parameters.filter(|parameter| parameter.parameter_in == ParameterIn::Query);
    named.map(|parameter| parameter.name.clone()).collect()
}

/// The query parameters that the operation at a route takes, in the order of its description; none where the document
/// has no such operation. HEAD is answered as GET is.
pub(super) fn query_parameters(method: &Method, route: &str) -> Option<&'static [String]> {
    static KNOWN: LazyLock<HashMap<String, HashMap<&'static str, Vec<String>>>> = LazyLock::new(|| {
        let mut document = document();
        let of_path = |(path, item): (&String, &mut PathItem)| {
            let by_method = operations(item).into_iter().map(|(method, operation)| (method, in_query(operation)));
            (path.clone(), by_method.collect())
        };
        document.paths.paths.iter_mut().map(of_path).collect()
    });
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    KNOWN.get(route)?.get(method).map(Vec::as_slice)
}

fn operations(item: &mut PathItem) -> Vec<(&'static str, &mut Operation)> {
    let all = [
        ("GET", item.get.as_mut()),
        ("PUT", item.put.as_mut()),
        ("POST", item.post.as_mut()),
        ("DELETE", item.delete.as_mut()),
        ("PATCH", item.patch.as_mut()),
    ];
    all.into_iter().filter_map(|(method, operation)| operation.map(|operation| (method, operation))).collect()
}

/// Local products have every operation of global ones, below their shop.
fn add_local_products(api: &mut Document) {
    let global: Vec<(String, PathItem)> = api
        .paths
        .paths
        .iter()
        .filter(|(path, _)| path.starts_with(GLOBAL))
        .map(|(path, item)| (path.replacen(GLOBAL, LOCAL, 1), item.clone()))
        .collect();
    for (path, mut item) in global {
        for (_, operation) in operations(&mut item) {
            operation.operation_id = operation.operation_id.as_ref().map(|id| id.replace("Global", "Local"));
            operation.parameters.get_or_insert_default().insert(0, shop_id());
        }
        api.paths.paths.insert(path, item);
    }
}

fn shop_id() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Int64)))
        .minimum(Some(1))
        .build();
    ParameterBuilder::new()
        .name("shopId")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The shop."))
        .schema(Some(schema))
        .build()
}

/// The header with which a request is done once.
fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(MAX_KEY_CHARACTERS))
        .build();
    let description = "For 24 hours the same key with the same request gets the first answer, with \
        `Idempotency-Replayed: true`, and changes nothing. With another request it is 422 IDEMPOTENCY_KEY_REUSED, and \
        while the first still runs 409 IDEMPOTENCY_KEY_IN_USE.";
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_every_operation_with_its_errors() {
        let document = serde_json::to_value(document()).expect("a document");
        assert_eq!(document["openapi"], "3.1.0");
        let paths = document["paths"].as_object().expect("paths");
        let methods = |path: &str| {
            let item = paths.get(&format!("{BASE_PATH}{path}")).and_then(|item| item.as_object()).expect("a path");
            let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(methods(GLOBAL), "delete get patch post put");
        assert_eq!(methods(LOCAL), "delete get patch post put");
        assert_eq!(methods("/products/global/product-picture"), "delete get post put");
        assert_eq!(methods("/assignments"), "delete put");
        assert_eq!(methods("/assignments/{taxonomy}"), "get patch");
        for (path, item) in paths {
            for operation in item.as_object().into_iter().flat_map(|item| item.values()) {
                let responses = operation["responses"].as_object().expect("responses");
                assert!(responses.contains_key("500"), "{path}");
                assert!(!responses.contains_key("405"), "no error of an operation: {path}");
                for status in ["401", "429"] {
                    assert_eq!(responses.contains_key(status), path.starts_with(BASE_PATH), "{path}");
                }
            }
        }
    }
}
