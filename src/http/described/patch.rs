//! The form of a merge patch, made from the form of what it changes.

use std::borrow::Cow;
use std::marker::PhantomData;

use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::openapi::schemas::{each, with_null, without_null};

/// What the name of a schema gets when its fields may also be null, to be removed.
const SUFFIX: &str = "Patch";

/// Stands in the document for a merge patch of this type: every field may be absent, and null where it can be removed.
pub(in crate::http) struct PatchOf<T>(PhantomData<T>);

impl<T: ToSchema> PartialSchema for PatchOf<T> {
    fn schema() -> RefOr<Schema> {
        patch_of(T::schema())
    }
}

impl<T: ToSchema> ToSchema for PatchOf<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}{SUFFIX}", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let mut inside = Vec::new();
        T::schemas(&mut inside);
        schemas.extend(inside.into_iter().map(|(name, schema)| (format!("{name}{SUFFIX}"), patch_of(schema))));
    }
}

/// The same fields, none of them required; what was required cannot be removed.
fn patch_of(schema: RefOr<Schema>) -> RefOr<Schema> {
    let RefOr::T(Schema::Object(mut patch)) = schema else { return schema };
    let required = std::mem::take(&mut patch.required);
    for (field, schema) in &mut patch.properties {
        each(schema, &mut |inside| {
            if let RefOr::Ref(reference) = inside {
                reference.ref_location.push_str(SUFFIX);
            }
        });
        without_null(schema);
        if let RefOr::T(Schema::Object(map)) = schema {
            map.properties.values_mut().for_each(with_null);
            if let Some(values) = &mut map.additional_properties
                && let AdditionalProperties::RefOr(values) = values.as_mut()
            {
                with_null(values);
            }
        }
        if !required.contains(field) {
            with_null(schema);
        }
    }
    RefOr::T(Schema::Object(patch))
}
