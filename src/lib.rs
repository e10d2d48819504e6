//! Stores merchants' products and finds the customs product class of each.
//!
//! The rooms and who may enter them are drawn in ARCHITECTURE.md.

pub mod classify;
pub mod domain;
pub mod embedded_postgres;
pub mod http;
pub mod pictures;
pub mod reference;
pub mod store;
