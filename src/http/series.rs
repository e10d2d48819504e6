//! Which accounts have a series of their own in the metrics: the first that come, so that there are never more than so
//! many however many accounts there are.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Accounts with a series of their own; all others share one.
const MAX_SERIES: usize = 200;

static KNOWN: Mutex<BTreeSet<i64>> = Mutex::new(BTreeSet::new());

/// The label of an account: its number, or `other`.
pub(super) fn of(account: i64) -> String {
    label(&mut KNOWN.lock().unwrap_or_else(PoisonError::into_inner), account)
}

fn label(known: &mut BTreeSet<i64>, account: i64) -> String {
    if known.contains(&account) || known.len() < MAX_SERIES && known.insert(account) {
        account.to_string()
    } else {
        "other".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_series_than_so_many() {
        let mut known = BTreeSet::new();
        let labels: BTreeSet<String> = (0..10_000).map(|account| label(&mut known, account)).collect();
        assert_eq!(labels.len(), MAX_SERIES + 1);
        assert_eq!((label(&mut known, 7), label(&mut known, 9_999)), ("7".to_owned(), "other".to_owned()));
    }
}
