//! How much a product may hold; `validation` refuses more, and the OpenAPI document says so.

/// Most characters of a product name.
pub const MAX_NAME_CHARACTERS: usize = 1_000;
/// Most characters of a description.
pub const MAX_DESCRIPTION_CHARACTERS: usize = 50_000;
/// Most tags in one language.
pub const MAX_TAGS: usize = 100;
/// Most characters of a tag.
pub const MAX_TAG_CHARACTERS: usize = 200;
/// Most shops of a product.
pub const MAX_SHOP_IDS: usize = 1_000;
/// Most characters of a manufacturer's name.
pub const MAX_MANUFACTURER_CHARACTERS: usize = 1_000;
/// Most unique identifiers of a product.
pub const MAX_UIDS: usize = 50;
/// Most characters of an identifier's key or value, and of a reference or condition code.
pub const MAX_REFERENCE_CHARACTERS: usize = 200;
/// Greatest weight of a product among those to be reviewed.
pub const MAX_REVIEW_WEIGHT: f64 = 1e12;
/// Most condition codes.
pub const MAX_CONDITIONS: usize = 100;
/// Most bytes of a product's details as JSON, as they are stored.
pub const MAX_PRODUCT_BYTES: usize = 1024 * 1024;
/// Most attribute values in one place.
pub const MAX_ATTRIBUTE_VALUES: usize = 500;
/// Most characters of a text among attribute values.
pub const MAX_ATTRIBUTE_CHARACTERS: usize = 10_000;

/// Units of a physical measure.
pub const UNITS: [&str; 14] = ["g", "kg", "t", "ml", "l", "hl", "m", "cm", "mm", "m2", "m3", "pcs", "pair", "kWh"];
