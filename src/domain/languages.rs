//! Language codes of ISO 639, all parts: 639-1, 639-2/T and /B, 639-3, 639-5.

use isolang::Language;

/// Codes of 639-2/B where they differ from those of 639-2/T, which are also in 639-3.
const BIBLIOGRAPHIC: [&str; 20] = [
    "alb", "arm", "baq", "bur", "chi", "cze", "dut", "fre", "geo", "ger", "gre", "ice", "mac", "mao", "may", "per",
    "rum", "slo", "tib", "wel",
];

/// Codes of families and groups, from 639-5, which has the collective codes of 639-2 among them; sorted.
const COLLECTIVE: [&str; 115] = [
    "aav", "afa", "alg", "alv", "apa", "aqa", "aql", "art", "ath", "auf", "aus", "awd", "azc", "bad", "bai", "bat",
    "ber", "bih", "bnt", "btk", "cai", "cau", "cba", "ccn", "ccs", "cdc", "cdd", "cel", "cmc", "cpe", "cpf", "cpp",
    "crp", "csu", "cus", "day", "dmn", "dra", "egx", "esx", "euq", "fiu", "fox", "gem", "gme", "gmq", "gmw", "grk",
    "hmx", "hok", "hyx", "iir", "ijo", "inc", "ine", "ira", "iro", "itc", "jpx", "kar", "kdo", "khi", "kro", "map",
    "mkh", "mno", "mun", "myn", "nah", "nai", "ngf", "nic", "nub", "omq", "omv", "oto", "paa", "phi", "plf", "poz",
    "pqe", "pqw", "pra", "qwe", "roa", "sai", "sal", "sdv", "sem", "sgn", "sio", "sit", "sla", "smi", "son", "sqj",
    "ssa", "syd", "tai", "tbq", "trk", "tup", "tut", "tuw", "urj", "wak", "wen", "xgn", "xnd", "ypk", "zhx", "zle",
    "zls", "zlw", "znd",
];

/// Keys of German texts.
const GERMAN: [&str; 3] = ["de", "deu", "ger"];
/// Keys of English texts.
const ENGLISH: [&str; 2] = ["en", "eng"];

/// Whether the text is a language code that a product may use as a key: any code of ISO 639 in lower case. Codes that
/// the standard leaves to private use name no language.
pub fn is_known(key: &str) -> bool {
    key.bytes().all(|b| b.is_ascii_lowercase())
        && match key.len() {
            2 => Language::from_639_1(key).is_some(),
            3 => {
                Language::from_639_3(key).is_some()
                    || BIBLIOGRAPHIC.contains(&key)
                    || COLLECTIVE.binary_search(&key).is_ok()
                    // Collective in 639-2 only.
                    || key == "him"
            }
            _ => false,
        }
}

/// Whether texts under this key are German or English, the languages that auto-assignment reads.
pub fn is_read(key: &str) -> bool {
    GERMAN.contains(&key) || ENGLISH.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_part_are_known_in_lower_case() {
        for known in ["de", "en", "zh", "deu", "ger", "zho", "chi", "gsw", "wel", "gem", "afa", "znd", "mul", "und"] {
            assert!(is_known(known), "{known}");
        }
        assert!(BIBLIOGRAPHIC.into_iter().chain(COLLECTIVE).all(is_known));
        for unknown in ["", "d", "DE", "De", "xx", "qqq", "german", "de-DE", "zzzz", "ä", "1a"] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn the_codes_of_families_are_sorted_and_apart_from_those_of_languages() {
        assert!(COLLECTIVE.is_sorted());
        let individual: Vec<&str> =
            COLLECTIVE.into_iter().filter(|code| Language::from_639_3(code).is_some()).collect();
        assert!(individual.is_empty(), "{individual:?}");
        assert!(BIBLIOGRAPHIC.into_iter().all(|code| Language::from_639_3(code).is_none()));
    }

    #[test]
    fn german_and_english_are_read_under_all_their_codes_and_nothing_else_is() {
        assert!(["de", "deu", "ger", "en", "eng"].into_iter().all(is_read));
        assert!(!["gsw", "enm", "ang", "gmh", "nds", "fr", "gem", "DE"].into_iter().any(is_read));
    }
}
