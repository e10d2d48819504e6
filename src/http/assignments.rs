//! Assignments: listing and reading; what people do with them is in `actions` and `bulk_actions`.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use futures::{StreamExt, TryStreamExt};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::decision::Basis;
use crate::domain::forms::TaxonomyName;
use crate::domain::{Details, Fault, ProductClass, ShopId, Taxonomy};
use crate::http::admission::{ITEM_BYTES, Tab, Work};
use crate::http::allowed::ORDERS;
use crate::http::assignment_answers::{
    AssignmentAnswer, AssignmentFields, ListedAssignment, RateOfCountries, ReviewedProductAnswer,
};
use crate::http::assignment_filter::{FilterParameters, SentFilter};
use crate::http::body::aside;
use crate::http::candidates::{CandidateList, candidate_list};
use crate::http::described::errors::{ASSIGNMENT, Errors, SEARCH, TAXONOMY, WRONG_FILTER};
use crate::http::described::kinds::{EmbedList, OrderName, PageSize, StatusList};
use crate::http::error::ApiError;
use crate::http::links::{self, PageLinks};
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::taxonomies::{country_rates, taxonomy};
use crate::store::accounts::Caller;
use crate::store::assignments::{
    AssignmentKey, AssignmentOrder, AssignmentPage, AssignmentRecord, Embedded, ListRequest,
};
use crate::store::pages::Position;

/// Candidates shown with an assignment.
const CANDIDATES_SHOWN: usize = 5;
/// Most assignments of a page with candidates, each of which is computed.
const MAX_PAGE_WITH_CANDIDATES: usize = 200;
/// Products whose candidates are computed in one turn at a processor.
const RANKED_IN_A_TURN: usize = 5;
/// Turns that one request waits for at a time.
const TURNS_AT_ONCE: usize = 2;
/// Products that are read at once for a page: whole, so that few lie in memory together.
const PRODUCTS_AT_ONCE: usize = 50;

fn order(params: &Params) -> Result<AssignmentOrder, ApiError> {
    let Some(name) = params.one("sort")? else { return Ok(AssignmentOrder::Product) };
    let known = ORDERS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, order)| order);
    known.ok_or_else(|| {
        let names: Vec<&str> = ORDERS.iter().map(|(name, _)| *name).collect();
        ApiError::malformed_at("sort", format!("is one of {}", names.join(", ")))
    })
}

/// A page of assignments.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(in crate::http) struct PageOfAssignments {
    /// In the order of the list.
    items: Vec<ListedAssignment>,
    links: PageLinks,
    /// With `count=true`: how many there are on all pages.
    #[schema(nullable = false)]
    total: Option<i64>,
}

#[utoipa::path(get, path = "/assignments/{taxonomy}", tag = "Assignments", operation_id = "listAssignments",
    summary = "List assignments",
    description = "Lists assignments, by productId and then shopId unless `sort` says otherwise; assignmentStatus is required. A page with embeds may have fewer items than `size`; follow links.next to the end. The URLs in productAssignments, which have the uuid of an assignment in place of a taxonomy, answer that one as `getAssignment` does.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("assignmentStatus" = inline(StatusList), Query, description = "UNASSIGNED, ASSIGNED, APPROVED, REJECTED, DENIED; several are comma-separated or repeated. ALL selects every status."),
        FilterParameters,
        ("sort" = inline(Option<OrderName>), Query, description = "confidence: the least sure first; -confidence; updatedAt: the longest unchanged first; -updatedAt; impact: where the most is at stake first."),
        ("count" = Option<bool>, Query, description = "Adds `total`, how many the filter selects. Default false."),
        ("embed" = inline(Option<EmbedList>), Query, description = "PRODUCT, EVENTS, CANDIDATES, VAT_RATES; several are comma-separated or repeated. A page with CANDIDATES has at most 200 items."),
        ("size" = inline(Option<PageSize>), Query, description = "Items of a page. Default 50."),
        ("cursor" = Option<String>, Query, description = "From a link of this service."),
    ),
    responses((status = 200, description = "A page of assignments.", body = PageOfAssignments),
        Errors<{ TAXONOMY | WRONG_FILTER | SEARCH }>))]
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
    let filter = SentFilter::required(&params)?;
    let embeds = Embeds::parse(&params)?;
    let mut size = params.size()?;
    if embeds.candidates {
        size = size.min(MAX_PAGE_WITH_CANDIDATES);
    }
    let order = order(&params)?;
    let count = params.boolean("count")?.unwrap_or(false);
    let at: Position<AssignmentKey> = links::position(&params)?;
    tab.charge(size * ITEM_BYTES).await?;
    let filter = filter.resolve(&state, &caller, &tab).await?;
    let deadline = state.search_deadline;
    let request = ListRequest { account: caller.account, taxonomy, filter: &filter, order, size };
    let AssignmentPage { page, weight } = state.store.assignments(&request, &at, embeds.read(), deadline).await?;
    let total = match count {
        true => {
            let counted = state.store.count_assignments(caller.account, taxonomy, &filter, &[], deadline).await?;
            Some(counted.first().map_or(0, |(_, count)| *count))
        }
        false => None,
    };
    let ends = page.items.first().zip(page.items.last()).map(|(first, last)| (first.key(order), last.key(order)));
    let path = format!("/assignments/{}", taxonomy.name());
    let (more_after, more_before) = (page.more_after, page.more_before);
    tab.cover(weight).await?;
    let items = listed(&state, &caller, &tab, taxonomy, page.items, &embeds).await?;
    let page = crate::store::pages::Page { items, more_after, more_before };
    let (own, query) = (state.links.clone(), query.unwrap_or_default());
    aside(weight, move || links::counted_page(&own, &path, &query, page, ends, total)).await
}

/// What an answer embeds.
#[derive(Default)]
struct Embeds {
    product: bool,
    events: bool,
    candidates: bool,
    vat_rates: bool,
}

impl Embeds {
    /// What has to be read for it.
    fn read(&self) -> Embedded {
        Embedded { products: self.product || self.candidates, events: self.events }
    }

    fn parse(params: &Params) -> Result<Embeds, ApiError> {
        let mut embeds = Embeds::default();
        for name in params.list("embed")?.unwrap_or_default() {
            match name.to_ascii_uppercase().as_str() {
                "PRODUCT" => embeds.product = true,
                "EVENTS" => embeds.events = true,
                "CANDIDATES" => embeds.candidates = true,
                "VAT_RATES" => embeds.vat_rates = true,
                _ => return Err(ApiError::malformed_at("embed", "is PRODUCT, EVENTS, CANDIDATES or VAT_RATES")),
            }
        }
        Ok(embeds)
    }
}

/// The identity that a path names; a malformed one is one that does not exist.
pub(super) fn parse_uuid(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| unknown_assignment(text))
}

pub(super) fn unknown_assignment(uuid: &str) -> ApiError {
    let message = format!("there is no assignment \"{uuid}\"");
    ApiError::NotFound(message.clone(), vec![Fault::at("assignmentUuid", "UNKNOWN_ASSIGNMENT", message)])
}

#[utoipa::path(get, path = "/assignments/{taxonomy}/{assignmentUuid}", tag = "Assignments", operation_id = "getAssignment",
    summary = "Read an assignment",
    description = "One assignment.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("assignmentUuid" = Uuid, Path, description = "The assignment."),
        ("embed" = inline(Option<EmbedList>), Query, description = "PRODUCT, EVENTS, CANDIDATES, VAT_RATES; several are comma-separated or repeated."),
    ),
    responses((status = 200, description = "The assignment.", body = AssignmentAnswer),
        Errors<{ TAXONOMY | ASSIGNMENT }>))]
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
    let taxonomy = record.taxonomy();
    let vat_rates = match record.class() {
        Some(class) if embeds.vat_rates => Some(country_rates(state, taxonomy, class)),
        _ => embeds.vat_rates.then(Vec::new),
    };
    tab.charge(ITEM_BYTES + state.store.weight(&record, embeds.read()).await?).await?;
    let embeds = Embeds { vat_rates: false, ..*embeds };
    let listed = listed(state, caller, tab, taxonomy, vec![record], &embeds).await?;
    let listed = listed.into_iter().next();
    let fields = listed.ok_or_else(|| ApiError::Internal("an assignment was lost on its way".to_owned()))?.fields;
    Ok(AssignmentAnswer { fields, vat_rates })
}

/// Assignments of one taxonomy with what is to be embedded.
async fn listed(
    state: &AppState,
    caller: &Caller,
    tab: &Tab,
    taxonomy: Taxonomy,
    records: Vec<AssignmentRecord>,
    embeds: &Embeds,
) -> Result<Vec<ListedAssignment>, ApiError> {
    let histories = if embeds.events { state.store.events(taxonomy, &records).await? } else { Vec::new() };
    let keys: Vec<i64> = records.iter().map(|record| record.product_key).collect();
    let mut products = HashMap::new();
    let mut candidates = HashMap::new();
    let work = if embeds.candidates { Some(tab.work().await?) } else { None };
    if embeds.product || embeds.candidates {
        for keys in keys.chunks(PRODUCTS_AT_ONCE) {
            let read = state.store.reviewed_products(caller.account, keys).await?;
            if embeds.product {
                products.extend(read.iter().map(|product| {
                    let shop = ShopId::from_stored(product.shop_id);
                    let picture = product.has_picture.then(|| state.links.picture(shop, &product.product_id));
                    let shown = ReviewedProductAnswer::new(
                        product.version,
                        // A local product is always of its shop.
                        shop.number().map_or_else(|| product.shop_ids.clone(), |own| vec![own]),
                        &product.details,
                        picture,
                    );
                    (product.product_key, shown)
                }));
            }
            if let Some(work) = &work {
                let read = read.into_iter().map(|product| (product.product_key, product.details.0)).collect();
                candidates.extend(ranked(state, caller, work, taxonomy, read).await?);
            }
        }
    }
    let mut rates: HashMap<ProductClass, Vec<RateOfCountries>> = HashMap::new();
    let mut items: Vec<ListedAssignment> = Vec::with_capacity(records.len());
    for (record, key) in records.into_iter().zip(keys) {
        let vat_rates = match record.class() {
            Some(class) if embeds.vat_rates => {
                Some(rates.entry(class).or_insert_with(|| short_rates(state, taxonomy, class)).clone())
            }
            _ => embeds.vat_rates.then(Vec::new),
        };
        let mut fields = AssignmentFields::from(record);
        if let Some(product) = products.remove(&key) {
            fields.with_product(product);
        }
        if let Some(listed) = candidates.remove(&key) {
            fields.with_candidates(listed);
        }
        items.push(ListedAssignment { fields, vat_rates });
    }
    for (item, history) in items.iter_mut().zip(histories) {
        item.fields.with_events(history);
    }
    Ok(items)
}

/// The candidates of products, a few in each turn at a processor.
async fn ranked(
    state: &AppState,
    caller: &Caller,
    work: &Work,
    taxonomy: Taxonomy,
    products: Vec<(i64, Details)>,
) -> Result<Vec<(i64, CandidateList)>, ApiError> {
    let today = Utc::now().date_naive();
    let basis = Basis { precision: caller.precision, account: Some(caller.account) };
    let mut turns = Vec::new();
    let mut products = products.into_iter().peekable();
    while products.peek().is_some() {
        let engine = state.engine.clone();
        let some: Vec<(i64, Details)> = products.by_ref().take(RANKED_IN_A_TURN).collect();
        turns.push(work.turn(move || {
            let rank = |(key, details): (i64, Details)| {
                let explained = engine.explain(&details, taxonomy, basis, None, CANDIDATES_SHOWN, today);
                (key, candidate_list(&engine, taxonomy, &details, explained))
            };
            some.into_iter().map(rank).collect::<Vec<_>>()
        }));
    }
    let ranked: Vec<Vec<(i64, CandidateList)>> =
        futures::stream::iter(turns).buffered(TURNS_AT_ONCE).try_collect().await?;
    Ok(ranked.into_iter().flatten().collect())
}

/// The distinct rates of a class with the countries of each, in the order of the first country that has it.
fn short_rates(state: &AppState, taxonomy: Taxonomy, class: ProductClass) -> Vec<RateOfCountries> {
    let reference = state.engine.reference();
    let today = Utc::now().date_naive();
    let rates = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, today, false);
    let mut short: Vec<RateOfCountries> = Vec::new();
    for country in &rates.countries {
        let rate = country.rate.map(|rate| rate.value());
        match short.iter_mut().find(|known| known.rate == rate) {
            Some(known) => known.countries.push(country.country.to_owned()),
            None => short.push(RateOfCountries { rate, countries: vec![country.country.to_owned()] }),
        }
    }
    short
}
