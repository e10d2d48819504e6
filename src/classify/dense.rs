//! What ranker and calibration see of a text: few numbers for each candidate, and few for the text.

use super::features::Field;
use super::model::Model;
use super::score::{CANDIDATE_FEATURES, Detail, MAX_CANDIDATES, Scorer, TEXT_FEATURES};
use super::voices::{Opinion, exponential};

/// Features that are the logarithm of the second and of the third voice's probability of a candidate's heading.
pub const OPINIONS: [usize; 2] = [25, 28];
/// Features of a candidate that tell what its description says by itself.
const DESCRIPTION_SUPPORTS: std::ops::Range<usize> = 36..39;
/// Features of a candidate by name and description together, each with the one that tells the same of the name alone.
const DESCRIBED: [(usize, usize); 4] = [(39, 1), (40, 2), (41, 3), (42, OPINIONS[0])];
/// Features of a text that say that there is a description, and how much it speaks for the best heading.
const HAS_DESCRIPTION: [usize; 2] = [20, 22];
/// Features of a text that tell the share of the best heading by the name, and with the description.
const BEST_SHARE: usize = 4;
const DESCRIBED_SHARES: [usize; 2] = [26, 27];
/// Feature of the text that says that its name as a whole stands in the corpus, under the heading that seems best.
pub const KNOWN_NAME: usize = 28;
/// Nearest rows below this similarity say nothing.
const MIN_SIMILARITY: f32 = 0.1;
/// What is added to probabilities before their logarithm is taken.
const FLOOR: f32 = 1e-4;
/// The same for what the other voices say of the best heading, and for the share of the text that rows of it know, where
/// doubt is told: whether they say a hundredth or nothing at all makes no difference.
const OPINION_FLOOR: f32 = 0.01;
const UNCOVERED: f32 = 0.05;
/// The same for tags and descriptions. It bounds how much they can say: a shelf settles doubt and never overrules a name.
const TAG_FLOOR: f32 = 0.05;
const DESCRIPTION_FLOOR: f32 = 0.03;
/// Lowest difference of scores that still counts.
const LOWEST: f32 = -12.0;

/// How near the rows of a leaf are.
#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    best: f32,
    cubes: f32,
}

/// Candidates of one heading.
#[derive(Clone, Copy)]
struct Group {
    /// Node of the heading.
    heading: usize,
    share: f32,
    nearest: f32,
    detail: Detail,
    /// Sum of the exponentials of what tags and description say of its leaves.
    rest: [f32; 2],
    /// Share by name and description together.
    described: f32,
}

/// A candidate with what was found of it.
#[derive(Clone, Copy)]
struct Seen {
    group: usize,
    share: f32,
    own: Detail,
    near: Nearest,
    /// Exponentials of what tags and description say of the leaf.
    rest: [f32; 2],
    /// Share by name and description together.
    described: f32,
}

const REST: [(Field, f32); 2] = [(Field::Tag, TAG_FLOOR), (Field::Description, DESCRIPTION_FLOOR)];

impl Scorer {
    /// Finds the candidates of the query that was read, and fills their dense features and those of the text.
    pub(super) fn describe(&mut self, model: &Model) {
        self.score(model);
        let Some(best_score) = self.candidates.first().map(|best| best.score) else { return };
        let total: f32 = self.candidates.iter().map(|candidate| exponential(candidate.score - best_score)).sum();
        let with_description = self.query.with_description();
        let described = |leaf: usize| {
            self.learnt.weigh(leaf, &with_description) + self.learnt.weigh(model.heading_of(leaf), &with_description)
        };
        let best_described = self.candidates.iter().map(|one| described(one.leaf)).fold(f32::MIN, f32::max);
        let total_described: f32 =
            self.candidates.iter().map(|one| exponential(described(one.leaf) - best_described)).sum();
        let mut groups: Vec<Group> = Vec::with_capacity(MAX_CANDIDATES);
        let mut seen: Vec<Seen> = Vec::with_capacity(MAX_CANDIDATES);
        for candidate in &self.candidates {
            let heading = model.heading_of(candidate.leaf);
            let share = exponential(candidate.score - best_score) / total;
            let near = self.nearest(model, candidate.leaf);
            let rest = REST.map(|(field, _)| exponential(self.learnt.at(field as usize, candidate.leaf).min(40.0)));
            let group = groups.iter().position(|group| group.heading == heading).unwrap_or_else(|| {
                let detail = self.detail_of(heading);
                groups.push(Group { heading, share: 0.0, nearest: 0.0, detail, rest: [0.0; 2], described: 0.0 });
                groups.len() - 1
            });
            let described = exponential(described(candidate.leaf) - best_described) / total_described;
            groups[group].described += described;
            groups[group].share += share;
            groups[group].nearest = groups[group].nearest.max(near.best);
            groups[group].rest[0] += rest[0];
            groups[group].rest[1] += rest[1];
            seen.push(Seen { group, share, own: self.detail_of(candidate.leaf), near, rest, described });
        }
        self.describe_candidates(model, &groups, &seen, best_score);
        self.describe_text(model, &groups, &seen, best_score);
    }

    fn describe_candidates(&mut self, model: &Model, groups: &[Group], seen: &[Seen], best_score: f32) {
        let above = |seen: &Seen| groups[seen.group].detail;
        let best_of = |value: &dyn Fn(&Seen) -> f32| seen.iter().map(value).fold(0.0f32, f32::max);
        let best_profile = best_of(&|seen| seen.own.profile);
        let best_heading_profile = best_of(&|seen| above(seen).profile);
        let best_covered = best_of(&|seen| above(seen).covered);
        let best_nearest = best_of(&|seen| seen.near.best);
        let all_nearest: f32 = seen.iter().map(|seen| seen.near.cubes).sum::<f32>() + FLOOR;
        let place_totals = self.query.place_squares.map(|square| square + FLOOR);
        let place_learnt = |seen: &Seen, at: usize| seen.own.places[at] + above(seen).places[at];
        let best_places = [0, 1].map(|at| best_of(&|seen| place_learnt(seen, at)));
        let doubt = 1.0 - groups.iter().map(|group| self.agreed(model, group)).fold(0.0, f32::max);
        let leaves = model.leaves();
        let voices = &self.voices;
        let heard = |opinion: &Opinion, heading: usize| {
            let (share, best) = (opinion.share(heading), opinion.best_share());
            let log = ((share + FLOOR).ln() / 4.0, ((share + 1e-6) / (best + 1e-6)).ln().max(LOWEST) / 4.0);
            (log.0, log.1, f32::from(opinion.best == heading))
        };
        let described = match voices.of_description.shares.is_empty() {
            true => &voices.of_features,
            false => &voices.of_description,
        };
        for (candidate, seen) in self.candidates.iter_mut().zip(seen) {
            let group = &groups[seen.group];
            let (own, above, near) = (seen.own, group.detail, seen.near);
            let heading = group.heading - leaves;
            let (second, second_off, second_first) = heard(&voices.of_features, heading);
            let (third, third_off, third_first) = heard(&voices.of_words, heading);
            let shares = [group.share, voices.of_features.share(heading), voices.of_words.share(heading)];
            let mean = shares.iter().sum::<f32>() / 3.0;
            let least = shares.into_iter().fold(1.0, f32::min);
            let supports = REST.map(|(field, floor)| support(&voices.of_field[field as usize], heading, floor));
            let within = [0, 1].map(|at| match supports[at] > 0.0 {
                true => (seen.rest[at] / group.rest[at].max(f32::MIN_POSITIVE) + TAG_FLOOR).ln() / 4.0,
                false => 0.0,
            });
            candidate.dense = [
                (candidate.score - best_score).max(LOWEST) / 4.0,
                (seen.share + FLOOR).ln() / 4.0,
                (group.share + FLOOR).ln() / 4.0,
                seen.share / (group.share + FLOOR),
                candidate.score.clamp(-20.0, 20.0) / 10.0,
                own.profile,
                above.profile,
                own.profile / (best_profile + FLOOR),
                above.profile / (best_heading_profile + FLOOR),
                own.covered,
                above.covered,
                above.covered - best_covered,
                near.best,
                group.nearest,
                near.best / (best_nearest + FLOOR),
                f32::from(near.best >= best_nearest && best_nearest > 0.0),
                near.cubes / all_nearest,
                f32::from(candidate.score >= best_score),
                own.covered - above.covered,
                (place_learnt(seen, 0) - best_places[0]).max(LOWEST) / 4.0,
                (place_learnt(seen, 1) - best_places[1]).max(LOWEST) / 4.0,
                own.places_covered[0] / place_totals[0],
                own.places_covered[1] / place_totals[1],
                above.places_covered[0] / place_totals[0],
                above.places_covered[1] / place_totals[1],
                second,
                second_off,
                second_first,
                third,
                third_off,
                third_first,
                (mean + FLOOR).ln() / 4.0,
                (least + FLOOR).ln() / 4.0,
                supports[0] * doubt * doubt,
                supports[0] * doubt,
                within[0],
                supports[1] * doubt * doubt,
                supports[1] * doubt,
                within[1],
                (seen.described + FLOOR).ln() / 4.0,
                (group.described + FLOOR).ln() / 4.0,
                seen.described / (group.described + FLOOR),
                (described.share(heading) + FLOOR).ln() / 4.0,
                f32::from(self.query.known_heading == Some(heading)),
            ];
        }
    }

    fn describe_text(&mut self, model: &Model, groups: &[Group], seen: &[Seen], best_score: f32) {
        let place_totals = self.query.place_squares.map(|square| square + FLOOR);
        let by_share = |a: &&Group, b: &&Group| a.share.total_cmp(&b.share).then(b.heading.cmp(&a.heading));
        let Some(best) = groups.iter().max_by(by_share) else { return };
        let second = groups.iter().filter(|group| group.heading != best.heading).map(|group| group.share);
        let second = second.fold(0.0, f32::max);
        let heading = best.heading - model.leaves();
        let most = |value: &dyn Fn(&Group) -> f32| groups.iter().map(value).fold(0.0f32, f32::max);
        let best_last = most(&|group| group.detail.places_covered[1] / place_totals[1]);
        let (features, words) = (&self.voices.of_features, &self.voices.of_words);
        let evidence = self.query.evidence.iter().zip(self.query.naming).filter(|(_, share)| *share > 0.0);
        let evidence: usize = evidence.map(|(evidence, _)| evidence).sum();
        let (second_agrees, third_agrees) = (features.best == heading, words.best == heading);
        let of_field = &self.voices.of_field;
        let has = |field: Field| f32::from(!of_field[field as usize].shares.is_empty());
        let supports = REST.map(|(field, floor)| support(&of_field[field as usize], heading, floor));
        self.text = [
            1.0,
            self.query.unknown_share,
            most(&|group| group.detail.covered),
            seen.iter().map(|seen| seen.near.best).fold(0.0, f32::max),
            best.share,
            best_score.clamp(-20.0, 20.0) / 10.0,
            (evidence as f32).ln_1p() / 3.0,
            best.detail.places_covered[0] / place_totals[0],
            best.detail.places_covered[1] / place_totals[1],
            best_last - best.detail.places_covered[1] / place_totals[1],
            f32::from(self.query.last_unknown),
            f32::from(second_agrees),
            f32::from(third_agrees),
            f32::from(features.best == words.best),
            features.best_share(),
            words.best_share(),
            ((best.share + FLOOR) / (second + FLOOR)).ln() / 4.0,
            features.share(heading),
            words.share(heading),
            has(Field::Tag),
            has(Field::Description),
            supports[0],
            supports[1],
            f32::from(self.query.naming[Field::Name as usize] == 0.0),
            f32::from(self.query.languages > 1),
            f32::from(second_agrees && third_agrees),
            best.described,
            most(&|group| group.described),
            f32::from(self.query.known_heading == Some(heading)),
            (features.share(heading) + OPINION_FLOOR).ln() / 4.0,
            (words.share(heading) + OPINION_FLOOR).ln() / 4.0,
            (best.detail.covered + UNCOVERED).ln() / 4.0,
        ];
    }

    /// How sure all voices together are of a heading by the naming words, 0 to 1: a name of words that stand for other
    /// goods, as one of fantasy often is, makes one voice sure and seldom all.
    fn agreed(&self, model: &Model, group: &Group) -> f32 {
        let heading = group.heading - model.leaves();
        let voices = &self.voices;
        (group.share * voices.of_features.share(heading) * voices.of_words.share(heading)).cbrt()
    }

    /// Similarity of the text to the rows of a leaf.
    fn nearest(&self, model: &Model, leaf: usize) -> Nearest {
        let mut nearest = Nearest::default();
        for row in model.rows_of(leaf) {
            let similarity = self.similarity(model, row);
            if similarity > MIN_SIMILARITY {
                nearest.best = nearest.best.max(similarity);
                nearest.cubes += similarity * similarity * similarity;
            }
        }
        nearest
    }
}

/// The dense features of a candidate as they were without the description.
pub(super) fn by_name(dense: &[f32; CANDIDATE_FEATURES]) -> [f32; CANDIDATE_FEATURES] {
    let mut named = *dense;
    named[DESCRIPTION_SUPPORTS].fill(0.0);
    for (described, of_name) in DESCRIBED {
        named[described] = dense[of_name];
    }
    named
}

/// The same of the features of a text.
pub(super) fn text_by_name(text: &[f32; TEXT_FEATURES]) -> [f32; TEXT_FEATURES] {
    let mut named = *text;
    HAS_DESCRIPTION.into_iter().for_each(|at| named[at] = 0.0);
    DESCRIBED_SHARES.into_iter().for_each(|at| named[at] = text[BEST_SHARE]);
    named
}

/// How much a field speaks for a heading: 0 when it does not, at most a bound that its floor sets. It never speaks against
/// one, so that a shelf which says nothing (`Sale`) changes nothing.
fn support(opinion: &Opinion, heading: usize, floor: f32) -> f32 {
    (opinion.share(heading) / floor).ln_1p() / 4.0
}
