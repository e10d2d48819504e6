//! What the service is about, as pure values and functions: no async, no I/O, no clock.
//!
//! The types of a product carry the field names of its JSON document, which is also how it is stored.

pub mod access;
pub mod addresses;
pub mod applications;
pub mod assignment;
pub mod attributes;
pub mod changes;
pub mod countries;
pub mod customs_codes;
pub mod dates;
pub mod fault;
pub mod file_fault;
pub mod filter;
pub mod forms;
pub mod gtin;
pub mod identity;
pub mod languages;
pub mod limits;
pub mod merge_patch;
pub mod nomenclature;
pub mod nul;
pub mod precision;
pub mod product;
pub mod product_class;
pub mod sides;
pub mod validation;
pub mod vat;
pub mod verdict;

pub use fault::Fault;
pub use identity::{ProductId, ShopId};
pub use nomenclature::Nomenclature;
pub use precision::Precision;
pub use product::{Details, Product};
pub use product_class::{ClassCode, ProductClass, Segment, Taxonomy};
pub use verdict::{Found, Verdict};
