//! What is done to the words of a text before they are read: plurals become the words that the corpus has, and shops' own
//! labels, such as `Zurück zum Ursprung`, are left out.

use super::super::lexicon::{Lexicon, Sequence};
use super::super::text::TokenKind;
use super::Extractor;

/// Most content words of an own label; the others of a longer one are read as any.
pub const MAX_LABEL_WORDS: usize = 4;

impl Extractor {
    /// Reads unknown and rare plurals and cases as the words that they are of.
    pub(super) fn take_basic_forms(&mut self, lexicon: &Lexicon<'_>) {
        let mut form = std::mem::take(&mut self.joint);
        for (token, info) in self.tokens.list.iter_mut().zip(&mut self.infos) {
            if token.kind != TokenKind::Word {
                continue;
            }
            let word = &self.tokens.folded[token.start..token.end];
            if lexicon.basic_form(word, *info, &mut form) {
                token.start = self.tokens.folded.len();
                self.tokens.folded.push_str(&form);
                token.end = self.tokens.folded.len();
                *info = lexicon.get(&form);
            }
        }
        self.joint = form;
    }

    /// Leaves out the words of own labels, so that they neither speak nor take weight from those that do; of several labels
    /// that begin with a word the longest counts.
    pub(super) fn leave_own_labels_out(&mut self, lexicon: &Lexicon<'_>) {
        let tokens = &mut self.tokens;
        let mut from = 0;
        while from < self.content.len() {
            let (mut sequence, mut length) = (Sequence::default(), 0);
            for (count, &at) in self.content[from..].iter().take(MAX_LABEL_WORDS).enumerate() {
                sequence = sequence.and(tokens.word(&tokens.list[at]));
                if lexicon.is_own_label(sequence) {
                    length = count + 1;
                }
            }
            for &at in &self.content[from..from + length] {
                tokens.list[at].kind = TokenKind::Number(None);
            }
            from += length.max(1);
        }
    }
}
