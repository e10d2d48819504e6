//! HTTP: the only room that knows axum and statuses. A handler parses, makes one call, and responds.

mod body;
mod error;
pub mod serve;
