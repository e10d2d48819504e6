//! What a feature of a text is: where it stands, what it stands for, and how much it weighs.

/// Where a feature stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The name of the product.
    Name,
    /// Its tags.
    Tag,
    /// Its description.
    Description,
}

/// How many fields there are.
pub const FIELDS: usize = 3;

/// What a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word that stands in the text.
    Word,
    /// The head of a compound, or the known end of an unknown word.
    Part,
    /// A part of a compound before its head.
    Modifier,
    /// Two neighbours in joint spelling.
    Joint,
    /// A mark of place: head of the naming phrase, or introduced by "for".
    Mark,
    /// A number.
    Quantity,
}

/// Where a word stands in the phrase that names the good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// It is the first word of the phrase, vague ones aside.
    pub first: bool,
    /// It is the last one.
    pub last: bool,
}

/// A weighted feature of a text.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Hash in the space of its kind.
    pub key: u64,
    /// Weight before rarity is taken into account.
    pub weight: f32,
    /// Where it stands.
    pub field: Field,
    /// What it is.
    pub kind: Kind,
    /// Whether it comes from a word that is no evidence by itself.
    pub vague: bool,
    /// Which words of the name's naming phrase it stands for.
    pub place: Place,
    /// Which piece of the product text it stands in, counted in the order of reading;
    /// from [`u16::MAX`] on not told apart.
    pub piece: u16,
    /// Bytes of the piece that it stands for.
    pub source: (u32, u32),
}

/// A word of a text as it stands there, folded but not stemmed.
#[derive(Clone, Copy, Debug)]
pub struct PlainWord {
    /// [`word_key`](super::super::lexicon::word_key) of the word.
    pub key: u64,
    /// Weight before rarity is taken into account.
    pub weight: f32,
    /// Where it stands.
    pub field: Field,
}
