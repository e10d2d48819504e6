//! Who a product is: its id, and the shop to which it belongs when it is a local one.

use std::fmt;

use crate::domain::Fault;

/// Most characters of a product id, from the interface specification.
pub const MAX_PRODUCT_ID_CHARACTERS: usize = 65;

/// Ids that no path could tell from a directory or from a fixed segment of ours.
const RESERVED_PRODUCT_IDS: [&str; 3] = [".", "..", "product-picture"];

/// A product id that was checked: 1 to 65 characters, none of them NUL, not reserved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProductId(String);

impl ProductId {
    /// Checks an id.
    ///
    /// # Errors
    /// Names the rule that the id breaks.
    pub fn parse(text: &str) -> Result<ProductId, Fault> {
        let characters = text.chars().count();
        let broken = if characters == 0 {
            Some(("EMPTY", "a productId has at least one character".to_owned()))
        } else if characters > MAX_PRODUCT_ID_CHARACTERS {
            Some((
                "TOO_LONG",
                format!("a productId has at most {MAX_PRODUCT_ID_CHARACTERS} characters, this one has {characters}"),
            ))
        } else if RESERVED_PRODUCT_IDS.contains(&text) {
            Some(("RESERVED", format!("the productId \"{text}\" is reserved")))
        } else {
            None
        };
        match broken {
            None => Ok(ProductId(text.to_owned())),
            Some((code, message)) => Err(Fault::at("productId", code, message).on(text)),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The shop of a product: none for a global one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShopId(i64);

impl ShopId {
    /// The place of global products.
    pub const GLOBAL: ShopId = ShopId(0);

    /// A shop of local products, at least 1.
    pub fn local(id: i64) -> Option<ShopId> {
        (id >= 1).then_some(ShopId(id))
    }

    /// The number under which the shop is stored, 0 for global products.
    pub const fn stored(self) -> i64 {
        self.0
    }

    /// The shop of that stored number.
    pub const fn from_stored(id: i64) -> ShopId {
        ShopId(id)
    }

    /// The shop's number, none for global products.
    pub fn number(self) -> Option<i64> {
        (self.0 > 0).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_id_is_one_to_sixty_five_characters_and_not_reserved() {
        let ok = |text: &str| ProductId::parse(text).is_ok();
        assert!(ok("a") && ok(&"ß".repeat(65)) && ok("a/b?c#d %20") && ok(" ") && ok("..."));
        assert!(!ok("") && !ok(&"x".repeat(66)) && !ok(".") && !ok("..") && !ok("product-picture"));
    }

    #[test]
    fn a_local_shop_is_at_least_one() {
        assert_eq!(ShopId::local(0), None);
        assert_eq!(ShopId::local(-1), None);
        assert_eq!(ShopId::local(i64::MAX).and_then(ShopId::number), Some(i64::MAX));
        assert_eq!(ShopId::GLOBAL.number(), None);
    }
}
