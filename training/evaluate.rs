//! `evaluate`: measures a model on texts with known codes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rayon::prelude::*;
use vat_classification::classify::{Classifier, Decision, LanguageText, ProductText, Ranking};
use vat_classification::domain::ClassCode;

/// Options of `evaluate`.
#[derive(Args)]
pub(crate) struct Options {
    /// Tab-separated files with a header: set, id, lang, name, description, tags (`|` between), code.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The model.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) model: PathBuf,
    /// Prints this many of the texts whose heading is wrong, with the words that misled.
    #[arg(long, default_value_t = 0)]
    pub(crate) errors: usize,
}

/// A text with its code.
pub(crate) struct Case {
    pub(crate) set: String,
    pub(crate) language: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) code: ClassCode,
}

impl Case {
    /// The case as the service would see it.
    pub(crate) fn text(&self) -> ProductText<'_> {
        let filled = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let (name, description) = (filled(self.name.as_str()), filled(self.description.as_str()));
        ProductText { languages: vec![LanguageText { language: &self.language, name, description, tags: &self.tags }] }
    }
}

/// Reads cases; codes are cut to six digits, and to an even number of them.
pub(crate) fn read(path: &Path) -> Result<Vec<Case>> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(b'\t').from_path(path).with_context(|| path.display().to_string())?;
    let mut cases = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.with_context(|| path.display().to_string())?;
        let field = |at: usize| record.get(at).unwrap_or_default().to_owned();
        let code =
            ClassCode::new(&field(6)).with_context(|| format!("{}: row {}: no code", path.display(), index + 2))?;
        cases.push(Case {
            set: field(0),
            language: field(2),
            name: field(3),
            description: field(4),
            tags: field(5).split('|').filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
            code: code.prefix(code.digits().min(6) / 2 * 2),
        });
    }
    Ok(cases)
}

/// Counts of one set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    rows: [usize; 3],
    top: [[usize; 3]; 3],
    decided: [usize; 3],
    decided_right: [usize; 3],
    empty: usize,
}

const DEPTHS: [usize; 3] = [2, 4, 6];
const TOPS: [usize; 3] = [1, 3, 5];

impl Tally {
    fn add(&mut self, case: &Case, ranking: &Ranking, decision: Option<Decision>) {
        self.empty += usize::from(ranking.candidates.is_empty());
        for (at, digits) in DEPTHS.into_iter().enumerate() {
            if case.code.digits() < digits {
                continue;
            }
            self.rows[at] += 1;
            let rank = ranking.roll_up(digits).iter().position(|class| class.code == case.code.prefix(digits));
            for (index, top) in TOPS.into_iter().enumerate() {
                self.top[at][index] += usize::from(rank.is_some_and(|rank| rank < top));
            }
        }
        if let Some(decision) = decision {
            let at = decision.code.digits() / 2 - 1;
            let shared = decision.code.digits().min(case.code.digits());
            self.decided[at] += 1;
            self.decided_right[at] += usize::from(decision.code.prefix(shared) == case.code.prefix(shared));
        }
    }

    fn line(&self, name: &str) -> String {
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let top = |depth: usize, top: usize| share(self.top[depth][top], self.rows[depth]);
        let (decided, right) = (self.decided[1] + self.decided[2], self.decided_right[1] + self.decided_right[2]);
        format!(
            "{name:<14} {:>5} | {:>5.1} {:>5.1} | {:>5.1} {:>5.1} {:>5.1} | {:>5.1} {:>5.1} {:>5.1} | {:>5.1} {:>5.1} | {:>5.1} {:>5.1} | {:>5.1}",
            self.rows[0],
            top(0, 0),
            top(0, 2),
            top(1, 0),
            top(1, 1),
            top(1, 2),
            top(2, 0),
            top(2, 1),
            top(2, 2),
            share(decided, self.rows[0]),
            share(right, decided),
            share(self.decided[2], self.rows[0]),
            share(self.decided_right[2], self.decided[2]),
            share(self.empty, self.rows[0]),
        )
    }
}

/// Measures a model and prints the figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let classifier = Classifier::load(&options.model)?;
    let mut cases = Vec::new();
    for file in &options.files {
        cases.extend(read(file)?);
    }
    let answer = |case: &Case| {
        let ranking = classifier.rank(&case.text());
        let decision = classifier.decide(&ranking);
        (ranking, decision)
    };
    let answers: Vec<(Ranking, Option<Decision>)> = cases.par_iter().map(answer).collect();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (case, (ranking, decision)) in cases.iter().zip(&answers) {
        for name in [format!("{} {}", case.set, case.language), "all".to_owned()] {
            tallies.entry(name).or_default().add(case, ranking, *decision);
        }
    }
    println!("model {} limits {:?}", classifier.info().version, classifier.info().limits);
    println!(
        "set             rows |  2: t1    t5 |  4: t1    t3    t5 |  6: t1    t3    t5 | dec4+ right | dec6  right | empty"
    );
    for (name, tally) in &tallies {
        println!("{}", tally.line(name));
    }
    calibration(&cases, &answers);
    errors(&classifier, &cases, &answers, options.errors);
    speed(&classifier, &cases);
    Ok(())
}

/// Prints texts whose heading is wrong, evenly spread over the cases.
fn errors(classifier: &Classifier, cases: &[Case], answers: &[(Ranking, Option<Decision>)], wanted: usize) {
    const WORDS: usize = 4;
    let is_wrong = |(case, (ranking, _)): &(&Case, &(Ranking, Option<Decision>))| {
        case.code.digits() >= 4 && ranking.roll_up(4).first().is_some_and(|best| best.code != case.code.prefix(4))
    };
    let wrong: Vec<_> = cases.iter().zip(answers).filter(is_wrong).collect();
    for index in 0..wanted.min(wrong.len()) {
        let (case, (ranking, _)) = wrong[index * wrong.len() / wanted.min(wrong.len())];
        let words = |code| {
            let evidence = classifier.explain(&case.text(), code, WORDS);
            evidence.iter().map(|e| format!("{} {:.1}", e.word, e.weight)).collect::<Vec<_>>().join(", ")
        };
        let Some(best) = ranking.roll_up(4).first().copied() else { continue };
        let right = case.code.prefix(4);
        println!("{} {}: {}", case.set, case.code, case.name);
        println!("    {} {:.2}: {}", best.code, best.confidence, words(best.code));
        println!("    right {right}: {}", words(right));
    }
}

/// Prints how often answers of a confidence are right, at four digits.
fn calibration(cases: &[Case], answers: &[(Ranking, Option<Decision>)]) {
    const BINS: usize = 10;
    let mut bins = [(0usize, 0usize, 0.0f64); BINS];
    for (case, (ranking, _)) in cases.iter().zip(answers) {
        if let (Some(best), true) = (ranking.roll_up(4).first(), case.code.digits() >= 4) {
            let bin = &mut bins[((best.confidence * BINS as f32) as usize).min(BINS - 1)];
            bin.0 += 1;
            bin.1 += usize::from(best.code == case.code.prefix(4));
            bin.2 += f64::from(best.confidence);
        }
    }
    let all: usize = bins.iter().map(|bin| bin.0).sum();
    let mut error = 0.0;
    for (rows, right, confidence) in bins.into_iter().filter(|bin| bin.0 > 0) {
        println!("  confidence {:.2}: right {:.2} of {rows}", confidence / rows as f64, right as f64 / rows as f64);
        error += (confidence - right as f64).abs() / all as f64;
    }
    println!("  expected calibration error at 4 digits {error:.3}");
}

/// Prints names and full texts ranked a second, one thread.
fn speed(classifier: &Classifier, cases: &[Case]) {
    let start = Instant::now();
    let mut found = 0;
    for case in cases {
        let language = LanguageText { language: &case.language, name: Some(&case.name), ..LanguageText::default() };
        found += classifier.rank(&ProductText { languages: vec![language] }).candidates.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "  {:.0} names/s on one thread, {:.1} candidates each",
        cases.len() as f64 / seconds,
        found as f64 / cases.len() as f64
    );
}
