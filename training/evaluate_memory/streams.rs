//! Listings of shops as they would be reviewed: one after the other, many of them variants of one good.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use vat_classification::classify::Classifier;
use vat_classification::domain::nomenclature::Nomenclature;
use vat_classification::domain::product::LanguageAttributes;
use vat_classification::domain::{ClassCode, Details};

use crate::evaluate::unlabelled::{Shown, read_pool};
use crate::evaluate::{self, Case};
use crate::limits::{self, Labels};
use crate::random::{Random, fnv};

use super::Options;

/// Fewest listings of a source: five of a hundred are one.
const MIN_ITEMS: usize = 100;
/// One source in this many measures; the others are fitted on.
const MEASURING_SHARE: u64 = 3;
/// Shops into which the rows of the corpus are divided, by heading.
const CORPUS_SHOPS: u64 = 12;
/// Variants of a good from which a group of them counts as one.
pub(super) const GROUP: usize = 5;

/// Who says which class is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    /// People, for each listing.
    People,
    /// The model, from all texts of all variants of a good.
    Model,
    /// Whoever wrote the row of the corpus; it has not been learnt.
    Corpus,
}

/// The listings of one source.
pub(super) struct Stream {
    /// Source and language.
    pub(super) name: String,
    pub(super) truth: Truth,
    /// Whether it measures, and nothing is fitted on it.
    pub(super) measures: bool,
    /// The listings.
    pub(super) items: Vec<Item>,
}

/// A listing with the answer of the reviewer.
pub(super) struct Item {
    pub(super) title: String,
    pub(super) details: Details,
    /// What the reviewer says.
    pub(super) truth: ClassCode,
    /// How many variants of the good there are in the stream, with this one.
    pub(super) variants: usize,
}

/// A title, what is shown of the product, and the class where one is known.
type Listed = (String, Details, Option<ClassCode>);
type Sources = BTreeMap<String, Vec<Listed>>;

/// The streams of labelled files, by set and language; of pools of listings, by source and language, and of those among
/// them that people labelled, by language; and of the rows of a corpus that are held out.
pub(super) fn read(options: &Options, classifier: &Classifier, list: &Nomenclature) -> Result<Vec<Stream>> {
    let (mut people, mut model, mut corpus) = (Sources::new(), Sources::new(), Sources::new());
    for path in &options.files {
        for case in evaluate::read(path)? {
            let name = format!("{} {}", case.set, case.language);
            people.entry(name).or_default().push(listed(case));
        }
    }
    let labels = if options.pool.is_empty() { Labels::default() } else { limits::read_labels(&options.labels)? };
    for path in &options.pool {
        let (language, listings) = read_pool(path)?;
        for listing in listings {
            let label = labels.get(&(limits::hash(&listing.title), limits::hash(&listing.source)));
            // What is no good is in no shop's stock.
            if label.is_some_and(Option::is_none) {
                continue;
            }
            let shown = details(&language, &listing.title, None, &[]);
            if let Some(Some(code)) = label {
                let listed = (listing.title.clone(), shown.clone(), Some(*code));
                people.entry(format!("listings {language}")).or_default().push(listed);
            }
            let all = listing.text(&language, Shown { description: true, category: true });
            let said = classifier.rank(&all).candidates.first().map(|best| best.code);
            model.entry(format!("{} {language}", listing.source)).or_default().push((listing.title, shown, said));
        }
    }
    if let Some(directory) = &options.corpus {
        evaluate::refuse_learnt(classifier)?;
        for case in evaluate::held_out(directory, &options.class_labels)? {
            let shop = Random(fnv(case.code.prefix(4).as_str())).next() % CORPUS_SHOPS;
            corpus.entry(format!("corpus-{shop} {}", case.language)).or_default().push(listed(case));
        }
    }
    let kinds = [(people, Truth::People), (model, Truth::Model), (corpus, Truth::Corpus)];
    let streams = kinds.into_iter().flat_map(|(sources, truth)| {
        sources.into_iter().map(move |(name, listings)| stream(name, truth, listings, list))
    });
    Ok(streams.filter(|stream| stream.items.len() >= MIN_ITEMS).collect())
}

fn listed(case: Case) -> Listed {
    let details = details(&case.language, &case.name, Some(&case.description), &case.tags);
    (case.name, details, Some(case.code))
}

fn details(language: &str, name: &str, description: Option<&str>, tags: &[String]) -> Details {
    let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let texts = LanguageAttributes {
        product_name: filled(name),
        product_description: description.and_then(filled),
        product_tags: Some(tags.to_vec()).filter(|tags| !tags.is_empty()),
        ..LanguageAttributes::default()
    };
    Details { language_attributes: Some(BTreeMap::from([(language.to_owned(), texts)])), ..Details::default() }
}

fn stream(name: String, truth: Truth, listings: Vec<Listed>, list: &Nomenclature) -> Stream {
    let mut seen = HashSet::new();
    let once: Vec<Listed> = listings.into_iter().filter(|listing| seen.insert(listing.0.to_lowercase())).collect();
    let mut groups: HashMap<String, (usize, Vec<ClassCode>)> = HashMap::new();
    for (title, _, said) in &once {
        let group = groups.entry(variant(title)).or_default();
        group.0 += 1;
        group.1.extend(said);
    }
    let item = |(title, details, said): Listed| {
        let (variants, group) = &groups[&variant(&title)];
        let said = if truth == Truth::Model { majority(group)? } else { said? };
        let truth = list.longest_listed(said).filter(|code| code.digits() >= 4)?;
        Some(Item { title, details, truth, variants: *variants })
    };
    let items = once.into_iter().filter_map(item).collect();
    let source = name.split(' ').next().unwrap_or_default();
    let measures = match truth {
        Truth::People => Random(fnv(source)).next().is_multiple_of(MEASURING_SHARE),
        Truth::Model => true,
        Truth::Corpus => false,
    };
    Stream { name, truth, measures, items }
}

/// What most say; of equally many the lower code.
fn majority(said: &[ClassCode]) -> Option<ClassCode> {
    let mut votes: BTreeMap<ClassCode, usize> = BTreeMap::new();
    said.iter().for_each(|code| *votes.entry(*code).or_default() += 1);
    let most = votes.values().copied().max()?;
    votes.into_iter().find(|(_, count)| *count == most).map(|(code, _)| code)
}

/// Words in which variants of one good differ.
const VARYING: &[&str] = &[
    "schwarz",
    "weiß",
    "weiss",
    "rot",
    "blau",
    "grün",
    "gruen",
    "gelb",
    "grau",
    "braun",
    "beige",
    "rosa",
    "lila",
    "violett",
    "türkis",
    "silber",
    "gold",
    "bunt",
    "dunkelblau",
    "hellblau",
    "creme",
    "natur",
    "transparent",
    "anthrazit",
    "petrol",
    "navy",
    "khaki",
    "oliv",
    "marine",
    "hellgrau",
    "dunkelgrau",
    "weinrot",
    "hell",
    "dunkel",
    "black",
    "white",
    "red",
    "blue",
    "green",
    "yellow",
    "grey",
    "gray",
    "brown",
    "purple",
    "violet",
    "silver",
    "turquoise",
    "teal",
    "multicolour",
    "multicolor",
    "cream",
    "ivory",
    "bronze",
    "copper",
    "clear",
    "dark",
    "light",
    "pink",
    "orange",
    "small",
    "medium",
    "large",
    "xs",
    "s",
    "m",
    "l",
    "xl",
    "xxl",
    "xxxl",
    "kg",
    "g",
    "mg",
    "ml",
    "cl",
    "cm",
    "mm",
    "inch",
    "stück",
    "stk",
    "pack",
    "x",
    "er",
    "pcs",
    "pc",
    "ct",
    "lb",
    "oz",
    "w",
    "v",
    "gb",
    "tb",
    "mb",
    "liter",
    "litre",
    "klein",
    "groß",
    "gross",
    "mittel",
    "farbe",
    "colour",
    "color",
    "größe",
    "size",
    "ca",
    "je",
    "ab",
    "zoll",
];

/// A title without what differs between variants: numbers, colours, sizes, units.
fn variant(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let kept: Vec<&str> =
        words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()) && !VARYING.contains(word)).collect();
    if kept.is_empty() { lower } else { kept.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_differ_in_numbers_colours_and_sizes_alone() {
        for (one, other, same) in [
            ("Rucksack Alpin 45+10 schwarz", "Rucksack Alpin 60 rot", true),
            ("T-Shirt, blue, XL", "T-Shirt (red) S", true),
            ("Rucksack Alpin", "Rucksack Bergen", false),
            ("12", "13", false),
        ] {
            assert_eq!(variant(one) == variant(other), same, "{one} / {other}");
        }
    }

    #[test]
    fn the_class_of_a_good_is_what_most_of_its_variants_get() {
        let code = |digits| ClassCode::new(digits).expect("a code");
        let (bag, shoe) = (code("420292"), code("640399"));
        assert_eq!(majority(&[shoe, bag, shoe]), Some(shoe));
        assert_eq!(majority(&[shoe, bag]), Some(bag));
        assert_eq!(majority(&[]), None);
    }
}
