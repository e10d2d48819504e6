//! What remembered decisions say about a product: agreement among the nearest, and how sure that makes.

use uuid::Uuid;

use super::confidence::{Confidence, Evidence};
use super::segment::Known;
use super::turns::{Difference, Turns};
use super::{Opinion, Snapshot};
use crate::domain::{ClassCode, ProductClass, Segment as Side, Taxonomy};

/// Similarity from which products count as alike, 0 to 1.
pub const ALIKE: f32 = 0.6;
/// Similarity from which a decision is heard, 0 to 1.
const HEARD: f32 = 0.45;
/// Decisions that are asked; the most alike.
const MAX_NEIGHBOURS: usize = 16;
/// How fast a decision counts for less where others are more alike: a power of the similarity.
const SHARPNESS: i32 = 8;
/// Most that a decision by memory is sure.
const MAX_CONFIDENCE: f32 = 0.99;
/// Added to shares before their logarithm is taken: what is less counts as never.
const LEAST_SHARE: f32 = 0.02;
/// Added to the distance before its logarithm is taken.
const LEAST_DISTANCE: f32 = 0.02;
/// Least support that counts, as a logarithm.
const LEAST_SUPPORT: f32 = -4.0;
/// The most that words count as turning, and as not turning.
const MAX_TURN: f32 = 6.0;

/// What is known of a product about which memory is asked.
pub struct Question<'a> {
    /// The taxonomy of the class wanted.
    pub taxonomy: Taxonomy,
    /// Its words, as the classifier gives them.
    pub words: &'a [(u32, f32)],
    /// What the shipped model says of it.
    pub opinion: Opinion,
}

/// A class that was decided for products which are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recalled {
    /// The class.
    pub class: ProductClass,
    /// 0 to 1.
    pub confidence: f32,
    /// The assignment whose decision is most alike.
    pub decision: Uuid,
    /// How much that one is alike, 0 to 1.
    pub similarity: f32,
    /// What the confidence follows from.
    pub evidence: Evidence,
}

/// What memory says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The class decided for alike products, if any.
    pub class: Option<Recalled>,
    /// A class that was said to be wrong for alike products, if any, with how sure it is that it is wrong here.
    pub against: Option<Recalled>,
}

/// A decision that is heard.
type Near<'a> = (f32, Known<'a>);

impl Snapshot {
    /// What the decisions of the account say about a product. `side` tells on which side of a VAT rule its texts put it
    /// within a class.
    pub fn judge(
        &self,
        question: &Question<'_>,
        confidence: &Confidence,
        side: impl Fn(ClassCode) -> Side,
    ) -> Judgement {
        let mut near: Vec<Near<'_>> = Vec::new();
        self.alike(question.taxonomy, question.words, |decision, similarity| {
            if similarity >= HEARD {
                near.push((similarity, decision));
            }
        });
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.fact.assignment.cmp(&b.1.fact.assignment)));
        near.truncate(MAX_NEIGHBOURS);
        near.retain(|(_, decision)| decision.fact.side == side(decision.fact.class.code));
        let recalled = |against: bool| {
            let class = most_supported(&near, against)?;
            let speaks = |known: &&Near<'_>| known.1.fact.against == against && known.1.fact.class == class;
            let nearest = near.iter().find(speaks)?;
            let evidence = evidence(question, &confidence.turns, &near, nearest, class);
            Some(Recalled {
                class,
                confidence: confidence.of(&evidence).min(MAX_CONFIDENCE),
                decision: nearest.1.fact.assignment,
                similarity: nearest.0,
                evidence,
            })
        };
        Judgement { class: recalled(false), against: recalled(true) }
    }
}

fn most_supported(near: &[Near<'_>], against: bool) -> Option<ProductClass> {
    let mut classes: Vec<(ProductClass, f32)> = Vec::new();
    for (similarity, decision) in near.iter().filter(|(_, decision)| decision.fact.against == against) {
        match classes.iter_mut().find(|(class, _)| *class == decision.fact.class) {
            Some((_, support)) => *support += weight(*similarity),
            None => classes.push((decision.fact.class, weight(*similarity))),
        }
    }
    // Of equal ones the first, which the nearest decision names.
    let best = classes.into_iter().reduce(|best, class| if class.1 > best.1 { class } else { best })?;
    Some(best.0)
}

/// What speaks for and against the class that one decision names.
fn evidence(
    question: &Question<'_>,
    turns: &Turns,
    near: &[Near<'_>],
    nearest: &Near<'_>,
    class: ProductClass,
) -> Evidence {
    let against = nearest.1.fact.against;
    // What was said to be wrong is contradicted by whoever said that it is right, and the other way round.
    let contradicts = |known: &Near<'_>| match (known.1.fact.against, against) {
        (false, false) => !same_line(known.1.fact.class.code, class.code),
        (one, other) => one != other && known.1.fact.class == class,
    };
    let agrees = |known: &&Near<'_>| known.1.fact.against == against && known.1.fact.class == class;
    let support: f32 = near.iter().filter(agrees).map(|near| weight(near.0)).sum();
    let doubt: f32 = near.iter().filter(|known| contradicts(known)).map(|near| weight(near.0)).sum();
    let contradiction = near.iter().find(|known| contradicts(known)).map_or(0.0, |near| near.0);
    let agreeing = near.iter().filter(agrees).filter(|near| near.0 >= ALIKE).count().max(1);
    let difference = Difference::of(turns, question.words, &nearest.1);
    let overlap = question.opinion.overlap(&nearest.1.fact.opinion);
    // Where a class was said to be wrong, the model may well say it is right: that is what the person contradicted.
    let (model, model_other) = match against {
        false => {
            let overruled = overruled(&nearest.1.fact.opinion, class) * overlap * weight(nearest.0);
            let model = question.opinion.share(class.code);
            (model + (1.0 - model) * overruled, question.opinion.best_other(class.code) * (1.0 - overruled))
        }
        true => (1.0, 0.0),
    };
    Evidence([
        1.0,
        nearest.0,
        -(1.0 + LEAST_DISTANCE - nearest.0).ln(),
        (agreeing as f32).ln(),
        contradiction,
        (support / (support + doubt)).ln().max(LEAST_SUPPORT),
        (model + LEAST_SHARE).ln(),
        (model_other + LEAST_SHARE).ln(),
        overlap,
        difference.turns.clamp(-MAX_TURN, MAX_TURN),
        difference.worst.min(MAX_TURN),
        difference.own,
        difference.other,
        (question.words.len().max(1) as f32).ln(),
    ])
}

/// Whether a person decided against the model, 0 or 1: of the same text it would say the same again, which is no news.
fn overruled(opinion: &Opinion, class: ProductClass) -> f32 {
    f32::from(opinion.best_other(class.code) > opinion.share(class.code))
}

/// Whether one of two codes lies below the other, as deep as the model goes.
fn same_line(one: ClassCode, other: ClassCode) -> bool {
    let (one, other) = (one.prefix(6), other.prefix(6));
    one.is_under(&other) || other.is_under(&one)
}

fn weight(similarity: f32) -> f32 {
    similarity.powi(SHARPNESS)
}
