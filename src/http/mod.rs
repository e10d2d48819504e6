//! HTTP: the only room that knows axum and statuses. A handler parses, makes one call, and responds.

mod access;
mod actions;
mod admission;
mod alike;
mod allowed;
mod assignment_answers;
mod assignment_counts;
mod assignment_filter;
mod assignments;
mod attributes;
mod body;
mod bulk_actions;
mod candidates;
mod changes;
mod classifications;
mod console;
mod described;
mod error;
mod guarded;
mod health;
mod idempotency;
mod labels;
mod layers;
mod links;
mod openapi;
mod params;
mod pictures;
mod product_classes;
mod products;
mod series;
pub mod serve;
mod state;
mod taxonomies;
mod tokens;
pub mod traces;
mod transfers;
mod waiting;
mod watch;
mod webhooks;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{delete, get, patch, post, put};
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate, SizeAbove};

pub use admission::{Admission, AdmissionSettings};
pub use error::ApiError;
pub use health::keep_metrics;
pub use links::{BASE_PATH, Links};
pub use state::{AppState, Services, Wake};
pub use waiting::Waiting;
pub use watch::DatabaseWatch;

use crate::pictures::PICTURE_BYTES;
use access::{admin, reads};
use products::bulk;

/// Answers below this go out as they are: they fit into one packet, and compressing one costs more than all else that a
/// refusal costs.
const LEAST_COMPRESSED_BYTES: u16 = 1_024;

/// Every route of the service. A route that needs another level than its method suggests says so: see [`access`].
pub fn router(state: AppState) -> Router {
    let api = Router::new()
        .nest("/products/global", products())
        .nest("/shops/{shopId}/products/local", products())
        .route("/products/merchant-product-attributes", get(attributes::list).merge(admin(post(attributes::declare))))
        .route(
            "/products/merchant-product-attributes/{fieldName}",
            admin(patch(attributes::change).delete(attributes::remove)),
        )
        .route("/assignments", put(labels::attach).delete(labels::detach))
        .route("/assignments/assignment-labels", get(labels::list).merge(admin(post(labels::define))))
        .route("/assignments/assignment-labels/{label}", admin(patch(labels::change).delete(labels::remove)))
        .route("/assignments/auto-assignment", post(actions::requeue))
        .route("/assignments/{taxonomy}", get(assignments::list).patch(actions::act))
        .route("/assignments/{taxonomy}/counts", get(assignment_counts::count))
        .route("/assignments/{taxonomy}/actions", post(bulk_actions::act))
        .route("/assignments/{taxonomy}/{assignmentUuid}", get(assignments::read))
        .route("/assignments/{taxonomy}/{assignmentUuid}/alike", get(alike::list))
        .route("/assignments/actions/{actionId}", get(bulk_actions::read))
        .route("/assignments/actions/{actionId}/undo", post(bulk_actions::undo))
        .route("/classifications", reads(post(classifications::classify)))
        .route("/vat-rates/{taxonomy}/{productClass}", get(taxonomies::vat_rates))
        .route("/product-classes/{taxonomy}", get(product_classes::list))
        .route(links::IMPORTS_PATH, post(transfers::imports::import))
        .route("/exports", get(transfers::exports::export))
        .route("/changes", get(changes::list))
        .route("/usage", get(changes::usage))
        .route("/tokens", admin(get(tokens::list)))
        .route("/webhooks", admin(get(webhooks::list).post(webhooks::create)))
        .route("/webhooks/{webhookId}", admin(get(webhooks::read).patch(webhooks::update).delete(webhooks::delete)))
        .route("/webhooks/{webhookId}/deliveries", admin(get(webhooks::deliveries)))
        .fallback(no_such_route)
        .layer(from_fn_with_state(state.clone(), idempotency::once))
        .layer(from_fn(openapi::only_known))
        .layer(DefaultBodyLimit::max(body::PRODUCTS_MIB << 20))
        .layer(from_fn_with_state(state.clone(), access::authenticate))
        .layer(from_fn_with_state(state.clone(), access::require_database));
    let pages = Router::new().nest(BASE_PATH, api).merge(openapi::pages()).merge(console::pages());
    let open = if state.metrics_apart { health() } else { health().route("/metrics", get(health::metrics)) };
    dressed(pages.merge(open), state)
}

/// What operators ask for, to be served at an address of its own.
pub fn operations(state: AppState) -> Router {
    dressed(health().route("/metrics", get(health::metrics)), state)
}

fn health() -> Router<AppState> {
    Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/version", get(health::version))
}

/// What surrounds every route.
fn dressed(routes: Router<AppState>, state: AppState) -> Router {
    let worth_compressing = DefaultPredicate::new().and(SizeAbove::new(LEAST_COMPRESSED_BYTES));
    let admission = state.admission.clone();
    let routes = routes
        .fallback(no_such_route)
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(from_fn(layers::identify_and_log))
        .layer(from_fn(layers::guard))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_compressing))
        .with_state(state);
    // Around the router instead of within it, where a layer would run after the route was found.
    Router::new().fallback_service(routes).layer(from_fn_with_state(admission, access::turn_away))
}

/// The operations on products, global or of a shop.
fn products() -> Router<AppState> {
    let picture_methods = get(pictures::read).post(pictures::upload).put(pictures::replace).delete(pictures::delete);
    let picture = Router::new()
        .route("/product-picture", picture_methods)
        .layer(DefaultBodyLimit::max(PICTURE_BYTES + pictures::FORM_OVERHEAD_BYTES));
    let root = post(products::create).get(products::listing::list);
    let root = root.merge(put(products::replace)).merge(patch(products::patch)).merge(delete(products::delete));
    // A product may have the name of one of these operations as its id. What is not allowed is told of the operation.
    let named = || get(bulk::read_namesake);
    let only_post = || {
        map_response(|mut refused: Response| async {
            if refused.status() == StatusCode::METHOD_NOT_ALLOWED {
                refused.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            refused
        })
    };
    Router::new()
        .route("/", root)
        .route("/search", reads(post(bulk::search)).merge(named()).layer(only_post()))
        .route("/updates", post(bulk::update).merge(named()).layer(only_post()))
        .route("/deletions", post(bulk::delete).merge(named()).layer(only_post()))
        .route("/{productId}", get(products::read))
        .merge(picture)
}

async fn no_such_route() -> StatusCode {
    StatusCode::NOT_FOUND
}
