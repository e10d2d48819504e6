//! Which index answers searches: one of this version, an earlier one's, or a later one's.

use crate::store::search::IndexRecord;

/// What of an engine there is for a service of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Complete and fed.
    Ready,
    /// Missing, or made by an earlier version.
    Missing,
    /// Made by a later version, whose services feed it.
    Newer,
}

/// What a list of indices says about a family's.
pub(super) fn standing(indexes: &[IndexRecord], family: &str, version: i32) -> Standing {
    let complete = |index: &&IndexRecord| index.family == family && !index.building;
    let mut versions = indexes.iter().filter(complete).map(|index| index.mapping_version);
    if versions.clone().any(|other| other > version) {
        Standing::Newer
    } else if versions.any(|other| other == version) {
        Standing::Ready
    } else {
        Standing::Missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_feeds_what_its_own_version_made() {
        let index = |family: &str, mapping_version, building| IndexRecord {
            name: "n".to_owned(),
            family: family.to_owned(),
            mapping_version,
            building,
            stale: false,
            built_to: None,
        };
        for (indexes, expected) in [
            (vec![], Standing::Missing),
            (vec![index("a", 2, false)], Standing::Ready),
            (vec![index("a", 2, true)], Standing::Missing),
            (vec![index("b", 2, false)], Standing::Missing),
            (vec![index("a", 1, false)], Standing::Missing),
            (vec![index("a", 3, false)], Standing::Newer),
            (vec![index("a", 3, true), index("a", 2, false)], Standing::Ready),
        ] {
            assert_eq!(standing(&indexes, "a", 2), expected, "{indexes:?}");
        }
    }
}
