//! What memory costs: bytes and time of a lookup with a million decisions in one account and with a thousand accounts, what
//! a service that starts has to do for each decision, and classification beside it. `cargo bench --bench memory`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;
use vat_classification::classify::{Ranking, Scored};
use vat_classification::decision::{Basis, Engine};
use vat_classification::domain::{ClassCode, Details, Precision, ProductClass, Segment, Taxonomy};
use vat_classification::memory::{Decision, Lesson, Memory, Opinion, Question, packed};
use vat_classification::reference::Reference;

/// Decisions that a service reads at once.
const PAGE: usize = 500;
/// Goods of a shop; the rest are variants of them.
const GOODS: u64 = 400;
/// Words of a listing.
const WORDS: u64 = 14;
const QUESTIONS: u64 = 20_000;

/// Bytes of memory that the process holds.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

/// A number that looks random.
fn random(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The words of a variant: most are those of its good, some of every good, two of its own.
fn words(variant: u64) -> Vec<(u32, f32)> {
    let good = random(variant) % GOODS;
    let word = |at: u64| match at {
        0..4 => random(good * 31 + at) % 900,
        4..9 => 1_000 + random(good * 57 + at) % 30_000,
        9..12 => 40_000 + random(variant * 3 + at) % 200,
        _ => 50_000 + random(variant * 7 + at) % 200_000,
    };
    let mut words: Vec<(u32, f32)> =
        (0..WORDS).map(|at| (random(word(at)) as u32, (WORDS as f32).sqrt().recip())).collect();
    words.sort_unstable_by_key(|(word, _)| *word);
    words.dedup_by_key(|(word, _)| *word);
    words
}

fn class(good: u64) -> ProductClass {
    let code = format!("{:06}", 10_000 + random(good) % 900_000);
    ProductClass { code: ClassCode::new(&code).expect("six digits"), segment: Segment::PLAIN }
}

fn opinion(variant: u64) -> Opinion {
    let scored = |at: u64| Scored { code: class(random(variant) % GOODS + at).code, confidence: 0.4 / (at + 1) as f32 };
    Opinion::of(&Ranking { candidates: (0..4).map(scored).collect(), is_described: false })
}

fn lesson(variant: u64) -> Lesson {
    Lesson::Decided(Decision {
        assignment: Uuid::from_u128(u128::from(random(variant)) << 64 | u128::from(random(variant + 1))),
        taxonomy: Taxonomy::Taric,
        class: class(random(variant) % GOODS),
        against: false,
        opinion: opinion(variant),
        side: Segment::PLAIN,
        words: packed(&words(variant)),
    })
}

fn learn(memory: &Memory, account: i64, variants: std::ops::Range<u64>) {
    let mut next = variants.start;
    while next < variants.end {
        let end = (next + PAGE as u64).min(variants.end);
        memory.learn(account, (next..end).map(lesson).collect());
        next = end;
    }
}

/// Asks, and prints how long the answers took.
fn ask(memory: &Memory, account: i64) {
    let mut times: Vec<f64> = Vec::new();
    let mut found = 0;
    for at in 0..QUESTIONS {
        let variant = 1 << 40 | at;
        let (words, opinion) = (words(variant), opinion(variant));
        let start = Instant::now();
        let question = Question { taxonomy: Taxonomy::Taric, words: &words, opinion };
        let judgement = memory.of(account).judge(&question, memory.confidence(), |_| Segment::PLAIN);
        times.push(start.elapsed().as_secs_f64() * 1e6);
        found += usize::from(judgement.class.is_some_and(|known| known.class == class(random(variant) % GOODS)));
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    println!(
        "  lookup p50 {:.0} us, p99 {:.0} us, longest {:.0} us; the good's class in {:.1} %",
        at(0.5),
        at(0.99),
        at(1.0),
        100.0 * found as f64 / QUESTIONS as f64
    );
}

fn main() {
    let start_with = resident();
    let memory = Memory::default();
    let start = Instant::now();
    learn(&memory, 1, 0..1_000_000);
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), memory.of(1).bytes());
    println!("1,000,000 decisions of one account, learnt in {seconds:.1} s in pages of {PAGE}");
    println!(
        "  {} bytes each in the index, {} each resident",
        bytes / 1_000_000,
        (resident() - start_with) / 1_000_000
    );
    ask(&memory, 1);
    let start = Instant::now();
    for at in 0..1_000 {
        memory.learn(1, vec![lesson(2_000_000 + at)]);
    }
    println!("  one more is learnt in {:.0} us", start.elapsed().as_secs_f64() * 1e3);
    drop(memory);

    let before = resident();
    let memory = Memory::default();
    for account in 0..1_000 {
        learn(&memory, account, 1_000 * account as u64..1_000 * (account as u64 + 1));
    }
    println!("1,000 accounts of 1,000: {} MB resident", (resident().saturating_sub(before)) / 1_000_000);
    ask(&memory, 7);

    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let reference = Arc::new(Reference::load(&models).expect("the facts"));
    let engine = Engine::load(&models.join("classifier.bin"), reference).expect("the model");
    let details = |at: usize| -> Details {
        let kinds =
            ["Damen Lederjacke", "Trekkingrucksack Alpin", "Espressotasse", "Bohrmaschine", "T-Shirt Baumwolle"];
        let name = format!("{} {} Modell {at}", kinds[at % kinds.len()], ["rot", "blau", "schwarz"][at % 3]);
        serde_json::from_value(serde_json::json!({"languageAttributes": {"de": {"productName": name}}}))
            .expect("details")
    };
    let all: Vec<Details> = (0..20_000).map(details).collect();
    let today = chrono::Utc::now().date_naive();
    let rate = |what: &str, work: &dyn Fn(&Details)| {
        all.iter().take(500).for_each(work);
        let start = Instant::now();
        all.iter().for_each(work);
        println!("{what}: {:.0}/s on one thread", all.len() as f64 / start.elapsed().as_secs_f64());
    };
    let decide = |account: Option<i64>| {
        let engine = &engine;
        move |details: &Details| {
            let basis = Basis { precision: Precision::default(), account };
            std::hint::black_box(engine.decide(details, &[Taxonomy::Taric], basis, today));
        }
    };
    rate("decisions without memory", &decide(None));
    rate("decisions of an account without a memory", &decide(Some(1)));
    rate("texts read for memory, as at the start", &|details| {
        std::hint::black_box(engine.remembered(Uuid::nil(), Taxonomy::Taric, class(1), false, details));
    });
    learn(engine.memory(), 1, 0..100_000);
    rate("decisions of an account with 100,000 decisions", &decide(Some(1)));
}
