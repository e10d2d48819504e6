//! A number without a fraction is an integer however it is written: `1252.0` and `1.252e3` are 1252.
//!
//! JSON knows one kind of number, and clients whose language does too write integers as they please. serde asks for an
//! integer and is given what was written; here, between the two, the one becomes the other. Where no integer is asked
//! for, nothing changes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// Wraps a deserializer, and everything inside it.
pub(super) struct Integers<D>(pub(super) D);

/// Wraps the visitor of a value that need not be an integer.
struct Plain<V>(V);

/// Wraps the visitor of an integer.
struct Whole<V>(V);

/// Wraps the seed of a value inside another.
struct Seed<S>(S);

/// Wraps the items of a list or the entries of an object.
struct Inside<A>(A);

/// The greatest magnitude up to which every integer has a number of its own among the floating ones.
const EXACT: f64 = 9_007_199_254_740_992.0;

macro_rules! plain {
    ($($name:ident)*) => { $(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$name(Plain(visitor))
        }
    )* };
}

macro_rules! whole {
    ($($name:ident)*) => { $(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$name(Whole(visitor))
        }
    )* };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Integers<D> {
    type Error = D::Error;

    plain! {
        deserialize_any deserialize_bool deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq
        deserialize_map deserialize_identifier deserialize_ignored_any
    }

    whole! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Plain(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Plain(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Plain(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, Plain(visitor))
    }

    /// An object and nothing else: serde would also take an array with the values of the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Plain(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Plain(visitor))
    }
}

macro_rules! pass {
    ($($name:ident: $kind:ty),*) => { $(
        fn $name<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$name(value)
        }
    )* };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Plain<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Integers(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Integers(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Inside(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Inside(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(variant)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Whole<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_str: &str,
        visit_borrowed_str: &'de str, visit_string: String
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if value.fract() == 0.0 && value.abs() <= EXACT {
            let whole = value as i64;
            return match u64::try_from(whole) {
                Ok(whole) => self.0.visit_u64(whole),
                Err(_) => self.0.visit_i64(whole),
            };
        }
        self.0.visit_f64(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(entries)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Integers(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Inside<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Inside<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value, json};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        shops: Vec<i64>,
        count: Option<usize>,
        amount: Option<f64>,
        values: Option<Map<String, Value>>,
        by_name: Option<std::collections::BTreeMap<String, i64>>,
    }

    fn read(text: &str) -> Result<Inner, String> {
        Inner::deserialize(Integers(&mut serde_json::Deserializer::from_str(text))).map_err(|error| error.to_string())
    }

    #[test]
    fn an_integer_may_be_written_with_a_fraction_of_nothing() {
        for (text, shops) in [
            ("1252.0", 1252),
            ("1.252e3", 1252),
            ("-0.0", 0),
            ("-7.0", -7),
            ("9007199254740992.0", 1 << 53),
            ("9223372036854775807", i64::MAX),
        ] {
            let read = read(&format!("{{\"shops\":[{text}]}}")).expect(text);
            assert_eq!(read.shops, [shops], "{text}");
        }
        for text in ["1.5", "1e300", "-1e-9", "9007199254740994.0", "\"1\"", "true", "[1]"] {
            assert!(read(&format!("{{\"shops\":[{text}]}}")).is_err(), "{text}");
        }
        let all = read(r#"{"shops":[],"count":3.0,"amount":2.0,"by_name":{"a":4.0},"values":{"b":5.0}}"#).expect("all");
        assert_eq!((all.count, all.amount), (Some(3), Some(2.0)));
        assert_eq!(all.by_name.expect("a map")["a"], 4);
        assert_eq!(all.values.expect("values")["b"].to_string(), "5.0", "no integer is asked for here");
        assert!(read(r#"{"shops":[],"count":-3.0}"#).is_err());
        assert!(Inner::deserialize(Integers(json!({"shops": [8.0]}))).is_ok(), "from a value too");
    }
}
