//! Pictures of products.

use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::multipart::{Multipart, MultipartRejection};
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::forms::ProductIdForm;
use crate::domain::{Fault, ShopId};
use crate::http::admission::Tab;
use crate::http::described::errors::{BODY, EDIT, Errors, PICTURE, PRODUCT, TAKEN, WRONG_PICTURE};
use crate::http::described::kinds::Binary;
use crate::http::error::ApiError;
use crate::http::layers::REQUEST_TIMEOUT;
use crate::http::params::Params;
use crate::http::products::PathParts;
use crate::http::state::AppState;
use crate::pictures::{PICTURE_BYTES, PictureError, PictureStoreError};
use crate::store::StoreError;
use crate::store::accounts::Caller;
use crate::store::pictures::{ORPHAN_KEPT, PictureRecord};

/// Bytes that a form may have around its file.
pub(super) const FORM_OVERHEAD_BYTES: usize = 64 << 10;
/// The part of the form that carries the image.
const FILE_PART: &str = "file";

/// An object without a row is kept for much longer than the request may take that writes both.
const _: () = assert!(ORPHAN_KEPT.as_secs() >= 5 * REQUEST_TIMEOUT.as_secs());

/// A stored picture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PictureAnswer {
    product_id: String,
    /// Answers the bytes.
    url: String,
    /// image/jpeg, image/png, image/gif or image/webp.
    content_type: String,
    /// Pixels across.
    width: i32,
    /// Pixels down.
    height: i32,
    /// Bytes.
    size: i64,
}

/// The form of an upload.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes a form in the OpenAPI document")]
pub(super) struct PictureForm {
    /// JPEG, PNG, GIF or WebP; at most 10 MiB and 50 megapixels.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

#[utoipa::path(post, path = "/products/global/product-picture", tag = "Pictures", operation_id = "uploadGlobalProductPicture",
    summary = "Add a picture",
    description = "Gives a product its picture.",
    params(("productId" = inline(ProductIdForm), Query, description = "The product.")),
    request_body(content = PictureForm, content_type = "multipart/form-data"),
    responses((status = 201, description = "The picture.", body = PictureAnswer),
        Errors<{ EDIT | PRODUCT | TAKEN | WRONG_PICTURE | BODY }>))]
pub(super) async fn upload(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let answer = store(&state, &caller, path.shop()?, params.product_id()?, request, false).await?;
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

#[utoipa::path(put, path = "/products/global/product-picture", tag = "Pictures", operation_id = "replaceGlobalProductPicture",
    summary = "Replace a picture",
    description = "Replaces the picture of a product.",
    params(("productId" = inline(ProductIdForm), Query, description = "The product.")),
    request_body(content = PictureForm, content_type = "multipart/form-data"),
    responses((status = 200, description = "The picture.", body = PictureAnswer),
        Errors<{ EDIT | PRODUCT | PICTURE | WRONG_PICTURE | BODY }>))]
pub(super) async fn replace(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    request: Request,
) -> Result<Json<PictureAnswer>, ApiError> {
    store(&state, &caller, path.shop()?, params.product_id()?, request, true).await.map(Json)
}

#[utoipa::path(get, path = "/products/global/product-picture", tag = "Pictures", operation_id = "getGlobalProductPicture",
    summary = "Read a picture",
    description = "The bytes of a product's picture.",
    params(("productId" = inline(ProductIdForm), Query, description = "The product.")),
    responses(
        (status = 200, description = "The picture.", content((Binary = "image/jpeg"), (Binary = "image/png"), (Binary = "image/gif"), (Binary = "image/webp"))),
        (status = 304, description = "The picture is the one whose ETag was sent as If-None-Match."),
        Errors<{ PRODUCT | PICTURE }>))]
pub(super) async fn read(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let picture = state.store.picture(caller.account, path.shop()?, params.product_id()?).await?;
    let etag = format!("\"{}\"", picture.etag);
    let mut response = if is_known(&headers, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let key = Uuid::try_parse(&picture.object_key).map_err(|error| ApiError::Internal(error.to_string()))?;
        let bytes = state.pictures.get(key).await.map_err(|error| unavailable(&error))?;
        // The row says that it is there: a disk that is away, or the directory of another host.
        let bytes = bytes.ok_or_else(|| {
            tracing::warn!(%key, "a picture is not in its store");
            ApiError::Unavailable(NO_PICTURES)
        })?;
        Response::new(Body::from(bytes))
    };
    let fields = [
        (header::CONTENT_TYPE, picture.content_type.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, no-cache"),
        (header::ETAG, &etag),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// Whether a client says by `If-None-Match` that it has what a tag of ours stands for. Weak tags count as well (RFC 9110,
/// 13.1.2): caches on the way that pack an answer make our tag weak.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    // Ours has no comma, so that none of it is split.
    let sent = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = sent.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[utoipa::path(delete, path = "/products/global/product-picture", tag = "Pictures", operation_id = "deleteGlobalProductPicture",
    summary = "Remove a picture",
    description = "Takes the picture of a product away. The product's version stays.",
    params(("productId" = inline(ProductIdForm), Query, description = "The product.")),
    responses((status = 204, description = "Taken away."),
        Errors<{ EDIT | PRODUCT | PICTURE }>))]
pub(super) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    params: Params,
) -> Result<StatusCode, ApiError> {
    state.store.remove_picture(caller.account, path.shop()?, params.product_id()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes the picture out of the form, looks at it, and stores its bytes before the row that names them.
async fn store(
    state: &AppState,
    caller: &Caller,
    shop: ShopId,
    product_id: &str,
    request: Request,
    replace: bool,
) -> Result<PictureAnswer, ApiError> {
    let bytes = file(request, state).await?;
    state.store.check_picture(caller.account, shop, product_id, replace).await?;
    let began = Instant::now();
    let picture = state.inspector.inspect(bytes).await.map_err(|error| refusal(&error))?;
    metrics::histogram!("vat_classification_picture_seconds").record(began.elapsed());
    let key = Uuid::new_v4();
    // Noted before the object is written, so that a crash in between leaves nothing behind for ever.
    state.store.orphan_object(&key.to_string(), state.pictures.place()).await?;
    let record = PictureRecord {
        object_key: key.to_string(),
        content_type: picture.content_type.to_owned(),
        width: picture.width as i32,
        height: picture.height as i32,
        size: picture.bytes.len() as i64,
        etag: HEXLOWER.encode(&Sha256::digest(&picture.bytes)[..16]),
    };
    state.pictures.put(key, picture.bytes).await.map_err(|error| unavailable(&error))?;
    state.store.set_picture(caller.account, shop, product_id, &record, replace).await?;
    Ok(PictureAnswer {
        product_id: product_id.to_owned(),
        url: state.links.picture(shop, product_id),
        content_type: record.content_type,
        width: record.width,
        height: record.height,
        size: record.size,
    })
}

/// What is said while the store of pictures is away or full.
const NO_PICTURES: &str = "pictures cannot be stored or read at present";

/// A store of pictures that is away or full.
fn unavailable(error: &PictureStoreError) -> ApiError {
    tracing::warn!(%error, "the store of pictures is not available");
    ApiError::Unavailable(NO_PICTURES)
}

fn refusal(error: &PictureError) -> ApiError {
    let message = error.to_string();
    match error {
        PictureError::TooLarge => ApiError::PayloadTooLarge(message),
        PictureError::Unsupported => ApiError::UnsupportedMediaType(message),
        _ => StoreError::Unprocessable(vec![Fault::at(FILE_PART, "INVALID_PICTURE", message)]).into(),
    }
}

/// The bytes of the one file part of the form.
async fn file(request: Request, state: &AppState) -> Result<Bytes, ApiError> {
    let tab = request.extensions().get::<Tab>().cloned();
    if let Some(tab) = &tab {
        tab.charge(PICTURE_BYTES).await?;
    }
    let mut form = Multipart::from_request(request, state).await.map_err(|rejection| match rejection {
        MultipartRejection::InvalidBoundary(_) => {
            ApiError::UnsupportedMediaType("send the picture as multipart/form-data with a boundary".to_owned())
        }
        other => ApiError::malformed(other.body_text()),
    })?;
    let broken = |error: axum::extract::multipart::MultipartError| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::PayloadTooLarge(format!("a picture has at most {PICTURE_BYTES} bytes"))
        }
        _ => ApiError::malformed(format!("the form is malformed: {}", error.body_text())),
    };
    let mut file = None;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if field.name() != Some(FILE_PART) {
            return Err(ApiError::malformed_at("body", "the form has one part, named file"));
        }
        if file.is_some() {
            return Err(ApiError::malformed_at(FILE_PART, "is sent more than once"));
        }
        file = Some(field.bytes().await.map_err(broken)?);
    }
    if let Some(tab) = &tab {
        tab.enter().await?;
    }
    file.ok_or_else(|| ApiError::malformed_at(FILE_PART, "is missing from the form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_weak_or_strong_alone_or_among_others() {
        for (lines, known) in [
            (&["\"a1\""][..], true),
            (&["W/\"a1\""], true),
            (&["*"], true),
            (&["\"b\", \"a1\""], true),
            (&["\"b\",W/\"a1\" , \"c\""], true),
            (&["\"x,y\", W/\"a1\""], true),
            (&["\"b\"", "W/\"a1\""], true),
            (&[], false),
            (&[""], false),
            (&["a1"], false),
            (&["w/\"a1\""], false),
            (&["W/\"b\", \"c\""], false),
            (&["W/W/\"a1\""], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            assert_eq!(is_known(&headers, "\"a1\""), known, "{lines:?}");
        }
    }
}
