//! Words and numbers of a product text, in the one form that training and service share.
//!
//! Letters are folded (NFKC, lower case, ä/ö/ü/ß as ae/oe/ue/ss, other accents dropped), so that spelling habits of
//! shops do not matter. A word is a run of letters and digits that does not begin with a digit, or a digit run glued to
//! letters that are no unit (`2g11`). A number takes the unit behind it (`500 g`, `24cm`, `12 V`). What stands between
//! words only matters as a break: comma, dash between blanks, bracket, slash.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Version of folding and tokens; a model made with another one is refused.
pub const TEXT_VERSION: u32 = 3;

/// Longest text that is read, in bytes; the rest of a longer one is not looked at.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Longest word that is looked at, in bytes of its folded form; longer runs are no words of a language.
const MAX_WORD_BYTES: usize = 64;

/// How spreadsheets export the end of a line inside a cell (`_x000d_`), without its underscores; a break, not a word.
const SPREADSHEET_LINE_END: &str = "x000d";

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenKind {
    /// A word.
    Word,
    /// A number with the unit behind it, when there is one.
    Number(Option<Quantity>),
}

/// A measured amount: what is measured, and its size on a scale of powers of two of the base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// `g` mass, `l` volume, `m` length, `w` power, `v` voltage, `a` charge, `b` storage, `n` count, `%` share, and so on.
    pub dimension: char,
    /// Logarithm to the base two of the amount in the smallest usual unit, rounded down.
    pub magnitude: i8,
}

/// A word or number of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    /// Where its folded form lies in [`Tokens::folded`].
    pub start: usize,
    /// End of the folded form.
    pub end: usize,
    /// Where it stands in the source text.
    pub source: (usize, usize),
    /// What it is.
    pub kind: TokenKind,
    /// Whether a comma, bracket or the like stands between it and the token before.
    pub after_break: bool,
}

/// The tokens of one text; reused from text to text to save allocations.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Folded letters of all tokens, one after the other.
    pub folded: String,
    /// The tokens in their order.
    pub list: Vec<Token>,
}

impl Tokens {
    /// Replaces the content by the tokens of `text`.
    pub fn read(&mut self, text: &str) {
        self.folded.clear();
        self.list.clear();
        let mut scanner = Scanner { tokens: self, run: None, after_break: false, number_pending: false };
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        let mut chars = text[..end].char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|&(_, c)| c);
            if scanner.step(at, c, next) {
                chars.next();
            }
        }
        scanner.close(end);
    }

    /// The folded form of a token.
    pub fn word(&self, token: &Token) -> &str {
        &self.folded[token.start..token.end]
    }
}

/// The folded form of a word or phrase, without regard to tokens.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut folded);
    }
    folded
}

/// A run of letters and digits that is being read.
struct Run {
    start: usize,
    source: usize,
    /// Bytes of the number at its beginning; 0 when it begins with a letter.
    number: usize,
    has_letters: bool,
}

struct Scanner<'a> {
    tokens: &'a mut Tokens,
    run: Option<Run>,
    after_break: bool,
    /// Whether the last token is a number without unit that the next word may name.
    number_pending: bool,
}

impl Scanner<'_> {
    /// Reads one character; true when the next one belongs to it and is to be skipped.
    fn step(&mut self, at: usize, c: char, next: Option<char>) -> bool {
        if c.is_alphanumeric() || (is_combining_mark(c) && self.run.is_some()) {
            self.letter(at, c);
            return false;
        }
        let next_is_digit = next.is_some_and(|n| n.is_ascii_digit());
        match c {
            // Decimal points and thousands separators stay inside a number.
            '.' | ',' if next_is_digit && self.run.as_ref().is_some_and(|run| !run.has_letters) => {
                self.tokens.folded.push('.');
            }
            // "men's": what stands before the apostrophe is the word.
            '\'' | '’' | '´' | '`' if self.run.is_some() => {
                self.close(at);
                return matches!(next, Some('s' | 'S'));
            }
            '%' => {
                self.close(at);
                self.unit_of_last("%", at + 1);
            }
            '"' | '″' | '“' | '”' => {
                self.close(at);
                self.unit_of_last("zoll", at + c.len_utf8());
            }
            ' ' | '\t' | '\n' | '-' | '‐' | '‑' | '_' | '®' | '™' | '.' | '*' => {
                self.close(at);
                if matches!(c, '-' | '_' | '.') && next.is_none_or(char::is_whitespace) {
                    self.after_break |= c != '_';
                    self.number_pending &= c != '-';
                }
            }
            // Between two words it is read as the word that it stands for; in a name (`H&M`) it parts nothing.
            '&' => {
                self.close(at);
                if next.is_none_or(char::is_whitespace) {
                    self.run = Some(Run { start: self.tokens.folded.len(), source: at, number: 0, has_letters: true });
                    self.tokens.folded.push_str("and");
                    self.close(at + 1);
                }
                self.number_pending = false;
            }
            _ => {
                self.close(at);
                self.after_break = true;
                self.number_pending = false;
            }
        }
        false
    }

    fn letter(&mut self, at: usize, c: char) {
        let folded = &mut self.tokens.folded;
        let run = self.run.get_or_insert(Run { start: folded.len(), source: at, number: 0, has_letters: false });
        if c.is_ascii_digit() {
            folded.push(c);
            if !run.has_letters {
                run.number = folded.len() - run.start;
            }
            return;
        }
        fold_char(c, folded);
        run.has_letters = true;
    }

    /// Ends the run that is being read at byte `at` of the source.
    fn close(&mut self, at: usize) {
        let Some(run) = self.run.take() else { return };
        let end = self.tokens.folded.len();
        if end == run.start || end - run.start > MAX_WORD_BYTES {
            self.tokens.folded.truncate(run.start);
            return;
        }
        if run.number == 0 {
            self.word(&run, at);
            return;
        }
        let (number, letters) = self.tokens.folded[run.start..end].split_at(run.number);
        let is_bare = letters.is_empty();
        let kind = if is_bare || unit(letters).is_some() || is_dimension_sign(letters) {
            let value = number.parse().unwrap_or(0.0);
            TokenKind::Number(unit(letters).map(|unit| unit.quantity(value)))
        } else {
            TokenKind::Word
        };
        self.push(run.start, end, (run.source, at), kind);
        self.number_pending = is_bare;
    }

    fn word(&mut self, run: &Run, at: usize) {
        let end = self.tokens.folded.len();
        if self.number_pending {
            self.number_pending = false;
            if unit(&self.tokens.folded[run.start..end]).is_some() {
                let name = self.tokens.folded.split_off(run.start);
                self.unit_of_last(&name, at);
                return;
            }
        }
        self.push(run.start, end, (run.source, at), TokenKind::Word);
    }

    fn push(&mut self, start: usize, end: usize, source: (usize, usize), kind: TokenKind) {
        if &self.tokens.folded[start..end] == SPREADSHEET_LINE_END {
            self.tokens.folded.truncate(start);
            self.after_break = true;
            return;
        }
        self.tokens.list.push(Token { start, end, source, kind, after_break: self.after_break });
        self.after_break = false;
    }

    /// Gives the unit to the number that is the last token, when it has none yet.
    fn unit_of_last(&mut self, name: &str, source_end: usize) {
        self.number_pending = false;
        let Some(last) = self.tokens.list.last_mut() else { return };
        if let (TokenKind::Number(None), Some(unit)) = (last.kind, unit(name)) {
            let value = self.tokens.folded[last.start..last.end].parse().unwrap_or(0.0);
            last.kind = TokenKind::Number(Some(unit.quantity(value)));
            last.source.1 = source_end;
        }
    }
}

/// `x` between the numbers of "30 x 40" or glued to one, as in "3x".
fn is_dimension_sign(letters: &str) -> bool {
    letters.starts_with('x') && letters[1..].bytes().all(|b| b.is_ascii_digit() || b == b'x' || b == b'.')
}

fn fold_char(c: char, folded: &mut String) {
    match c {
        'a'..='z' | '0'..='9' => folded.push(c),
        'A'..='Z' => folded.push(c.to_ascii_lowercase()),
        'ä' | 'Ä' | 'æ' | 'Æ' => folded.push_str("ae"),
        'ö' | 'Ö' | 'ø' | 'Ø' | 'œ' | 'Œ' => folded.push_str("oe"),
        'ü' | 'Ü' => folded.push_str("ue"),
        'ß' | 'ẞ' => folded.push_str("ss"),
        // A combining diaeresis makes the letter before it an umlaut.
        '\u{308}' if folded.ends_with(['a', 'o', 'u']) => folded.push('e'),
        _ if c.is_ascii() => folded.push(c),
        _ => {
            let decomposed = std::iter::once(c).nfkd().filter(|&part| !is_combining_mark(part));
            folded.extend(decomposed.flat_map(char::to_lowercase));
        }
    }
}

/// A unit of measurement: its dimension and how many of the smallest usual unit it holds.
struct Unit {
    dimension: char,
    factor: f32,
}

impl Unit {
    fn quantity(&self, value: f32) -> Quantity {
        let amount = (value * self.factor).clamp(0.01, 1e9);
        Quantity { dimension: self.dimension, magnitude: amount.log2().floor() as i8 }
    }
}

fn unit(name: &str) -> Option<Unit> {
    let (dimension, factor) = match name {
        "mg" => ('g', 0.001),
        "g" | "gr" | "gramm" | "gram" | "grams" | "gm" => ('g', 1.0),
        "kg" | "kgs" | "kilo" => ('g', 1000.0),
        "lb" | "lbs" => ('g', 454.0),
        "oz" => ('g', 28.0),
        "ml" => ('l', 1.0),
        "cl" => ('l', 10.0),
        "l" | "ltr" | "liter" | "litre" | "liters" | "litres" => ('l', 1000.0),
        "mm" => ('m', 1.0),
        "cm" => ('m', 10.0),
        "m" | "meter" | "metre" | "mtr" => ('m', 1000.0),
        "zoll" | "inch" | "inches" => ('m', 25.4),
        "ft" | "feet" => ('m', 305.0),
        "w" | "watt" | "watts" => ('w', 1.0),
        "kw" | "kva" => ('w', 1000.0),
        "hp" | "ps" => ('w', 740.0),
        "v" | "volt" => ('v', 1.0),
        "kv" => ('v', 1000.0),
        "mah" => ('a', 1.0),
        "ah" => ('a', 1000.0),
        "mb" => ('b', 1.0),
        "gb" => ('b', 1024.0),
        "tb" => ('b', 1_048_576.0),
        "stk" | "stueck" | "st" | "pcs" | "pc" | "pieces" | "piece" | "teilig" | "tlg" | "er" | "pack" | "pk" => {
            ('n', 1.0)
        }
        "paar" | "pairs" | "pair" => ('p', 1.0),
        "ccm" | "cc" | "cm3" => ('c', 1.0),
        "den" => ('d', 1.0),
        "hz" => ('h', 1.0),
        "mhz" => ('h', 1e6),
        "bar" | "psi" => ('r', 1.0),
        "lm" | "lumen" => ('u', 1.0),
        "ct" | "karat" | "kt" => ('k', 1.0),
        "gsm" => ('q', 1.0),
        "%" => ('%', 1.0),
        _ => return None,
    };
    Some(Unit { dimension, factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut tokens = Tokens::default();
        tokens.read(text);
        let show = |token: &Token| match token.kind {
            TokenKind::Word => tokens.word(token).to_owned(),
            TokenKind::Number(None) => "#".to_owned(),
            TokenKind::Number(Some(quantity)) => format!("#{}{}", quantity.dimension, quantity.magnitude),
        };
        tokens.list.iter().map(show).collect()
    }

    #[test]
    fn spellings_of_one_word_fold_to_one_form() {
        for (left, right) in [
            ("SCHLÜSSEL", "schluessel"),
            ("Straße", "STRASSE"),
            ("Mu\u{308}tze", "Mütze"),
            ("Café", "cafe"),
            ("ﬁlter", "Filter"),
            ("Œuvre", "oeuvre"),
        ] {
            assert_eq!(words(left), words(right), "{left} {right}");
        }
    }

    #[test]
    fn words_numbers_and_units_are_told_apart() {
        for (text, expected) in [
            ("T-Shirt, Gr. L", "t shirt gr l"),
            ("men's shirt", "men shirt"),
            ("500 g Mehl", "#g8 mehl"),
            ("500g Mehl", "#g8 mehl"),
            ("1,5 l Saft", "#l10 saft"),
            ("Lampe E27 12V", "lampe e27 #v3"),
            ("DULUX L 18 W/840 2G11", "dulux l #w4 # 2g11"),
            ("Topf 24cm Ø", "topf #m7 oe"),
            ("100% cotton", "#%6 cotton"),
            ("30 x 40 cm", "# x #m8"),
            ("Monitor 27\"", "monitor #m9"),
            ("3x Socken", "# socken"),
            ("Cheese & Onion", "cheese and onion"),
            ("H&M Socken 3&4", "h m socken # #"),
            ("bolt_x000d_ nut", "bolt nut"),
            ("", ""),
            ("—!?", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn tokens_know_their_place_in_the_source() {
        let text = "Größe: Handschuhe (Leder)";
        let mut tokens = Tokens::default();
        tokens.read(text);
        let sources: Vec<&str> = tokens.list.iter().map(|token| &text[token.source.0..token.source.1]).collect();
        assert_eq!(sources, ["Größe", "Handschuhe", "Leder"]);
        assert_eq!(tokens.list.iter().map(|token| token.after_break).collect::<Vec<_>>(), [false, true, true]);
        tokens.read("Salz & Pfeffer");
        let and = tokens.list[1];
        assert_eq!((tokens.word(&and), &"Salz & Pfeffer"[and.source.0..and.source.1]), ("and", "&"));
        assert!(tokens.list.iter().all(|token| !token.after_break));
    }
}
