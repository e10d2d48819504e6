<<<<<<< HEAD
//! The room that speaks HTTP: the only one that knows axum, JSON names and statuses.

pub mod serve;
=======
//! HTTP: the only room that knows axum and statuses. A handler parses, makes one call, and responds.

mod body;
mod error;
>>>>>>> main
