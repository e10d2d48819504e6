//! In which of the two languages a text is.

use super::super::lexicon::{Lexicon, WordInfo};
use super::super::words::{Language, Role};
use super::{Extractor, role_of};

/// Share of words that must be known before a text in another language than German or English is used.
const MIN_KNOWN_SHARE: f32 = 0.5;

impl Extractor {
    /// The language of the tokens by its words, the key being one voice among them; none when it is neither. Notes which
    /// are content words, since their roles are asked for here.
    pub(super) fn language(&mut self, lexicon: &Lexicon<'_>, key: &str) -> Option<Language> {
        let prefix =
            key.as_bytes().get(..2).map(|prefix| [prefix[0].to_ascii_lowercase(), prefix[1].to_ascii_lowercase()]);
        let declared = match prefix.as_ref().map(|prefix| &prefix[..]) {
            Some(b"de" | b"ge") => Some(Language::German),
            Some(b"en") => Some(Language::English),
            _ => None,
        };
        let (mut balance, mut words, mut known) = (0i32, 0, 0);
        self.infos.clear();
        self.content.clear();
        for (at, token) in self.tokens.list.iter().enumerate() {
            let mut info = None;
            if let Some((role, function)) = role_of(&self.tokens, token) {
                words += 1;
                if role == Role::Content {
                    self.content.push(at);
                }
                info = lexicon.get(self.tokens.word(token));
                known += i32::from(function.is_some() || info.is_some());
                balance += match (function, info) {
                    (Some(Language::German), _) => 2,
                    (Some(Language::English), _) => -2,
                    (_, Some(WordInfo { german: true, english: false, .. })) => 1,
                    (_, Some(WordInfo { german: false, english: true, .. })) => -1,
                    _ => 0,
                };
            }
            self.infos.push(info);
        }
        match declared {
            Some(Language::German) => Some(if balance < -2 { Language::English } else { Language::German }),
            Some(Language::English) => Some(if balance > 2 { Language::German } else { Language::English }),
            None if (known as f32) < MIN_KNOWN_SHARE * words as f32 => None,
            None => Some(if balance > 0 { Language::German } else { Language::English }),
        }
    }
}
