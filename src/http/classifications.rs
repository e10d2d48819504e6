//! Classifying without storing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use chrono::Utc;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::decision::{Basis, Engine};
use crate::domain::forms::{LanguageKey, TaxonomyName};
use crate::domain::product::{CustomsCodes, Details, LanguageAttributes, Product};
use crate::domain::validation::{self, Declarations};
use crate::domain::{Fault, Precision, ShopId, Taxonomy};
use crate::http::admission::Tab;
use crate::http::allowed::DEPTHS;
use crate::http::assignment_answers::ClassFields;
use crate::http::body::{JsonBody, body_as};
use crate::http::candidates::{CandidateAnswer, ModelAnswer, candidate_answers, model, rounded};
use crate::http::described::errors::{BODY, Errors, QUOTA, WRONG};
use crate::http::described::kinds::{Depth, PrecisionShare, StatusName, StrategyName};
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::store::{StoreError, accounts::Caller};

/// Most items of a request.
pub(super) const MAX_ITEMS: usize = 1_000;
/// Most MiB of a request.
const MAX_BODY_MIB: usize = 8;
/// Most candidates of an item.
pub(super) const MAX_CANDIDATES: usize = 20;
/// Candidates of an item when `limit` is absent.
const DEFAULT_CANDIDATES: usize = 5;
/// How long a request classifies before it is another's turn.
const TURN: Duration = Duration::from_millis(20);

/// What is to be classified.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClassificationBody {
    /// TARIC, TARES or UKGT.
    #[schema(value_type = TaxonomyName)]
    taxonomy: String,
    /// 2, 4, 6, 8 or 10: depth of candidates, beyond six by the words of a national line; absent: as the evidence carries.
    #[schema(inline, value_type = Option<Depth>)]
    digits: Option<usize>,
    /// 1 to 20 candidates for each item; default 5.
    #[schema(minimum = 1, maximum = 20)]
    limit: Option<usize>,
    /// Share of the decisions by text that are meant to be right: 0.90, 0.95 or 0.98; absent: the account's own.
    #[schema(inline, value_type = Option<PrecisionShare>)]
    precision: Option<f64>,
    /// False leaves out what people of the account decided for products that are alike. Default true.
    memory: Option<bool>,
    /// 1 to 1,000.
    #[schema(min_items = 1, max_items = 1000)]
    items: Vec<ClassificationItem>,
}

/// A product to classify.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClassificationItem {
    /// Comes back with the answer.
    id: Option<String>,
    /// Texts by language code, as of a product; attributes among them are passed over.
    #[schema(value_type = Option<BTreeMap<LanguageKey, LanguageAttributes>>)]
    language_attributes: Option<BTreeMap<String, LanguageAttributes>>,
    /// Customs codes, as of a product.
    customs_codes: Option<CustomsCodes>,
}

/// The answers, in the order of the items.
#[derive(Serialize, ToSchema)]
pub(super) struct ClassificationAnswer {
    items: Vec<ClassifiedItem>,
    model: ModelAnswer,
}

/// What was found of an item.
#[derive(Serialize, ToSchema)]
pub(super) struct ClassifiedItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    decision: DecisionAnswer,
    /// The best classes, the best first.
    candidates: Vec<CandidateAnswer>,
}

/// What auto-assignment would store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionAnswer {
    /// UNASSIGNED, REJECTED or ASSIGNED.
    #[schema(value_type = StatusName)]
    assignment_status: &'static str,
    /// DESCRIPTION, CUSTOMS-CODE or null.
    #[schema(value_type = Option<StrategyName>, required = true)]
    strategy: Option<&'static str>,
    #[serde(flatten)]
    class: ClassFields,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
}

/// What is wrong with how a request wants its items classified.
fn wrong_wishes(body: &ClassificationBody) -> Vec<Fault> {
    let mut faults = Vec::new();
    if Taxonomy::from_name(&body.taxonomy).is_none() {
        faults.push(Fault::at("taxonomy", "UNKNOWN_TAXONOMY", "taxonomy is one of TARIC, TARES, UKGT"));
    }
    if body.digits.is_some_and(|digits| !DEPTHS.contains(&digits)) {
        faults.push(Fault::at("digits", "INVALID_DIGITS", "digits is one of 2, 4, 6, 8, 10"));
    }
    if body.limit.is_some_and(|limit| !(1..=MAX_CANDIDATES).contains(&limit)) {
        faults.push(Fault::at("limit", "INVALID_LIMIT", format!("limit is from 1 to {MAX_CANDIDATES}")));
    }
    if body.precision.is_some_and(|share| Precision::from_share(share).is_none()) {
        faults.push(Fault::at("precision", "INVALID_PRECISION", "precision is one of 0.90, 0.95, 0.98"));
    }
    faults
}

#[utoipa::path(post, path = "/classifications", tag = "Classification", operation_id = "classify",
    summary = "Classify without storing",
    description = "Classifies products without storing anything, as auto-assignment would.",
    request_body = ClassificationBody,
    responses((status = 200, description = "Decisions and candidates, in the order of the items.", body = ClassificationAnswer),
        Errors<{ WRONG | BODY | QUOTA }>))]
pub(super) async fn classify(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    JsonBody(body): JsonBody<MAX_BODY_MIB>,
) -> Result<Json<ClassificationAnswer>, ApiError> {
    let body: ClassificationBody = body_as(body).await?;
    if !(1..=MAX_ITEMS).contains(&body.items.len()) {
        return Err(ApiError::malformed_at("items", format!("are from 1 to {MAX_ITEMS}")));
    }
    let mut faults = wrong_wishes(&body);
    let limit = body.limit.unwrap_or(DEFAULT_CANDIDATES);
    let digits = body.digits;
    let precision = body.precision.and_then(Precision::from_share).unwrap_or(caller.precision);
    let account = body.memory.unwrap_or(true).then_some(caller.account);
    let basis = Basis { precision, account };
    let mut items = Vec::with_capacity(body.items.len());
    for (index, item) in body.items.into_iter().enumerate() {
        // Attributes say nothing of a class, so that texts may be sent as a product has them.
        let texts = |texts: LanguageAttributes| LanguageAttributes { merchant_product_attributes: None, ..texts };
        let languages = item.language_attributes;
        let product_details = Details {
            language_attributes: languages.map(|all| all.into_iter().map(|(key, own)| (key, texts(own))).collect()),
            customs_codes: item.customs_codes,
            ..Details::default()
        };
        let product = Product { shop_ids: Vec::new(), product_details };
        for mut fault in validation::faults(&product, ShopId::GLOBAL, &Declarations::new()) {
            let field = fault.field.take().unwrap_or_default();
            let field = field.strip_prefix("productDetails.").unwrap_or(&field);
            fault.field = Some(format!("items[{index}].{field}"));
            faults.push(fault);
        }
        items.push((item.id, product.product_details));
    }
    let taxonomy = match Taxonomy::from_name(&body.taxonomy) {
        Some(taxonomy) if faults.is_empty() => taxonomy,
        _ => return Err(StoreError::Unprocessable(faults).into()),
    };
    // Who is sent away for want of a place has used no checks.
    let work = tab.work().await?;
    state.store.charge_checks(&caller, items.len()).await?;
    let engine = &state.engine;
    let mut answered = Vec::with_capacity(items.len());
    let mut rest = items.into_iter();
    while rest.len() > 0 {
        let (done, left) = work.turn(turn(engine.clone(), rest, taxonomy, basis, digits, limit)).await?;
        answered.extend(done);
        rest = left;
    }
    Ok(Json(ClassificationAnswer { items: answered, model: model(engine) }))
}

type Items = std::vec::IntoIter<(Option<String>, Details)>;

/// Classifies as many items as fit into one turn at a processor, and gives back the others.
fn turn(
    engine: Arc<Engine>,
    mut items: Items,
    taxonomy: Taxonomy,
    basis: Basis,
    digits: Option<usize>,
    limit: usize,
) -> impl FnOnce() -> (Vec<ClassifiedItem>, Items) {
    move || {
        let began = Instant::now();
        let today = Utc::now().date_naive();
        let mut done = Vec::new();
        while began.elapsed() < TURN {
            let Some((id, details)) = items.next() else { break };
            let explained = engine.explain(&details, taxonomy, basis, digits, limit, today);
            let found = explained.verdict.found;
            done.push(ClassifiedItem {
                id,
                decision: DecisionAnswer {
                    assignment_status: explained.verdict.status().name(),
                    strategy: found.map(|found| found.strategy.name()),
                    class: ClassFields::new(taxonomy, found.map(|found| found.class), found.is_some()),
                    confidence: found.map(|found| rounded(found.confidence)),
                },
                candidates: candidate_answers(&engine, taxonomy, &explained, None),
            });
        }
        (done, items)
    }
}
