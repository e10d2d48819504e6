//! Files of products, in and out.

pub(super) mod exports;
pub(super) mod imports;
mod telling;
