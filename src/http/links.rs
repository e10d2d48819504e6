//! Absolute URLs in answers, and the opaque positions inside the links of lists.

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::ShopId;
use crate::domain::nul::holds_nul;
use crate::http::error::ApiError;
use crate::http::params::Params;
use crate::store::pages::{Page, Position};

/// The path under which everything but health and documentation lies.
pub const BASE_PATH: &str = "/api/vat-classification/v1";
/// Where files of products are sent, below the base path.
pub(super) const IMPORTS_PATH: &str = "/imports";

/// What stays as it is in a path segment and in a query value: the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Most bytes of a `Link` header. Proxies give up on answers whose headers fill their buffers, of 4 or 8 KiB; the body
/// has the same links.
const MAX_LINK_HEADER_BYTES: usize = 4 << 10;

/// Percent-encodes a path segment or a query value.
pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Makes URLs that begin with the public address of the service.
#[derive(Clone, Debug)]
pub struct Links {
    base: String,
}

impl Links {
    /// Links below a public address such as `https://vat.example.org`.
    pub fn new(public_url: &str) -> Links {
        Links { base: format!("{}{BASE_PATH}", public_url.trim_end_matches('/')) }
    }

    /// The base of all URLs, ending with the version.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn product(&self, shop: ShopId, product_id: &str) -> String {
        format!("{}{}/{}", self.base, products_path(shop), encode(product_id))
    }

    pub(super) fn picture(&self, shop: ShopId, product_id: &str) -> String {
        format!("{}{}/product-picture?productId={}", self.base, products_path(shop), encode(product_id))
    }

    pub(super) fn assignment(&self, uuid: Uuid) -> String {
        format!("{}/assignments/{uuid}", self.base)
    }
}

pub(super) fn products_path(shop: ShopId) -> String {
    match shop.number() {
        None => "/products/global".to_owned(),
        Some(shop) => format!("/shops/{shop}/products/local"),
    }
}

/// Links to this page of a list and to its neighbours; null where there is none.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageLinks {
    /// This page.
    #[serde(rename = "self")]
    own: String,
    /// The page behind it.
    #[schema(required = true)]
    next: Option<String>,
    /// The page before it.
    #[schema(required = true)]
    prev: Option<String>,
}

/// A page of a list.
#[derive(Debug, Serialize)]
pub(super) struct PageAnswer<T> {
    /// In the order of the list.
    items: Vec<T>,
    links: PageLinks,
    /// With `count=true`: how many there are on all pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<i64>,
}

#[derive(Serialize, Deserialize)]
enum Cursor<K> {
    #[serde(rename = "a")]
    After(K),
    #[serde(rename = "b")]
    Before(K),
}

/// The position that the parameter `cursor` names.
pub(super) fn position<K: DeserializeOwned>(params: &Params) -> Result<Position<K>, ApiError> {
    position_at(params.one("cursor")?)
}

/// The position that a cursor names; the start without one.
pub(super) fn position_at<K: DeserializeOwned>(cursor: Option<&str>) -> Result<Position<K>, ApiError> {
    let Some(text) = cursor else { return Ok(Position::Start) };
    let decoded = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    // The database takes no U+0000, and no key has one.
    let decoded = decoded.filter(|bytes| !serde_json::from_slice(bytes).is_ok_and(|json| holds_nul(&json)));
    let cursor = decoded.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match cursor {
        Some(Cursor::After(key)) => Ok(Position::After(key)),
        Some(Cursor::Before(key)) => Ok(Position::Before(key)),
        None => Err(ApiError::malformed_at("cursor", "take it as it stands in a link of this service")),
    }
}

fn cursor<K: Serialize>(cursor: &Cursor<K>) -> String {
    BASE64URL_NOPAD.encode(&serde_json::to_vec(cursor).unwrap_or_default())
}

/// Answers a page with its links, in the body and in a `Link` header.
///
/// `path` is the list's path below the base, `query` the raw query of the request; `first` and `last` are the keys of
/// the page's first and last items.
pub(super) fn page<T: Serialize, K: Serialize>(
    links: &Links,
    path: &str,
    query: &str,
    page: Page<T>,
    ends: Option<(K, K)>,
) -> Response {
    counted_page(links, path, query, page, ends, None)
}

/// The same with how many items there are on all pages, where that was asked for.
pub(super) fn counted_page<T: Serialize, K: Serialize>(
    links: &Links,
    path: &str,
    query: &str,
    page: Page<T>,
    ends: Option<(K, K)>,
    total: Option<i64>,
) -> Response {
    let kept: Vec<&str> =
        query.split('&').filter(|pair| !pair.is_empty() && pair.split('=').next() != Some("cursor")).collect();
    let link = |at: Cursor<K>| {
        let mut pairs: Vec<String> = kept.iter().map(|pair| (*pair).to_owned()).collect();
        pairs.push(format!("cursor={}", cursor(&at)));
        format!("{}{path}?{}", links.base, pairs.join("&"))
    };
    let own = if query.is_empty() { format!("{}{path}", links.base) } else { format!("{}{path}?{query}", links.base) };
    let (next, prev) = match ends {
        None => (None, None),
        Some((first, last)) => {
            (page.more_after.then(|| link(Cursor::After(last))), page.more_before.then(|| link(Cursor::Before(first))))
        }
    };
    let header = [("self", Some(&own)), ("next", next.as_ref()), ("prev", prev.as_ref())]
        .into_iter()
        .filter_map(|(rel, url)| url.map(|url| format!("<{url}>; rel=\"{rel}\"")))
        .collect::<Vec<_>>()
        .join(", ");
    let mut response =
        Json(PageAnswer { items: page.items, links: PageLinks { own, next, prev }, total }).into_response();
    if header.len() > MAX_LINK_HEADER_BYTES {
        return response;
    }
    if let Ok(value) = HeaderValue::from_str(&header) {
        response.headers_mut().insert(header::LINK, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_key() {
        let text = cursor(&Cursor::After("ä/b".to_owned()));
        let params = Params::parse(&format!("cursor={text}")).expect("a query");
        assert_eq!(position::<String>(&params).ok(), Some(Position::After("ä/b".to_owned())));
        // The fourth is {"a":"\u0000"}.
        for bad in ["cursor=", "cursor=x", "cursor=e30", "cursor=eyJhIjoiXHUwMDAwIn0", "cursor=a&cursor=b"] {
            assert!(position::<String>(&Params::parse(bad).expect("a query")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_link_header_that_would_fill_the_buffers_of_a_proxy_is_left_out() {
        let links = Links::new("http://host/");
        for (length, sent) in [(10, true), (MAX_LINK_HEADER_BYTES, false)] {
            let query = format!("filterCriteria={}", "a".repeat(length));
            let none: Page<u8> = Page { items: vec![], more_after: false, more_before: false };
            let answer = page(&links, "/products/global", &query, none, None::<(u8, u8)>);
            assert_eq!(answer.headers().contains_key(header::LINK), sent, "{length}");
        }
    }

    #[test]
    fn ids_are_encoded_in_urls() {
        let links = Links::new("http://host/");
        let base = "http://host/api/vat-classification/v1";
        assert_eq!(links.product(ShopId::GLOBAL, "a/b ä"), format!("{base}/products/global/a%2Fb%20%C3%A4"));
        let shop = ShopId::local(7).expect("a shop");
        assert_eq!(links.product(shop, "x"), format!("{base}/shops/7/products/local/x"));
    }
}
