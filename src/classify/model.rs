//! The model file: one header, then sections of plain little-endian arrays that are used where they lie.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | magic |
//! | 4 | [`FORMAT_VERSION`] |
//! | 4 | number of sections |
//! | 8 | checksum of all bytes behind this field |
//! | 16 each | offset and length of every section, from the beginning of the file |
//! | … | the sections, in the order of [`Section`], each at a multiple of 8 |

use std::fs;
use std::path::Path;

use super::features::FEATURE_VERSION;
use super::lexicon::{Lexicon, WORD_INFO};
use super::table::{Keys, Table};
use super::text::TEXT_VERSION;
use crate::domain::ClassCode;

mod entry;
mod error;
mod info;

pub(crate) use entry::FeatureEntry;
pub use entry::{Entries, FEATURE_BLOCK, FEATURE_ENTRY, scale_of};
pub use error::ModelError;
pub use info::{Balance, Limits, ModelInfo, Ranker};

/// Version of the layout of the file.
pub const FORMAT_VERSION: u32 = 6;
/// Dimensions of the vectors of words.
pub const DIMENSIONS: usize = 64;
/// Headings whose weights for a dimension stand together.
pub const HEADING_GROUP: usize = 16;
/// Bytes of a word's vector: its scale, then a signed byte for each dimension.
pub const WORD_VECTOR: usize = 4 + DIMENSIONS;
/// Bytes of a feature's id in a table.
pub const FEATURE_ID: usize = 3;
/// Bytes of a name's entry in the table: the index of its heading.
pub const NAME: usize = 2;
/// Added to that index where the name stands elsewhere too, beside a description or shelves that tell another good.
pub const ALONE: u16 = 1 << 15;
/// Bytes of a model file, at most.
const MAX_FILE_BYTES: u64 = 512 << 20;

const MAGIC: &[u8; 8] = b"VATCLASS";
const HEADER: usize = 24;
const CHECKSUM_AT: usize = 16;
const SECTIONS: usize = Section::Names as usize + 1;

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// [`ModelInfo`] as JSON.
    Info,
    /// Table of words, see [`Lexicon`].
    Lexicon,
    /// Keys of the features, in the order of feature ids.
    Dictionary,
    /// Table from misspellings of known words to feature ids, see [`super::spelling`].
    Spellings,
    /// [`FEATURE_ENTRY`] bytes by feature id, and a last entry that ends the postings.
    Features,
    /// First posting of every [`FEATURE_BLOCK`] features.
    FeatureBlocks,
    /// [`Posting`]s of all features.
    Postings,
    /// Codes of the leaves, the disjoint six-digit classes, as numbers in rising order.
    Leaves,
    /// Codes of the headings above them, as numbers in rising order.
    Headings,
    /// Index of the heading of every leaf, 2 bytes each.
    LeafHeading,
    /// First row of every node (leaves, then headings), and the number of rows.
    RowStarts,
    /// First feature of every row, and the number of all.
    RowFeatureStarts,
    /// Features of the rows: id in the lower 24 bits, weight above.
    RowFeatures,
    /// First byte of the text of every row, and the number of all.
    RowTextStarts,
    /// Texts of the rows, UTF-8.
    RowTexts,
    /// Keys of words as they are written.
    Words,
    /// Their vectors in the same order, [`WORD_VECTOR`] bytes each.
    WordVectors,
    /// Weights of the third voice, 4-byte floats: for each [`HEADING_GROUP`] a row a dimension, and one of intercepts.
    HeadingVectors,
    /// Table from names as wholes to the heading under which people wrote them, see [`NAME`] and
    /// [`Extractor::name_keys`](super::features::Extractor::name_keys).
    Names,
}

/// A feature's weight for a node: node (2 bytes), learnt weight (signed), share in the profile of the node (unsigned).
/// Behind all nodes come the headings of the second voice, whose weights are signed numbers of 2 bytes.
pub(crate) type Posting = [u8; 4];

/// A checked model file.
pub struct Model {
    bytes: Vec<u8>,
    sections: [(usize, usize); SECTIONS],
    info: ModelInfo,
    /// First leaf of each heading, and the number of leaves.
    first_leaves: Vec<u16>,
}

impl Model {
    /// Reads a file into memory and checks it.
    ///
    /// It is not mapped: a mapping would end the process when somebody shortens the file or writes over it.
    pub fn open(path: &Path) -> Result<Model, ModelError> {
        let io = |source| ModelError::Io { path: path.to_owned(), source };
        if fs::metadata(path).map_err(io)?.len() > MAX_FILE_BYTES {
            return Err(ModelError::Malformed("it is too large"));
        }
        Model::from_bytes(fs::read(path).map_err(io)?)
    }

    /// Checks a model that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Model, ModelError> {
        let all: &[u8] = &bytes;
        if all.len() < HEADER + SECTIONS * 16 || &all[..8] != MAGIC {
            return Err(ModelError::Malformed("it does not begin as one"));
        }
        version("the model file", u32_at(all, 8), FORMAT_VERSION)?;
        if u32_at(all, 12) as usize != SECTIONS {
            return Err(ModelError::Malformed("it has another number of sections"));
        }
        if u64_at(all, CHECKSUM_AT) != checksum(&all[HEADER..]) {
            return Err(ModelError::Checksum);
        }
        let mut sections = [(0, 0); SECTIONS];
        for (index, section) in sections.iter_mut().enumerate() {
            let (offset, len) =
                (u64_at(all, HEADER + index * 16) as usize, u64_at(all, HEADER + index * 16 + 8) as usize);
            let end = offset.checked_add(len).filter(|&end| end <= all.len());
            *section = (offset, end.ok_or(ModelError::Malformed("a section ends behind the file"))?);
        }
        let (start, end) = sections[Section::Info as usize];
        let info: ModelInfo = serde_json::from_slice(&all[start..end])
            .map_err(|_| ModelError::Malformed("its description is unreadable"))?;
        version("the text form of the model", info.text_version, TEXT_VERSION)?;
        version("the features of the model", info.feature_version, FEATURE_VERSION)?;
        let mut model = Model { bytes, sections, info, first_leaves: Vec::new() };
        model.check_sections()?;
        let headings = 0..=model.nodes() - model.leaves();
        model.first_leaves = headings.map(|heading| model.first_leaf_of(heading)).collect();
        Ok(model)
    }

    /// Checks the lengths that indexing relies on; the checksum vouches for the values.
    fn check_sections(&self) -> Result<(), ModelError> {
        let tables = Table::<WORD_INFO>::over(self.section(Section::Lexicon)).is_some()
            && Table::<FEATURE_ID>::over(self.section(Section::Spellings)).is_some()
            && Table::<NAME>::over(self.section(Section::Names)).is_some();
        let count = |section| Keys::over(self.section(section)).map(|keys| keys.count());
        let (true, Some(features), Some(words)) = (tables, count(Section::Dictionary), count(Section::Words)) else {
            return Err(ModelError::Malformed("a table has a wrong size"));
        };
        let leaves = self.array::<4>(Section::Leaves).len();
        let nodes = leaves + self.array::<4>(Section::Headings).len();
        let fits = self.array::<2>(Section::LeafHeading).len() == leaves
            && self.array::<4>(Section::RowStarts).len() == nodes + 1
            && self.array::<FEATURE_ENTRY>(Section::Features).len() == features + 1
            && self.array::<4>(Section::FeatureBlocks).len() == (features + 1).div_ceil(FEATURE_BLOCK)
            && 2 * nodes - leaves <= usize::from(u16::MAX)
            && self.section(Section::WordVectors).len() == words * WORD_VECTOR
            && self.array::<4>(Section::HeadingVectors).len()
                == (DIMENSIONS + 1) * (nodes - leaves).next_multiple_of(HEADING_GROUP)
            && std::str::from_utf8(self.section(Section::RowTexts)).is_ok();
        if !fits {
            return Err(ModelError::Malformed("its sections do not fit together"));
        }
        Ok(())
    }

    /// What the model says of itself.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Bytes of a section.
    pub(crate) fn section(&self, section: Section) -> &[u8] {
        let (start, end) = self.sections[section as usize];
        &self.bytes[start..end]
    }

    /// A section as an array of entries of that many bytes.
    pub(crate) fn array<const N: usize>(&self, section: Section) -> &[[u8; N]] {
        self.section(section).as_chunks::<N>().0
    }

    /// Number `index` of a section of 4-byte numbers; the last one when there are fewer.
    #[inline]
    pub(crate) fn number(&self, section: Section, index: usize) -> usize {
        self.array::<4>(section).get(index).map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// The words of the corpus.
    pub(crate) fn lexicon(&self) -> Lexicon<'_> {
        Lexicon::new(self.table(Section::Lexicon))
    }

    /// Keys of the features; the place of one is the feature's id.
    pub(crate) fn dictionary(&self) -> Keys<'_> {
        self.keys(Section::Dictionary)
    }

    /// Feature ids by misspellings.
    pub(crate) fn spellings(&self) -> Table<'_, FEATURE_ID> {
        self.table(Section::Spellings)
    }

    /// Keys of the words that have vectors; the place of one is the index of its vector.
    pub(crate) fn words(&self) -> Keys<'_> {
        self.keys(Section::Words)
    }

    /// The index of the heading of a name, by its key; `alone` when nothing stands beside it.
    pub(crate) fn heading_of_name(&self, key: u64, alone: bool) -> Option<usize> {
        let heading = self.table::<NAME>(Section::Names).get(key)? as u16;
        (alone || heading & ALONE == 0).then_some(usize::from(heading & !ALONE))
    }

    // Both were checked when the model was opened; what is no table would be refused there.
    fn table<const WIDTH: usize>(&self, section: Section) -> Table<'_, WIDTH> {
        Table::over(self.section(section)).unwrap_or(Table::EMPTY)
    }

    fn keys(&self, section: Section) -> Keys<'_> {
        Keys::over(self.section(section)).unwrap_or(Keys::EMPTY)
    }

    /// The entry of a feature.
    #[inline]
    pub(crate) fn feature(&self, id: u32) -> FeatureEntry {
        let (entries, blocks) = (self.array(Section::Features), self.array(Section::FeatureBlocks));
        FeatureEntry::read(entries, blocks, id as usize)
    }

    /// The postings of a feature.
    #[inline]
    pub(crate) fn postings(&self, entry: &FeatureEntry) -> &[Posting] {
        self.array::<4>(Section::Postings).get(entry.first..entry.end).unwrap_or_default()
    }

    /// How many six-digit classes there are.
    pub(crate) fn leaves(&self) -> usize {
        self.array::<4>(Section::Leaves).len()
    }

    /// How many leaves and headings there are.
    pub(crate) fn nodes(&self) -> usize {
        self.leaves() + self.array::<4>(Section::Headings).len()
    }

    /// The node of the heading above a leaf.
    #[inline]
    pub(crate) fn heading_of(&self, leaf: usize) -> usize {
        self.leaves() + usize::from(u16::from_le_bytes(self.array::<2>(Section::LeafHeading)[leaf]))
    }

    /// The leaves of the heading with that index.
    #[inline]
    pub(crate) fn leaves_of_heading(&self, heading: usize) -> std::ops::Range<usize> {
        usize::from(self.first_leaves[heading])..usize::from(self.first_leaves[heading + 1])
    }

    /// The first leaf of a heading; behind the last heading the number of leaves. Leaves stand in the order of headings.
    fn first_leaf_of(&self, heading: usize) -> u16 {
        let leaves = self.array::<2>(Section::LeafHeading);
        leaves.partition_point(|of_leaf| usize::from(u16::from_le_bytes(*of_leaf)) < heading) as u16
    }

    /// How many leaves have a lower number.
    fn leaves_from(&self, limit: usize) -> usize {
        self.array::<4>(Section::Leaves).partition_point(|&leaf| (u32::from_le_bytes(leaf) as usize) < limit)
    }

    /// The code of a leaf.
    pub(crate) fn leaf_code(&self, leaf: usize) -> Option<ClassCode> {
        ClassCode::new(&format!("{:06}", self.number(Section::Leaves, leaf)))
    }

    /// The leaves at or below a code.
    pub(crate) fn leaves_under(&self, code: &ClassCode) -> std::ops::Range<usize> {
        let digits = code.prefix(6);
        let scale = 10usize.pow(6 - digits.digits() as u32);
        let first = digits.as_str().parse::<usize>().unwrap_or(0) * scale;
        self.leaves_from(first)..self.leaves_from(first + scale)
    }

    /// The rows of a node.
    pub(crate) fn rows_of(&self, node: usize) -> std::ops::Range<usize> {
        self.number(Section::RowStarts, node)..self.number(Section::RowStarts, node + 1)
    }

    /// The packed features of a row.
    pub(crate) fn row_features(&self, row: usize) -> &[[u8; 4]] {
        let range = self.number(Section::RowFeatureStarts, row)..self.number(Section::RowFeatureStarts, row + 1);
        self.array::<4>(Section::RowFeatures).get(range).unwrap_or_default()
    }

    /// The text of a row.
    pub(crate) fn row_text(&self, row: usize) -> &str {
        let range = self.number(Section::RowTextStarts, row)..self.number(Section::RowTextStarts, row + 1);
        let bytes = self.section(Section::RowTexts).get(range).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// The bytes of a model file with these sections, given in the order of [`Section`].
pub fn assemble(info: &ModelInfo, sections: &[Vec<u8>]) -> serde_json::Result<Vec<u8>> {
    let info = serde_json::to_vec(info)?;
    let all: Vec<&[u8]> = std::iter::once(&info[..]).chain(sections.iter().map(|section| &section[..])).collect();
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(all.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    let mut offset = HEADER + all.len() * 16;
    for section in &all {
        bytes.extend_from_slice(&(offset as u64).to_le_bytes());
        bytes.extend_from_slice(&(section.len() as u64).to_le_bytes());
        offset += section.len().next_multiple_of(8);
    }
    for section in &all {
        bytes.extend_from_slice(section);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    let sum = checksum(&bytes[HEADER..]);
    bytes[CHECKSUM_AT..HEADER].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// The sections of a model file behind its description, as [`assemble`] takes them; none when it is no model file.
pub fn split(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let section = |index: usize| {
        let at = HEADER + index * 16;
        let (offset, len) = (u64_at(bytes, at) as usize, u64_at(bytes, at + 8) as usize);
        bytes.get(offset..offset.checked_add(len)?).map(<[u8]>::to_vec)
    };
    (1..SECTIONS).map(section).collect()
}

fn version(what: &'static str, found: u32, wanted: u32) -> Result<(), ModelError> {
    if found == wanted { Ok(()) } else { Err(ModelError::Version { what, found, wanted }) }
}

/// A fast checksum against damage, not against malice: four multiply-rotate lanes over 8-byte words.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1u64, 2, 3, 4];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(31);
        }
    }
    for &byte in rest {
        lanes[0] = (lanes[0] ^ u64::from(byte)).wrapping_mul(PRIME).rotate_left(31);
    }
    lanes.iter().fold(bytes.len() as u64, |sum, lane| (sum ^ lane).wrapping_mul(PRIME).rotate_left(27))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
