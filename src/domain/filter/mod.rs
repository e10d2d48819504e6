//! filterCriteria: a language to select products by parts of words.
//!
//! The criteria are a JSON array of objects. In this grammar `property = type` names what an object may hold:
//!
//! ```text
//! criteria = [ element, … ]                    at most 32, and 8 KiB of JSON; none selects every product
//! element  = { languageKey = language,         of productName, productTag and keywords; keywords default to en
//!              keywords    = value,            in productName or productDescription
//!              productName = value,
//!              productTag  = value,
//!              productId   = string,           one literal substring, spaces included
//!              countryOfOrigin = country,      equality
//!              operation   = "AND" | "OR" }    to the next element; AND when absent
//!
//! value    = group { OR group }                OR: the word `or`, any case, between two groups
//! group    = term { term }                     all must hold
//! term     = [ "-" ] ( phrase | plain )        "-" negates
//! phrase   = a quote that begins a term, up to the next quote, then white space or the end
//! plain    = any other run of characters without white space
//! ```
//!
//! Elements are chained from left to right, `((e1 op1 e2) op2 e3) …`; all properties of an element hold.
//! Values and texts are compared in NFKC with case folded per character ([`text`]). A plain value occurs where the text
//! holds it as a substring. A phrase occurs where its words follow each other within one text, with exactly one
//! arbitrary word between two of them for each white-space character between them.
//!
//! [`Criteria::parse`] is the only way in; [`Criteria::matches`] reads the rules over one product as plainly as
//! possible; [`Criteria::expression`] is the form that search engines lower, and [`Document`] what they store of a
//! product.

mod document;
mod element;
mod evaluate;
mod expression;
mod normal_form;
pub mod text;
mod value;

pub use document::{Document, LanguageTexts, Text};
pub use element::{Criteria, Element, MAX_CRITERIA_BYTES, MAX_ELEMENTS, MAX_VALUES, Operation};
pub use normal_form::{Expr, Field, Leaf};
pub use value::{Phrase, PhraseWord, Term, Value, ValueExpression};
