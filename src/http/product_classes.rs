//! The classes of a taxonomy: browsed, found by code, by label, and by the words that shops use.

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::classify::Scored;
use crate::domain::ClassCode;
use crate::domain::forms::TaxonomyName;
use crate::domain::nomenclature::Nomenclature;
use crate::http::admission::Tab;
use crate::http::candidates::{LabelsAnswer, PathStep, path, rounded};
use crate::http::described::errors::{Errors, TAXONOMY};
use crate::http::described::kinds::{CodeForm, PageSize};
use crate::http::error::ApiError;
use crate::http::links::{self, PageLinks};
use crate::http::params::Params;
use crate::http::state::AppState;
use crate::http::taxonomies::{SegmentAnswer, segments, taxonomy};
use crate::store::pages::{Page, Position};

/// Most characters of a query: words, not a description.
const MAX_QUERY_CHARACTERS: usize = 200;
/// Most classes that the words of a query lead to through the classifier.
const MAX_LED_TO: usize = 20;
/// From which confidence what the words mean comes before what is only called so.
const MEANT: f32 = 0.2;
/// Below which confidence a class is not shown.
const FAINT: f32 = 0.02;

/// A class of a taxonomy.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassAnswer {
    /// Its code.
    product_class_code: String,
    /// What it is called.
    labels: LabelsAnswer,
    /// Classes from the chapter down to it.
    path: Vec<PathStep>,
    /// Whether classes lie below it.
    has_children: bool,
    /// What else tells goods of this code apart for VAT; without it, nothing does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    segments: Vec<SegmentAnswer>,
    /// Where the words of the query lead to it: how sure the classifier is that a good of that name belongs there, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
}

/// A class that is listed, and how sure the words of the query lead to it.
type Listed = (ClassCode, Option<f32>);

/// A page of classes.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer in the OpenAPI document")]
pub(super) struct PageOfClasses {
    /// In the order of the list, or the best first.
    items: Vec<ClassAnswer>,
    links: PageLinks,
}

#[utoipa::path(get, path = "/product-classes/{taxonomy}", tag = "Taxonomies", operation_id = "listProductClasses",
    summary = "Browse or search a taxonomy",
    description = "Browses a taxonomy, or searches it: by the words that shops use, which the classifier understands, by words of labels in German and English, or by the beginning of a code.",
    params(
        ("taxonomy" = inline(TaxonomyName), Path, description = "TARIC, TARES or UKGT."),
        ("query" = Option<String>, Query, description = "Words, at most 200 characters, or the first digits of a code. Without it, the classes directly under `under` are listed."),
        ("under" = inline(Option<CodeForm>), Query, description = "A code; only what lies below it. Without it, the chapters."),
        ("size" = inline(Option<PageSize>), Query, description = "Classes of a page. Default 50."),
        ("cursor" = Option<String>, Query, description = "From a link of this service."),
    ),
    responses((status = 200, description = "A page of classes.", body = PageOfClasses),
        Errors<{ TAXONOMY }>))]
pub(super) async fn list(
    State(state): State<AppState>,
    tab: Tab,
    Path(name): Path<String>,
    params: Params,
    RawQuery(sent): RawQuery,
) -> Result<Response, ApiError> {
    let size = params.size()?;
    let at: Position<usize> = links::position(&params)?;
    let query = params.one("query")?.map(str::trim).filter(|query| !query.is_empty());
    if query.is_some_and(|query| query.chars().count() > MAX_QUERY_CHARACTERS) {
        return Err(ApiError::malformed_at("query", format!("has at most {MAX_QUERY_CHARACTERS} characters")));
    }
    let under = params
        .one("under")?
        .map(|text| ClassCode::new(text).ok_or_else(|| ApiError::malformed_at("under", "is a code of 2 to 10 digits")));
    let under = under.transpose()?;
    let taxonomy = taxonomy(&name)?;
    let reference = state.engine.reference();
    let nomenclature = reference.nomenclature(taxonomy);
    let under = under.map(|under| nomenclature.canonical(under).unwrap_or(under));
    let found: Vec<Listed> = match query {
        Some(query) if is_code(query) => plain(by_code(nomenclature, query, under)),
        Some(query) => {
            let (engine, words) = (state.engine.clone(), query.to_owned());
            let led_to = tab.work().await?.turn(move || engine.led_to(&words, taxonomy, MAX_LED_TO)).await?;
            by_words(nomenclature, query, under, &led_to)
        }
        None => match under {
            Some(under) => plain(nomenclature.children(under).into_iter().map(|(code, _)| code)),
            None => plain(nomenclature.chapters().into_iter().map(|(code, _)| code)),
        },
    };
    let (start, end) = bounds(found.len(), size, &at);
    let answer = |(code, confidence): &Listed| {
        let path = path(&state.engine, taxonomy, *code);
        let (de, en) = path.last().map(|step| (step.labels.de.clone(), step.labels.en.clone())).unwrap_or_default();
        ClassAnswer {
            product_class_code: code.to_string(),
            labels: LabelsAnswer { de, en },
            path,
            has_children: nomenclature.has_children(*code),
            segments: segments(&reference, taxonomy, *code),
            confidence: confidence.map(rounded),
        }
    };
    let page = Page {
        items: found[start..end].iter().map(answer).collect(),
        more_after: end < found.len(),
        more_before: start > 0,
    };
    let ends = (start < end).then(|| (start, end - 1));
    let path = format!("/product-classes/{}", taxonomy.name());
    Ok(links::page(&state.links, &path, sent.as_deref().unwrap_or_default(), page, ends))
}

/// Which of so many items a page holds; a cursor names an item by its place.
fn bounds(all: usize, size: usize, at: &Position<usize>) -> (usize, usize) {
    match at {
        Position::Start => (0, size.min(all)),
        Position::After(last) => {
            let start = last.saturating_add(1).min(all);
            (start, start.saturating_add(size).min(all))
        }
        Position::Before(first) => {
            let end = (*first).min(all);
            (end.saturating_sub(size), end)
        }
    }
}

/// Whether a query is digits, with the blanks and points that codes are written with.
fn is_code(query: &str) -> bool {
    query.chars().all(|c| c.is_ascii_digit() || c == ' ' || c == '.') && query.contains(|c: char| c.is_ascii_digit())
}

fn plain(codes: impl IntoIterator<Item = ClassCode>) -> Vec<Listed> {
    codes.into_iter().map(|code| (code, None)).collect()
}

/// The classes whose codes begin with the digits; where there are none, those of the class that zeros at their end name.
fn by_code(nomenclature: &Nomenclature, query: &str, under: Option<ClassCode>) -> Vec<ClassCode> {
    let digits: String = query.chars().filter(char::is_ascii_digit).collect();
    let begun = |digits: &str| -> Vec<ClassCode> {
        let wanted =
            |code: &ClassCode| code.as_str().starts_with(digits) && under.is_none_or(|under| code.is_under(&under));
        nomenclature.codes().filter(wanted).collect()
    };
    let found = begun(&digits);
    match ClassCode::new(&digits).and_then(|code| nomenclature.canonical(code)) {
        Some(named) if found.is_empty() => begun(named.as_str()),
        _ => found,
    }
}

/// What the words most probably mean, then what is called so, then what they may mean; each class once.
fn by_words(nomenclature: &Nomenclature, query: &str, under: Option<ClassCode>, led_to: &[Scored]) -> Vec<Listed> {
    let confidence = |code: ClassCode| led_to.iter().find(|scored| scored.code == code).map(|scored| scored.confidence);
    let meant = led_to.iter().filter(|scored| scored.confidence >= MEANT).map(|scored| scored.code);
    let called = nomenclature.search(query, under, nomenclature.len()).into_iter().map(|hit| hit.code);
    let maybe = led_to.iter().filter(|scored| scored.confidence >= FAINT).map(|scored| scored.code);
    let mut listed: Vec<Listed> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for code in meant.chain(called).chain(maybe) {
        if under.is_none_or(|under| code.is_under(&under)) && seen.insert(code) {
            listed.push((code, confidence(code)));
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_and_end_where_the_list_does() {
        for (at, expected) in [
            (Position::Start, (0, 3)),
            (Position::After(2), (3, 6)),
            (Position::After(5), (6, 7)),
            (Position::After(6), (7, 7)),
            (Position::After(usize::MAX), (7, 7)),
            (Position::Before(3), (0, 3)),
            (Position::Before(1), (0, 1)),
            (Position::Before(usize::MAX), (4, 7)),
        ] {
            assert_eq!(bounds(7, 3, &at), expected, "{at:?}");
        }
    }

    #[test]
    fn codes_are_told_from_words() {
        for (query, code) in [("6109", true), ("6109.10 00", true), ("LED 9", false), (". .", false), ("Öl", false)] {
            assert_eq!(is_code(query), code, "{query}");
        }
    }
}
