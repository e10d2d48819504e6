//! What products and assignments are, and what operations make of them, told as plainly as can be.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A class from which every rate follows, one from which not, and one that is none.
pub(super) const CLASSES: [&str; 3] = ["090121-00-000", "2106-00-000", "9999-00-000"];
/// Ids that products have: few, so that operations meet.
const IDS: usize = 24;

/// SplitMix64, so that a seed means the same for ever.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    pub(super) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    pub(super) fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.roll(things.len())]
    }

    /// One to `most` different ids.
    pub(super) fn ids(&mut self, most: usize) -> Vec<String> {
        let count = 1 + self.roll(most);
        let ids: BTreeSet<String> = (0..count).map(|_| format!("p{:02}", self.roll(IDS))).collect();
        ids.into_iter().collect()
    }

    /// The version, or another one now and then.
    pub(super) fn version(&mut self, right: i64) -> i64 {
        if self.one_in(6) { right + 1 + self.roll(2) as i64 } else { right }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) status: &'static str,
    pub(super) class: Option<&'static str>,
    pub(super) strategy: Option<&'static str>,
    pub(super) version: i64,
    pub(super) auto: &'static str,
    pub(super) review: bool,
    pub(super) labels: BTreeSet<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) version: i64,
    pub(super) name: Option<usize>,
    pub(super) maker: Option<usize>,
    pub(super) assignments: [Assignment; 3],
}

impl Assignment {
    pub(super) fn new() -> Assignment {
        Assignment {
            status: "UNASSIGNED",
            class: None,
            strategy: None,
            version: 0,
            auto: "PENDING",
            review: false,
            labels: BTreeSet::new(),
        }
    }

    /// What an action makes of it, or nothing where it is not allowed.
    pub(super) fn after(&self, action: &'static str, class: &'static str, sufficient: bool) -> Option<Assignment> {
        let denied = self.status == "DENIED";
        let (status, class) = match action {
            "ASSIGN" if !denied => (if sufficient { "APPROVED" } else { "REJECTED" }, Some(class)),
            "APPROVE" if self.status == "ASSIGNED" || self.status == "APPROVED" && self.review => {
                ("APPROVED", self.class)
            }
            "REJECT" if !denied => ("REJECTED", self.class),
            "DENY" => ("DENIED", self.class),
            "RECONFIRM" if denied => ("REJECTED", self.class),
            "UNASSIGN" if !denied => ("UNASSIGNED", None),
            _ => return None,
        };
        let strategy = (action != "UNASSIGN").then_some("MANUAL");
        let (version, labels) = (self.version + 1, self.labels.clone());
        Some(Assignment { status, class, strategy, version, auto: self.auto, review: false, labels })
    }

    fn product_changed(&mut self) {
        if self.strategy == Some("MANUAL") {
            self.review = true;
        } else {
            self.auto = "PENDING";
        }
    }
}

impl Product {
    pub(super) fn new(name: Option<usize>, maker: Option<usize>) -> Product {
        Product { version: 1, name, maker, assignments: [(); 3].map(|()| Assignment::new()) }
    }

    pub(super) fn change(&mut self, name: Option<usize>, maker: Option<usize>) {
        self.version += 1;
        if self.name != name {
            self.assignments.iter_mut().for_each(Assignment::product_changed);
        }
        (self.name, self.maker) = (name, maker);
    }

    pub(super) fn document(name: Option<usize>, maker: Option<usize>) -> Value {
        let mut details = Map::new();
        if let Some(name) = name {
            details.insert("languageAttributes".to_owned(), json!({"de": {"productName": format!("n{name}")}}));
        }
        if let Some(maker) = maker {
            details.insert("manufacturerName".to_owned(), json!(format!("m{maker}")));
        }
        json!({"productDetails": details})
    }
}

/// The class that auto-assignment finds here for the number in a name, and whether it says that it is sufficient.
pub(super) fn found(name: Option<usize>) -> Option<(&'static str, bool)> {
    match name.map(|name| name % 3) {
        Some(1) => Some((CLASSES[1], false)),
        Some(2) => Some((CLASSES[0], true)),
        _ => None,
    }
}
