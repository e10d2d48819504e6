//! Assignments: listing and reading; what people do with them is in `actions`.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::assignment::Status;
use crate::domain::vat::CountryVat;
use crate::domain::{Fault, ProductClass, ShopId, Taxonomy};
use crate::http::admission::Tab;
use crate::http::classifications::{CandidateAnswer, CodeReason, ModelAnswer, candidate_list};
use crate::http::error::ApiError;
use crate::http::links;
use crate::http::params::Params;
use crate::http::products::instant;
use crate::http::state::AppState;
use crate::http::taxonomies::{country_rates, taxonomy};
use crate::store::accounts::Caller;
use crate::store::assignments::{AssignmentFilter, AssignmentKey, AssignmentOrder, AssignmentRecord, Event};
use crate::store::pages::Position;

/// Candidates shown with an assignment.
const CANDIDATES_SHOWN: usize = 5;

/// An assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssignmentAnswer {
    /// Its identity.
    assignment_uuid: Uuid,
    /// Its product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// TARIC, TARES or UKGT.
    taxonomy: &'static str,
    /// UNASSIGNED, ASSIGNED, APPROVED, REJECTED or DENIED.
    assignment_status: String,
    /// DESCRIPTION, CUSTOMS-CODE, MANUAL or null.
    #[schema(required = true)]
    strategy: Option<String>,
    #[serde(flatten)]
    class: ClassFields,
    /// Labels attached.
    labels: Vec<String>,
    /// How sure auto-assignment was, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// PENDING, DONE or ABORTED.
    auto_assignment: String,
    /// Whether the product changed after a person decided.
    review_needed: bool,
    /// When it last changed.
    updated_at: String,
    /// Versions by platform service.
    subscribed_platform_services: PlatformServices,
    /// With `embed=EVENTS`: what happened, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventAnswer>>,
    /// With `embed=CANDIDATES`: the classes that come into question, the best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<CandidateAnswer>>,
    /// With `embed=CANDIDATES`: the model that ranked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelAnswer>,
    /// With `embed=CANDIDATES`: how the customs codes were read, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    customs_code_reason: Option<CodeReason>,
    /// With `embed=VAT_RATES`: the rates that follow from the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<CountryVat<'static>>>)]
    vat_rates: Option<Vec<Value>>,
}

/// The class in its three forms: absent when UNASSIGNED, null when a status was set without a class.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassFields {
    /// The code segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) product_class_code: Option<Option<String>>,
    /// `code-NN-NNN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_class: Option<Option<String>>,
    /// The code padded with zeros: 10 digits, 8 for TARES.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_width_product_class: Option<Option<String>>,
}

impl ClassFields {
    /// The fields for a class of a taxonomy; `shown` is false where no class field is.
    pub(super) fn new(taxonomy: Taxonomy, class: Option<ProductClass>, shown: bool) -> ClassFields {
        let field = |value: Option<String>| shown.then_some(value);
        ClassFields {
            product_class_code: field(class.map(|class| class.code.to_string())),
            product_class: field(class.map(|class| class.to_string())),
            fixed_width_product_class: field(class.map(|class| class.code.fixed_width(taxonomy))),
        }
    }
}

/// Versions by platform service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformServices {
    vat_rules: PlatformService,
}

/// What a platform service knows of an assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformService {
    /// To be sent with the next action.
    assignment_version: i64,
}

/// What happened to an assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventAnswer {
    /// When.
    timestamp: String,
    /// The token's user, or `auto-assignment`.
    actor: String,
    /// CREATE, AUTO_ASSIGN, AUTO_ABORT, PRODUCT_CHANGED, REQUEUE or an action.
    action: String,
    /// The status after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignment_status: Option<String>,
    /// The class after it; null without one.
    #[schema(required = true)]
    product_class_code: Option<String>,
    /// How the class was found; null where it was not.
    #[schema(required = true)]
    strategy: Option<String>,
}

impl From<Event> for EventAnswer {
    fn from(event: Event) -> Self {
        let class: Option<ProductClass> = event.product_class.and_then(|class| class.parse().ok());
        EventAnswer {
            timestamp: instant(event.happened_at),
            actor: event.actor,
            action: event.action,
            assignment_status: event.status,
            product_class_code: class.map(|class| class.code.to_string()),
            strategy: event.strategy,
        }
    }
}

impl From<AssignmentRecord> for AssignmentAnswer {
    fn from(record: AssignmentRecord) -> Self {
        let taxonomy = record.taxonomy();
        let shown = record.status != Status::Unassigned.name();
        AssignmentAnswer {
            assignment_uuid: record.assignment_uuid,
            shop_id: (record.shop_id > 0).then_some(record.shop_id),
            taxonomy: taxonomy.name(),
            class: ClassFields::new(taxonomy, record.class(), shown),
            assignment_status: record.status,
            strategy: record.strategy,
            labels: record.labels,
            confidence: record.confidence.map(rounded),
            auto_assignment: record.auto_state,
            review_needed: record.review_needed,
            updated_at: instant(record.updated_at),
            subscribed_platform_services: PlatformServices {
                vat_rules: PlatformService { assignment_version: record.version },
            },
            product_id: record.product_id,
            events: None,
            candidates: None,
            model: None,
            customs_code_reason: None,
            vat_rates: None,
        }
    }
}

/// A confidence as answers write it: four decimals say more than any calibration holds.
pub(super) fn rounded(confidence: f32) -> f64 {
    (f64::from(confidence) * 1e4).round() / 1e4
}

fn filter(params: &Params) -> Result<AssignmentFilter, ApiError> {
    let names = params.list("assignmentStatus")?.unwrap_or_default();
    if names.is_empty() {
        return Err(ApiError::malformed_at("assignmentStatus", "is required"));
    }
    let mut filter = AssignmentFilter { product_ids: params.list("productIds")?, ..AssignmentFilter::default() };
    for name in names {
        let status = Status::from_name(&name).ok_or_else(|| {
            let known = Status::ALL.map(Status::name).join(", ");
            ApiError::malformed_at("assignmentStatus", format!("\"{name}\" is none of {known}"))
        })?;
        filter.statuses.push(status);
    }
    for label in params.list("labels")?.unwrap_or_default() {
        match label.strip_prefix('!') {
            Some(without) => filter.without_labels.push(without.to_owned()),
            None => filter.with_labels.push(label),
        }
    }
    filter.shop = params.integer("shopId", 1, i64::MAX)?.and_then(ShopId::local);
    filter.review_needed = params.boolean("reviewNeeded")?;
    Ok(filter)
}

#[utoipa::path(get, path = "/assignments/{taxonomy}", tag = "Assignments", operation_id = "listAssignments",
    description = "Lists assignments by productId, then shopId. With the uuid of an assignment in place of a taxonomy, answers that one, as the URLs in productAssignments do.",
    params(
        ("taxonomy" = String, Path, description = "TARIC, TARES or UKGT, or the uuid of an assignment."),
        ("assignmentStatus" = Option<String>, Query, description = "UNASSIGNED, ASSIGNED, APPROVED, REJECTED, DENIED; several are comma-separated or repeated. Required with a taxonomy."),
        ("productIds" = Option<String>, Query, description = "Products to select."),
        ("labels" = Option<String>, Query, description = "Labels that an assignment must carry; with ! before it, must not carry."),
        ("shopId" = Option<i64>, Query, minimum = 1, description = "Local products of this shop only."),
        ("reviewNeeded" = Option<bool>, Query, description = "Those whose product changed after a person decided, or the others."),
        ("sort" = Option<String>, Query, description = "confidence: the lowest first."),
        ("size" = Option<i64>, Query, minimum = 1, maximum = 1000, description = "Items of a page. Default 50."),
        ("cursor" = Option<String>, Query, description = "From a link of this service."),
    ),
    responses((status = 200, description = "A page of assignments.", body = AssignmentsAnswer)))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path(name): Path<String>,
    params: Params,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    // The URL of a single assignment lies at the same place as the lists.
    if let Ok(uuid) = Uuid::try_parse(&name) {
        let embeds = Embeds::parse(&params)?;
        let record = state.store.assignment(caller.account, uuid).await?;
        return Ok(Json(answer(&state, &caller, &tab, record, &embeds).await?).into_response());
    }
    // What is neither a taxonomy nor a uuid is a path that leads nowhere, whatever its parameters.
    let taxonomy = taxonomy(&name)?;
    let filter = filter(&params)?;
    let size = params.size()?;
    let order = match params.one("sort")? {
        None => AssignmentOrder::Product,
        Some("confidence") => AssignmentOrder::Confidence,
        Some(_) => return Err(ApiError::malformed_at("sort", "is confidence")),
    };
    let at: Position<AssignmentKey> = links::position(&params)?;
    let page = state.store.assignments(caller.account, taxonomy, &filter, order, &at, size).await?;
    let ends = page.items.first().zip(page.items.last()).map(|(first, last)| (first.key(), last.key()));
    let path = format!("/assignments/{}", taxonomy.name());
    let page = page.map(AssignmentAnswer::from);
    Ok(links::page(&state.links, &path, query.as_deref().unwrap_or_default(), page, ends))
}

/// A page of assignments, or the one that the path names.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(super) enum AssignmentsAnswer {
    /// A page.
    Page(links::PageAnswer<AssignmentAnswer>),
    /// The one.
    One(Box<AssignmentAnswer>),
}

/// What an answer embeds.
#[derive(Default)]
struct Embeds {
    events: bool,
    candidates: bool,
    vat_rates: bool,
}

impl Embeds {
    fn parse(params: &Params) -> Result<Embeds, ApiError> {
        let mut embeds = Embeds::default();
        for name in params.list("embed")?.unwrap_or_default() {
            match name.as_str() {
                "EVENTS" => embeds.events = true,
                "CANDIDATES" => embeds.candidates = true,
                "VAT_RATES" => embeds.vat_rates = true,
                _ => return Err(ApiError::malformed_at("embed", "is EVENTS, CANDIDATES or VAT_RATES")),
            }
        }
        Ok(embeds)
    }
}

/// The identity that a path names; a malformed one is one that does not exist.
fn parse_uuid(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| unknown_assignment(text))
}

fn unknown_assignment(uuid: &str) -> ApiError {
    let message = format!("there is no assignment \"{uuid}\"");
    ApiError::NotFound(message.clone(), vec![Fault::at("assignmentUuid", "UNKNOWN_ASSIGNMENT", message)])
}

#[utoipa::path(get, path = "/assignments/{taxonomy}/{assignmentUuid}", tag = "Assignments", operation_id = "getAssignment",
    description = "One assignment.",
    params(
        ("taxonomy" = String, Path, description = "TARIC, TARES or UKGT."),
        ("assignmentUuid" = String, Path, description = "The assignment."),
        ("embed" = Option<String>, Query, description = "EVENTS, CANDIDATES, VAT_RATES; several are comma-separated or repeated."),
    ),
    responses((status = 200, description = "The assignment.", body = AssignmentAnswer)))]
pub(super) async fn read(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path((name, uuid)): Path<(String, String)>,
    params: Params,
) -> Result<Json<AssignmentAnswer>, ApiError> {
    let embeds = Embeds::parse(&params)?;
    let taxonomy = taxonomy(&name)?;
    let uuid = parse_uuid(&uuid)?;
    let record = state.store.assignment(caller.account, uuid).await?;
    if record.taxonomy() != taxonomy {
        return Err(unknown_assignment(&uuid.to_string()));
    }
    answer(&state, &caller, &tab, record, &embeds).await.map(Json)
}

async fn answer(
    state: &AppState,
    caller: &Caller,
    tab: &Tab,
    record: AssignmentRecord,
    embeds: &Embeds,
) -> Result<AssignmentAnswer, ApiError> {
    let today = Utc::now().date_naive();
    let mut events = None;
    if embeds.events {
        events = Some(state.store.events(&record).await?.into_iter().map(EventAnswer::from).collect());
    }
    let mut listed = None;
    if embeds.candidates {
        let product =
            state.store.product(caller.account, ShopId::from_stored(record.shop_id), &record.product_id).await?;
        let (engine, taxonomy, precision) = (state.engine.clone(), record.taxonomy(), caller.precision);
        let explain = move || {
            let explained = engine.explain(&product.details, taxonomy, precision, None, CANDIDATES_SHOWN, today);
            candidate_list(&engine, taxonomy, &product.details, explained)
        };
        listed = Some(tab.work().await?.turn(explain).await?);
    }
    let vat_rates = match record.class() {
        Some(class) if embeds.vat_rates => Some(country_rates(state, record.taxonomy(), class)),
        _ => embeds.vat_rates.then(Vec::new),
    };
    let (candidates, model, customs_code_reason) = match listed {
        Some(listed) => (Some(listed.candidates), Some(listed.model), listed.customs_code_reason),
        None => (None, None, None),
    };
    Ok(AssignmentAnswer { events, candidates, model, customs_code_reason, vat_rates, ..record.into() })
}
