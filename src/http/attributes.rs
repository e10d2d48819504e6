//! Declarations of merchant product attributes.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::domain::attributes::{Declaration, DeclarationInput, Format, ObjectType};
use crate::domain::forms::{forms, with_keywords};
use crate::http::admission::Tab;
use crate::http::body::{JsonBody, PatchBody, body_as, malformed, value_with_nulls_as};
use crate::http::described::errors::{ADMIN, ATTRIBUTE, BODY, Errors, IN_USE, PLAIN, TAKEN, WRONG_ATTRIBUTE};
use crate::http::described::kinds::{AttributeTags, AttributeText, DisplayText, ObjectTypeName, ValueFormatName};
use crate::http::error::ApiError;
use crate::http::params::require_no_nul;
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
    #[schema(inline, value_type = Option<DisplayText>)]
    display_name: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<AttributeText>)]
    description: Option<String>,
    /// Whether values stand beside the texts of a language or directly in productDetails. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_language_specific: Option<bool>,
    /// `None` (the default), `URL`, `EMAIL`, `ISO_DATE`, `INTEGER` or `DECIMAL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<ValueFormatName>)]
    format: Option<String>,
    /// `Text` (the default), `Number`, `Boolean` or `Date`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<ObjectTypeName>)]
    object_type: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, value_type = Option<AttributeTags>)]
    tags: Option<Vec<String>>,
}

/// The formats that values of a type may have, for those types that may not have all.
fn formats() -> Value {
    ObjectType::ALL.into_iter().rev().fold(json!({}), |otherwise, object_type| {
        let fitting: Vec<&str> =
            Format::ALL.into_iter().filter(|format| format.fits(object_type)).map(Format::name).collect();
        if fitting.len() == Format::ALL.len() {
            return otherwise;
        }
        json!({
            "if": {"properties": {"objectType": {"const": object_type.name()}}, "required": ["objectType"]},
            "then": {"properties": {"format": {"enum": fitting}}},
            "else": otherwise,
        })
    })
}

forms! {
    /// A declaration as it is made.
    AttributeDeclaration "AttributeDeclaration" = with_keywords(
        MerchantProductAttribute::schema(),
        formats().as_object().into_iter().flatten().filter_map(|(name, rule)| {
            let name = ["if", "then", "else"].into_iter().find(|known| known == name)?;
            Some((name, rule.clone()))
        }),
    );
}

/// What is to change of a declaration: absent keeps, null removes.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AttributeChange {
    /// For people; at most 200 characters.
    #[serde(default, deserialize_with = "present")]
    #[schema(inline, value_type = Option<DisplayText>)]
    display_name: Option<Option<String>>,
    /// For people; at most 2,000 characters.
    #[serde(default, deserialize_with = "present")]
    #[schema(inline, value_type = Option<AttributeText>)]
    description: Option<Option<String>>,
    /// For people; at most 100 of 200 characters.
    #[serde(default, deserialize_with = "present")]
    #[schema(inline, value_type = Option<AttributeTags>)]
    tags: Option<Option<Vec<String>>>,
}

/// Tells a field that is null from one that is absent.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
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
    operation_id = "declareMerchantProductAttribute",
    summary = "Declare an attribute", description = "Declares an attribute.",
    request_body = AttributeDeclaration,
    responses((status = 201, description = "The declaration.", body = MerchantProductAttribute),
        Errors<{ ADMIN | TAKEN | WRONG_ATTRIBUTE | BODY }>))]
pub(super) async fn declare(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<MerchantProductAttribute>), ApiError> {
    let sent: MerchantProductAttribute = body_as(body).await?;
    let input = DeclarationInput {
        field_name: sent.field_name,
        display_name: sent.display_name,
        description: sent.description,
        is_language_specific: sent.is_language_specific,
        format: sent.format,
        object_type: sent.object_type,
        tags: sent.tags.unwrap_or_default(),
    };
    let declaration = input.check().map_err(malformed)?;
    state.store.declare_attribute(caller.account, &declaration).await?;
    Ok((StatusCode::CREATED, Json(declaration.into())))
}

#[utoipa::path(get, path = "/products/merchant-product-attributes", tag = "Merchant attributes",
    operation_id = "listMerchantProductAttributes",
    summary = "List attributes", description = "Lists the declared attributes.",
    responses((status = 200, description = "The declarations, by field name.", body = AttributeList),
        Errors<{ PLAIN }>))]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    tab: Tab,
) -> Result<Json<AttributeList>, ApiError> {
    tab.charge(state.store.weight_of_attributes(caller.account).await?).await?;
    let declared = state.store.attributes(caller.account).await?;
    Ok(Json(AttributeList { items: declared.into_iter().map(Into::into).collect() }))
}

#[utoipa::path(patch, path = "/products/merchant-product-attributes/{fieldName}", tag = "Merchant attributes",
    operation_id = "changeMerchantProductAttribute",
    summary = "Change an attribute",
    description = "Changes what a declaration tells people, by a JSON merge patch. Its type and format stay, since values rely on them.",
    params(("fieldName" = String, Path, description = "The attribute.")),
    request_body(content(
        (AttributeChange = "application/json"),
        (AttributeChange = "application/merge-patch+json"))),
    responses((status = 200, description = "The declaration as it is now.", body = MerchantProductAttribute),
        Errors<{ ADMIN | ATTRIBUTE | WRONG_ATTRIBUTE | BODY }>))]
pub(super) async fn change(
    State(state): State<AppState>,
    caller: Caller,
    Path(field_name): Path<String>,
    PatchBody(body): PatchBody,
) -> Result<Json<MerchantProductAttribute>, ApiError> {
    let body = body.into_value().await?;
    require_no_nul("fieldName", &field_name)?;
    if !body.is_object() {
        return Err(ApiError::malformed("a patch is an object"));
    }
    let sent: AttributeChange = value_with_nulls_as(body, "").map_err(|fault| malformed(vec![fault]))?;
    let tags = sent.tags.map(Option::unwrap_or_default);
    // The limits are those of a declaration; the name is only looked up.
    let input = DeclarationInput {
        field_name: Some("x".to_owned()),
        display_name: sent.display_name.clone().flatten(),
        description: sent.description.clone().flatten(),
        tags: tags.clone().unwrap_or_default(),
        ..DeclarationInput::default()
    };
    input.check().map_err(malformed)?;
    let changed =
        state.store.change_attribute(caller.account, &field_name, sent.display_name, sent.description, tags).await?;
    Ok(Json(changed.into()))
}

#[utoipa::path(delete, path = "/products/merchant-product-attributes/{fieldName}", tag = "Merchant attributes",
    operation_id = "removeMerchantProductAttribute",
    summary = "Remove an attribute", description = "Removes a declaration that no product uses.",
    params(("fieldName" = String, Path, description = "The attribute.")),
    responses((status = 204, description = "Removed."),
        Errors<{ ADMIN | ATTRIBUTE | IN_USE }>))]
pub(super) async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    Path(field_name): Path<String>,
) -> Result<StatusCode, ApiError> {
    require_no_nul("fieldName", &field_name)?;
    state.store.remove_attribute(caller.account, &field_name).await?;
    Ok(StatusCode::NO_CONTENT)
}
