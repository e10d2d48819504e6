//! Files of products, in and out.

mod answers;
pub(super) mod exports;
pub(super) mod imports;
mod telling;
