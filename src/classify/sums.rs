//! Scores of nodes by field, a row for each field, so that a field that says nothing costs nothing.

use super::features::FIELDS;

/// Scores by field and node; the row of a field that is not there is empty.
#[derive(Default)]
pub(crate) struct Sums {
    rows: [Vec<f32>; FIELDS],
}

impl Sums {
    /// Forgets all scores and makes room for those of the fields that are there.
    pub(crate) fn clear(&mut self, there: [bool; FIELDS], nodes: usize) {
        for (row, there) in self.rows.iter_mut().zip(there) {
            row.clear();
            row.resize(if there { nodes } else { 0 }, 0.0);
        }
    }

    /// The scores of a field; empty when it is not there.
    #[inline]
    pub(crate) fn of_field(&self, field: usize) -> &[f32] {
        &self.rows[field]
    }

    /// The scores of a field, to add to.
    #[inline]
    pub(crate) fn of_field_mut(&mut self, field: usize) -> &mut [f32] {
        &mut self.rows[field]
    }

    /// What a field says of a node; 0 when it is not there.
    #[inline]
    pub(crate) fn at(&self, field: usize, node: usize) -> f32 {
        self.rows[field].get(node).copied().unwrap_or(0.0)
    }

    /// What the fields say together of a node, each with its share.
    #[inline]
    pub(crate) fn weigh(&self, node: usize, shares: &[f32; FIELDS]) -> f32 {
        (0..FIELDS).map(|field| self.at(field, node) * shares[field]).sum()
    }

    /// Replaces `all` by what the fields say together of every node.
    pub(crate) fn weigh_all(&self, nodes: usize, shares: &[f32; FIELDS], all: &mut Vec<f32>) {
        all.clear();
        all.resize(nodes, 0.0);
        for (row, &share) in self.rows.iter().zip(shares).filter(|(_, share)| **share != 0.0) {
            all.iter_mut().zip(row).for_each(|(sum, score)| *sum += share * score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_weighed_and_absent_ones_say_nothing() {
        let mut sums = Sums::default();
        sums.clear([true, false, true], 2);
        sums.of_field_mut(0)[1] = 2.0;
        sums.of_field_mut(2)[1] = 3.0;
        assert_eq!((sums.at(0, 1), sums.at(1, 1), sums.at(2, 0)), (2.0, 0.0, 0.0));
        let shares = [1.0, 5.0, 0.5];
        assert_eq!((sums.weigh(0, &shares), sums.weigh(1, &shares)), (0.0, 3.5));
        let mut all = vec![9.0; 7];
        sums.weigh_all(2, &shares, &mut all);
        assert_eq!(all, [0.0, 3.5]);
        sums.clear([false; FIELDS], 2);
        assert!(sums.of_field(0).is_empty());
    }
}
