//! What holds for every request and cannot be said at a field: null stands for nothing but a removal, there are no
//! other fields than those named, whole numbers fit into 64 bits, and texts have no U+0000. What a parameter or a field may hold is said where it is declared.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::{OpenApi as Document, RefOr};

use crate::http::openapi::schemas::{each_reference, is_nullable, limit_whole, with_null, without_nul, without_null};

/// Says it of the bodies of the whole document.
pub(super) fn narrow(document: &mut Document) {
    let (mut sent, mut patches) = (BTreeSet::new(), BTreeSet::new());
    for item in document.paths.paths.values_mut() {
        for (method, operation) in super::operations(item) {
            let names = if method == "PATCH" { &mut patches } else { &mut sent };
            let bodies = operation.request_body.iter_mut().flat_map(|body| body.content.values_mut());
            for schema in bodies.filter_map(|content| content.schema.as_mut()) {
                each_reference(schema, &mut |name| {
                    names.insert(name.to_owned());
                });
            }
        }
    }
    let Some(components) = &mut document.components else { return };
    let schemas = &mut components.schemas;
    let (sent, patches) = (reachable(sent, schemas), reachable(patches, schemas));
    for name in sent.union(&patches) {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(name) else { continue };
        if !object.properties.is_empty() {
            object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(false)));
        }
        for schema in object.properties.values_mut() {
            limit_whole(schema);
            without_nul(schema);
            let removes = patches.contains(name) && is_nullable(schema);
            without_null(schema);
            if removes {
                with_null(schema);
            }
        }
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
            ("ActionBody", "comment", json!("string")),
            ("AttributeChange", "tags", json!(["array", "null"])),
            ("WebhookPatchBody", "url", json!("string")),
        ] {
            assert_eq!(schemas[schema]["properties"][field]["type"], wanted, "{schema}.{field}");
        }
        assert_eq!(
            schemas["ProductBody"]["properties"]["productDetails"]["$ref"],
            "#/components/schemas/ProductDetails"
        );
        assert_eq!(schemas["ProductBodyPatch"]["required"], Value::Null);
        assert_eq!(schemas["CustomsCodes"]["properties"]["taricCode"]["pattern"], r"^[ .]*([0-9][ .]*){4,11}$");
        assert_eq!(schemas["PhysicalMeasure"]["required"], json!(["unit", "amount"]));
        assert_eq!(schemas["PhysicalMeasurePatch"]["properties"]["unit"]["type"], "string", "what is required stays");
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
