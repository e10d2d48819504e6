//! What is wrong with one item of a request, and where.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One failing item of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// The product that it concerns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub product_id: Option<String>,
    /// The place in the body or the query, such as `productDetails.customs.countryOfOrigin`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub field: Option<String>,
    /// What kind of mistake it is, such as `UNKNOWN_COUNTRY`.
    pub code: String,
    /// The mistake and its remedy in words.
    pub message: String,
    /// The version now in force, where a stale one was sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub current_version: Option<i64>,
}

impl Fault {
    /// A fault at a field.
    pub fn at(field: impl Into<String>, code: &str, message: impl Into<String>) -> Fault {
        Fault { field: Some(field.into()), code: code.to_owned(), message: message.into(), ..Fault::default() }
    }

    /// A fault of a whole item.
    pub fn of(code: &str, message: impl Into<String>) -> Fault {
        Fault { code: code.to_owned(), message: message.into(), ..Fault::default() }
    }

    /// The same fault, told of a product.
    #[must_use]
    pub fn on(mut self, product_id: impl Into<String>) -> Fault {
        self.product_id = Some(product_id.into());
        self
    }
}
