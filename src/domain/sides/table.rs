//! The words that settle sides, read from `words.tsv` beside this file.

use std::sync::LazyLock;

/// Chapters of clothes, shoes and hats, clothes of leather, plastics and artificial fur, and worn clothes.
pub(super) const CLOTHES: &[&str] = &["61", "62", "64", "65", "4203", "392620", "430400", "6309"];

/// Words that settle a side, for goods of certain codes.
pub(super) struct Words {
    pub(super) side: u8,
    /// Prefixes of the codes for which the words mean that side.
    pub(super) under: Vec<&'static str>,
    /// Words, or several with spaces between; a star stands for any end of a word. These put the goods on the side.
    pub(super) yes: Vec<&'static str>,
    /// These keep them from it. Where both occur nothing is known.
    pub(super) no: Vec<&'static str>,
}

/// The rows of the file, in its order; a row of another shape is left out, which a test forbids.
pub(super) static TABLE: LazyLock<Vec<Words>> = LazyLock::new(|| rows().flatten().collect());

/// The rows of the file; none for one that is not of the shape.
pub(super) fn rows() -> impl Iterator<Item = Option<Words>> {
    include_str!("words.tsv").lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let cells: Vec<&'static str> = line.split('\t').collect();
        let [side, under, yes, no] = cells[..] else { return None };
        let words = |cell: &'static str| if cell == "-" { Vec::new() } else { cell.split(", ").collect() };
        Some(Words { side: side.parse().ok()?, under: under.split(' ').collect(), yes: words(yes), no: words(no) })
    })
}

/// Goods that are on one side are not on others besides, although the others' conditions may hold for them: codes, the
/// side, and those that it takes the place of.
pub(super) const INSTEAD: &[(&str, u8, &[u8])] = &[
    ("220299", 1, &[26, 27, 28]),
    ("220299", 26, &[27, 28]),
    ("2106", 10, &[1, 9, 11, 46]),
    ("2106", 11, &[1, 9, 46]),
    ("190590", 19, &[9, 32, 54]),
    ("1806", 49, &[1]),
];

/// Words that say that clothes are for adults.
pub(super) const ADULTS: &[&str] = &[
    "herren*",
    "damen*",
    "männer*",
    "frauen*",
    "erwachsene*",
    "mens",
    "men",
    "womens",
    "women",
    "ladies",
    "gents",
    "gentlemens",
    "menswear",
    "womenswear",
    "adult",
    "adults",
    "umstands*",
    "schwangerschafts*",
    "maternity",
    "brautkleid*",
    "wedding dress*",
    "dessous",
    "lingerie",
];

/// Words that say that clothes are for children, of whatever age.
pub(super) const CHILDREN_WORDS: &[&str] = &[
    "kinder*",
    "kleinkind*",
    "mädchen*",
    "jungen*",
    "baby*",
    "kids",
    "childrens",
    "children",
    "girls",
    "boys",
    "toddler*",
    "infant*",
];

/// Words that say that shoes are for children; `babyblau` and `kinderleicht` do not.
pub(super) const SHOES_OF_CHILDREN: &[&str] = &[
    "kinder",
    "kinderschuh*",
    "kinderhalbschuh*",
    "kindersandale*",
    "kinderstiefel*",
    "kindersneaker*",
    "kinderturnschuh*",
    "kinderhausschuh*",
    "mädchen",
    "mädchenschuh*",
    "jungen",
    "jungenschuh*",
    "kids",
    "childrens",
    "children",
    "girls",
    "boys",
];

/// Words that leave open whether clothes are for adults, beside words that say so.
pub(super) const YOUNG: &[&str] = &[
    "kind",
    "kinder*",
    "kids",
    "kid",
    "child*",
    "boy*",
    "girl*",
    "jungen*",
    "mädchen*",
    "baby*",
    "babies",
    "toddler*",
    "infant*",
    "junior*",
    "teen*",
    "jugend*",
    "schul*",
    "school*",
    "säugling*",
    "neugeborene*",
    "newborn*",
    "family",
    "familie*",
    "partnerlook",
    "puppe*",
    "doll*",
];
