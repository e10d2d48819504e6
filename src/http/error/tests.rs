use super::*;

#[test]
fn the_error_table_is_that_of_the_specification() {
    let wait = Duration::from_secs(1);
    let text = String::new;
    for (error, row) in [
        (ApiError::malformed(""), "400 BAD_REQUEST BadRequest"),
        (ApiError::Unauthorized(""), "401 UNAUTHORIZED Unauthorized"),
        (ApiError::Forbidden(text()), "403 FORBIDDEN Forbidden"),
        (ApiError::NotFound(text(), vec![]), "404 NOT_FOUND NotFound"),
        (ApiError::MethodNotAllowed, "405 METHOD_NOT_ALLOWED MethodNotAllowed"),
        (ApiError::RequestTimeout, "408 REQUEST_TIMEOUT RequestTimeout"),
        (ApiError::Conflict(text(), vec![], None), "409 CONFLICT CONFLICT_ENTITY_MODIFIED"),
        (ApiError::PayloadTooLarge(text()), "413 PAYLOAD_TOO_LARGE PAYLOAD_TOO_LARGE"),
        (ApiError::UnsupportedMediaType(text()), "415 UNSUPPORTED_MEDIA_TYPE UNSUPPORTED_MEDIA_TYPE"),
        (ApiError::Unprocessable(text(), vec![]), "422 UNPROCESSABLE_ENTITY INVALID_DATA_EXCEPTION"),
        (ApiError::LimitExceeded(text(), wait), "429 TOO_MANY_REQUESTS LIMIT_EXCEEDED"),
        (ApiError::RateLimited(wait), "429 TOO_MANY_REQUESTS RATE_LIMITED"),
        (ApiError::KeyReused, "422 UNPROCESSABLE_ENTITY IDEMPOTENCY_KEY_REUSED"),
        (ApiError::KeyInUse, "409 CONFLICT IDEMPOTENCY_KEY_IN_USE"),
        (ApiError::Internal(text()), "500 INTERNAL_SERVER_ERROR InternalError"),
        (ApiError::Unavailable(""), "503 SERVICE_UNAVAILABLE ServiceUnavailable"),
        (ApiError::SearchTooSlow, "503 SERVICE_UNAVAILABLE SearchTooSlow"),
        (ApiError::SearchUnavailable, "503 SERVICE_UNAVAILABLE SearchUnavailable"),
    ] {
        let (status, name, code) = error.table();
        assert_eq!(format!("{} {name} {code}", status.as_u16()), row);
        let retries = error.into_response().headers().contains_key(header::RETRY_AFTER);
        assert_eq!(retries, matches!(status.as_u16(), 429 | 503) || code == "IDEMPOTENCY_KEY_IN_USE", "{row}");
    }
}

#[test]
fn the_text_of_an_internal_error_stays_here() {
    assert!(!ApiError::Internal("password=secret".to_owned()).body().message.contains("secret"));
}
