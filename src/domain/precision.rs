//! How sure a decision by text must be before it is made: the balance between deciding often and deciding rightly.

/// Share of the decisions by text that are meant to be right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// Nine in ten: most is decided.
    P90,
    /// Nineteen in twenty.
    #[default]
    P95,
    /// Forty-nine in fifty: only what is beyond doubt is decided.
    P98,
}

impl Precision {
    /// All of them, the one that decides most first.
    pub const ALL: [Precision; 3] = [Precision::P90, Precision::P95, Precision::P98];

    /// The share that is meant to be right, in per cent; the form in which the database keeps it.
    pub const fn percent(self) -> i16 {
        match self {
            Precision::P90 => 90,
            Precision::P95 => 95,
            Precision::P98 => 98,
        }
    }

    /// The share that is meant to be right, 0 to 1; the form in which answers show it.
    pub fn share(self) -> f64 {
        f64::from(self.percent()) / 100.0
    }

    /// The one with that share in per cent.
    pub fn from_percent(percent: i16) -> Option<Precision> {
        Precision::ALL.into_iter().find(|precision| precision.percent() == percent)
    }

    /// The one with exactly that share, 0 to 1.
    pub fn from_share(share: f64) -> Option<Precision> {
        Precision::ALL.into_iter().find(|precision| precision.share() == share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_balances_are_known_by_their_share_and_no_other() {
        for (share, expected) in [
            (0.90, Some(Precision::P90)),
            (0.9, Some(Precision::P90)),
            (0.95, Some(Precision::P95)),
            (0.98, Some(Precision::P98)),
            (0.97, None),
            (95.0, None),
            (f64::NAN, None),
        ] {
            assert_eq!(Precision::from_share(share), expected, "{share}");
        }
        for precision in Precision::ALL {
            assert_eq!(Precision::from_percent(precision.percent()), Some(precision));
            assert_eq!(Precision::from_share(precision.share()), Some(precision));
        }
        assert_eq!(Precision::default(), Precision::P95);
    }
}
