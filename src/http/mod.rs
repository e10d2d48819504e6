//! The room that speaks HTTP: the only one that knows axum, JSON names and statuses.

pub mod serve;
