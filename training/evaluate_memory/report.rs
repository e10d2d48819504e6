//! The figures of `evaluate-memory`.

use vat_classification::domain::Precision;

use super::simulate::{CHECKPOINTS, Outcome, Outcomes};
use super::streams::{GROUP, Stream, Truth};

/// Similarity from which the plain way takes the class of the nearest title.
const NEAREST: f32 = 0.6;

/// Decisions and how many are right.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    made: usize,
    right: usize,
}

impl Count {
    fn of(decisions: impl Iterator<Item = Option<bool>>) -> Count {
        decisions.flatten().fold(Count::default(), |count, right| Count {
            made: count.made + 1,
            right: count.right + usize::from(right),
        })
    }

    /// Share of the listings that is decided rightly, and share of decisions that are right, in per cent.
    fn cells(&self, of: usize) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        format!("{:>5.1} ({:>5.1})", percent(self.right, of), percent(self.right, self.made))
    }
}

/// Prints what was decided rightly, in per cent of the listings that nobody reviewed, and in brackets the share of
/// decisions that are right.
pub(super) fn print(streams: &[Stream], reviewed: &[Outcomes], precision: Precision, each: bool) {
    let all: Vec<(&Stream, &Outcomes)> = streams.iter().zip(reviewed).collect();
    println!("precision {:.2}; per cent decided right (per cent of decisions right)", precision.share());
    println!(
        "{:<34} {:>9} {:>7} | {:>13} | {:>13} | {:>13} | {:>13} | {:>13}",
        "", "reviewed", "others", "model alone", "nearest", "near., model", "with memory", "memory's own"
    );
    let line = |name: &str, of: &[(&Stream, &Outcomes)], keep: &dyn Fn(&Outcome) -> bool| {
        for (at, share) in CHECKPOINTS.iter().enumerate() {
            let some: Vec<&Outcome> =
                of.iter().flat_map(|(_, outcomes)| outcomes[at].iter()).filter(|outcome| keep(outcome)).collect();
            let nearest =
                |outcome: &Outcome| outcome.nearest.filter(|(near, _)| *near >= NEAREST).map(|(_, right)| right);
            let counts = [
                Count::of(some.iter().map(|outcome| outcome.alone)),
                Count::of(some.iter().map(|outcome| nearest(outcome))),
                Count::of(some.iter().map(|outcome| nearest(outcome).or(outcome.alone))),
                Count::of(some.iter().map(|outcome| outcome.decided)),
                Count::of(some.iter().map(|outcome| outcome.decided.filter(|_| outcome.by_memory))),
            ];
            let cells: Vec<String> = counts.iter().map(|count| count.cells(some.len())).collect();
            println!("{name:<34} {:>7.0} % {:>7} | {}", 100.0 * share, some.len(), cells.join(" | "));
        }
    };
    let kinds: [(&str, Truth, bool); 4] = [
        ("classes by people, measuring", Truth::People, true),
        ("classes by people, fitted on", Truth::People, false),
        ("classes by the model", Truth::Model, true),
        ("rows of the corpus, fitted on", Truth::Corpus, false),
    ];
    for (what, truth, measures) in kinds {
        let is_of_kind = |(stream, _): &&(&Stream, &Outcomes)| stream.truth == truth && stream.measures == measures;
        let some: Vec<_> = all.iter().filter(is_of_kind).copied().collect();
        line(what, &some, &|_| true);
        line("  variants", &some, &|outcome| outcome.in_group);
    }
    println!("variants: listings of goods with {GROUP} or more of them");
    if each {
        for one in &all {
            let measures = if one.0.measures { "measuring" } else { "" };
            line(&format!("{} {measures}", one.0.name), std::slice::from_ref(one), &|_| true);
        }
    }
    for (what, truth) in [("people", Truth::People), ("model", Truth::Model)] {
        let of_kind = all.iter().filter(|(stream, _)| stream.truth == truth && stream.measures);
        let recalled =
            of_kind.flat_map(|(_, outcomes)| outcomes.iter().flatten()).filter_map(|outcome| outcome.recalled);
        println!(
            "confidence:right (answers), classes by {what}: {}",
            bins(recalled.map(|(_, sure, right)| (sure, right)))
        );
    }
}

/// How often answers of about the same confidence are right.
fn bins(answers: impl Iterator<Item = (f32, bool)>) -> String {
    const BINS: usize = 10;
    let mut bins = [(0.0f32, 0usize, 0usize); BINS];
    for (sure, right) in answers {
        let bin = &mut bins[((sure * BINS as f32) as usize).min(BINS - 1)];
        *bin = (bin.0 + sure, bin.1 + usize::from(right), bin.2 + 1);
    }
    let told = bins.iter().filter(|bin| bin.2 > 0).map(|&(sure, right, count)| {
        format!("{:.2}:{:.2} ({count})", sure / count as f32, right as f32 / count as f32)
    });
    told.collect::<Vec<String>>().join(" ")
}
