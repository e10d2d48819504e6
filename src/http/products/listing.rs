//! Lists of products, by a query or by a body.

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use utoipa::ToSchema;

use crate::computing::{LARGE_BYTES, in_place};
use crate::domain::ShopId;
use crate::domain::filter::Criteria;
use crate::http::admission::{ITEM_BYTES, Tab};
use crate::http::body::{aside, malformed};
use crate::http::described::errors::{Errors, SEARCH};
use crate::http::described::kinds::{DetailName, PageSize, ShopList, TextList};
use crate::http::error::ApiError;
use crate::http::links::{self, PageLinks};
use crate::http::params::{DEFAULT_PAGE_SIZE, Params};
use crate::http::products::{Detail, PathParts, ProductAnswer};
use crate::http::state::AppState;
use crate::search::Search;
use crate::store::accounts::Caller;
use crate::store::assignments::SelectionError;
use crate::store::products::ProductPage;

/// A page of products.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(in crate::http) struct PageOfProducts {
    /// In the order of the list.
    items: Vec<ProductAnswer>,
    links: PageLinks,
    /// With `count=true`: how many there are on all pages.
    #[schema(nullable = false)]
    total: Option<i64>,
}

/// What a list shows.
pub(super) struct Listing {
    /// Only these products; unknown ids select nothing.
    pub product_ids: Option<Vec<String>>,
    /// Only products that satisfy these.
    pub criteria: Option<Criteria>,
    /// Only products associated with any of these shops.
    pub shop_ids: Option<Vec<i64>>,
    /// How much of each.
    pub detail: Detail,
    /// Items of a page.
    pub size: Option<usize>,
    /// From a link.
    pub cursor: Option<String>,
    /// Whether all are counted.
    pub count: bool,
}

#[utoipa::path(get, path = "/products/global", tag = "Products", operation_id = "listGlobalProducts",
    summary = "List products",
    description = "Lists products by productId, in pages. Follow links.next to the end to visit each once. For many ids or long filters there is POST …/search.",
    params(
        ("size" = inline(Option<PageSize>), Query, description = "Items of a page. Default 50."),
        ("detail" = inline(Option<DetailName>), Query, description = "Small, Medium or Large, which is the default."),
        ("productIds" = inline(Option<TextList>), Query, description = "Ids, comma-separated; when repeated, each value is one id."),
        ("filterCriteria" = Option<String>, Query, description = "A JSON array of filter objects."),
        ("shopIds" = inline(Option<ShopList>), Query, description = "Products associated with any of these shops, comma-separated or repeated."),
        ("count" = Option<bool>, Query, description = "Whether `total` tells how many products there are on all pages. Default false."),
        ("cursor" = Option<String>, Query, description = "From a link of this service."),
    ),
    responses((status = 200, description = "A page of products.", body = PageOfProducts),
        Errors<{ SEARCH }>))]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Path(path): Path<PathParts>,
    tab: Tab,
    params: Params,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let shop = path.shop()?;
    let listing = Listing {
        size: Some(params.size()?),
        detail: Detail::parse(&params)?,
        product_ids: params.list("productIds")?,
        shop_ids: params.shop_ids()?,
        count: params.boolean("count")?.unwrap_or(false),
        cursor: params.one("cursor")?.map(str::to_owned),
        criteria: params.one("filterCriteria")?.map(Criteria::parse).transpose().map_err(malformed)?,
    };
    show(&state, &caller, &tab, shop, listing, "", query.as_deref().unwrap_or_default()).await
}

/// Answers a page of a list. `below` is the path of the operation below that of the products, `query` the raw query.
pub(super) async fn show(
    state: &AppState,
    caller: &Caller,
    tab: &Tab,
    shop: ShopId,
    listing: Listing,
    below: &str,
    query: &str,
) -> Result<Response, ApiError> {
    let Listing { mut product_ids, criteria, mut shop_ids, detail, size, cursor, count } = listing;
    let size = size.unwrap_or(DEFAULT_PAGE_SIZE);
    let at = links::position_at(cursor.as_deref())?;
    tab.charge(size * ITEM_BYTES).await?;
    // A local product is associated with its shop and no other, whatever is stored of it.
    if let (Some(own), Some(asked)) = (shop.number(), shop_ids.take_if(|_| shop.number().is_some()))
        && !asked.contains(&own)
    {
        product_ids = Some(Vec::new());
    }
    let (ids, shops) = (product_ids.as_deref(), shop_ids.as_deref());
    let mut total = None;
    let ProductPage { page, ends, bytes } = match &criteria {
        None => {
            if count {
                let counted = state.store.count_selected(caller.account, shop, ids, shops, state.search_deadline);
                total = Some(counted.await.map_err(SelectionError::from)?);
            }
            state.store.products(caller.account, shop, ids, shops, &at, size).await?
        }
        Some(criteria) => {
            let search = Search {
                account: caller.account,
                shop: shop.stored(),
                criteria,
                product_ids: ids,
                shop_ids: shops,
                position: &at,
                size,
                deadline: state.search_deadline,
            };
            tab.search().await?;
            if count {
                total = Some(state.search.count(&search).await?);
            }
            // One that is gone by now is left out.
            let found = state.search.page(&search).await?;
            state.store.products_found(caller.account, found, &at).await?
        }
    };
    // A page of few products may weigh more than was asked for them.
    tab.cover(bytes).await?;
    let path = format!("{}{below}", links::products_path(shop));
    let (own, query) = (state.links.clone(), query.to_owned());
    let answer = move || {
        let page = page.map(|record| ProductAnswer::new(record, detail, &own));
        links::counted_page(&own, &path, &query, page, ends, total)
    };
    if bytes > LARGE_BYTES {
        return aside(bytes, answer).await;
    }
    // An ordinary page, too, is made beside those who wait for this thread: inline, lists were a third slower where
    // there is more to do than processors.
    Ok(in_place(size * ITEM_BYTES, answer))
}
