//! What parameters and bodies may hold, said in the document as narrowly as JSON Schema can.
//!
//! The types of the handlers say too little: an optional field looks as if it could be null, a name looks like any text.
//! This narrows the finished document, so that what fits its schemas is not refused for its form. What only the account
//! or a computation decides stays open: declared attributes, cursors, filter expressions, check digits.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use utoipa::Number;
use utoipa::openapi::content::Content;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, OpenApi as Document, RefOr, Required, SchemaFormat};

use crate::domain::applications::Application;
use crate::domain::assignment::{Action, Status, Strategy};
use crate::domain::attributes;
use crate::domain::identity::MAX_PRODUCT_ID_CHARACTERS;
use crate::domain::validation::{
    MAX_ATTRIBUTE_CHARACTERS, MAX_CONDITIONS, MAX_DESCRIPTION_CHARACTERS, MAX_MANUFACTURER_CHARACTERS,
    MAX_NAME_CHARACTERS, MAX_REFERENCE_CHARACTERS, MAX_TAG_CHARACTERS, MAX_TAGS, MAX_UIDS, UNITS,
};
use crate::domain::{Taxonomy, changes, countries};
use crate::http::actions::MAX_COMMENT_CHARACTERS;
use crate::http::assignment_counts::GROUPED_BY;
use crate::http::openapi::schemas::{
    description_of, each, each_reference, each_text, each_whole, is_nullable, one_of, reference, text, whole,
    with_null, without_null,
};
use crate::http::params::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};

/// What the name of a schema gets when its fields may also be null, to be removed by a merge patch.
const PATCH_SUFFIX: &str = "Patch";
/// A product id: not one of the reserved ones.
const PRODUCT_ID: &str = r"^(?!(\.|\.\.|product-picture)$)[^\u0000]+$";
/// The code of a class.
const CLASS_CODE: &str = "^[0-9]{2,10}$";
/// A class as it is sent with an action; it has at least four digits.
const ASSIGNED_CLASS: &str = "^[0-9]{4,10}-[0-9]{2}-[0-9]{3}$";
/// The beginning of a code.
const CLASS_PREFIX: &str = "^[0-9]{1,10}$";
/// A class in a path, where the segments may be left out.
const CLASS_OR_CODE: &str = "^[0-9]{2,10}(-[0-9]{2}-[0-9]{3})?$";
/// A customs code as people write it.
const CUSTOMS_CODE: &str = r"^[ .]*([0-9][ .]*){4,11}$";
/// A day, or an instant of it.
const DAY_OR_INSTANT: &str =
    "^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$";
/// A column and what it stands for.
const MAPPING: &str = "^[^=]+=(productId|shopId|gtin|[a-z]{2}:productName)?$";
/// A colour.
const COLOR: &str = "^#[0-9A-Fa-f]{6}$";
/// The keys of languages have this form; not every such key is a language.
const LANGUAGE: &str = "^[a-z]{2,3}$";
/// The form of a global trade item number; its check digit is another matter.
const GTIN: &str = "^([0-9]{8}|[0-9]{12,14})$";
/// A label.
const LABEL: &str = r"^[^!,\u0000][^,\u0000]*$";

/// Narrows the parameters and the bodies of requests of the whole document.
pub(super) fn narrow(document: &mut Document) {
    let mut sent = BTreeSet::new();
    let mut patched = BTreeSet::new();
    for item in document.paths.paths.values_mut() {
        for (method, operation) in super::operations(item) {
            operation.parameters.iter_mut().flatten().for_each(narrow_parameter);
            if operation.operation_id.as_deref() == Some("listAssignments") {
                // Counts, with the same filter, may leave it out.
                let statuses = operation.parameters.iter_mut().flatten().filter(|one| one.name == "assignmentStatus");
                statuses.for_each(|one| one.required = Required::True);
            }
            for content in bodies(operation) {
                if let Some(schema) = &mut content.schema {
                    narrow_map_of_products(schema);
                    each_reference(schema, &mut |name| {
                        sent.insert(name.to_owned());
                    });
                    if method == "PATCH" && !matches!(schema, RefOr::Ref(_)) {
                        *schema = reference(&format!("ProductBody{PATCH_SUFFIX}"));
                        patched.insert("ProductBody".to_owned());
                    }
                }
            }
        }
    }
    let Some(components) = &mut document.components else { return };
    let schemas = &mut components.schemas;
    let patched = reachable(patched, schemas);
    sent.extend(patched.iter().cloned());
    for name in reachable(sent, schemas) {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(&name) else { continue };
        narrow_fields(&name, object);
        if patched.contains(&name) {
            let patch = patch_of(object);
            schemas.insert(format!("{name}{PATCH_SUFFIX}"), RefOr::T(Schema::Object(patch)));
        }
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(&name) else { continue };
        object.properties.values_mut().for_each(without_null);
    }
}

/// The names given, and those of the schemas to which they refer.
fn reachable(mut names: BTreeSet<String>, schemas: &BTreeMap<String, RefOr<Schema>>) -> BTreeSet<String> {
    let mut open: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let Some(schema) = schemas.get(&name) else { continue };
        each_reference(&mut schema.clone(), &mut |name| {
            if names.insert(name.to_owned()) {
                open.push(name.to_owned());
            }
        });
    }
    names
}

fn bodies(operation: &mut Operation) -> impl Iterator<Item = &mut Content> {
    operation.request_body.iter_mut().flat_map(|body| body.content.values_mut())
}

fn narrow_parameter(parameter: &mut Parameter) {
    let some_of = |names: &[&str]| {
        let list = ArrayBuilder::new().items(one_of(names)).min_items(Some(1)).max_items(Some(names.len()));
        Schema::Array(list.unique_items(true).build())
    };
    let in_path = parameter.parameter_in == ParameterIn::Path;
    let schema = match parameter.name.as_str() {
        // The path of one assignment leads here too, with a uuid in the place of a taxonomy.
        "taxonomy" if !parameter.description.as_deref().unwrap_or_default().contains("uuid") => {
            one_of(&Taxonomy::ALL.map(Taxonomy::name)).into()
        }
        "assignmentUuid" => text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).into(),
        "assignmentStatus" => {
            let names: Vec<&str> = Status::ALL.map(Status::name).into_iter().chain(["ALL"]).collect();
            some_of(&names)
        }
        "assignmentAction" => one_of(&Action::ALL.map(Action::name)).into(),
        "applications" => some_of(&Application::ALL.map(Application::name)),
        "embed" => some_of(&["EVENTS", "PRODUCT", "CANDIDATES", "VAT_RATES"]),
        "detail" => one_of(&["Small", "Medium", "Large"]).into(),
        "sort" => one_of(&["confidence", "-confidence", "updatedAt", "-updatedAt", "impact"]).into(),
        "strategy" => some_of(&Strategy::ALL.map(Strategy::name)),
        "autoAssignment" => some_of(&["PENDING", "DONE", "ABORTED"]),
        "by" => {
            let names = one_of(&GROUPED_BY.map(|(name, _)| name));
            let list = ArrayBuilder::new().items(names).min_items(Some(1)).max_items(Some(2));
            Schema::Array(list.unique_items(true).build())
        }
        "confidenceFrom" | "confidenceTo" => ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(Number::Int(0)))
            .maximum(Some(Number::Int(1)))
            .into(),
        "actionId" => text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).into(),
        "productIds" | "labels" => Schema::Array(ArrayBuilder::new().items(text()).build()),
        "productId" => product_id().into(),
        "productClass" if parameter.description.as_deref().unwrap_or_default().starts_with("The beginning") => {
            text().pattern(Some(CLASS_PREFIX)).into()
        }
        "productClass" => text().pattern(Some(if in_path { CLASS_OR_CODE } else { ASSIGNED_CLASS })).into(),
        "under" => text().pattern(Some(CLASS_CODE)).into(),
        "date" => text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date))).into(),
        "size" => whole(1, MAX_PAGE_SIZE as i64).default(Some(Value::from(DEFAULT_PAGE_SIZE))).into(),
        "shopId" => whole(1, i64::MAX).into(),
        "currentVersion" | "after" => whole(0, i64::MAX).into(),
        "format" => one_of(&["CSV", "XLSX"]).into(),
        "state" => one_of(&["PENDING", "DELIVERED"]).into(),
        "types" => {
            let names: Vec<String> = changes::types().collect();
            some_of(&names.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "updatedFrom" | "updatedTo" => text().pattern(Some(DAY_OR_INSTANT)).into(),
        "language" => text().pattern(Some(LANGUAGE)).into(),
        "languages" => Schema::Array(ArrayBuilder::new().items(text().pattern(Some(LANGUAGE))).build()),
        "map" => Schema::Array(ArrayBuilder::new().items(text().pattern(Some(MAPPING))).build()),
        "query" => text().into(),
        _ => {
            parameter.schema.iter_mut().for_each(without_null);
            return;
        }
    };
    parameter.schema = Some(RefOr::T(schema));
}

/// A request body that maps product ids to products.
fn narrow_map_of_products(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::Object(object)) = schema
        && object.additional_properties.is_some()
    {
        object.min_properties = Some(1);
        object.property_names = Some(Box::new(product_id().into()));
    }
}

/// Narrows the fields of a schema that requests use.
fn narrow_fields(name: &str, object: &mut Object) {
    let required: &[&str] = match name {
        "PlatformCode" => &["code", "taxonomy"],
        "PhysicalMeasure" => &["unit", "amount"],
        _ => &[],
    };
    if name == "LabelChange" {
        object.min_properties = Some(1);
    }
    if object.additional_properties.is_none() {
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    }
    object.required.extend(required.iter().map(|field| (*field).to_owned()));
    for (field, schema) in &mut object.properties {
        // A type with a name of its own says it already.
        let is_named = matches!(schema, RefOr::Ref(_));
        if let Some(narrow) = field_schema(name, field).filter(|_| !is_named) {
            let nullable = is_nullable(schema);
            let description = description_of(schema);
            *schema = narrow.description(description).into();
            if nullable {
                with_null(schema);
            }
        }
        if let Some((least, most)) = count_of(name, field)
            && let RefOr::T(Schema::Array(array)) = schema
        {
            (array.min_items, array.max_items) = (Some(least).filter(|least| *least > 0), Some(most));
        }
        if let RefOr::T(Schema::Object(map)) = schema
            && map.additional_properties.is_some()
        {
            if field == "languageAttributes" {
                map.property_names = Some(Box::new(text().pattern(Some(LANGUAGE)).into()));
            }
            map.max_properties = (field == "productUids").then_some(MAX_UIDS);
            if field == "merchantProductAttributes" {
                map.additional_properties = Some(Box::new(AdditionalProperties::RefOr(RefOr::T(attribute_value()))));
            }
            if field == "productUids" {
                map.properties.insert("gtin".to_owned(), RefOr::T(text().pattern(Some(GTIN)).into()));
            }
        }
        each_whole(schema);
        limit_items(name, field, schema);
    }
}

/// What a field of a request may hold, where its Rust type does not say it.
fn field_schema(schema: &str, field: &str) -> Option<ObjectBuilder> {
    let short = |most| text().max_length(Some(most));
    Some(match (schema, field) {
        (_, "taxonomy") => one_of(&Taxonomy::ALL.map(Taxonomy::name)),
        ("ActionProduct" | "RequeueProduct", "productId") => text(),
        ("ActionProduct" | "BulkActionBody", "productClass") => text().pattern(Some(ASSIGNED_CLASS)),
        ("ActionBody", "onConflict") => one_of(&["FAIL", "SKIP"]),
        ("BulkActionBody", "action") => one_of(&Action::ALL.map(Action::name)),
        ("ActionBody" | "BulkActionBody", "comment") => short(MAX_COMMENT_CHARACTERS),
        ("ClassificationBody", "digits") => {
            ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([2, 4, 6, 8, 10]))
        }
        ("CustomsCodes", "platformCode") => return None,
        ("CustomsCodes", _) | ("PlatformCode", "code") => text().pattern(Some(CUSTOMS_CODE)),
        ("LanguageAttributes", "productName") => short(MAX_NAME_CHARACTERS),
        ("LanguageAttributes", "productDescription") => short(MAX_DESCRIPTION_CHARACTERS),
        ("ProductDetails", "manufacturerName") => short(MAX_MANUFACTURER_CHARACTERS),
        ("Customs", "countryOfOrigin") => {
            text().enum_values(Some(countries::all().map(str::to_owned).collect::<Vec<_>>()))
        }
        ("ProductDetails", "reviewWeight") => ObjectBuilder::new()
            .schema_type(Type::Number)
            .minimum(Some(Number::Int(0)))
            .maximum(Some(Number::Int(1_000_000_000_000))),
        ("Customs", "btiId") => short(MAX_REFERENCE_CHARACTERS),
        ("PhysicalMeasure", "unit") => one_of(&UNITS),
        ("PhysicalMeasure", "amount") => {
            ObjectBuilder::new().schema_type(Type::Number).exclusive_minimum(Some(Number::Int(0)))
        }
        ("MerchantProductAttribute", "objectType") => one_of(&["Text", "Number", "Boolean", "Date"]),
        ("MerchantProductAttribute", "format") => one_of(&["None", "URL", "EMAIL", "ISO_DATE", "INTEGER", "DECIMAL"]),
        ("MerchantProductAttribute", "displayName") => short(attributes::MAX_DISPLAY_CHARACTERS),
        ("MerchantProductAttribute", "description") => short(attributes::MAX_DESCRIPTION_CHARACTERS),
        ("AssignmentLabel" | "LabelChange", "color") => text().pattern(Some(COLOR)),
        ("AssignmentLabel" | "LabelChange", "label") => {
            text().min_length(Some(1)).max_length(Some(100)).pattern(Some(LABEL))
        }
        _ => return None,
    })
}

/// How few and how many items a list may have.
fn count_of(schema: &str, field: &str) -> Option<(usize, usize)> {
    match (schema, field) {
        ("LanguageAttributes", "productTags") => Some((0, MAX_TAGS)),
        ("MeasureCondition", "taric") => Some((0, MAX_CONDITIONS)),
        ("MerchantProductAttribute", "tags") => Some((0, attributes::MAX_TAGS)),
        _ => None,
    }
}

/// How long the items of a list may be.
fn limit_items(schema: &str, field: &str, list: &mut RefOr<Schema>) {
    let most = match (schema, field) {
        ("LanguageAttributes", "productTags") => MAX_TAG_CHARACTERS,
        ("MerchantProductAttribute", "tags") => attributes::MAX_DISPLAY_CHARACTERS,
        ("MeasureCondition", "taric") | ("ProductDetails", "productUids") => MAX_REFERENCE_CHARACTERS,
        _ => return,
    };
    each_text(list, &mut |text| text.max_length = text.max_length.or(Some(most)));
}

/// The same fields for a merge patch: none required, and null where a field may be removed.
fn patch_of(object: &Object) -> Object {
    let mut patch = object.clone();
    patch.required.clear();
    for (field, schema) in &mut patch.properties {
        rename_references(schema);
        if let RefOr::T(Schema::Object(map)) = schema {
            map.properties.values_mut().for_each(with_null);
            if let Some(values) = &mut map.additional_properties
                && let AdditionalProperties::RefOr(values) = values.as_mut()
            {
                with_null(values);
            }
        }
        match field.as_str() {
            "productDetails" => without_null(schema),
            _ => with_null(schema),
        }
    }
    patch
}

fn rename_references(schema: &mut RefOr<Schema>) {
    each(schema, &mut |inside| {
        if let RefOr::Ref(reference) = inside {
            reference.ref_location.push_str(PATCH_SUFFIX);
        }
    });
}

/// A value of a merchant's attribute, whose declaration says which of these types it has.
fn attribute_value() -> Schema {
    let types = SchemaType::Array(vec![Type::String, Type::Number, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).max_length(Some(MAX_ATTRIBUTE_CHARACTERS)).into()
}

fn product_id() -> ObjectBuilder {
    text().min_length(Some(1)).max_length(Some(MAX_PRODUCT_ID_CHARACTERS)).pattern(Some(PRODUCT_ID))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::http::openapi::document;

    fn written() -> Value {
        serde_json::to_value(document()).expect("a document")
    }

    #[test]
    fn parameters_say_which_values_they_take() {
        let document = written();
        let paths = document["paths"].as_object().expect("paths");
        let mut seen = Vec::new();
        for (path, item) in paths {
            for operation in item.as_object().into_iter().flat_map(|item| item.values()) {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let schema = &parameter["schema"];
                    assert_ne!(schema["type"][1], "null", "{path} {parameter}");
                    match parameter["name"].as_str().unwrap_or_default() {
                        "detail" => assert_eq!(schema["enum"], json!(["Small", "Medium", "Large"]), "{path}"),
                        "embed" => assert_eq!(schema["items"]["enum"][0], "EVENTS", "{path}"),
                        "date" => assert_eq!(schema["format"], "date", "{path}"),
                        "currentVersion" => assert_eq!(schema["minimum"], 0, "{path}"),
                        "productId" => assert_eq!(schema["maxLength"], 65, "{path}"),
                        _ => continue,
                    }
                    seen.push(parameter["name"].to_string());
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5, "{seen:?}");
    }

    #[test]
    fn fields_of_bodies_are_not_null_but_in_a_merge_patch() {
        let document = written();
        let schemas = &document["components"]["schemas"];
        for (schema, field, wanted) in [
            ("ProductDetails", "manufacturerName", json!("string")),
            ("ProductDetailsPatch", "manufacturerName", json!(["string", "null"])),
            ("ProductBody", "shopIds", json!("array")),
            ("ProductBodyPatch", "shopIds", json!(["array", "null"])),
            ("ClassificationItem", "id", json!("string")),
            ("ActionProduct", "shopId", json!("integer")),
            ("CustomsPatch", "countryOfOrigin", json!(["string", "null"])),
        ] {
            assert_eq!(schemas[schema]["properties"][field]["type"], wanted, "{schema}.{field}");
        }
        assert_eq!(
            schemas["ProductBody"]["properties"]["productDetails"]["$ref"],
            "#/components/schemas/ProductDetails"
        );
        assert_eq!(schemas["ProductBodyPatch"]["required"], Value::Null);
        assert_eq!(schemas["CustomsCodes"]["properties"]["taricCode"]["pattern"], super::CUSTOMS_CODE);
        assert_eq!(schemas["PhysicalMeasure"]["required"], json!(["unit", "amount"]));
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        fn check(value: &Value, schemas: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                        let name = name.trim_start_matches(crate::http::openapi::schemas::COMPONENTS);
                        assert!(schemas[name].is_object(), "{name} is missing");
                    }
                    fields.values().for_each(|field| check(field, schemas));
                }
                Value::Array(items) => items.iter().for_each(|item| check(item, schemas)),
                _ => {}
            }
        }
        let document = written();
        check(&document, &document["components"]["schemas"]);
    }
}
