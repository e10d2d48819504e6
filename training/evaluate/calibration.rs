//! How often answers of a confidence are right.

use vat_classification::classify::Ranking;

use super::Case;

/// Bins of equal width over confidence.
const BINS: usize = 10;

/// Answers with about the same confidence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    pub(crate) rows: usize,
    pub(crate) right: usize,
    confidences: f64,
}

impl Bin {
    /// Mean confidence, 0 to 1.
    pub(crate) fn confidence(&self) -> f64 {
        self.confidences / self.rows.max(1) as f64
    }

    /// Share of right answers, 0 to 1.
    pub(crate) fn share_right(&self) -> f64 {
        self.right as f64 / self.rows.max(1) as f64
    }
}

/// The best answers at one depth, by confidence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reliability {
    pub(crate) bins: [Bin; BINS],
}

impl Reliability {
    /// Counts the best answer of each case at that many digits.
    pub(crate) fn of<'a>(answers: impl Iterator<Item = (&'a Case, &'a Ranking)>, digits: usize) -> Reliability {
        let mut reliability = Reliability::default();
        for (case, ranking) in answers.filter(|(case, _)| case.code.digits() >= digits) {
            if let Some(best) = ranking.roll_up(digits).first() {
                let bin = &mut reliability.bins[((best.confidence * BINS as f32) as usize).min(BINS - 1)];
                bin.rows += 1;
                bin.right += usize::from(best.code == case.code.prefix(digits));
                bin.confidences += f64::from(best.confidence);
            }
        }
        reliability
    }

    /// Expected calibration error: mean distance of confidence and share of right answers, by rows.
    pub(crate) fn error(&self) -> f64 {
        let rows: usize = self.bins.iter().map(|bin| bin.rows).sum();
        self.bins.iter().map(|bin| (bin.confidences - bin.right as f64).abs()).sum::<f64>() / rows.max(1) as f64
    }
}
