use proptest::prelude::*;

use super::*;
use crate::classify::{Ranking, Scored};
use crate::domain::{ClassCode, Precision};

fn class(code: &str) -> ProductClass {
    ProductClass::plain(ClassCode::new(code).expect("a code"))
}

/// A vector of words of equal weight.
fn words(of: &[u32]) -> Vec<(u32, f32)> {
    of.iter().map(|word| (*word, (of.len() as f32).sqrt().recip())).collect()
}

fn decision(number: u128, code: &str, of: &[u32]) -> Decision {
    Decision {
        assignment: Uuid::from_u128(number),
        taxonomy: Taxonomy::Taric,
        class: class(code),
        against: false,
        opinion: Opinion::default(),
        side: Side::PLAIN,
        words: packed(&words(of)),
    }
}

fn decided(number: u128, code: &str, of: &[u32]) -> Lesson {
    Lesson::Decided(decision(number, code, of))
}

fn judge(memory: &Memory, account: i64, of: &[u32]) -> Judgement {
    let words = words(of);
    let question = Question { taxonomy: Taxonomy::Taric, words: &words, opinion: Opinion::default() };
    memory.of(account).judge(&question, memory.confidence(), |_| Side::PLAIN)
}

#[test]
fn alike_products_get_the_class_and_others_none() {
    let memory = Memory::default();
    memory.learn(1, vec![decided(7, "420292", &[1, 2, 3, 4])]);
    let found = judge(&memory, 1, &[1, 2, 3, 5]).class.expect("a class");
    assert_eq!((found.class, found.decision), (class("420292"), Uuid::from_u128(7)));
    assert!((found.similarity - 0.75).abs() < 0.02, "{found:?}");
    let same = judge(&memory, 1, &[1, 2, 3, 4]).class.expect("a class");
    assert!(same.confidence > found.confidence && same.confidence >= 0.98, "{same:?}");
    assert_eq!(judge(&memory, 1, &[1, 8, 9, 10]), Judgement::default());
    assert_eq!(judge(&memory, 1, &[]), Judgement::default());
}

#[test]
fn contradiction_lowers_confidence_below_every_limit_and_agreement_raises_it() {
    let memory = Memory::default();
    memory.learn(1, vec![decided(1, "420292", &[1, 2, 3, 4])]);
    let one = judge(&memory, 1, &[1, 2, 3, 5]).class.expect("a class").confidence;
    memory.learn(1, vec![decided(2, "420292", &[1, 2, 3, 6])]);
    let two = judge(&memory, 1, &[1, 2, 3, 5]).class.expect("a class").confidence;
    memory.learn(1, vec![decided(3, "420291", &[1, 2, 3, 7]), decided(4, "420291", &[1, 2, 3, 8])]);
    let torn = judge(&memory, 1, &[1, 2, 3, 5]).class.expect("a class").confidence;
    assert!(two > one && torn < 0.9, "{one} {two} {torn}");
}

#[test]
fn a_word_against_a_class_lowers_it() {
    let memory = Memory::default();
    memory.learn(1, vec![Lesson::Decided(Decision { against: true, ..decision(1, "420292", &[1, 2, 3, 4]) })]);
    let judgement = judge(&memory, 1, &[1, 2, 3, 4]);
    assert_eq!(judgement.class, None);
    assert!(judgement.against.is_some_and(|against| against.class == class("420292") && against.confidence > 0.95));
    memory.learn(1, vec![decided(2, "420292", &[1, 2, 3, 4])]);
    let torn = judge(&memory, 1, &[1, 2, 3, 4]).class.expect("a class").confidence;
    memory.learn(1, vec![Lesson::TakenBack(Uuid::from_u128(1))]);
    let sure = judge(&memory, 1, &[1, 2, 3, 4]).class.expect("a class").confidence;
    let limit = memory.confidence().limit(Precision::default());
    assert!(torn < limit && limit < sure, "{torn} {limit} {sure}");
}

fn opinion(code: &str) -> Opinion {
    let code = ClassCode::new(code).expect("a code");
    Opinion::of(&Ranking { candidates: vec![Scored { code, confidence: 0.8 }], is_described: false })
}

#[test]
fn a_model_that_is_of_two_minds_makes_less_sure_and_another_side_of_a_rule_says_nothing() {
    let memory = Memory::default();
    let known = Decision { opinion: opinion("620240"), ..decision(1, "620240", &[1, 2, 3, 4]) };
    memory.learn(1, vec![Lesson::Decided(known)]);
    let words = words(&[1, 2, 3, 5]);
    let ask = |code: &str, side: Side| {
        let question = Question { taxonomy: Taxonomy::Taric, words: &words, opinion: opinion(code) };
        memory.of(1).judge(&question, memory.confidence(), |_| side).class.map(|class| class.confidence)
    };
    let (same, heading, other) = (ask("620240", Side::PLAIN), ask("620230", Side::PLAIN), ask("620140", Side::PLAIN));
    assert!(same > heading && heading > other, "{same:?} {heading:?} {other:?}");
    assert_eq!(ask("620240", Side { side: 1, detail: 0 }), None);
}

#[test]
fn another_taxonomy_says_nothing() {
    let memory = Memory::default();
    memory.learn(1, vec![Lesson::Decided(Decision { taxonomy: Taxonomy::Ukgt, ..decision(1, "420292", &[1, 2]) })]);
    assert_eq!(judge(&memory, 1, &[1, 2]), Judgement::default());
}

#[test]
fn what_is_decided_again_or_taken_back_is_known_as_it_was_said_last() {
    let memory = Memory::default();
    for number in 0..1000 {
        memory.learn(1, vec![decided(number, "420292", &[1, 2, 1000 + number as u32])]);
    }
    assert_eq!(memory.of(1).len(), 1000);
    assert!(memory.of(1).parts.len() <= 12, "{}", memory.of(1).parts.len());
    memory.learn(1, vec![decided(5, "610910", &[1, 2, 1005])]);
    assert_eq!(memory.of(1).len(), 1000);
    let found =
        memory.of(1).parts.iter().flat_map(Part::living).filter(|known| known.fact.class == class("610910")).count();
    assert_eq!(found, 1);
    memory.learn(1, (0..1000).map(|number| Lesson::TakenBack(Uuid::from_u128(number))).collect());
    assert!(memory.of(1).is_empty() && memory.is_empty());
    assert_eq!(judge(&memory, 1, &[1, 2, 1005]), Judgement::default());
    memory.learn(1, vec![decided(1, "420292", &[1]), Lesson::TakenBack(Uuid::from_u128(1))]);
    assert!(memory.is_empty());
}

#[test]
fn the_oldest_make_room() {
    let mut writer = Writer::default();
    let mut snapshot = Snapshot::default();
    let decisions: Vec<Decision> = (0..100).map(|number| decision(number, "420292", &[number as u32])).collect();
    writer.add(1, &mut snapshot, &decisions);
    writer.evict(1, &mut snapshot, 60);
    writer.tidy(1, &mut snapshot);
    assert_eq!(snapshot.len(), 40);
    assert_eq!(writer.len(1), 40);
    assert!(snapshot.parts.iter().flat_map(Part::living).all(|known| known.fact.assignment >= Uuid::from_u128(60)));
    assert_eq!(snapshot.parts[0].segment.len(), 40);
}

proptest! {
    /// Whatever another account learns and forgets, an answer stays what it was.
    #[test]
    fn no_answer_depends_on_another_accounts_memory(
        own in prop::collection::vec((0u128..40, prop::collection::vec(0u32..12, 1..6), 0usize..3), 0..20),
        others in prop::collection::vec((2i64..5, 0u128..40, prop::collection::vec(0u32..12, 1..6), 0usize..4), 0..40),
        asked in prop::collection::vec(0u32..12, 1..6),
    ) {
        let codes = ["420292", "420291", "610910"];
        let memory = Memory::default();
        for (number, of, code) in &own {
            memory.learn(1, vec![decided(*number, codes[*code], of)]);
        }
        let before = judge(&memory, 1, &asked);
        for (account, number, of, code) in &others {
            let lesson = match codes.get(*code) {
                Some(code) => decided(*number, code, of),
                None => Lesson::TakenBack(Uuid::from_u128(*number)),
            };
            memory.learn(*account, vec![lesson]);
        }
        prop_assert_eq!(before, judge(&memory, 1, &asked));
        prop_assert_eq!(judge(&memory, 9, &asked), Judgement::default());
    }
}
