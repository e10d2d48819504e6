//! The first reading of a body: everything that is wrong with it as JSON, how much it will become in memory, and its
//! first null, without building anything.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Keys of one object up to which they are compared one by one.
const FEW_KEYS: usize = 16;
/// Most keys of one object. The largest that has a meaning is a creation of 10,000 products.
const MAX_KEYS: usize = 100_000;
/// Values that one value counts for: what an object and an entry take beside a plain value.
const OBJECT_COUNT: usize = 6;

/// What a body is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Its values; each takes about [`super::VALUE_BYTES`].
    pub(super) values: usize,
    /// Where its first null stands.
    pub(super) first_null: Option<String>,
}

/// Why a body is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not acceptable JSON; with line and column.
    Malformed(String),
    /// Of more values than are taken; with the place where they became too many.
    TooMany(String),
}

/// Reads a JSON text to its end. `most` bounds its values.
///
/// # Errors
/// What serde_json lets pass is refused too: a key twice in one object, and U+0000, which PostgreSQL cannot hold. Depth
/// is bounded by serde_json.
pub(super) fn scan(text: &str, most: usize) -> Result<Extent, Refusal> {
    let tally = Tally { most, ..Tally::default() };
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = Scan { tally: &tally, place: &Place::Root }.deserialize(&mut parser).and_then(|()| parser.end());
    match (read, tally.too_many.into_inner()) {
        (Ok(()), _) => Ok(Extent { values: tally.values.get(), first_null: tally.first_null.into_inner() }),
        (Err(_), Some(place)) => Err(Refusal::TooMany(place)),
        (Err(error), None) => Err(Refusal::Malformed(error.to_string())),
    }
}

#[derive(Default)]
struct Tally {
    most: usize,
    values: Cell<usize>,
    first_null: RefCell<Option<String>>,
    too_many: RefCell<Option<String>>,
}

/// Where a value stands, told by those around it.
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

#[derive(Clone, Copy)]
struct Scan<'a> {
    tally: &'a Tally,
    place: &'a Place<'a>,
}

impl Scan<'_> {
    fn count<E: serde::de::Error>(&self, values: usize) -> Result<(), E> {
        let values = self.tally.values.get() + values;
        self.tally.values.set(values);
        if values <= self.tally.most {
            return Ok(());
        }
        *self.tally.too_many.borrow_mut() = Some(self.place.to_string());
        Err(E::custom("too many values"))
    }
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn without_nul<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.contains('\0') { Err(E::custom("the character U+0000 is not allowed")) } else { Ok(()) }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.count(1)
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.count(1)
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.count(1)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        if value.is_finite() { self.count(1) } else { Err(E::custom("the number is too large")) }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        without_nul(value)?;
        self.count(1)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.tally.first_null.borrow_mut().get_or_insert_with(|| self.place.to_string());
        self.count(1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.count(1)?;
        let mut index = 0;
        while items.next_element_seed(Scan { place: &Place::Item(self.place, index), ..self })?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.count(OBJECT_COUNT)?;
        let mut keys = Keys::default();
        while let Some(key) = entries.next_key_seed(Key)? {
            without_nul(&key)?;
            if keys.length() == MAX_KEYS {
                *self.tally.too_many.borrow_mut() = Some(self.place.to_string());
                return Err(A::Error::custom("too many keys"));
            }
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("the key \"{key}\" stands twice in one object")));
            }
            entries.next_value_seed(Scan { place: &Place::Field(self.place, &key), ..self })?;
            keys.insert(key);
        }
        Ok(())
    }
}

/// A key, borrowed from the text where it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// The keys of one object so far: most objects have a few, and one may have very many.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    fn length(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn contains(&self, key: &str) -> bool {
        self.few.iter().any(|known| known == key) || self.many.contains(key)
    }

    fn insert(&mut self, key: Cow<'de, str>) {
        if self.few.len() < FEW_KEYS {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: usize = 1_000;

    #[test]
    fn values_and_the_first_null_are_found_where_they_stand() {
        for (text, values, null) in [
            ("1", 1, None),
            ("\"a\"", 1, None),
            ("[]", 1, None),
            ("{}", 6, None),
            ("[1, true, \"x\"]", 4, None),
            ("{\"a\": {\"b\": [1, {\"c\": null}]}}", 21, Some("a.b[1].c")),
            ("null", 1, Some("")),
            ("[null, null]", 3, Some("[0]")),
            ("{\"\\u0061\": [[null]]}", 9, Some("a[0][0]")),
        ] {
            let extent = scan(text, PLENTY).expect(text);
            assert_eq!(extent, Extent { values, first_null: null.map(str::to_owned) }, "{text}");
        }
    }

    #[test]
    fn too_many_values_are_refused_where_they_become_too_many() {
        let items = |count: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(count - 1));
        assert!(scan(&items(93), 100).is_ok());
        assert_eq!(scan(&items(94), 100), Err(Refusal::TooMany("a[93]".to_owned())));
        let objects = format!("[{}1]", "{\"\":0},".repeat(1 << 20));
        assert_eq!(scan(&objects, 70), Err(Refusal::TooMany("[9].".to_owned())));
        let keys = |count: usize| {
            let entries: Vec<String> = (0..count).map(|key| format!("\"{key}\":0")).collect();
            format!("{{\"a\":{{{}}}}}", entries.join(","))
        };
        assert!(scan(&keys(MAX_KEYS), usize::MAX).is_ok());
        assert_eq!(scan(&keys(MAX_KEYS + 1), usize::MAX), Err(Refusal::TooMany("a".to_owned())));
    }

    #[test]
    fn a_key_twice_is_found_among_few_and_many() {
        for count in [1, FEW_KEYS, FEW_KEYS + 1, 1_000] {
            let entries: Vec<String> = (0..count).map(|key| format!("\"{key}\":0")).collect();
            let text = format!("{{{},\"\\u0030\":1}}", entries.join(","));
            let Err(Refusal::Malformed(message)) = scan(&text, usize::MAX) else { panic!("{count}: not refused") };
            assert!(message.starts_with("the key \"0\" stands twice in one object at line 1 column"), "{message}");
        }
    }
}
