//! Versions of the service side by side, whose indices differ in shape.
//!
//! A change has one place in the queue: whoever claims it writes it to the index that he knows, and to no other. So from the
//! moment on at which a later version begins to build its index, all changes wait for that one; services of an earlier version
//! write nothing more. In Elasticsearch they go on answering from their own index as it is, until the later one takes its
//! place. The documents in the database are the same for all: there they answer no more as soon as a later version writes.
//! A later version that was taken back before it had finished is waited for no longer than the job that feeds says.

use crate::search::{Engine, EngineError};
use crate::store::search::IndexRecord;

/// Whether a later version than this builds an index of a family, or has built one.
pub(super) fn is_left_to_later(indexes: &[IndexRecord], family: &str, version: i32) -> bool {
    indexes.iter().any(|index| index.family == family && index.mapping_version > version)
}

/// What there is to forget for services of this version to go on: what a later one has begun, if it has finished nothing.
/// Where both write to one place, what this version has made is no longer whole and goes with it.
fn to_forget(indexes: &[IndexRecord], family: &str, version: i32, is_shared: bool) -> Vec<String> {
    let of_family = || indexes.iter().filter(|index| index.family == family);
    let mut later = of_family().filter(|index| index.mapping_version > version).peekable();
    if later.peek().is_none() || later.any(|index| !index.building) {
        return Vec::new();
    }
    let forgotten = of_family().filter(|index| is_shared || index.mapping_version > version);
    forgotten.map(|index| index.name.clone()).collect()
}

impl Engine {
    /// Whether changes and searches of this service are to be left to a later version.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn is_left_to_later(&self) -> Result<bool, EngineError> {
        let (family, version) = self.shape();
        Ok(is_left_to_later(&self.store().search_indexes().await?, family, version))
    }

    /// Goes on where a later version has begun an index, not finished it, and builds it no more, and tells whether that is so.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_back(&self) -> Result<bool, EngineError> {
        // Whoever builds has the right to.
        let Some(lock) = self.store().lock_rebuild().await? else { return Ok(false) };
        let (family, version) = self.shape();
        let indexes = self.store().search_indexes().await?;
        let forgotten = to_forget(&indexes, family, version, matches!(self, Engine::Postgres(_)));
        for name in &forgotten {
            self.store().remove_search_index(name).await?;
        }
        lock.release().await?;
        Ok(!forgotten.is_empty())
    }

    /// The family of its indices, and the version of their shape that this program knows.
    fn shape(&self) -> (&str, i32) {
        match self {
            Engine::Postgres(postgres) => postgres.shape(),
            Engine::Elasticsearch(elastic) => elastic.shape(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(family: &str, mapping_version: i32, building: bool) -> IndexRecord {
        let name = format!("{family}-{mapping_version}{}", if building { "-building" } else { "" });
        IndexRecord { name, family: family.to_owned(), mapping_version, building, stale: false, built_to: None }
    }

    #[test]
    fn changes_are_left_to_a_later_version_from_its_first_moment_on_and_to_no_earlier_one() {
        for (indexes, is_left) in [
            (vec![], false),
            (vec![index("a", 2, false)], false),
            (vec![index("a", 1, false), index("a", 2, true)], false),
            (vec![index("a", 2, false), index("b", 3, false)], false),
            (vec![index("a", 2, false), index("a", 3, true)], true),
            (vec![index("a", 3, false)], true),
        ] {
            assert_eq!(is_left_to_later(&indexes, "a", 2), is_left, "{indexes:?}");
        }
    }

    #[test]
    fn only_what_a_later_version_has_not_finished_is_forgotten() {
        let (own, half, whole) = (index("a", 2, false), index("a", 3, true), index("a", 3, false));
        let other = index("b", 3, true);
        for (indexes, apart, shared) in [
            (vec![own.clone(), other.clone()], vec![], vec![]),
            (vec![own.clone(), half.clone(), other.clone()], vec!["a-3-building"], vec!["a-2", "a-3-building"]),
            (vec![whole.clone()], vec![], vec![]),
            // It builds anew what it has finished before.
            (vec![whole, half], vec![], vec![]),
        ] {
            assert_eq!(to_forget(&indexes, "a", 2, false), apart, "{indexes:?}");
            assert_eq!(to_forget(&indexes, "a", 2, true), shared, "{indexes:?}");
        }
    }
}
