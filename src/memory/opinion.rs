//! What the shipped model says of a text, in few bytes.

use crate::classify::Ranking;
use crate::domain::ClassCode;

/// Classes that are kept; the best.
const KEPT: usize = 4;
/// Digits of the classes that the model ranks.
const DIGITS: usize = 6;
/// What a six-digit class is divided by to give its heading.
const HEADING: u32 = 100;

/// The classes that the shipped model ranks first, with their shares in 255ths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opinion {
    codes: [u32; KEPT],
    shares: [u8; KEPT],
}

impl Opinion {
    /// What a ranking says.
    pub fn of(ranking: &Ranking) -> Opinion {
        let mut opinion = Opinion::default();
        for (at, best) in ranking.candidates.iter().take(KEPT).enumerate() {
            opinion.codes[at] = number(best.code);
            opinion.shares[at] = (best.confidence * 255.0).round().clamp(0.0, 255.0) as u8;
        }
        opinion
    }

    /// The share of a class: of those below it together, where it has less than six digits.
    pub fn share(&self, class: ClassCode) -> f32 {
        let class = class.prefix(DIGITS);
        let below = 10u32.pow((DIGITS - class.digits()) as u32);
        let class = number(class);
        self.classes().filter(|(code, _)| code / below == class).map(|(_, share)| share).sum()
    }

    /// The share of the heading that has most, among those to which a class does not belong.
    pub fn best_other(&self, class: ClassCode) -> f32 {
        let own = number(class.prefix(4));
        let of_heading = |heading: u32| {
            self.classes().filter(|(code, _)| code / HEADING == heading).map(|(_, share)| share).sum::<f32>()
        };
        let others = self.classes().map(|(code, _)| code / HEADING).filter(|heading| *heading != own);
        others.map(of_heading).fold(0.0, f32::max)
    }

    /// How alike two opinions are about the heading, 0 to 1; 0 where either says nothing.
    pub fn overlap(&self, other: &Opinion) -> f32 {
        let mut sum = 0.0;
        for (at, (code, _)) in self.classes().enumerate() {
            let heading = code / HEADING;
            // Each heading once, with all classes below it.
            if self.codes[..at].iter().any(|known| known / HEADING == heading) {
                continue;
            }
            let of = |opinion: &Opinion| {
                let own = opinion.classes().filter(|(code, _)| code / HEADING == heading);
                own.map(|(_, share)| share).sum::<f32>()
            };
            sum += (of(self) * of(other)).sqrt();
        }
        sum.min(1.0)
    }

    fn classes(&self) -> impl Iterator<Item = (u32, f32)> {
        self.codes
            .into_iter()
            .zip(self.shares)
            .take_while(|(_, share)| *share > 0)
            .map(|(code, share)| (code, f32::from(share) / 255.0))
    }
}

fn number(code: ClassCode) -> u32 {
    code.prefix(DIGITS).as_str().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Scored;

    fn opinion(of: &[(&str, f32)]) -> Opinion {
        let scored = |(code, confidence): &(&str, f32)| Scored {
            code: ClassCode::new(code).expect("a code"),
            confidence: *confidence,
        };
        Opinion::of(&Ranking { candidates: of.iter().map(scored).collect(), is_described: false })
    }

    #[test]
    fn shares_are_those_of_the_ranking_and_of_headings_together() {
        let said = opinion(&[("420292", 0.6), ("420291", 0.2), ("640399", 0.1)]);
        for (class, share) in
            [("420292", 0.6), ("42029298", 0.6), ("4202", 0.8), ("42", 0.8), ("6403", 0.1), ("610910", 0.0)]
        {
            let class = ClassCode::new(class).expect("a code");
            assert!((said.share(class) - share).abs() < 0.01, "{class}");
        }
        let other = said.best_other(ClassCode::new("420292").expect("a code"));
        assert!((other - 0.1).abs() < 0.01, "{other}");
        assert!((said.best_other(ClassCode::new("61").expect("a code")) - 0.8).abs() < 0.01);
    }

    #[test]
    fn opinions_overlap_where_they_name_the_same_headings() {
        let bag = opinion(&[("420292", 0.9)]);
        for (other, expected) in [
            (vec![("420291", 0.9)], 0.9),
            (vec![("640399", 0.9)], 0.0),
            (vec![], 0.0),
            (vec![("420292", 0.4), ("420291", 0.5)], 0.9),
        ] {
            let overlap = bag.overlap(&opinion(&other));
            assert!((overlap - expected).abs() < 0.01, "{other:?}: {overlap}");
            assert!((overlap - opinion(&other).overlap(&bag)).abs() < 1e-6);
        }
    }
}
