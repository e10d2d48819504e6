//! Webhooks: addresses to which changes are sent as they happen.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::changes::{instant, type_of_name, types, write_sequence};
use crate::domain::forms::TaxonomyName;
use crate::domain::{Fault, Taxonomy};
use crate::http::body::{JsonBody, body_as, value_with_nulls_as};
use crate::http::described::errors::{ADMIN, BODY, Errors, WEBHOOK, WRONG_ADDRESS};
use crate::http::described::kinds::{DeliveryState, PageSize, TypeNames, WebAddress};
use crate::http::error::ApiError;
use crate::http::links::{self, PageLinks};
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::store::StoreError;
use crate::store::accounts::Caller;
use crate::store::pages::Position;
use crate::store::webhooks::{Delivery, Stage, Wanted, Webhook, WebhookChange};
use crate::webhooks::{AddressError, SECRET_BYTES, write_secret};

/// What a client says of a new webhook.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebhookBody {
    /// An http or https URL on the public internet, to which changes are sent with POST.
    #[schema(inline, value_type = WebAddress)]
    url: String,
    /// Types of changes to send, as the feed names them; at least one.
    #[schema(inline, value_type = TypeNames)]
    types: Vec<String>,
    /// Only changes of assignments of this taxonomy: TARIC, TARES or UKGT. Absent for all changes.
    #[schema(inline, value_type = Option<TaxonomyName>)]
    taxonomy: Option<String>,
}

/// What changes of a webhook; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebhookPatchBody {
    /// Another address.
    #[serde(default, deserialize_with = "given")]
    #[schema(inline, nullable = false, value_type = Option<WebAddress>)]
    url: Option<String>,
    /// Other types.
    #[serde(default, deserialize_with = "given")]
    #[schema(inline, nullable = false, value_type = Option<TypeNames>)]
    types: Option<Vec<String>>,
    /// Another taxonomy; null for all changes.
    #[serde(default, deserialize_with = "present")]
    #[schema(inline, value_type = Option<TaxonomyName>)]
    taxonomy: Option<Option<String>>,
    /// False stops deliveries. True goes on where they stopped, also when the service had disabled it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

/// A field that cannot be removed, and so is not null.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Tells a field that is null from one that is absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookAnswer {
    /// Its identity.
    webhook_id: Uuid,
    /// Where it sends.
    url: String,
    /// Types of changes that it sends.
    types: Vec<String>,
    /// The taxonomy to which it keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    taxonomy: Option<&'static str>,
    /// ENABLED or DISABLED.
    status: &'static str,
    /// When it was disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_at: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
    /// Deliveries that wait to be made or to be tried again.
    pending: i64,
    /// When a delivery was last attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt_at: Option<String>,
    /// What went wrong with a delivery that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// When it was made.
    created_at: String,
    /// When it was last changed.
    updated_at: String,
    /// The key of the signatures, `whsec_…` as Standard Webhooks writes it. Shown only by the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// The webhooks of the account.
#[derive(Serialize, ToSchema)]
pub(super) struct WebhookList {
    items: Vec<WebhookAnswer>,
}

/// A delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryAnswer {
    /// The header `webhook-id`, the same at every attempt.
    id: String,
    /// The place of its change in the feed.
    sequence: String,
    /// The type of the change.
    #[serde(rename = "type")]
    kind: String,
    /// The product.
    product_id: String,
    /// PENDING, DELIVERED, or FAILED: given up, since it was refused for three days while others were taken.
    state: &'static str,
    /// Attempts made.
    attempts: i32,
    /// When the last one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt_at: Option<String>,
    /// When the next one is made, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    /// The status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_status: Option<i16>,
    /// What went wrong at the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// When it was made.
    created_at: String,
}

/// A page of deliveries.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(in crate::http) struct PageOfDeliveries {
    /// In the order of the list.
    items: Vec<DeliveryAnswer>,
    links: PageLinks,
    /// With `count=true`: how many there are on all pages.
    #[schema(nullable = false)]
    total: Option<i64>,
}

impl From<Webhook> for WebhookAnswer {
    fn from(webhook: Webhook) -> Self {
        WebhookAnswer {
            webhook_id: webhook.webhook_id,
            taxonomy: webhook.taxonomy().map(Taxonomy::name),
            status: if webhook.disabled_at.is_some() { "DISABLED" } else { "ENABLED" },
            disabled_at: webhook.disabled_at.map(instant),
            disabled_reason: webhook.disabled_reason,
            pending: webhook.pending,
            last_attempt_at: webhook.last_attempt_at.map(instant),
            last_error: webhook.last_error,
            created_at: instant(webhook.created_at),
            updated_at: instant(webhook.updated_at),
            url: webhook.url,
            types: webhook.types,
            secret: None,
        }
    }
}

impl From<Delivery> for DeliveryAnswer {
    fn from(delivery: Delivery) -> Self {
        let stage = delivery.stage();
        DeliveryAnswer {
            id: format!("msg_{}", delivery.message_id.simple()),
            sequence: write_sequence(delivery.sequence),
            kind: delivery.kind,
            product_id: delivery.product_id,
            state: match stage {
                Stage::Pending => "PENDING",
                Stage::Delivered => "DELIVERED",
                Stage::Failed => "FAILED",
            },
            attempts: delivery.attempts,
            last_attempt_at: delivery.last_attempt_at.map(instant),
            next_attempt_at: (stage == Stage::Pending).then(|| instant(delivery.next_attempt_at)),
            last_status: delivery.last_status,
            last_error: delivery.last_error,
            created_at: instant(delivery.created_at),
        }
    }
}

/// Collects what is wrong with a webhook, to be told at once.
#[derive(Default)]
struct Judge {
    faults: Vec<Fault>,
}

impl Judge {
    async fn url(&mut self, state: &AppState, text: &str) -> String {
        match state.webhooks.check(text).await {
            Ok(url) => return url.into(),
            Err(error) => {
                let code = if error == AddressError::Private { "PRIVATE_ADDRESS" } else { "INVALID_URL" };
                self.faults.push(Fault::at("url", code, error.to_string()));
            }
        }
        String::new()
    }

    fn types(&mut self, names: &[String]) -> Vec<String> {
        if names.is_empty() {
            self.faults.push(Fault::at("types", "EMPTY", "has at least one type"));
        }
        let mut wanted = Vec::new();
        for (at, name) in names.iter().enumerate() {
            match type_of_name(name) {
                Some(known) if wanted.contains(&known) => {}
                Some(known) => wanted.push(known),
                None => {
                    let known = types().collect::<Vec<_>>().join(", ");
                    let message = format!("there is no type \"{name}\"; there are {known}");
                    self.faults.push(Fault::at(format!("types[{at}]"), "UNKNOWN_TYPE", message));
                }
            }
        }
        wanted
    }

    fn taxonomy(&mut self, name: &str) -> Option<Taxonomy> {
        let taxonomy = Taxonomy::from_name(name);
        if taxonomy.is_none() {
            self.faults.push(Fault::at("taxonomy", "UNKNOWN_TAXONOMY", "is one of TARIC, TARES, UKGT"));
        }
        taxonomy
    }

    fn done(self) -> Result<(), ApiError> {
        if self.faults.is_empty() { Ok(()) } else { Err(StoreError::Unprocessable(self.faults).into()) }
    }
}

#[utoipa::path(post, path = "/webhooks", tag = "Webhooks", operation_id = "createWebhook",
    summary = "Register a webhook",
    description = "Registers an address to which changes are sent from now on: at least once, in order for each product, signed as the Standard Webhooks specification says. The answer shows the signing secret, which is never shown again. An attempt may take 10 seconds; failed ones are repeated with growing pauses for three days. When nothing was taken for three days, the webhook is disabled, and nothing is lost; a delivery that is refused for three days while others are taken is given up and listed as FAILED, and the next of its product goes on. While 10,000 wait, further changes wait in the feed. Redirects are followed when they are 307 or 308; 410 disables at once.",
    request_body = WebhookBody,
    responses((status = 201, description = "The webhook with its secret.", body = WebhookAnswer),
        Errors<{ ADMIN | WRONG_ADDRESS | BODY }>))]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let body: WebhookBody = body_as(body).await?;
    let mut judge = Judge::default();
    let url = judge.url(&state, &body.url).await;
    let types = judge.types(&body.types);
    let taxonomy = body.taxonomy.as_deref().and_then(|name| judge.taxonomy(name));
    judge.done()?;
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(|error| ApiError::Internal(error.to_string()))?;
    let made = state.store.create_webhook(caller.account, &Wanted { url, types, taxonomy }, &secret).await?;
    let answer = WebhookAnswer { secret: Some(write_secret(&secret)), ..made.into() };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

#[utoipa::path(get, path = "/webhooks", tag = "Webhooks", operation_id = "listWebhooks",
    summary = "List webhooks",
    description = "The webhooks of the account, oldest first.",
    responses((status = 200, description = "The webhooks.", body = WebhookList),
        Errors<{ ADMIN }>))]
pub(super) async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<WebhookList>, ApiError> {
    let webhooks = state.store.webhooks(caller.account).await?;
    Ok(Json(WebhookList { items: webhooks.into_iter().map(WebhookAnswer::from).collect() }))
}

#[utoipa::path(get, path = "/webhooks/{webhookId}", tag = "Webhooks", operation_id = "getWebhook",
    summary = "Read a webhook",
    description = "One webhook.",
    params(("webhookId" = Uuid, Path, description = "The webhook.")),
    responses((status = 200, description = "The webhook.", body = WebhookAnswer),
        Errors<{ ADMIN | WEBHOOK }>))]
pub(super) async fn read(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WebhookAnswer>, ApiError> {
    let webhook = state.store.webhook(caller.account, parse(&id)?).await?;
    Ok(Json(webhook.into()))
}

#[utoipa::path(patch, path = "/webhooks/{webhookId}", tag = "Webhooks", operation_id = "updateWebhook",
    summary = "Change a webhook",
    description = "Changes a webhook. What waits is tried again at once. One that is disabled begins no further attempt.",
    params(("webhookId" = Uuid, Path, description = "The webhook.")),
    request_body = WebhookPatchBody,
    responses((status = 200, description = "The webhook, changed.", body = WebhookAnswer),
        Errors<{ ADMIN | WEBHOOK | WRONG_ADDRESS | BODY }>))]
pub(super) async fn update(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<WebhookAnswer>, ApiError> {
    let body: Value = body.into_value().await?;
    let body: WebhookPatchBody =
        value_with_nulls_as(body, "").map_err(|fault| crate::http::body::malformed(vec![fault]))?;
    let id = parse(&id)?;
    state.store.webhook(caller.account, id).await?;
    let mut judge = Judge::default();
    let url = match &body.url {
        Some(text) => Some(judge.url(&state, text).await),
        None => None,
    };
    let types = body.types.as_deref().map(|names| judge.types(names));
    let taxonomy = body.taxonomy.map(|name| name.and_then(|name| judge.taxonomy(&name)));
    judge.done()?;
    let change = WebhookChange { url, types, taxonomy, enabled: body.enabled };
    Ok(Json(state.store.change_webhook(caller.account, id, &change).await?.into()))
}

#[utoipa::path(delete, path = "/webhooks/{webhookId}", tag = "Webhooks", operation_id = "deleteWebhook",
    summary = "Delete a webhook",
    description = "Deletes a webhook, and what it had yet to send.",
    params(("webhookId" = Uuid, Path, description = "The webhook.")),
    responses((status = 204, description = "Deleted."),
        Errors<{ ADMIN | WEBHOOK }>))]
pub(super) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    state.store.delete_webhook(caller.account, parse(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/webhooks/{webhookId}/deliveries", tag = "Webhooks", operation_id = "listDeliveries",
    summary = "List deliveries",
    description = "Deliveries of a webhook, the latest first: all that wait, and the last 1,000 each of those that were made and that were given up. Changes for which there is no delivery yet wait in the feed.",
    params(
        ("webhookId" = Uuid, Path, description = "The webhook."),
        ("state" = inline(Option<DeliveryState>), Query, description = "PENDING, DELIVERED or FAILED."),
        ("size" = inline(Option<PageSize>), Query, description = "Items of a page. Default 50."),
        ("cursor" = Option<String>, Query, description = "From a link of this service."),
    ),
    responses((status = 200, description = "A page of deliveries.", body = PageOfDeliveries),
        Errors<{ ADMIN | WEBHOOK }>))]
pub(super) async fn deliveries(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let size = params.size()?;
    let stage = match params.one("state")?.map(str::to_ascii_uppercase).as_deref() {
        None => None,
        Some("PENDING") => Some(Stage::Pending),
        Some("DELIVERED") => Some(Stage::Delivered),
        Some("FAILED") => Some(Stage::Failed),
        Some(_) => return Err(ApiError::malformed_at("state", "is PENDING, DELIVERED or FAILED")),
    };
    let at: Position<i64> = links::position(&params)?;
    let id = parse(&id)?;
    let page = state.store.deliveries(caller.account, id, stage, &at, size).await?;
    let ends = page.items.first().zip(page.items.last()).map(|(first, last)| (first.sequence, last.sequence));
    let page = page.map(DeliveryAnswer::from);
    let path = format!("/webhooks/{id}/deliveries");
    Ok(links::page(&state.links, &path, query.as_deref().unwrap_or_default(), page, ends))
}

/// The identity that a path names; a malformed one is one that does not exist.
fn parse(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| {
        let message = format!("there is no webhook \"{text}\"");
        StoreError::not_found(Fault::at("webhookId", "UNKNOWN_WEBHOOK", message)).into()
    })
}
