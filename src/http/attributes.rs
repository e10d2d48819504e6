//! Declarations of merchant product attributes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::attributes::{Declaration, DeclarationInput};
use crate::http::body::{JsonBody, bad, typed};
use crate::http::error::ApiError;
use crate::http::state::AppState;
use crate::store::accounts::Caller;

/// A declaration.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MerchantProductAttribute {
    /// Required: a letter, then at most 63 letters, digits or underscores; unique in the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = true, pattern = "^[A-Za-z][A-Za-z0-9_]{0,63}$")]
    field_name: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether values stand beside the texts of a language or directly in productDetails. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_language_specific: Option<bool>,
    /// `None` (the default), `URL`, `EMAIL`, `ISO_DATE`, `INTEGER` or `DECIMAL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    /// `Text` (the default), `Number`, `Boolean` or `Date`.
    #[serde(skip_serializing_if = "Option::is_none")]
    object_type: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
}

/// All declarations of the account.
#[derive(Serialize, ToSchema)]
pub(super) struct AttributeList {
    items: Vec<MerchantProductAttribute>,
}

impl From<Declaration> for MerchantProductAttribute {
    fn from(declared: Declaration) -> Self {
        MerchantProductAttribute {
            field_name: Some(declared.field_name),
            display_name: declared.display_name,
            description: declared.description,
            is_language_specific: Some(declared.is_language_specific),
            format: Some(declared.format.name().to_owned()),
            object_type: Some(declared.object_type.name().to_owned()),
            tags: Some(declared.tags),
        }
    }
}

#[utoipa::path(post, path = "/products/merchant-product-attributes", tag = "Merchant attributes",
    operation_id = "declareMerchantProductAttribute", description = "Declares an attribute.",
    request_body = MerchantProductAttribute,
    responses((status = 201, description = "The declaration.", body = MerchantProductAttribute)))]
pub(super) async fn declare(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<MerchantProductAttribute>), ApiError> {
    let sent: MerchantProductAttribute = typed(body)?;
    let input = DeclarationInput {
        field_name: sent.field_name,
        display_name: sent.display_name,
        description: sent.description,
        is_language_specific: sent.is_language_specific,
        format: sent.format,
        object_type: sent.object_type,
        tags: sent.tags.unwrap_or_default(),
    };
    let declaration = input.check().map_err(bad)?;
    state.store.declare_attribute(caller.account, &declaration).await?;
    Ok((StatusCode::CREATED, Json(declaration.into())))
}

#[utoipa::path(get, path = "/products/merchant-product-attributes", tag = "Merchant attributes",
    operation_id = "listMerchantProductAttributes", description = "Lists the declared attributes.",
    responses((status = 200, description = "The declarations, by field name.", body = AttributeList)))]
pub(super) async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<AttributeList>, ApiError> {
    let declared = state.store.attributes(caller.account).await?;
    Ok(Json(AttributeList { items: declared.into_iter().map(Into::into).collect() }))
}
