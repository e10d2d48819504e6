//! Filters in bodies, as they are described. They are read by `domain::filter` and `http::assignment_filter`.

use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::domain::forms::{
    CountryCode, LanguageKey, OperationName, ShopNumber, SomeText, forms, not_empty, with_keywords,
};
use crate::http::described::kinds::{
    AutoStateList, CodePrefix, Confidence, DayOrInstant, StatusList, StrategyList, TextList,
};

/// One object of filterCriteria: all its properties hold. At least one of them is other than languageKey and operation.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = FilterObjectFields)]
#[expect(dead_code, reason = "it describes what a body holds")]
struct FilterObjectFields {
    /// The language of the texts; required with productName and productTag, `en` for keywords where it is absent.
    #[schema(inline, value_type = Option<LanguageKey>)]
    language_key: Option<String>,
    /// An expression over name and description.
    #[schema(inline, value_type = Option<SomeText>)]
    keywords: Option<String>,
    /// An expression over the name.
    #[schema(inline, value_type = Option<SomeText>)]
    product_name: Option<String>,
    /// An expression over a tag.
    #[schema(inline, value_type = Option<SomeText>)]
    product_tag: Option<String>,
    /// A part of the id.
    #[schema(inline, value_type = Option<SomeText>)]
    product_id: Option<String>,
    /// The country of origin.
    #[schema(inline, value_type = Option<CountryCode>)]
    country_of_origin: Option<String>,
    /// How it is joined to the next object; AND where it is absent.
    #[schema(inline, value_type = Option<OperationName>)]
    operation: Option<String>,
}

/// The filter of an action: the filters of the list of assignments, under the names of its parameters.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "it describes what a body holds")]
pub(in crate::http) struct ActionFilter {
    /// Statuses; ALL selects every one.
    #[schema(inline, value_type = StatusList)]
    assignment_status: String,
    /// Products to select.
    #[schema(inline, value_type = Option<TextList>)]
    product_ids: Option<String>,
    /// Labels that an assignment must carry; with ! before it, must not carry.
    #[schema(inline, value_type = Option<TextList>)]
    labels: Option<String>,
    /// Local products of this shop, and global ones associated with it.
    #[schema(inline, value_type = Option<ShopNumber>)]
    shop_id: Option<i64>,
    /// Those whose product changed after a person decided, or the others.
    review_needed: Option<bool>,
    /// How the class was found.
    #[schema(inline, value_type = Option<StrategyList>)]
    strategy: Option<String>,
    /// What auto-assignment does.
    #[schema(inline, value_type = Option<AutoStateList>)]
    auto_assignment: Option<String>,
    /// The beginning of a code: those with a class that begins so.
    #[schema(inline, value_type = Option<CodePrefix>)]
    product_class: Option<String>,
    /// At least so sure.
    #[schema(inline, value_type = Option<Confidence>)]
    confidence_from: Option<f64>,
    /// At most so sure.
    #[schema(inline, value_type = Option<Confidence>)]
    confidence_to: Option<f64>,
    /// Changed then or later: an instant, or a day (UTC).
    #[schema(inline, value_type = Option<DayOrInstant>)]
    updated_from: Option<String>,
    /// Changed then or before: an instant, or a day (UTC), which is included.
    #[schema(inline, value_type = Option<DayOrInstant>)]
    updated_to: Option<String>,
    /// Those whose product satisfies these.
    #[schema(max_items = 32, value_type = Option<Vec<FilterObject>>)]
    filter_criteria: Option<()>,
}

forms! {
    /// One object of filterCriteria.
    FilterObject "FilterObject" = with_keywords(
        not_empty(FilterObjectFields::schema()).into(),
        [
            ("dependentRequired", json!({"productName": ["languageKey"], "productTag": ["languageKey"]})),
            ("not", json!({"propertyNames": {"enum": ["languageKey", "operation"]}})),
        ],
    );
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;
    use crate::domain::filter::MAX_ELEMENTS;

    #[test]
    fn the_description_has_the_fields_and_limits_that_are_read() {
        let filter = serde_json::to_value(ActionFilter::schema()).expect("a schema");
        let fields = filter["properties"].as_object().expect("fields");
        assert!(crate::http::assignment_filter::FILTER_FIELDS.iter().all(|field| fields.contains_key(*field)));
        assert_eq!(fields.len(), crate::http::assignment_filter::FILTER_FIELDS.len());
        assert_eq!(fields["filterCriteria"]["maxItems"], MAX_ELEMENTS);
    }
}
