//! Words that turn the class of goods which are otherwise alike.
//!
//! Where the shipped model ranks two texts under different classes, it has been taught the difference; this list is
//! for what shops write around the head noun and the model may weigh too little.

/// What a text says of the qualities that turn a class, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qualities(u16);

/// A quality and the beginnings or parts of folded words that tell it; a later one is only looked for where no word of
/// an earlier one of its group stood.
struct Quality {
    bit: u16,
    words: &'static [&'static str],
    /// Whether the words are also looked for inside compounds.
    inside: bool,
}

const IMITATION: u16 = 1;
const LEATHER: u16 = 1 << 1;
const MEN: u16 = 1 << 2;
const WOMEN: u16 = 1 << 3;
const CHILDREN: u16 = 1 << 4;
const FILLED: u16 = 1 << 5;
const EMPTY: u16 = 1 << 6;
const SET: u16 = 1 << 7;
const SPARE: u16 = 1 << 8;
const ELECTRIC: u16 = 1 << 9;
const TOY: u16 = 1 << 10;

/// Qualities that say nothing where one of two texts is silent: only different ones turn the class.
const SILENT: [u16; 2] = [MEN | WOMEN, FILLED | EMPTY];

const QUALITIES: [Quality; 11] = [
    Quality {
        bit: IMITATION,
        words: &["kunstleder", "lederimitat", "lederoptik", "kunst-leder", "faux", "imitation", "vegan"],
        inside: true,
    },
    Quality { bit: LEATHER, words: &["leder", "leather"], inside: true },
    Quality { bit: WOMEN, words: &["damen", "frauen", "women", "woman", "ladies", "lady"], inside: false },
    Quality { bit: MEN, words: &["herren", "maenner", "männer", "men", "mens", "man"], inside: false },
    Quality {
        bit: CHILDREN,
        words: &[
            "kinder", "kids", "child", "baby", "babies", "jungen", "mädchen", "maedchen", "girls", "boys", "junior",
        ],
        inside: false,
    },
    Quality { bit: FILLED, words: &["gefüllt", "gefuellt", "befüllt", "befuellt", "filled"], inside: false },
    Quality { bit: EMPTY, words: &["leer", "empty", "unbefüllt", "unbefuellt", "ungefüllt"], inside: false },
    Quality { bit: SET, words: &["set", "sets"], inside: false },
    Quality { bit: SPARE, words: &["ersatz", "spare", "replacement"], inside: false },
    Quality { bit: ELECTRIC, words: &["elektr", "electr", "akku", "cordless"], inside: false },
    Quality { bit: TOY, words: &["spielzeug", "toy", "puppen"], inside: false },
];

/// Words that are only meant as they stand, since others begin with them.
const WHOLE: [&str; 8] = ["set", "sets", "men", "mens", "man", "toy", "leer", "lady"];

impl Qualities {
    /// What texts say.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Qualities {
        let mut found = 0;
        for text in texts {
            let lower = text.to_lowercase();
            for word in lower.split(|c: char| !c.is_alphanumeric()) {
                found |= of_word(word);
            }
        }
        if found & IMITATION != 0 {
            found &= !LEATHER;
        }
        Qualities(found)
    }

    /// Whether the class of one text does not carry over to the other.
    pub fn turn(self, other: Qualities) -> bool {
        let silent = SILENT.into_iter().filter(|group| self.0 & group == 0 || other.0 & group == 0);
        let compared = !silent.fold(0, |all, group| all | group);
        (self.0 ^ other.0) & compared != 0
    }
}

fn of_word(word: &str) -> u16 {
    let tells = |quality: &&Quality| {
        quality.words.iter().any(|known| match WHOLE.contains(known) {
            true => word == *known,
            false => word.starts_with(known) || quality.inside && word.contains(known),
        })
    };
    QUALITIES.iter().filter(tells).fold(0, |found, quality| found | quality.bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_turn_the_class_keep_products_apart_and_others_do_not() {
        for (one, other, turns) in [
            ("Handtasche Leder schwarz", "Handtasche Kunstleder schwarz", true),
            ("Lederhandtasche schwarz", "Lederhandtasche braun", false),
            ("Leather bag", "Faux leather bag", true),
            ("Handtasche", "Handtasche aus Leder", true),
            ("Damen Regenmantel", "Herren Regenmantel", true),
            ("Damen Regenmantel", "Regenmantel", false),
            ("Regenmantel", "Kinder Regenmantel", true),
            ("Flasche leer", "Flasche gefüllt", true),
            ("Flasche", "Flasche leer", false),
            ("Messer", "Messer Set", true),
            ("Setra Modell", "Modell", false),
            ("Bohrer", "Akkubohrer", true),
            ("T-Shirt rot M", "T-Shirt blau XL", false),
        ] {
            let of = |text| Qualities::of(std::iter::once(text));
            assert_eq!(of(one).turn(of(other)), turns, "{one} / {other}");
            assert_eq!(of(other).turn(of(one)), turns, "{other} / {one}");
        }
    }
}
