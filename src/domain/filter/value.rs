//! What a parsed value is made of.

/// A value of `keywords`, `productName` or `productTag`: groups of which one must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueExpression {
    /// At least one group; each has at least one term, and all terms of a group must hold.
    pub groups: Vec<Vec<Term>>,
}

/// One value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Whether it must not occur.
    pub negated: bool,
    /// What must or must not occur.
    pub value: Value,
}

/// What is looked for in a text, normalised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A substring without white space, never empty.
    Plain(String),
    /// Words in their order.
    Phrase(Phrase),
}

/// Words at fixed distances, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phrase {
    /// The words in their order; the first has no gap before it.
    pub words: Vec<PhraseWord>,
}

/// A word of a phrase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PhraseWord {
    /// How many arbitrary words lie between the word before and this one.
    pub gap: usize,
    /// The word, normalised.
    pub word: String,
}

impl ValueExpression {
    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Never: every expression has a value.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Phrase {
    /// The words, each with its distance from the first.
    pub fn offsets(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut next = 0;
        self.words.iter().map(move |word| {
            let at = next + word.gap;
            next = at + 1;
            (at, word.word.as_str())
        })
    }
}
