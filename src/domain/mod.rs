//! What the service is about, as pure values and functions: no async, no I/O, no clock.

pub mod product_class;

pub use product_class::{ClassCode, ProductClass, Segment, Taxonomy};
