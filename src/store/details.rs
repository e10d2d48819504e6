//! How details of products are read from the database.
//!
//! What clients send is read strictly, and what is stored leniently: a row may have been written by another version of
//! the service, with fields that this one does not know. Those are passed over. Only the row itself suffers where what
//! is left has the wrong type: see [`readable`].

use std::ops::Deref;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde_json::Value;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgRow, PgTypeInfo, PgValueRef};
use sqlx::types::Json;
use sqlx::{Decode, FromRow, Postgres, Row, Type};

use crate::computing;
use crate::domain::Details;
use crate::store::StoreError;

/// The byte before the text of a binary jsonb: the version of its format. No JSON text begins with it.
const JSONB_VERSION: u8 = 1;

/// Details as they are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredDetails(pub Details);

impl Deref for StoredDetails {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl Type<Postgres> for StoredDetails {
    fn type_info() -> PgTypeInfo {
        <Json<Details> as Type<Postgres>>::type_info()
    }

    fn compatible(found: &PgTypeInfo) -> bool {
        <Json<Details> as Type<Postgres>>::compatible(found)
    }
}

impl Decode<'_, Postgres> for StoredDetails {
    fn decode(value: PgValueRef<'_>) -> Result<StoredDetails, BoxDynError> {
        let bytes = value.as_bytes()?;
        Ok(StoredDetails(lenient(bytes.strip_prefix(&[JSONB_VERSION]).unwrap_or(bytes))?))
    }
}

/// Reads a document, passing over fields that its type does not have, at any depth.
fn lenient<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    // Almost every document has nothing unknown, and is read without a tree of it.
    serde_json::from_slice(json).or_else(|_| T::deserialize(Known(serde_json::from_slice(json)?)))
}

/// A value whose objects show a struct only the fields that it knows.
struct Known(Value);

impl<'de> IntoDeserializer<'de, serde_json::Error> for Known {
    type Deserializer = Known;

    fn into_deserializer(self) -> Known {
        self
    }
}

impl<'de> Deserializer<'de> for Known {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Known))),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Known(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, serde_json::Error> {
        match self.0 {
            Value::Object(mut fields) => {
                fields.retain(|name, _| known.contains(&name.as_str()));
                Known(Value::Object(fields)).deserialize_any(visitor)
            }
            other => other.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// Records of rows with a `product_key`. One that cannot be read costs itself alone: it is left out, logged and counted.
pub(super) fn readable<T>(rows: &[PgRow]) -> Vec<T>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    let read = |row| match T::from_row(row) {
        Ok(record) => Some(record),
        Err(error) => {
            let product_key: i64 = row.try_get("product_key").unwrap_or_default();
            tracing::error!(product_key, %error, "a stored product cannot be read and is left out");
            metrics::counter!("vat_classification_unreadable_products_total").increment(1);
            None
        }
    };
    rows.iter().filter_map(read).collect()
}

/// The same of rows that may be many and large, without keeping connections from being served.
pub(super) async fn read_all<T>(rows: Vec<PgRow>) -> Result<Vec<T>, StoreError>
where
    T: for<'r> FromRow<'r, PgRow> + Send + 'static,
{
    let read = computing::beside(bytes_of(&rows), move || readable(&rows)).await;
    Ok(read.map_err(|error| sqlx::Error::Decode(error.into()))?)
}

/// Bytes of all values of rows.
pub(super) fn bytes_of(rows: &[PgRow]) -> usize {
    let value = |row: &PgRow, at| row.try_get_raw(at).ok()?.as_bytes().ok().map(<[u8]>::len);
    rows.iter().map(|row| (0..row.len()).filter_map(|at| value(row, at)).sum::<usize>()).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_passed_over_at_any_depth() {
        let read = |value: Value| lenient::<Details>(value.to_string().as_bytes()).map_err(|error| error.to_string());
        let known = json!({
            "languageAttributes": {"de": {"productName": "a", "productTags": ["b"],
                "merchantProductAttributes": {"free": {"x": [1, null, 2.5, true]}}}},
            "productUids": {"gtin": "1"},
            "customs": {"physicalMeasure": {"amount": 1.5, "unit": "kg"}},
        });
        let mut later = known.clone();
        later["future"] = json!({"a": [1, {"b": null}]});
        later["languageAttributes"]["de"]["mood"] = json!("good");
        later["customs"]["physicalMeasure"]["scale"] = json!(null);
        later["manufacturerName"] = Value::Null;
        assert_eq!(read(later), read(known.clone()));
        assert_eq!(serde_json::to_value(read(known.clone()).expect("details")).expect("JSON"), known);
        // A map by name is no struct: all its entries are its own.
        assert!(read(json!({"productUids": {"any": 7}})).is_err());
        for wrong in [json!({"languageAttributes": 7}), json!([]), json!({"future": 1, "manufacturerName": 7})] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
