//! The best of many scores, which are not kept all at once.

use std::cmp::Ordering;
use std::ops::Range;

/// Puts the `most` highest scores into `order`, those of equal score by place, the lowest of them last and the others in
/// no order.
pub(crate) fn keep_best_of(scores: &[f32], most: usize, order: &mut Vec<(f32, u32)>) {
    keep_best_of_groups(scores, std::iter::once((0..scores.len(), 0.0)), most, order);
}

/// The same for places in groups (leaves of a heading), each group with a score that its places share.
pub fn keep_best_of_groups(
    scores: &[f32],
    groups: impl Iterator<Item = (Range<usize>, f32)>,
    most: usize,
    order: &mut Vec<(f32, u32)>,
) {
    order.clear();
    let mut worst = f32::MIN;
    for (places, shared) in groups {
        for (at, own) in places.clone().zip(&scores[places]) {
            let score = own + shared;
            if score > worst {
                order.push((score, at as u32));
                if order.len() == 4 * most {
                    keep_best(order, most);
                    worst = order[most - 1].0;
                }
            }
        }
    }
    keep_best(order, most);
}

/// Keeps the best of these, the last of them at the end.
fn keep_best(order: &mut Vec<(f32, u32)>, most: usize) {
    if order.len() > most {
        order.select_nth_unstable_by(most - 1, by_score);
        order.truncate(most);
    }
}

/// The highest score first, of equal ones the first place.
pub(crate) fn by_score(a: &(f32, u32), b: &(f32, u32)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_whatever_their_order() {
        let scores: Vec<f32> = (0..200u32).map(|at| (at * 37 % 101) as f32).collect();
        let mut all: Vec<(f32, u32)> = scores.iter().copied().zip(0..).collect();
        all.sort_unstable_by(by_score);
        let mut order = vec![(9.0, 9)];
        keep_best_of(&scores, 5, &mut order);
        assert_eq!(order[4], all[4]);
        order.sort_unstable_by(by_score);
        assert_eq!(order, all[..5]);
        keep_best_of(&scores[..3], 5, &mut order);
        assert_eq!(order, [(0.0, 0), (37.0, 1), (74.0, 2)]);
    }

    #[test]
    fn what_a_group_shares_counts_for_each_of_its_places() {
        let mut order = Vec::new();
        keep_best_of_groups(&[1.0, 5.0, 2.0, 3.0], [(0..1, 9.0), (2..4, 4.0)].into_iter(), 2, &mut order);
        order.sort_unstable_by(by_score);
        assert_eq!(order, [(10.0, 0), (7.0, 3)]);
    }
}
