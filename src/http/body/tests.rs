use std::sync::{Mutex, mpsc};

use axum::http::Request;
use serde::de::IgnoredAny;

use super::*;
use crate::computing::LARGE_BYTES;

#[test]
fn hostile_json_is_refused_and_plain_json_is_not() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_objects = "{\"a\":".repeat(100_000);
    for bad in [
        "",
        "{",
        "{} {}",
        "nul",
        "{\"a\":1,\"a\":2}",
        "{\"a\":{\"b\":1,\"b\":1}}",
        "{\"a\\u0000\":1}",
        "[\"\\u0000\"]",
        "[\"\u{0}\"]",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "[1e400]",
        "[01]",
        "[NaN]",
        "{a:1}",
        "\u{feff}{}",
        &deep,
        &deep_objects,
    ] {
        assert!(parse(bad.as_bytes().to_vec(), MAX_VALUES).is_err(), "{}", &bad[..bad.len().min(40)]);
    }
    assert!(parse(b"[\"\xff\"]".to_vec(), MAX_VALUES).is_err());
    for good in
        ["{}", " [1, -9223372036854775808, 18446744073709551615, 1.5e300] ", "\"\\\\u0000\"", "\"\\ud83d\\ude00\""]
    {
        assert!(parse(good.as_bytes().to_vec(), MAX_VALUES).is_ok(), "{good}");
    }
}

#[test]
fn a_misfit_is_named_by_its_path() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[allow(dead_code)]
        b: Vec<i64>,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Outer {
        #[allow(dead_code)]
        a: Inner,
    }
    let place = |text: &str| {
        let (document, _) = parse(text.as_bytes().to_vec(), MAX_VALUES).expect("JSON");
        let by_part = part_as::<Outer>(document.whole(), "products.x").err();
        let by_value = value_as::<Outer>(document.value(), "products.x").err();
        assert_eq!(by_part, by_value);
        by_part.and_then(|fault| fault.field)
    };
    assert_eq!(place(r#"{"a":{"b":[1]}}"#), None);
    assert_eq!(place(r#"{"a":{"b":[1,"2"]}}"#).as_deref(), Some("products.x.a.b[1]"));
    assert_eq!(place(r#"{"a":{"b":[],"c":1}}"#).as_deref(), Some("products.x.a.c"));
    assert_eq!(place(r#"{"a":{"b":[null]}}"#).as_deref(), Some("products.x.a.b[0]"));
    let (list, _) = parse(br#"{"a":[[]]}"#.to_vec(), MAX_VALUES).expect("JSON");
    let fault = part_as::<Outer>(list.whole(), "").expect_err("an array is no object");
    assert_eq!(fault.message, "invalid type: sequence, expected an object");
    assert_eq!(place(r#"{}"#).as_deref(), Some("products.x.a"), "a missing field is where it should be");
}

#[test]
fn a_document_is_taken_apart_without_building_values() {
    let (document, values) = parse(b"{\"b\": {\"x\": 1}, \"a\": [null]}".to_vec(), MAX_VALUES).expect("JSON");
    assert_eq!(values, 15);
    let entries = document.entries().expect("an object");
    let shown: Vec<(&str, &str)> = entries.iter().map(|(key, part)| (key.as_str(), part.text)).collect();
    assert_eq!(shown, [("b", "{\"x\": 1}"), ("a", "[null]")]);
    assert!(part_as::<Vec<Option<i64>>>(entries[1].1, "a").is_err(), "null is found in its entry");
    assert!(part_as::<Value>(entries[0].1, "b").is_ok(), "and not in others");
    for other in ["[]", "1", "null", "\"x\""] {
        let (document, _) = parse(other.as_bytes().to_vec(), MAX_VALUES).expect("JSON");
        assert!(document.entries().is_none(), "{other}");
    }
}

#[tokio::test]
async fn a_body_is_refused_as_soon_as_it_is_too_long() {
    let chunk = axum::body::Bytes::from(vec![b' '; 1 << 20]);
    let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    let refused = collect(Body::from_stream(endless), 2, None).await;
    assert!(matches!(refused, Err(ApiError::PayloadTooLarge(_))), "{refused:?}");
    let short = collect(Body::from("abc"), 2, None).await.expect("a body");
    assert_eq!(short, b"abc");
}

#[test]
fn a_body_of_many_small_values_is_refused_before_anything_is_built() {
    let objects = format!("[{}1]", "{\"\":0},".repeat(1 << 20));
    let refused = parse(objects.into_bytes(), MAX_VALUES);
    assert!(matches!(refused, Err(ApiError::PayloadTooLarge(_))), "{refused:?}");
}

/// What tells a body that others are served.
static SERVED: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

/// A body that cannot be read before others are served.
struct Patient;

impl<'de> Deserialize<'de> for Patient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Patient, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        let served = SERVED.lock().expect("no panic").take().expect("one body");
        served.recv_timeout(std::time::Duration::from_secs(30)).map_err(serde::de::Error::custom)?;
        Ok(Patient)
    }
}

/// The one thread that there is serves others while a handler reads a large body.
#[test]
fn others_are_served_while_a_handler_reads_a_large_body() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let (serve, served) = mpsc::channel();
    *SERVED.lock().expect("no panic") = Some(served);
    let handler = move |JsonBody(body): JsonBody| async move {
        tokio::spawn(async move { serve.send(()) });
        body_as::<Patient>(body).await.map(|_| "read")
    };
    let app = axum::Router::new().route("/", axum::routing::post(handler));
    let body = format!("\"{}\"", "x".repeat(LARGE_BYTES));
    let request = Request::post("/").header(header::CONTENT_TYPE, "application/json").body(Body::from(body));
    let answer = runtime.spawn(tower::ServiceExt::oneshot(app, request.expect("a request")));
    let answer = runtime.block_on(answer).expect("no panic").expect("an answer");
    assert_eq!(answer.status(), 200);
}
