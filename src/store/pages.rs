//! Positions in ordered lists.

/// Where a page of a list begins or ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Position<K> {
    /// At the beginning.
    #[default]
    Start,
    /// Behind this key.
    After(K),
    /// Before this key.
    Before(K),
}

/// Items of a list in its order, and whether there is more on either side.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// At most as many as were asked for.
    pub items: Vec<T>,
    /// Whether items follow.
    pub more_after: bool,
    /// Whether items come before.
    pub more_before: bool,
}

impl<T> Page<T> {
    /// A page from rows as they were read: one more than `size`, and backwards for a position before a key.
    pub fn from_rows<K>(mut rows: Vec<T>, size: usize, position: &Position<K>) -> Page<T> {
        let more = rows.len() > size;
        rows.truncate(size);
        Page::from_part(rows, more, position)
    }

    /// A page from the rows that it has, backwards for a position before a key, and whether there are more that way.
    pub fn from_part<K>(mut rows: Vec<T>, more: bool, position: &Position<K>) -> Page<T> {
        match position {
            Position::Start => Page { items: rows, more_after: more, more_before: false },
            Position::After(_) => Page { more_before: !rows.is_empty(), items: rows, more_after: more },
            Position::Before(_) => {
                rows.reverse();
                Page { more_after: !rows.is_empty(), items: rows, more_before: more }
            }
        }
    }

    /// The keys of its first and last items.
    pub fn ends<K>(&self, key: impl Fn(&T) -> K) -> Option<(K, K)> {
        Some((key(self.items.first()?), key(self.items.last()?)))
    }

    /// The same page of other items.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(change).collect(),
            more_after: self.more_after,
            more_before: self.more_before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_knows_what_lies_on_either_side() {
        let page = |rows: &[i32], position: Position<i32>| {
            let page = Page::from_rows(rows.to_vec(), 2, &position);
            (page.items, page.more_before, page.more_after)
        };
        assert_eq!(page(&[1, 2, 3], Position::Start), (vec![1, 2], false, true));
        assert_eq!(page(&[1, 2], Position::Start), (vec![1, 2], false, false));
        assert_eq!(page(&[3, 4], Position::After(2)), (vec![3, 4], true, false));
        assert_eq!(page(&[], Position::After(2)), (vec![], false, false));
        assert_eq!(page(&[3, 2, 1], Position::Before(4)), (vec![2, 3], true, true));
        assert_eq!(page(&[1], Position::Before(2)), (vec![1], false, true));
    }
}
