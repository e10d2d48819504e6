//! What stands beside a name in a shop: shelves, descriptions, and the name in the other language.
//!
//! Few rows of the corpus have any, so they are made of other rows: a shelf is what another good of the heading is called,
//! or a wide one (of the chapter), or one that says nothing, or a wrong one. From such rows it is learnt how much each is
//! worth beside a name.

use std::collections::HashMap;

use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

use super::{Prepared, Sample, other};
use crate::random::Random;

/// Share of rows that get shelves, a description, the other language.
const WITH_SHELVES: f32 = 0.4;
const WITH_DESCRIPTION: f32 = 0.25;
const WITH_OTHER_LANGUAGE: f32 = 0.1;
/// Most shelves of a row.
const MAX_SHELVES: u64 = 3;
/// Shares of shelves: of the heading, of the chapter, and general ones; the rest are wrong.
const OF_HEADING: f32 = 0.4;
const OF_CHAPTER: f32 = 0.2;
const GENERAL: f32 = 0.28;
/// Most words of a name that may be a shelf's.
const MAX_WORDS: usize = 2;
/// Other rows of the code that a description is made of, and words of any rows among them.
const SENTENCES: u64 = 3;
const STRAY_WORDS: u64 = 8;

/// Shelves that say nothing of the good.
const SAY_NOTHING: [(Language, &[&str]); 2] = [
    (
        Language::German,
        &[
            "Sale",
            "Neu",
            "Neuheiten",
            "Angebote",
            "Aktion",
            "Herren",
            "Damen",
            "Kinder",
            "Baby",
            "Küche",
            "Haushalt",
            "Lebensmittel",
            "Bestseller",
            "Garten",
            "Freizeit",
            "Geschenke",
            "Marken",
            "Weihnachten",
            "Bad",
            "Büro",
            "Sommer",
            "Zubehör",
            "Wohnen",
            "Sport",
            "Alle Produkte",
            "Startseite",
            "Nachhaltig",
            "Vegan",
            "Bio",
        ],
    ),
    (
        Language::English,
        &[
            "Sale",
            "New In",
            "Offers",
            "Deals",
            "Men",
            "Women",
            "Kids",
            "Baby",
            "Kitchen",
            "Household",
            "Food",
            "Groceries",
            "Bestsellers",
            "Garden",
            "Outdoor",
            "Gifts",
            "Brands",
            "Christmas",
            "Bathroom",
            "Office",
            "Summer",
            "Accessories",
            "Home",
            "Sports",
            "All Products",
            "Sustainable",
            "Vegan",
            "Organic",
            "Health",
        ],
    ),
];

/// Rows to make shelves and descriptions of.
pub(crate) struct Shelves<'s> {
    /// Short names by code of two or four digits and language.
    names: HashMap<(ClassCode, Language), Vec<&'s str>>,
    /// Rows by code of six digits and language.
    rows: HashMap<(ClassCode, Language), Vec<&'s Sample>>,
    all: &'s [&'s Sample],
}

impl<'s> Shelves<'s> {
    /// Shelves of these rows.
    pub(crate) fn of(all: &'s [&'s Sample]) -> Shelves<'s> {
        let mut shelves = Shelves { names: HashMap::new(), rows: HashMap::new(), all };
        for sample in all.iter().filter(|sample| sample.code.digits() == 6) {
            shelves.rows.entry((sample.code, sample.language)).or_default().push(sample);
            if sample.name.split_whitespace().count() <= MAX_WORDS {
                for digits in [2, 4] {
                    let key = (sample.code.prefix(digits), sample.language);
                    shelves.names.entry(key).or_default().push(&sample.name);
                }
            }
        }
        shelves
    }

    /// Puts beside a row what shops put there, sometimes.
    pub(crate) fn furnish(&self, row: &mut Prepared, random: &mut Random) {
        if random.unit() < WITH_SHELVES && row.tags.is_empty() {
            let count = 1 + random.next() % MAX_SHELVES;
            row.tags = (0..count).filter_map(|_| self.shelf(row, random)).collect();
        }
        if row.description.is_none() && random.unit() < WITH_DESCRIPTION {
            row.description = self.description(row, random);
        }
        if random.unit() < WITH_OTHER_LANGUAGE {
            row.other_name = self.other_name(row, random);
        }
    }

    /// A shelf on which a row stands rightly: what another good of its heading is called.
    pub(crate) fn of_heading(&self, row: &Prepared, random: &mut Random) -> Option<String> {
        let names = self.names.get(&(row.code.prefix(4), row.language))?;
        let name = *pick(names, random);
        (name != row.name).then(|| name.to_owned())
    }

    /// The name of a good of the same code in the other language.
    pub(crate) fn other_name(&self, row: &Prepared, random: &mut Random) -> Option<String> {
        let rows = self.rows.get(&(row.code, other(row.language)))?;
        Some(pick(rows, random).name.clone())
    }

    fn shelf(&self, row: &Prepared, random: &mut Random) -> Option<String> {
        let kind = random.unit();
        let of_code = |digits| self.names.get(&(row.code.prefix(digits), row.language));
        let name = if kind < OF_HEADING {
            pick(of_code(4)?, random)
        } else if kind < OF_HEADING + OF_CHAPTER {
            pick(of_code(2)?, random)
        } else if kind < OF_HEADING + OF_CHAPTER + GENERAL {
            let (_, names) = SAY_NOTHING.iter().find(|(language, _)| *language == row.language)?;
            pick(names, random)
        } else {
            let stray = pick(self.all, random);
            pick(self.names.get(&(stray.code.prefix(4), row.language))?, random)
        };
        Some((*name).to_owned())
    }

    fn description(&self, row: &Prepared, random: &mut Random) -> Option<String> {
        let rows = self.rows.get(&(row.code, row.language))?;
        let mut words: Vec<&str> = Vec::new();
        for _ in 0..1 + random.next() % SENTENCES {
            let other = pick(rows, random);
            words.extend(
                other.name.split_whitespace().chain(other.description.iter().flat_map(|text| text.split_whitespace())),
            );
        }
        for _ in 0..random.next() % STRAY_WORDS {
            let stray: Vec<&str> = pick(self.all, random).name.split_whitespace().collect();
            if !stray.is_empty() {
                let at = random.next() as usize % (words.len() + 1);
                words.insert(at, *pick(&stray, random));
            }
        }
        Some(words.join(" "))
    }
}

fn pick<'t, T>(values: &'t [T], random: &mut Random) -> &'t T {
    &values[(random.next() % values.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::super::SampleKind;
    use super::*;

    #[test]
    fn shelves_are_of_the_heading_the_chapter_anything_or_nothing_and_only_some_rows_have_them() {
        let sample = |code: &str, name: &str| Sample {
            code: ClassCode::new(code).expect("digits"),
            language: Language::English,
            name: name.to_owned(),
            description: None,
            tags: Vec::new(),
            bucket: 1,
            group: 1,
            kind: SampleKind::Written,
        };
        let samples = [
            sample("610910", "tops"),
            sample("610990", "fine tops"),
            sample("611020", "jumpers"),
            sample("250100", "salt"),
        ];
        let all: Vec<&Sample> = samples.iter().collect();
        let shelves = Shelves::of(&all);
        let mut random = Random(1);
        let mut counts: HashMap<String, usize> = HashMap::new();
        let (mut tagged, mut described) = (0, 0);
        for _ in 0..1000 {
            let mut row = Prepared::plain(&samples[0]);
            shelves.furnish(&mut row, &mut random);
            tagged += usize::from(!row.tags.is_empty());
            described += usize::from(row.description.is_some());
            assert_eq!((row.name.as_str(), &row.other_name), ("tops", &None));
            row.tags.into_iter().for_each(|tag| *counts.entry(tag).or_default() += 1);
        }
        assert!((300..500).contains(&tagged) && (150..350).contains(&described), "{tagged} {described}");
        for tag in ["tops", "fine tops", "jumpers", "salt", "Sale"] {
            assert!(counts.get(tag).is_some_and(|count| *count > 5), "{tag} {counts:?}");
        }
        assert!(counts["fine tops"] > counts["jumpers"] && counts["jumpers"] > counts["salt"]);
    }
}
