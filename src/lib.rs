//! Stores merchants' products and finds the customs product class of each.
//!
//! The rooms and who may enter them are drawn in ARCHITECTURE.md.

pub mod app;
pub mod classify;
pub mod computing;
pub mod console;
pub mod decision;
pub mod demo;
pub mod domain;
pub mod embedded_postgres;
pub mod exchange;
pub mod files;
pub mod http;
pub mod jobs;
pub mod memory;
pub mod pictures;
pub mod reference;
pub mod search;
pub mod store;
pub mod webhooks;
