//! A varied catalogue and random criteria over it, the same for the same seed.

use serde_json::{Map, Value, json};
use unicode_normalization::UnicodeNormalization;
use vat_classification::domain::Details;
use vat_classification::domain::filter::Criteria;

/// Pieces of texts: compounds, umlauts composed and not, other scripts, punctuation, what is special to some engine.
const WORDS: [&str; 72] = [
    "Damenlederjacke",
    "Jacke",
    "Leder",
    "Lederjacken",
    "Straße",
    "STRASSE",
    "Äpfel",
    "A\u{308}pfel",
    "größe",
    "GRÖSSE",
    "T-Shirt",
    "t-shirts",
    "Shirt",
    "24\"",
    "3,5",
    "3.5mm",
    "a",
    "b",
    "ab",
    "ba",
    "aa",
    "aab",
    "A-B",
    "a_b",
    "a.b",
    "x%",
    "50%",
    "C:\\temp",
    "\\",
    "*",
    "?",
    "a*b",
    "[ab]",
    "(x|y)",
    "^$",
    "or",
    "OR",
    "-",
    "--",
    "-a",
    "don't",
    "l'eau",
    "кофе",
    "КОФЕ",
    "Ёлка",
    "Ε\u{301}να",
    "ΟΔΟΣ",
    "οδος",
    "日本語",
    "日本",
    "コーヒー",
    "ｺｰﾋｰ",
    "한국어",
    "שלום",
    "مرحبا",
    "ภาษาไทย",
    "हिन्दी",
    "👍🏽",
    "👨‍👩‍👧",
    "🇩🇪🇨🇭",
    "…",
    "½",
    "ﬁlter",
    "Ｆｕｌｌ",
    "İstanbul",
    "ısı",
    "e\u{301}te\u{301}",
    "été",
    "a\u{1c}b",
    "co\u{ad}op",
    "№5",
    "x²",
];
/// What stands between words.
const GAPS: [&str; 10] = [" ", " ", " ", " ", "  ", "\u{a0}", "\n", ", ", " - ", "\u{3000}"];
const LANGUAGES: [&str; 5] = ["de", "de", "en", "fr", "deu"];
const COUNTRIES: [&str; 3] = ["DE", "CH", "CN"];

/// Random numbers that are the same for the same seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    pub(crate) fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// Products with distinct ids.
pub(crate) fn products(random: &mut Random, count: usize) -> Vec<(String, Details)> {
    (0..count).map(|i| (product_id(random, i), product(random))).collect()
}

fn product_id(random: &mut Random, i: usize) -> String {
    let kinds = ["SKU-", "Art. ", "ä", "A\u{308}_", "日", "50%", "x*y ", "\u{1f44d}"];
    let long = if random.percent(5) { "langeNummer-mit-vielen-Zeichen-" } else { "" };
    format!("{}{long}{i}", random.one(&kinds))
}

fn product(random: &mut Random) -> Details {
    let mut languages = Map::new();
    for _ in 0..random.below(4) {
        let mut texts = Map::new();
        if random.percent(85) {
            let words = 1 + random.below(6);
            texts.insert("productName".to_owned(), json!(text(random, words, 1_000)));
        }
        if random.percent(70) {
            let words = random.below(25);
            texts.insert("productDescription".to_owned(), json!(text(random, words, 50_000)));
        }
        if random.percent(50) {
            let tags: Vec<String> = (0..random.below(4))
                .map(|_| {
                    let words = 1 + random.below(3);
                    text(random, words, 200)
                })
                .collect();
            texts.insert("productTags".to_owned(), json!(tags));
        }
        languages.insert((*random.one(&LANGUAGES)).to_owned(), Value::from(texts));
    }
    let mut details = json!({"languageAttributes": languages});
    if random.percent(60) {
        details["customs"] = json!({"countryOfOrigin": random.one(&COUNTRIES)});
    }
    serde_json::from_value(details).expect("details")
}

/// A text of some words, cut at a number of characters.
fn text(random: &mut Random, words: usize, longest: usize) -> String {
    let mut text = String::new();
    for i in 0..words {
        if i > 0 {
            text.push_str(random.one::<&str>(&GAPS));
        }
        text.push_str(&word(random));
    }
    let text: String = if random.percent(10) { text.nfd().collect() } else { text };
    text.chars().take(longest).collect()
}

fn word(random: &mut Random) -> String {
    match random.below(100) {
        0..80 => (*random.one(&WORDS)).to_owned(),
        80..90 => format!("{}{}", random.one(&WORDS), random.one(&WORDS)),
        90..96 => random.below(100_000).to_string(),
        96..98 => random.one(&["ab", "aab", "xÄ", "日"]).repeat(20 + random.below(200)),
        _ => "a".repeat(20 + random.below(300)),
    }
}

/// Criteria that follow the grammar, mostly of pieces that occur in the products.
pub(crate) fn criteria(random: &mut Random, products: &[(String, Details)]) -> (String, Criteria) {
    loop {
        let count = if random.percent(70) { 1 } else { 1 + random.below(6) };
        let elements: Vec<Value> = (0..count).map(|_| element(random, products)).collect();
        let json = Value::from(elements).to_string();
        if let Ok(criteria) = Criteria::parse(&json) {
            return (json, criteria);
        }
    }
}

fn element(random: &mut Random, products: &[(String, Details)]) -> Value {
    let mut element = Map::new();
    element.insert("languageKey".to_owned(), json!(random.one(&["de", "de", "en", "fr", "deu", "it"])));
    for property in ["keywords", "productName", "productTag"] {
        if random.percent(40) {
            element.insert(property.to_owned(), json!(value(random, products)));
        }
    }
    if random.percent(10) {
        let id = &random.one(products).0;
        element.insert("productId".to_owned(), json!(piece(random, id)));
    }
    if random.percent(10) {
        element.insert("countryOfOrigin".to_owned(), json!(random.one(&COUNTRIES)));
    }
    if random.percent(60) {
        element.insert("operation".to_owned(), json!(random.one(&["AND", "OR"])));
    }
    Value::from(element)
}

fn value(random: &mut Random, products: &[(String, Details)]) -> String {
    let mut value = String::new();
    for i in 0..1 + random.below(4) {
        if i > 0 {
            value.push_str(if random.percent(30) { " or " } else { " " });
        }
        if random.percent(25) {
            value.push('-');
        }
        let text = any_text(random, products);
        value.push_str(&if random.percent(35) { phrase(random, &text) } else { plain(random, &text) });
    }
    value
}

/// A text of some product, or one that nobody has.
fn any_text(random: &mut Random, products: &[(String, Details)]) -> String {
    for _ in 0..4 {
        let texts: Vec<&String> = random
            .one(products)
            .1
            .languages()
            .flat_map(|(_, texts)| {
                let tags = texts.product_tags.iter().flatten();
                texts.product_name.iter().chain(&texts.product_description).chain(tags)
            })
            .filter(|text| !text.trim().is_empty())
            .collect();
        if !texts.is_empty() {
            return (*random.one(&texts)).clone();
        }
    }
    text(random, 5, 1_000)
}

fn plain(random: &mut Random, text: &str) -> String {
    let runs: Vec<&str> = text.split_whitespace().collect();
    if runs.is_empty() || random.percent(10) {
        return (*random.one(&WORDS)).to_owned();
    }
    let run = *random.one(&runs);
    piece(random, run)
}

/// A part of a text, mostly short, sometimes in other case.
fn piece(random: &mut Random, text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let longest = if random.percent(15) { characters.len() } else { characters.len().min(1 + random.below(6)) };
    let length = longest.max(1).min(characters.len());
    let begin = random.below(characters.len() - length + 1);
    let piece: String = characters[begin..begin + length].iter().collect();
    match random.below(4) {
        0 => piece.to_uppercase(),
        1 => piece.to_lowercase(),
        _ => piece,
    }
}

/// A phrase of words that stand near each other, with as many blanks as words between, or some more or fewer.
fn phrase(random: &mut Random, text: &str) -> String {
    use unicode_segmentation::UnicodeSegmentation;
    let words: Vec<&str> = text.unicode_words().collect();
    if words.is_empty() {
        return format!("\"{}\"", random.one(&WORDS).replace('"', ""));
    }
    let mut at = random.below(words.len());
    let mut phrase = words[at].to_owned();
    for _ in 0..random.below(4) {
        let step = 1 + random.below(3);
        let Some(word) = words.get(at + step) else { break };
        let blanks = if random.percent(85) { step - 1 } else { random.below(3) };
        phrase.push_str(if blanks == 0 { "-" } else { "" });
        phrase.push_str(&" ".repeat(blanks));
        phrase.push_str(word);
        at += step;
    }
    format!("\"{phrase}\"")
}
