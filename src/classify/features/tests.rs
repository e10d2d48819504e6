//! What a text's features share with those of its other spellings.

use super::super::lexicon::{Sequence, WORD_INFO, word_key};
use super::super::table::{self, Table};
use super::super::{LanguageText, ProductText};
use super::*;

/// A name's features.
fn features(language: &str, name: &str) -> Vec<Feature> {
    let text = LanguageText { language, name: Some(name), ..LanguageText::default() };
    features_of(&ProductText { languages: vec![text] })
}

/// A text's features, with a small lexicon.
fn features_of(text: &ProductText<'_>) -> Vec<Feature> {
    let german = ["damen", "leder", "jacke", "kueche", "schuhe", "und", "kabel", "waschmaschine", "tasche", "bank"];
    let english = ["shoes", "leather", "jacket", "cable", "bags"];
    let info = |german| WordInfo { german, english: !german, count: 30, ..WordInfo::default() };
    let own_label = Sequence::default().and("beste").and("wahl").key();
    let entries: Vec<(u64, u32)> = (german.iter().map(|word| (word_key(word), info(true).pack())))
        .chain(english.iter().map(|word| (word_key(word), info(false).pack())))
        .chain([(own_label, WordInfo { vague: true, ..WordInfo::default() }.pack())])
        .chain(["box", "garten"].map(|word| (word_key(word), WordInfo { wants_a_good: true, ..info(true) }.pack())))
        .chain(
            ["beutel", "glas", "kiste", "korb", "oliv", "senf", "sand"]
                .map(|word| (word_key(word), WordInfo { describes: true, ..info(true) }.pack())),
        )
        .collect();
    let bytes = table::build::<WORD_INFO>(entries);
    let lexicon = Lexicon::new(Table::over(&bytes).expect("table"));
    let mut features = Vec::new();
    Extractor::default().extract(&lexicon, text, &mut features);
    features
}

/// Their keys.
fn keys(language: &str, name: &str) -> Vec<(u64, Kind)> {
    features(language, name).iter().map(|feature| (feature.key, feature.kind)).collect()
}

fn shared(left: &str, right: &str) -> usize {
    let right = keys("de", right);
    keys("de", left).iter().filter(|(key, _)| right.iter().any(|(other, _)| other == key)).count()
}

#[test]
fn a_compound_shares_features_with_its_other_spellings() {
    for other in ["Leder-Jacke", "Leder Jacke", "LEDERJACKE", "lederjacke"] {
        assert!(shared("Lederjacke", other) >= 3, "{other}");
    }
}

#[test]
fn inflected_words_of_either_language_share_their_stem() {
    assert!(shared("Jacken", "Jacke") > 0);
    let (one, many) = (keys("en", "bag"), keys("de", "bags"));
    assert!(one.iter().any(|(key, kind)| *kind == Kind::Word && many.iter().any(|(other, _)| other == key)));
}

#[test]
fn a_plural_that_stands_nowhere_is_read_as_its_singular() {
    assert_eq!(keys("de", "Lederbänke"), keys("de", "Lederbank"));
    assert_eq!(keys("de", "Bänken"), keys("de", "Bank"));
}

#[test]
fn words_of_an_own_label_are_left_out_where_they_stand_together() {
    for (name, words) in [
        ("Beste Wahl Schuhe", 1),
        ("Schuhe, beste Wahl", 1),
        ("Beste Wahl Leder Schuhe", 2),
        ("Beste Schuhe Wahl", 3),
        ("Wahl beste", 2),
        ("Beste Wahl", 0),
    ] {
        let found = features("de", name).iter().filter(|feature| feature.kind == Kind::Word).count();
        assert_eq!(found, words, "{name}");
    }
    assert_eq!(keys("de", "Beste Wahl Schuhe"), keys("de", "Schuhe"));
}

#[test]
fn words_behind_for_are_marked() {
    let marks = |name| keys("de", name).iter().filter(|(_, kind)| *kind == Kind::Mark).count();
    // First and last word of the naming phrase, and the introduced word.
    assert_eq!(marks("Kabel"), 2);
    assert_eq!(marks("Kabel für Waschmaschine"), 3);
}

#[test]
fn the_first_and_last_word_of_the_naming_phrase_are_known_as_such() {
    let words = |name: &str, of: fn(Place) -> bool| -> Vec<String> {
        let words = features("de", name).into_iter().filter(|feature| feature.kind == Kind::Word && of(feature.place));
        words.map(|feature| name[feature.source.0 as usize..feature.source.1 as usize].to_owned()).collect()
    };
    for (name, first, last) in [
        ("Damen Lederjacke Tasche", "Damen", "Tasche"),
        ("Schuhe, Damen", "Schuhe", "Schuhe"),
        ("Leder Kabel für Waschmaschine", "Leder", "Kabel"),
    ] {
        assert_eq!(words(name, |place| place.first), [first], "{name}");
        assert_eq!(words(name, |place| place.last), [last], "{name}");
    }
}

#[test]
fn foreign_text_is_read_only_when_its_words_are_known() {
    assert!(!keys("fr", "Lederjacke und Schuhe").is_empty());
    assert!(keys("fr", "veste en cuir véritable pour homme").is_empty());
    assert!(keys("ru", "кожаная куртка").is_empty());
}

#[test]
fn a_name_that_says_but_for_what_it_is_or_what_comes_with_it_is_no_evidence() {
    for name in ["für Schuhe", "inkl. Kabel", "mit Tasche"] {
        assert!(features("de", name).is_empty(), "{name}");
    }
    for name in ["Schuhe", "für Damen Schuhe", "Kabel inkl. Tasche"] {
        assert!(!features("de", name).is_empty(), "{name}");
    }
    assert!(features("en", "for leather").is_empty() && !features("en", "for leather shoes").is_empty());
}

#[test]
fn pieces_beyond_all_numbers_have_the_last_one_and_not_the_first_again() {
    let tags = vec!["Schuhe".to_owned(); MAX_TAGS];
    let language = LanguageText { language: "de", tags: &tags, ..LanguageText::default() };
    let text = ProductText { languages: vec![language; usize::from(u16::MAX) / MAX_TAGS + 2] };
    let pieces: Vec<u16> = features_of(&text).iter().map(|feature| feature.piece).collect();
    assert!(pieces.is_sorted(), "a later piece has an earlier number");
    assert_eq!((pieces.first(), pieces.last()), (Some(&0), Some(&u16::MAX)));
}

#[test]
fn what_belongs_to_a_good_is_not_known_by_its_name_and_for_whom_it_is_weighs_like_a_word() {
    let german = WordInfo { german: true, count: 30, ..WordInfo::default() };
    let vague = ["zubehoer", "schwarz", "damen", "geschenk"]
        .map(|word| (word_key(word), WordInfo { vague: true, ..german }.pack()));
    let alone = [(word_key("box"), WordInfo { wants_a_good: true, ..german }.pack())];
    let entries: std::collections::BTreeMap<u64, u32> = vague.into_iter().chain(alone).collect();
    let bytes = table::build::<WORD_INFO>(entries);
    let lexicon = Lexicon::new(Table::over(&bytes).expect("table"));
    let read = |name: &str| {
        let text = LanguageText { language: "de", name: Some(name), ..LanguageText::default() };
        let (mut extractor, mut features) = (Extractor::default(), Vec::new());
        extractor.extract(&lexicon, &ProductText { languages: vec![text] }, &mut features);
        let first = features.first().map(|feature| (feature.weight, feature.vague));
        (extractor.name_keys().to_vec(), first)
    };
    assert_eq!(read("Drohne schwarz").0, read("Drohne").0);
    assert_ne!(read("Drohne Zubehör").0, read("Drohne").0);
    assert!(read("Zubehör").0.is_empty(), "alone it is no name");
    assert!(read("Geschenk Drohne").0.is_empty(), "what is given is open");
    assert_eq!(read("Box Schuhe").1, Some((WORD, true)), "alone it names no good");
    assert_eq!(read("Damen Schuhe").1, Some((WORD, true)));
    assert_eq!(read("schwarz Schuhe").1, Some((VAGUE, true)));
}

#[test]
fn a_description_of_packing_or_of_a_shade_alone_tells_no_good() {
    let evidence = |name: &'static str, description: &'static str| {
        let text = LanguageText {
            language: "de",
            name: Some(name),
            description: Some(description),
            ..LanguageText::default()
        };
        let features = features_of(&ProductText { languages: vec![text] });
        let is_evidence = |one: &&Feature| !one.vague && !matches!(one.kind, Kind::Mark);
        [Field::Name, Field::Description].map(|field| features.iter().filter(is_evidence).any(|one| one.field == field))
    };
    for description in ["per Beutel", "Glas", "Kiste, 5", "Box", "oliv", "Senf, 5", "sand"] {
        assert_eq!(evidence("Jacke", description), [true, false], "{description}");
    }
    assert_eq!(evidence("Jacke", "Beutel aus Leder"), [true, true]);
    assert_eq!(evidence("Senf", ""), [true, false]);
    assert_eq!(evidence("Korb", ""), [true, false]);
    assert_eq!(evidence("Garten", "Box"), [false, false], "a shelf names no good");
    assert_eq!(evidence("Garten Jacke", ""), [true, false]);
}
