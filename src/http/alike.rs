//! Products that resemble the one of an assignment.

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::Taxonomy;
use crate::domain::forms::TaxonomyName;
use crate::http::admission::Tab;
use crate::http::assignment_answers::ClassFields;
use crate::http::assignments::{parse_uuid, unknown_assignment};
use crate::http::candidates::rounded;
use crate::http::described::errors::{ASSIGNMENT, Errors, TAXONOMY};
use crate::http::described::kinds::{StatusName, StrategyName};
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::http::taxonomies::taxonomy;
use crate::memory::ALIKE;
use crate::store::accounts::Caller;
use crate::store::memory::{AlikeProduct, READ_BYTES};

/// Most products that are shown.
const MAX_ALIKE: usize = 50;

/// Products that resemble another.
#[derive(Serialize, ToSchema)]
pub(super) struct AlikeList {
    /// The most alike first, at most 50.
    items: Vec<AlikeAnswer>,
}

/// A product that resembles another, with its assignment in the same taxonomy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AlikeAnswer {
    assignment_uuid: Uuid,
    product_id: String,
    /// Of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// UNASSIGNED, ASSIGNED, APPROVED, REJECTED or DENIED.
    #[schema(value_type = StatusName)]
    assignment_status: String,
    /// DESCRIPTION, CUSTOMS-CODE, MANUAL or null.
    #[schema(value_type = Option<StrategyName>, required = true)]
    strategy: Option<String>,
    #[serde(flatten)]
    class: ClassFields,
    /// How alike the texts are, 0.6 to 1.
    similarity: f64,
}

impl AlikeAnswer {
    fn new(taxonomy: Taxonomy, product: AlikeProduct, similarity: f32) -> AlikeAnswer {
        let class = product.product_class.as_deref().and_then(|class| class.parse().ok());
        AlikeAnswer {
            assignment_uuid: product.assignment_uuid,
            product_id: product.product_id,
            shop_id: (product.shop_id != 0).then_some(product.shop_id),
            class: ClassFields::new(taxonomy, class, product.status != "UNASSIGNED"),
            assignment_status: product.status,
            strategy: product.strategy,
            similarity: rounded(similarity),
        }
    }
}

#[utoipa::path(get, path = "/assignments/{taxonomy}/{assignmentUuid}/alike", tag = "Assignments", operation_id = "listAlike",
    summary = "List products that are alike",
    description = "Products of the account whose texts resemble those of this assignment's product.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("assignmentUuid" = Uuid, Path, description = "The assignment."),
    ),
    responses((status = 200, description = "Products that are alike.", body = AlikeList),
        Errors<{ TAXONOMY | ASSIGNMENT }>))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
    Path((name, uuid)): Path<(String, String)>,
) -> Result<Json<AlikeList>, ApiError> {
    let taxonomy = taxonomy(&name)?;
    let uuid = parse_uuid(&uuid)?;
    let record = state.store.assignment(caller.account, uuid).await?;
    if record.taxonomy() != taxonomy {
        return Err(unknown_assignment(&uuid.to_string()));
    }
    let product = state.store.reviewed_products(caller.account, &[record.product_key]).await?.into_iter().next();
    let Some(product) = product else { return Err(unknown_assignment(&uuid.to_string())) };
    let work = tab.work().await?;
    let (engine, account) = (state.engine.clone(), caller.account);
    let words = work.turn(move || engine.words(&product.details)).await?;
    let keys = words.keys(account);
    tab.charge(READ_BYTES).await?;
    let mut products = state.store.products_alike(account, taxonomy, &keys).await?;
    products.retain(|product| product.assignment_uuid != uuid);
    let engine = state.engine.clone();
    let items = work.turn(move || {
        let with_similarity = |product: AlikeProduct| (words.similarity(&engine.words(&product.details)), product);
        let mut alike: Vec<(f32, AlikeProduct)> = products.into_iter().map(with_similarity).collect();
        alike.retain(|(similarity, _)| *similarity >= ALIKE);
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.product_key.cmp(&b.1.product_key)));
        alike.truncate(MAX_ALIKE);
        alike.into_iter().map(|(similarity, product)| AlikeAnswer::new(taxonomy, product, similarity)).collect()
    });
    Ok(Json(AlikeList { items: items.await? }))
}
