//! What texts, numbers and lists of requests may hold, as types that stand for it in the OpenAPI document: at a field as
//! `#[schema(inline, value_type = Option<CustomsCodeForm>)]`. No value has such a type.
//!
//! They say what a schema can; the rules themselves are those of [`validation`](crate::domain::validation).

use serde_json::Value;
use utoipa::Number;
use utoipa::openapi::schema::{
    AdditionalProperties, AllOfBuilder, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

use crate::domain::identity::MAX_PRODUCT_ID_CHARACTERS;
use crate::domain::limits::{
    MAX_ATTRIBUTE_CHARACTERS, MAX_CONDITIONS, MAX_DESCRIPTION_CHARACTERS, MAX_MANUFACTURER_CHARACTERS,
    MAX_NAME_CHARACTERS, MAX_REFERENCE_CHARACTERS, MAX_REVIEW_WEIGHT, MAX_TAG_CHARACTERS, MAX_TAGS, MAX_UIDS, UNITS,
};
use crate::domain::{Taxonomy, countries};

/// Makes types that stand for a schema: `/// What it is. Type "NameInTheDocument" = schema;`.
macro_rules! forms {
    ($($(#[$doc:meta])* $kind:ident $name:literal = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $kind;

        impl utoipa::PartialSchema for $kind {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::RefOr::T(utoipa::openapi::Schema::from($schema))
            }
        }

        impl utoipa::ToSchema for $kind {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed($name)
            }
        }
    )*};
}
pub(crate) use forms;

/// Not one of the ids that a path would take for something else.
const PRODUCT_ID: &str = r"^(?!(\.|\.\.|product-picture)$)[^\u0000]+$";
/// As people write it.
const CUSTOMS_CODE: &str = r"^[ .]*([0-9][ .]*){4,11}$";
/// Not every such key is a language.
pub(crate) const LANGUAGE: &str = "^[a-z]{2,3}$";
/// Whether it is declared is another matter.
const ATTRIBUTE_NAME: &str = "^[A-Za-z][A-Za-z0-9_]{0,63}$";
/// The check digit is another matter.
const GTIN: &str = "^([0-9]{8}|[0-9]{12,14})$";

/// A text.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A text of this form.
pub(crate) fn formed(pattern: &str) -> ObjectBuilder {
    text().pattern(Some(pattern))
}

/// One of these names.
pub(crate) fn one_of(names: impl IntoIterator<Item = impl Into<String>>) -> ObjectBuilder {
    let names = names.into_iter().map(|name| Value::String(name.into()));
    text().enum_values(Some(names.collect::<Vec<_>>()))
}

/// A list of such items, each once.
pub(crate) fn each_once(item: ObjectBuilder, most: usize) -> ArrayBuilder {
    ArrayBuilder::new().items(item).min_items(Some(1)).max_items(Some(most)).unique_items(true)
}

/// Some of these names; one that is there twice says no more.
pub(crate) fn some_of(names: impl IntoIterator<Item = impl Into<String>>) -> ArrayBuilder {
    ArrayBuilder::new().items(one_of(names)).min_items(Some(1))
}

/// A whole number of 64 bits, not below this.
pub(crate) fn whole(least: i64) -> ObjectBuilder {
    let form = ObjectBuilder::new().schema_type(Type::Integer);
    let form = form.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
    form.minimum(Some(Number::Int(least as isize))).maximum(Some(Number::Int(i64::MAX as isize)))
}

/// A number.
pub(crate) fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number)
}

fn texts(most: usize, characters: usize) -> ArrayBuilder {
    ArrayBuilder::new().items(text().max_length(Some(characters))).max_items(Some(most))
}

/// An object with at least one of its fields. The derive of utoipa takes `min_properties` for the most.
pub(crate) fn not_empty(schema: RefOr<Schema>) -> Schema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.min_properties = Some(1);
            Schema::Object(object)
        }
        RefOr::T(other) => other,
        RefOr::Ref(reference) => Schema::AllOf(AllOfBuilder::new().item(reference).build()),
    }
}

/// A schema with further keywords of JSON Schema, for which utoipa has no word.
pub(crate) fn with_keywords(
    schema: RefOr<Schema>,
    keywords: impl IntoIterator<Item = (&'static str, Value)>,
) -> Schema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            let extensions = object.extensions.get_or_insert_default();
            extensions.extend(keywords.into_iter().map(|(name, value)| (name.to_owned(), value)));
            Schema::Object(object)
        }
        RefOr::T(other) => other,
        RefOr::Ref(reference) => Schema::AllOf(AllOfBuilder::new().item(reference).build()),
    }
}

/// The id of a product.
pub(crate) fn product_id() -> ObjectBuilder {
    formed(PRODUCT_ID).min_length(Some(1)).max_length(Some(MAX_PRODUCT_ID_CHARACTERS))
}

/// Identifiers by kind, of which one has a form of its own.
fn uids() -> Object {
    let value = RefOr::T(Schema::from(text().max_length(Some(MAX_REFERENCE_CHARACTERS))));
    let others = AdditionalProperties::RefOr(value);
    let mut uids = ObjectBuilder::new().property("gtin", formed(GTIN)).additional_properties(Some(others)).build();
    uids.property_names = Some(Box::new(text().max_length(Some(MAX_REFERENCE_CHARACTERS)).into()));
    uids.max_properties = Some(MAX_UIDS);
    uids
}

/// A value of a merchant's attribute, whose declaration says which of these types it has.
fn attribute_value() -> ObjectBuilder {
    let types = SchemaType::Array(vec![Type::String, Type::Number, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).max_length(Some(MAX_ATTRIBUTE_CHARACTERS))
}

forms! {
    /// The id of a product.
    ProductIdForm "ProductId" = product_id();
    /// A shop, or another whole number from 1.
    ShopNumber "ShopId" = whole(1);
    /// A version that was read before.
    VersionNumber "Version" = whole(0);
    /// A taxonomy.
    TaxonomyName "Taxonomy" = one_of(Taxonomy::ALL.map(Taxonomy::name));
    /// The key of a language.
    LanguageKey "LanguageKey" = formed(LANGUAGE);
    /// How a filter object is joined to the next.
    OperationName "Operation" = one_of(["AND", "OR"]);
    /// A customs code.
    CustomsCodeForm "CustomsCode" = formed(CUSTOMS_CODE);
    /// A country of origin.
    CountryCode "Country" = one_of(countries::all());
    /// A unit of a physical measure.
    UnitName "Unit" = one_of(UNITS);
    /// An amount of it.
    Amount "Amount" = number().exclusive_minimum(Some(Number::Int(0)));
    /// How much a product matters.
    ReviewWeight "ReviewWeight" =
        number().minimum(Some(Number::Int(0))).maximum(Some(Number::Int(MAX_REVIEW_WEIGHT as isize)));
    /// The name of a product.
    NameText "Name" = text().max_length(Some(MAX_NAME_CHARACTERS));
    /// The description of a product.
    DescriptionText "Description" = text().max_length(Some(MAX_DESCRIPTION_CHARACTERS));
    /// Who made a product.
    ManufacturerText "Manufacturer" = text().max_length(Some(MAX_MANUFACTURER_CHARACTERS));
    /// A reference to a document.
    ReferenceText "Reference" = text().max_length(Some(MAX_REFERENCE_CHARACTERS));
    /// Tags in one language.
    Tags "Tags" = texts(MAX_TAGS, MAX_TAG_CHARACTERS);
    /// Condition codes.
    Conditions "Conditions" = texts(MAX_CONDITIONS, MAX_REFERENCE_CHARACTERS);
    /// Identifiers by kind.
    Uids "ProductUids" = uids();
    /// The name of a merchant's attribute.
    AttributeName "AttributeName" = formed(ATTRIBUTE_NAME);
    /// A text that is not empty.
    SomeText "SomeText" = text().min_length(Some(1));
    /// A version that is read for its type only.
    AnyVersion "AnyVersion" = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(Number::Int(0)))
        .maximum(Some(Number::UInt(u64::MAX as usize)));
    /// A value of a merchant's attribute.
    AttributeValue "AttributeValue" = attribute_value();
}
