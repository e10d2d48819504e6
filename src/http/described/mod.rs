//! What handlers say of themselves in the OpenAPI document, beyond the types that they take and give.

pub(super) mod errors;
pub(super) mod filter;
pub(super) mod kinds;
pub(super) mod patch;
