//! Fits confidence and limits to texts that shops wrote, from what a model said of them.
//!
//! Rows of the corpus are tidier than listings: a limit at which 97 % of them are right leaves 84 % of real texts right.
//! So the calibration that the corpus gives is only where this one begins; a penalty keeps it near, since labelled
//! listings are few. Two thirds of the sources set parameters and limits, the others measure them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use vat_classification::classify::model::{Balance, Limits, ModelInfo};
use vat_classification::classify::{KNOWN_NAME, OPINIONS};
use vat_classification::domain::Precision;

use super::calibrate::{self, Calibration, lowest_limit};

/// Strength of the penalty on the distance from the calibration of the corpus, beside the sum over all texts.
const PENALTY: f64 = 3.0;
/// Features of the text that say that there are tags or a description, how much they speak for the best heading, and that
/// there is another language: what a merchant adds never makes an answer less sure by being there. In the pool it would,
/// since there the shelves are often those of a shop's campaign. Nor does a name that the corpus has.
const REASSURING: [usize; 6] = [19, 20, 21, 22, 24, KNOWN_NAME];
/// Feature of the text that says that there is a description.
const DESCRIBED: usize = 20;
/// Share of the promised wrong decisions that listings which set coefficients and limits may show: they look righter than
/// others, the more so the surer a decision is to be. Each source counts alike, since a shop whose goods are little known is
/// one shop of many to come, however many of its listings were judged. So some 3.5 % of the decisions on other sources are
/// wrong where 5 are promised, and 1.7 % where 2 are (2026-11-30).
const fn own_share(precision: Precision) -> f32 {
    match precision {
        Precision::P90 => 0.9,
        Precision::P95 => 0.77,
        Precision::P98 => 0.33,
    }
}
/// What is known of a candidate's rightness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// The heading is wrong.
    No,
    /// The heading is right, the subheading is not.
    Heading,
    /// The heading is right; nobody knows the subheading.
    HeadingAtLeast,
    /// All six digits are right.
    Subheading,
}

impl Right {
    const ALL: [(Right, &'static str); 4] =
        [(Right::No, "0"), (Right::Heading, "4"), (Right::HeadingAtLeast, "5"), (Right::Subheading, "6")];

    /// The indices of the candidates that make a text right: of those with the right subheading where it is known and
    /// there, else of those with the right heading.
    pub(crate) fn indices(candidates: impl Iterator<Item = Right> + Clone) -> Vec<usize> {
        let of = |wanted: &[Right]| -> Vec<usize> {
            let right = candidates.clone().enumerate().filter(|(_, right)| wanted.contains(right));
            right.map(|(at, _)| at).collect()
        };
        let leaf = of(&[Right::Subheading]);
        if leaf.is_empty() { of(&[Right::Heading, Right::HeadingAtLeast]) } else { leaf }
    }

    fn letter(self) -> &'static str {
        Right::ALL.iter().find(|(right, _)| *right == self).map_or("0", |(_, letter)| letter)
    }

    fn of_letter(letter: &str) -> Option<Right> {
        Right::ALL.iter().find(|(_, known)| *known == letter).map(|(right, _)| *right)
    }
}

/// What a model says of a listing whose code is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// Whether the listing measures instead of setting limits.
    pub(crate) measures: bool,
    /// Number of its source.
    pub(crate) source: u32,
    /// Language of the listing.
    pub(crate) language: String,
    /// Features of the text.
    pub(crate) text: Vec<f32>,
    /// The candidates.
    pub(crate) candidates: Vec<Candidate>,
}

/// A candidate of a judged listing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// The ranker's logit.
    pub(crate) logit: f32,
    /// Index of its heading among those of the text.
    pub(crate) heading: usize,
    /// Whether it is right.
    pub(crate) right: Right,
    /// The second and the third voice's opinion.
    pub(crate) opinions: [f32; OPINIONS.len()],
}

/// Best heading and best leaf with their confidence, and whether they are right; of a leaf that may be unknown.
struct Best {
    /// Whether a description says something beside the name.
    is_described: bool,
    source: u32,
    heading: (f32, bool),
    leaf: (f32, Option<bool>),
}

impl Judged {
    /// The line of the file that holds what is judged.
    pub(crate) fn line(&self) -> String {
        let text: Vec<String> = self.text.iter().map(|x| short(*x, 4)).collect();
        let candidate = |candidate: &Candidate| {
            let [second, third] = candidate.opinions.map(|opinion| short(opinion, 3));
            let logit = short(candidate.logit, 3);
            format!("{logit}/{}/{}/{second}/{third}", candidate.heading, candidate.right.letter())
        };
        let candidates: Vec<String> = self.candidates.iter().map(candidate).collect();
        let part = if self.measures { "measure" } else { "set" };
        format!("{part}\t{}\t{}\t{}\t{}\n", self.source, self.language, text.join(" "), candidates.join(" "))
    }

    fn parse(line: &str) -> Option<Judged> {
        let mut fields = line.split('\t');
        let measures = match fields.next()? {
            "measure" => true,
            "set" => false,
            _ => return None,
        };
        let source = fields.next()?.parse().ok()?;
        let language = fields.next()?.to_owned();
        let text = fields.next()?.split(' ').map(|x| x.parse().ok()).collect::<Option<Vec<f32>>>()?;
        let candidate = |candidate: &str| {
            let mut parts = candidate.split('/');
            Some(Candidate {
                logit: parts.next()?.parse().ok()?,
                heading: parts.next()?.parse().ok()?,
                right: Right::of_letter(parts.next()?)?,
                opinions: [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?],
            })
        };
        let candidates = fields.next()?.split(' ').map(candidate).collect::<Option<Vec<_>>>()?;
        Some(Judged { measures, source, language, text, candidates })
    }

    /// The listing as confidence is fitted on it.
    fn case(&self) -> calibrate::Case {
        calibrate::Case {
            logits: self.candidates.iter().map(|candidate| f64::from(candidate.logit)).collect(),
            opinions: self.candidates.iter().map(|candidate| candidate.opinions.map(f64::from)).collect(),
            right: Right::indices(self.candidates.iter().map(|candidate| candidate.right)),
            text: self.text.iter().map(|x| f64::from(*x)).collect(),
        }
    }

    fn best(&self, calibration: &Calibration) -> Option<Best> {
        let shares = calibration.probabilities(&self.case());
        let headings = self.candidates.iter().map(|candidate| candidate.heading + 1).max()?;
        let mut of_heading = vec![(0.0f32, false); headings];
        let mut leaf = (0.0f32, None);
        for (Candidate { heading, right, .. }, share) in self.candidates.iter().zip(shares) {
            let share = share as f32;
            of_heading[*heading].0 += share;
            of_heading[*heading].1 |= *right != Right::No;
            if share > leaf.0 {
                leaf = (
                    share,
                    match right {
                        Right::No | Right::Heading => Some(false),
                        Right::Subheading => Some(true),
                        Right::HeadingAtLeast => None,
                    },
                );
            }
        }
        // Of a listing whose code has four digits nobody knows whether a subheading is right, and so none is wrong either:
        // else only its mistakes would count.
        if self.candidates.iter().any(|candidate| candidate.right == Right::HeadingAtLeast) {
            leaf.1 = None;
        }
        let heading = of_heading.into_iter().fold((0.0, false), |best, one| if one.0 > best.0 { one } else { best });
        let is_described = self.text.get(DESCRIBED).is_some_and(|x| *x > 0.0);
        Some(Best { is_described, source: self.source, heading, leaf })
    }
}

/// A number with at most that many places, without zeros that say nothing.
fn short(x: f32, places: usize) -> String {
    let digits = format!("{x:.places$}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Reads what was judged; an absent file is none.
pub(crate) fn read(path: &Path) -> Result<Vec<Judged>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        match Judged::parse(line) {
            Some(judged) => all.push(judged),
            None => bail!("{}:{}: not a judged listing", path.display(), index + 1),
        }
    }
    let width = all.first().map_or(0, |judged| judged.text.len());
    if all.iter().any(|judged| judged.text.len() != width) {
        bail!("{}: listings of different models", path.display());
    }
    Ok(all)
}

/// Fits calibration and limits of a model whose calibration by the corpus is known; nothing happens when the listings were
/// judged by a model with other features.
pub(crate) fn refine(judged: &[Judged], info: &mut ModelInfo) {
    let first = Calibration::of_corpus(&info.ranker);
    if judged.first().is_none_or(|judged| judged.text.len() != first.width()) {
        return;
    }
    let setting: Vec<&Judged> = judged.iter().filter(|judged| !judged.measures).collect();
    let cases: Vec<calibrate::Case> = setting.iter().map(|judged| judged.case()).collect();
    let calibration = first.fitted(&cases, PENALTY, &REASSURING);
    calibration.put_into(&mut info.ranker);
    let best: Vec<Best> = setting.iter().filter_map(|judged| judged.best(&calibration)).collect();
    let measuring: Vec<Best> =
        judged.iter().filter(|judged| judged.measures).filter_map(|judged| judged.best(&calibration)).collect();
    info.balances = Precision::ALL.map(|precision| balance(precision, &best, &measuring)).to_vec();
}

fn balance(precision: Precision, setting: &[Best], measuring: &[Best]) -> Balance {
    let goal = 1.0 - own_share(precision) * (1.0 - precision.share() as f32);
    let [named, described] = [false, true].map(|is_described| {
        let best: Vec<&Best> = setting.iter().filter(|best| best.is_described == is_described).collect();
        let mut listings: BTreeMap<u32, f32> = BTreeMap::new();
        best.iter().for_each(|best| *listings.entry(best.source).or_default() += 1.0);
        let weight = |best: &Best| 1.0 / listings.get(&best.source).copied().unwrap_or(1.0);
        let of_heading = |best: &&Best| (best.heading.0, best.heading.1, weight(best));
        let of_leaf = |best: &&Best| Some((best.leaf.0, best.leaf.1?, weight(best)));
        let heading = lowest_limit(goal, best.iter().map(of_heading).collect());
        Limits { heading, subheading: lowest_limit(goal, best.iter().filter_map(of_leaf).collect()).max(heading) }
    });
    let limits = |best: &Best| if best.is_described { described } else { named };
    let decided: Vec<&Best> = measuring.iter().filter(|best| best.heading.0 >= limits(best).heading).collect();
    let wrong = |best: &&&Best| match best.leaf {
        (sure, Some(right)) if sure >= limits(best).subheading => !right,
        _ => !best.heading.1,
    };
    let measured = decided.iter().filter(wrong).count() as f64 / decided.len().max(1) as f64;
    Balance {
        percent: precision.percent(),
        named,
        described,
        promised_wrong: 1.0 - precision.share(),
        measured_wrong: measured,
        measured_decided: decided.len() as f64 / measuring.len().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(measures: bool, logits: [f32; 3], right: usize) -> Judged {
        let rightness = |at: usize| if at == right { Right::Subheading } else { Right::No };
        let candidate = |(at, logit): (usize, &f32)| Candidate {
            logit: *logit,
            heading: at,
            right: rightness(at),
            opinions: [0.0; 2],
        };
        let candidates = logits.iter().enumerate().map(candidate).collect();
        Judged { measures, source: 7, language: "de".to_owned(), text: vec![1.0, 0.5], candidates }
    }

    #[test]
    fn a_judged_listing_is_one_line_without_text() {
        let mut one = judged(true, [1.5, -2.0, 0.25], 1);
        one.candidates[2].right = Right::HeadingAtLeast;
        one.candidates[2].opinions = [-0.5, 0.125];
        assert_eq!(one.line(), "measure\t7\tde\t1 0.5\t1.5/0/0/0/0 -2/1/6/0/0 0.25/2/5/-0.5/0.125\n");
        assert_eq!(Judged::parse(one.line().trim_end()), Some(one));
        for bad in [
            "",
            "set",
            "other\t7\tde\t1\t1/0/0/0/0",
            "set\tde\t1\t1/0/0/0/0",
            "set\t7\tde\tx\t1/0/0/0/0",
            "set\t7\tde\t1\t1/0/7/0/0",
            "set\t7\tde\t1\t1/0/0",
        ] {
            assert_eq!(Judged::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_described_has_limits_of_its_own() {
        let best = |at: usize, is_described, right| Best {
            is_described,
            source: (at % 4) as u32,
            heading: (0.5 + at as f32 / 2000.0, right),
            leaf: (0.0, None),
        };
        // By names all from 0.55 on are right, by descriptions all from 0.75 on.
        let mut setting: Vec<Best> = (0..800).map(|at| best(at, false, at > 100)).collect();
        setting.extend((0..800).map(|at| best(at, true, at > 500)));
        let balance = balance(Precision::P98, &setting, &setting);
        assert!((0.5..0.56).contains(&balance.named.heading), "{balance:?}");
        assert!((0.7..0.76).contains(&balance.described.heading), "{balance:?}");
        assert!(balance.measured_wrong < 0.02 && balance.measured_decided > 0.5, "{balance:?}");
    }

    #[test]
    fn confidence_follows_the_listings_and_stricter_balances_have_higher_limits() {
        // Of the surest answers nine in ten are right, though the corpus would have said all.
        let mut listings = Vec::new();
        for at in 0..400usize {
            let sure = (at % 40) as f32 / 10.0;
            let is_right = (at * 7919) % 100 < 55 + (at % 40);
            listings.push(judged(at % 3 == 0, [2.0 * sure, 0.0, -1.0], if is_right { 0 } else { 2 }));
        }
        let mut info = ModelInfo::default();
        let calibration = Calibration::new(vec![0.5, 0.0], vec![-4.0, 0.0]);
        calibration.put_into(&mut info.ranker);
        calibration.put_into_corpus(&mut info.ranker);
        refine(&listings, &mut info);
        assert_ne!(info.ranker.sharpness, info.ranker.corpus_sharpness);
        let limits: Vec<f32> = info.balances.iter().map(|balance| balance.named.heading).collect();
        assert!(limits[0] <= limits[1] && limits[1] <= limits[2], "{limits:?}");
        assert!(info.balances.iter().all(|balance| balance.named.subheading >= balance.named.heading));
        let promised: Vec<f64> = info.balances.iter().map(|balance| balance.promised_wrong).collect();
        assert!(promised.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
