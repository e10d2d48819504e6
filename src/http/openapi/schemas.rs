//! Schemas of the OpenAPI document: making the common ones, and walking through and changing finished ones.

use serde_json::Value;
use utoipa::Number;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayItems, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};

/// Where components lie in a reference.
pub(super) const COMPONENTS: &str = "#/components/schemas/";
/// A text without U+0000.
const NO_NUL: &str = r"^[^\u0000]*$";

fn is_null(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null))
}

fn schema_type(schema: &mut RefOr<Schema>) -> Option<&mut SchemaType> {
    match schema {
        RefOr::T(Schema::Object(object)) => Some(&mut object.schema_type),
        RefOr::T(Schema::Array(array)) => Some(&mut array.schema_type),
        _ => None,
    }
}

pub(in crate::http) fn is_nullable(schema: &RefOr<Schema>) -> bool {
    match schema {
        RefOr::T(Schema::OneOf(one)) => one.items.iter().any(is_null),
        other => {
            let types = schema_type(&mut other.clone()).cloned();
            matches!(types, Some(SchemaType::Array(types)) if types.contains(&Type::Null))
        }
    }
}

fn describe(schema: &mut RefOr<Schema>, description: Option<String>) {
    match schema {
        RefOr::T(Schema::Object(object)) if description.is_some() => object.description = description,
        RefOr::T(Schema::Array(array)) if description.is_some() => array.description = description,
        _ => {}
    }
}

/// Takes null out of what a schema allows; of a choice that has one left, that one stays.
pub(in crate::http) fn without_null(schema: &mut RefOr<Schema>) {
    if let RefOr::T(Schema::OneOf(one)) = schema {
        one.items.retain(|item| !is_null(item));
        if one.items.len() == 1
            && let Some(mut only) = one.items.pop()
        {
            describe(&mut only, one.description.take());
            *schema = only;
        }
    } else if let Some(types) = schema_type(schema)
        && let SchemaType::Array(several) = types
    {
        several.retain(|one| *one != Type::Null);
        if let [only] = several.as_slice() {
            *types = SchemaType::Type(only.clone());
        }
    }
}

/// Adds null to what a schema allows.
pub(in crate::http) fn with_null(schema: &mut RefOr<Schema>) {
    if is_nullable(schema) {
        return;
    }
    if let RefOr::Ref(reference) = schema {
        let either = OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(reference.clone());
        *schema = RefOr::T(Schema::OneOf(either.build()));
        return;
    }
    match schema_type(schema) {
        Some(types @ SchemaType::Type(_)) => {
            let SchemaType::Type(only) = types.clone() else { return };
            *types = SchemaType::Array(vec![only, Type::Null]);
        }
        Some(SchemaType::Array(several)) => several.push(Type::Null),
        _ => {}
    }
    if let RefOr::T(Schema::Object(object)) = schema
        && let Some(names) = &mut object.enum_values
    {
        names.push(Value::Null);
    }
}

/// Hands on every schema inside this one, and itself.
pub(in crate::http) fn each(schema: &mut RefOr<Schema>, visit: &mut impl FnMut(&mut RefOr<Schema>)) {
    visit(schema);
    match schema {
        RefOr::T(Schema::Object(object)) => {
            object.properties.values_mut().for_each(|property| each(property, visit));
            if let Some(values) = &mut object.additional_properties
                && let AdditionalProperties::RefOr(values) = values.as_mut()
            {
                each(values, visit);
            }
        }
        RefOr::T(Schema::Array(array)) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                each(items, visit);
            }
        }
        RefOr::T(Schema::OneOf(one)) => one.items.iter_mut().for_each(|item| each(item, visit)),
        _ => {}
    }
}

pub(in crate::http) fn each_reference(schema: &mut RefOr<Schema>, visit: &mut impl FnMut(&str)) {
    each(schema, &mut |inside| {
        if let RefOr::Ref(reference) = inside {
            visit(reference.ref_location.trim_start_matches(COMPONENTS));
        }
    });
}

/// No text of a request has the character U+0000, which PostgreSQL cannot store. Texts of a form of their own have none.
pub(in crate::http) fn without_nul(schema: &mut RefOr<Schema>) {
    each(schema, &mut |inside| {
        let is_text = schema_type(inside).is_some_and(|types| match types {
            SchemaType::Type(only) => *only == Type::String,
            SchemaType::Array(several) => several.contains(&Type::String),
            SchemaType::AnyValue => false,
        });
        if let RefOr::T(Schema::Object(object)) = inside
            && is_text
            && object.format.is_none()
            && object.enum_values.is_none()
        {
            object.pattern.get_or_insert_with(|| NO_NUL.to_owned());
        }
    });
}

/// A whole number of a request fits into 64 bits.
pub(in crate::http) fn limit_whole(schema: &mut RefOr<Schema>) {
    each(schema, &mut |inside| {
        if let RefOr::T(Schema::Object(object)) = inside
            && object.format == Some(SchemaFormat::KnownFormat(KnownFormat::Int64))
        {
            object.maximum.get_or_insert(Number::Int(i64::MAX as isize));
        }
    });
}
