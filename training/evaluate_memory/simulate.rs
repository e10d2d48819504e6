//! A reviewer works off the queue of a stream, and memory learns from each answer.

use std::collections::HashMap;

use chrono::NaiveDate;
use uuid::Uuid;
use vat_classification::decision::{Basis, Engine, Texts};
use vat_classification::domain::{ClassCode, Precision, ProductClass, Taxonomy, Verdict};
use vat_classification::memory::{Evidence, Lesson};

use super::nearest::Nearest;
use super::streams::{GROUP, Item, Stream};
use crate::random::Random;

/// Shares of the stream after which is measured.
pub(super) const CHECKPOINTS: [f64; 4] = [0.0, 0.01, 0.05, 0.2];
/// The taxonomy in which is decided; its six digits are those of all.
const TAXONOMY: Taxonomy = Taxonomy::Taric;
/// Listings that share less weight than this are left as they are when one is decided.
const LEAST_SHARED: f32 = 0.4;

/// What became of a listing that nobody reviewed.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Whether it is one of many variants.
    pub(super) in_group: bool,
    /// Whether a class was decided with memory, and whether it is right.
    pub(super) decided: Option<bool>,
    /// Whether memory decided that.
    pub(super) by_memory: bool,
    /// The same by the shipped model alone.
    pub(super) alone: Option<bool>,
    /// What memory weighed and its confidence, and whether its class is right.
    pub(super) recalled: Option<(Evidence, f32, bool)>,
    /// How near the nearest listing is by plain words, and whether its class is right.
    pub(super) nearest: Option<(f32, bool)>,
}

/// Outcomes at each checkpoint.
pub(super) type Outcomes = [Vec<Outcome>; CHECKPOINTS.len()];

/// A stream that is being reviewed.
struct Review<'a> {
    engine: &'a Engine,
    stream: &'a Stream,
    account: i64,
    precision: Precision,
    today: NaiveDate,
    texts: Vec<Texts>,
    alone: Vec<Verdict>,
    verdicts: Vec<Verdict>,
    reviewed: Vec<bool>,
}

/// Reviews a stream in the order of the queue; `wrong` of the answers are another good's.
pub(super) fn review(
    engine: &Engine,
    stream: &Stream,
    account: i64,
    precision: Precision,
    wrong: f64,
    today: NaiveDate,
) -> Outcomes {
    let count = stream.items.len();
    let texts = stream.items.iter().map(|_| Texts::with_words()).collect();
    let (alone, verdicts, reviewed) = (Vec::new(), Vec::new(), vec![false; count]);
    let mut review = Review { engine, stream, account, precision, today, texts, alone, verdicts, reviewed };
    review.alone = (0..count).map(|at| review.decide(at, None)).collect();
    review.verdicts = review.alone.clone();
    let sharing = Sharing::of(engine, &stream.items);
    let mut nearest = Nearest::of(stream.items.iter().map(|item| item.title.as_str()));
    let mut random = Random(account as u64);
    let mut done = 0;
    CHECKPOINTS.map(|share| {
        while done < (share * count as f64).round() as usize {
            let Some(next) = review.next() else { break };
            done += 1;
            let is_wrong = f64::from(random.unit()) < wrong;
            let class = if is_wrong { other_class(&stream.items, next, &mut random) } else { stream.items[next].truth };
            review.answer(next, class);
            nearest.learn(next, class);
            for at in sharing.with(next) {
                if !review.reviewed[at] {
                    review.verdicts[at] = review.decide(at, Some(account));
                }
            }
        }
        (0..count).filter(|at| !review.reviewed[*at]).map(|at| review.outcome(at, &nearest)).collect()
    })
}

/// The class of a good of another heading.
fn other_class(items: &[Item], at: usize, random: &mut Random) -> ClassCode {
    const TRIES: usize = 100;
    let own = items[at].truth;
    let other = |_| items[random.next() as usize % items.len()].truth;
    (0..TRIES).map(other).find(|other| other.prefix(4) != own.prefix(4)).unwrap_or(own)
}

impl Review<'_> {
    fn decide(&self, at: usize, account: Option<i64>) -> Verdict {
        let basis = Basis { precision: self.precision, account };
        let details = &self.stream.items[at].details;
        let verdicts = self.engine.decide_by(&self.texts[at], details, &[TAXONOMY], basis, self.today);
        verdicts.first().copied().unwrap_or_default()
    }

    /// The listing at which most is at stake.
    fn next(&self) -> Option<usize> {
        let open = (0..self.reviewed.len()).filter(|at| !self.reviewed[*at]);
        open.reduce(|best, at| if self.verdicts[at].risk > self.verdicts[best].risk { at } else { best })
    }

    fn answer(&mut self, at: usize, class: ClassCode) {
        self.reviewed[at] = true;
        let (assignment, class) = (Uuid::from_u128(at as u128), ProductClass::plain(class));
        let details = &self.stream.items[at].details;
        let decision = self.engine.remembered(assignment, TAXONOMY, class, false, details);
        self.engine.memory().learn(self.account, vec![Lesson::Decided(decision)]);
    }

    fn outcome(&self, at: usize, nearest: &Nearest) -> Outcome {
        let item = &self.stream.items[at];
        let right = |code: ClassCode| is_right(code, item.truth);
        let basis = Basis { precision: self.precision, account: Some(self.account) };
        let judgement = self.engine.recall(&self.texts[at], &item.details, TAXONOMY, basis);
        let verdict = self.decide(at, Some(self.account));
        let limit = self.engine.memory().confidence().limit(self.precision);
        let recalled = judgement.class;
        Outcome {
            in_group: item.variants >= GROUP,
            decided: verdict.found.map(|found| right(found.class.code)),
            by_memory: recalled.is_some_and(|recalled| recalled.confidence >= limit),
            alone: self.alone[at].found.map(|found| right(found.class.code)),
            recalled: recalled.map(|known| (known.evidence, known.confidence, right(known.class.code))),
            nearest: nearest.of_item(at).map(|(similarity, class)| (similarity, right(class))),
        }
    }
}

/// Whether a class is the true one, as deep as both are known.
fn is_right(code: ClassCode, truth: ClassCode) -> bool {
    let digits = code.digits().min(truth.digits());
    code.prefix(digits) == truth.prefix(digits)
}

/// Which listings share words.
struct Sharing {
    words: Vec<Vec<(u32, f32)>>,
    with_word: HashMap<u32, Vec<(usize, f32)>>,
}

impl Sharing {
    fn of(engine: &Engine, items: &[Item]) -> Sharing {
        let words: Vec<Vec<(u32, f32)>> =
            items.iter().map(|item| engine.words(&item.details).weights().to_vec()).collect();
        let mut with_word: HashMap<u32, Vec<(usize, f32)>> = HashMap::new();
        for (at, words) in words.iter().enumerate() {
            words.iter().for_each(|(word, weight)| with_word.entry(*word).or_default().push((at, *weight)));
        }
        Sharing { words, with_word }
    }

    /// Listings that share enough with one that memory may say something of them.
    fn with(&self, at: usize) -> Vec<usize> {
        let mut shared: HashMap<usize, f32> = HashMap::new();
        for (word, weight) in &self.words[at] {
            for (other, theirs) in &self.with_word[word] {
                *shared.entry(*other).or_default() += weight * theirs;
            }
        }
        shared.into_iter().filter(|(_, shared)| *shared >= LEAST_SHARED).map(|(other, _)| other).collect()
    }
}
