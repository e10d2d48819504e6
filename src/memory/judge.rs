//! What remembered decisions say about a product: agreement among the nearest, and how sure that makes.

use uuid::Uuid;

use super::{Decision, Qualities, Snapshot};
use crate::domain::{ClassCode, ProductClass, Segment as Side, Taxonomy};

/// Similarity from which products count as alike, 0 to 1.
pub const ALIKE: f32 = 0.6;
/// Decisions that are asked; the most alike.
const MAX_NEIGHBOURS: usize = 9;
/// How fast a decision counts for less where others are more alike: a power of the similarity.
const SHARPNESS: i32 = 8;

/// Log-odds that the class of one decision is right for a product, by similarity: 0.77 at 0.65, 0.97 at 0.85, 0.99 at
/// 0.95. Set by hand, and not yet fitted on a stream.
const SLOPE: f32 = 11.0;
const MIDDLE: f32 = 0.54;
/// Log-odds for each doubling of the decisions that agree, and for a model that ranks the class first.
const AGREEING: f32 = 0.3;
const MODEL_AGREES: f32 = 0.8;
/// Most that a decision by memory is sure.
const MAX_CONFIDENCE: f32 = 0.99;

/// What is known of a product about which memory is asked.
pub struct Question<'a> {
    /// The taxonomy of the class wanted.
    pub taxonomy: Taxonomy,
    /// Its words, as the classifier gives them.
    pub words: &'a [(u32, f32)],
    /// Words that turn the class.
    pub qualities: Qualities,
    /// The class that the shipped model gives, where it is more likely than not.
    pub prior: Option<ClassCode>,
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
}

/// What memory says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The class decided for alike products, if any.
    pub class: Option<Recalled>,
    /// A class that was said to be wrong for alike products, if any, with how sure it is that it is wrong here.
    pub against: Option<Recalled>,
}

impl Snapshot {
    /// What the decisions of the account say about a product. `side` tells on which side of a VAT rule its texts put it
    /// within a class.
    pub fn judge(&self, question: &Question<'_>, side: impl Fn(ClassCode) -> Side) -> Judgement {
        let mut near: Vec<(f32, &Decision)> = Vec::new();
        self.alike(question.taxonomy, question.words, |decision, similarity| {
            if similarity >= ALIKE && carries_over(decision, question, similarity) {
                near.push((similarity, decision));
            }
        });
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.assignment.cmp(&b.1.assignment)));
        near.truncate(MAX_NEIGHBOURS);
        near.retain(|(_, decision)| decision.side == side(decision.class.code));
        let total: f32 = near.iter().filter(|(_, decision)| !decision.against).map(|near| weight(near.0)).sum();
        let best = |against: bool| {
            let mut classes: Vec<ProductClass> =
                near.iter().filter(|(_, decision)| decision.against == against).map(|(_, known)| known.class).collect();
            classes.sort();
            classes.dedup();
            let support = |class: ProductClass, against: bool| -> f32 {
                let speaks = |known: &Decision| known.against == against && known.class == class;
                near.iter().filter(|(_, known)| speaks(known)).map(|near| weight(near.0)).sum()
            };
            let class = classes.into_iter().max_by(|a, b| support(*a, against).total_cmp(&support(*b, against)))?;
            let own = support(class, against);
            let other = match against {
                false => total - own + support(class, true),
                true => support(class, false),
            };
            let agreeing = near.iter().filter(|(_, known)| known.against == against && known.class == class);
            let nearest = agreeing.clone().next()?;
            let logit = SLOPE * (nearest.0 - MIDDLE)
                + AGREEING * (agreeing.count() as f32).log2()
                + match question.prior {
                    Some(prior) if !against && same_line(prior, class.code) => MODEL_AGREES,
                    _ => 0.0,
                };
            let confidence = (1.0 + (-logit).exp()).recip() * own / (own + other);
            Some(Recalled {
                class,
                confidence: confidence.min(MAX_CONFIDENCE),
                decision: nearest.1.assignment,
                similarity: nearest.0,
            })
        };
        Judgement { class: best(false), against: best(true) }
    }
}

fn weight(similarity: f32) -> f32 {
    similarity.powi(SHARPNESS)
}

fn same_line(one: ClassCode, other: ClassCode) -> bool {
    one.is_under(&other) || other.is_under(&one)
}

/// Whether a decision says anything about the product: not where a word turns the class, and not where the model, which
/// was taught what sets goods apart, is of two minds about the two texts. Equal words are the same good.
fn carries_over(decision: &Decision, question: &Question<'_>, similarity: f32) -> bool {
    /// From here on the texts have the same words.
    const SAME: f32 = 0.995;
    if decision.qualities.turn(question.qualities) {
        return false;
    }
    match (decision.prior, question.prior) {
        (Some(then), Some(now)) => similarity >= SAME || same_line(then, now),
        _ => true,
    }
}
