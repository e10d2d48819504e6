//! A catalogue of made-up products with the statistics of real ones: German and English names, descriptions and tags
//! of words that are drawn by Zipf's law, compounds, sizes and article numbers.

use serde_json::{Value, json};

const SYLLABLES: [&str; 48] = [
    "ba", "be", "bo", "da", "del", "dor", "fa", "fer", "fin", "ga", "gel", "grun", "ha", "hel", "ka", "ker", "kin",
    "la", "len", "lich", "ma", "mer", "mun", "na", "nel", "nor", "pa", "per", "ra", "rei", "ro", "sa", "schu", "sel",
    "ta", "ten", "tro", "tür", "un", "va", "ver", "wa", "wei", "wol", "zan", "zer", "zu", "öl",
];
const STEMS: usize = 12_000;
const COLOURS: [&str; 8] = ["rot", "blau", "schwarz", "grün", "weiß", "grau", "beige", "braun"];
const COUNTRIES: [&str; 6] = ["DE", "CN", "IT", "TR", "PL", "VN"];

/// Random numbers that are the same for the same seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Below a bound, by Zipf's law with exponent 1: rank r about as often as 1/r.
    fn zipf(&mut self, bound: usize) -> usize {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((bound as f64).powf(uniform) - 1.0) as usize
    }
}

/// The words, the frequent ones first and short.
pub(crate) struct Corpus {
    stems: Vec<String>,
}

impl Corpus {
    pub(crate) fn new() -> Corpus {
        let mut random = Random(1);
        let stems = (0..STEMS).map(|rank| {
            let syllables = 1 + usize::from(rank > 30) + usize::from(rank > 400) + random.below(2);
            (0..syllables).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
        });
        Corpus { stems: stems.collect() }
    }

    fn word(&self, random: &mut Random) -> String {
        let stem = |random: &mut Random| self.stems[random.zipf(STEMS)].clone();
        let mut word = match random.below(20) {
            0..12 => stem(random),
            12..17 => stem(random) + &stem(random),
            17 => stem(random) + &stem(random) + &stem(random),
            18 => format!("{}-{}", stem(random), stem(random)),
            _ => return format!("{},{}cm", random.below(200), random.below(10)),
        };
        if random.below(3) == 0
            && let Some(first) = word.chars().next()
        {
            let upper: String = first.to_uppercase().collect();
            word.replace_range(..first.len_utf8(), &upper);
        }
        word
    }

    fn words(&self, random: &mut Random, count: usize, between: &str) -> String {
        (0..count).map(|_| self.word(random)).collect::<Vec<_>>().join(between)
    }

    /// A product's id and details.
    pub(crate) fn product(&self, number: usize) -> (String, Value) {
        let mut random = Random(number as u64 ^ 0xc0ff_ee00);
        let random = &mut random;
        let id = format!("{}-{:07}", ["ART", "SKU", "MX"][number % 3], number);
        let mut languages = serde_json::Map::new();
        for language in if number.is_multiple_of(3) { &["de", "en"][..] } else { &["de"][..] } {
            let words = 3 + random.below(4);
            let name = format!(
                "{} {} {}{}",
                self.words(random, words, " "),
                COLOURS[random.below(COLOURS.len())],
                ["Gr. ", "Modell X", "Nr."][random.below(3)],
                random.below(10_000),
            );
            let sentences: Vec<String> = (0..2 + random.below(4))
                .map(|_| {
                    let words = 6 + random.below(9);
                    self.words(random, words, " ") + "."
                })
                .collect();
            let tags: Vec<String> = (0..2 + random.below(4))
                .map(|_| {
                    let words = 1 + random.below(2);
                    self.words(random, words, " ")
                })
                .collect();
            let texts = json!({"productName": name, "productDescription": sentences.join(" "), "productTags": tags});
            languages.insert((*language).to_owned(), texts);
        }
        let country = COUNTRIES[random.below(COUNTRIES.len())];
        (id, json!({"languageAttributes": languages, "customs": {"countryOfOrigin": country}}))
    }

    /// The German name and description of a product, as one text.
    pub(crate) fn text(&self, number: usize) -> String {
        let (_, details) = self.product(number);
        let texts = &details["languageAttributes"]["de"];
        let part = |name: &str| texts[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}", part("productName"), part("productDescription"))
    }

    /// A part of some word of some product, of a number of characters.
    pub(crate) fn piece(&self, random: &mut Random, products: usize, length: usize) -> String {
        loop {
            let text = self.text(random.below(products));
            let runs: Vec<Vec<char>> = text.split_whitespace().map(|run| run.chars().collect()).collect();
            let long: Vec<&Vec<char>> = runs.iter().filter(|run| run.len() >= length).collect();
            if !long.is_empty() {
                let run = long[random.below(long.len())];
                let begin = random.below(run.len() - length + 1);
                let piece: String = run[begin..begin + length].iter().collect();
                if !piece.starts_with(['-', '"']) && !piece.eq_ignore_ascii_case("or") {
                    return piece;
                }
            }
        }
    }

    /// Two words of some product with exactly one between, as a phrase.
    pub(crate) fn gap_phrase(&self, random: &mut Random, products: usize) -> String {
        let text = self.text(random.below(products));
        let words: Vec<&str> = text.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).collect();
        let run = text.split_whitespace().collect::<Vec<_>>();
        let plain = |word: &str| word.chars().all(char::is_alphabetic);
        let places: Vec<usize> =
            (0..run.len().saturating_sub(2)).filter(|at| run[*at..at + 3].iter().all(|word| plain(word))).collect();
        match places.is_empty() {
            true => format!("\"{}\"", words.first().unwrap_or(&"ba")),
            false => {
                let at = places[random.below(places.len())];
                format!("\"{} {}\"", run[at], run[at + 2])
            }
        }
    }
}
