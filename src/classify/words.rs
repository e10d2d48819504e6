//! Function words of German and English, and what they say about the words behind them.

/// What a word is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may be evidence.
    Content,
    /// It says nothing and separates nothing ("the", "und").
    Stop,
    /// What follows belongs to another thing or only qualifies ("for", "mit"): its words weigh less.
    Introduces,
    /// What follows is what the good is made of ("aus", "of"); the head noun stands before it.
    Material,
}

/// A language whose stems are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// German, in all its countries.
    German,
    /// English, in all its countries.
    English,
}

/// Role of a folded word, and the language that alone uses it as such.
pub fn role(word: &str) -> (Role, Option<Language>) {
    use Language::{English, German};
    match word {
        "fuer" | "zum" | "zur" | "mit" | "ohne" | "inkl" | "inklusive" | "passend" | "geeignet" | "samt" | "gegen"
        | "bei" | "als" | "zu" | "kompatibel" => (Role::Introduces, Some(German)),
        "for" | "with" | "without" | "incl" | "including" | "includes" | "suitable" | "fits" | "against" | "to"
        | "compatible" => (Role::Introduces, Some(English)),
        "aus" | "von" | "vom" => (Role::Material, Some(German)),
        "of" | "from" => (Role::Material, Some(English)),
        "der" | "die" | "das" | "dem" | "den" | "des" | "ein" | "eine" | "einem" | "einen" | "einer" | "eines"
        | "und" | "oder" | "im" | "auf" | "am" | "ist" | "sind" | "wird" | "werden" | "wie" | "auch" | "sich"
        | "sie" | "ihr" | "ihre" | "durch" | "ueber" | "unter" | "nach" | "um" | "nicht" | "sowie" | "bzw"
        | "ca" | "je" | "bis" | "dieser" | "diese" | "dieses" | "nur" | "sehr" | "vor" | "zwischen" | "kein"
        | "keine" | "kann" | "koennen" | "dank" | "jede" | "jeden" | "jeder" | "alle" | "alles" | "beim" | "fuers"
        | "ins" | "ab" | "noch" | "mehr" => (Role::Stop, Some(German)),
        "the" | "and" | "or" | "on" | "by" | "your" | "you" | "our" | "it" | "its" | "this" | "that" | "these"
        | "is" | "are" | "be" | "has" | "have" | "can" | "will" | "at" | "as" | "up" | "any" | "which" | "other"
        | "than" | "not" | "more" | "each" | "per" | "into" | "their" | "they" | "we" | "very" | "also" | "when"
        | "while" | "such" => (Role::Stop, Some(English)),
        "in" | "an" | "a" | "x" | "o" | "u" | "all" | "so" | "etc" | "plus" | "nbsp" | "amp" | "quot" | "br"
        // What spreadsheets leave of a carriage return.
        | "x000d" => {
            (Role::Stop, None)
        }
        _ => (Role::Content, None),
    }
}

/// Whether a folded word says for whom something is made.
pub fn is_for_whom(word: &str) -> bool {
    matches!(
        word,
        "herren"
            | "damen"
            | "kinder"
            | "maenner"
            | "frauen"
            | "maedchen"
            | "jungen"
            | "men"
            | "mens"
            | "women"
            | "womens"
            | "ladies"
            | "kids"
            | "children"
            | "boys"
            | "girls"
    )
}

/// Whether a folded word makes another good of the one that it stands beside, though it says nothing by itself: accessories
/// and parts of a thing, a set with it, are not the thing.
pub fn is_part_of_name(word: &str) -> bool {
    matches!(
        word,
        "zubehoer"
            | "ersatzteil"
            | "ersatzteile"
            | "ersatz"
            | "teil"
            | "teile"
            | "kleinteile"
            | "muster"
            | "modell"
            | "set"
            | "sets"
            | "accessory"
            | "accessories"
            | "spare"
            | "replacement"
            | "part"
            | "parts"
            | "sample"
            | "samples"
            | "model"
            | "test"
            | "bundle"
    )
}

/// Whether a folded word says that something is given: what that is, its name does not settle (`gift box`, `gift bag`).
pub fn is_gift(word: &str) -> bool {
    matches!(
        word,
        "geschenk" | "geschenke" | "geschenkset" | "gutschein" | "gift" | "gifts" | "present" | "presents" | "voucher"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_have_a_role_and_most_a_language() {
        for (word, expected) in [
            ("fuer", (Role::Introduces, Some(Language::German))),
            ("with", (Role::Introduces, Some(Language::English))),
            ("aus", (Role::Material, Some(Language::German))),
            ("the", (Role::Stop, Some(Language::English))),
            ("in", (Role::Stop, None)),
            ("jacke", (Role::Content, None)),
        ] {
            assert_eq!(role(word), expected, "{word}");
        }
    }
}
