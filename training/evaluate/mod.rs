//! `evaluate`: measures a model on texts with known codes.

mod additions;
mod calibration;
mod report;
mod risk;
mod robustness;
pub(crate) mod unlabelled;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rayon::prelude::*;
use vat_classification::classify::{Classifier, Decision, LanguageText, ProductText, Ranking};
use vat_classification::decision::national::{LabelWords, Words};
use vat_classification::domain::nomenclature::Nomenclature;
use vat_classification::domain::{ClassCode, Precision, Taxonomy};
use vat_classification::reference::Reference;

use crate::corpus;
use crate::fit::{self, Sample};
use crate::import_nomenclature::parse_taxonomy;
use crate::labels;
use calibration::Reliability;
use report::Confusion;

/// Options of `evaluate`.
#[derive(Args)]
pub(crate) struct Options {
    /// Tab-separated files with a header: set, id, lang, name, description, tags (`|` between), code.
    pub(crate) files: Vec<PathBuf>,
    /// The model.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) model: PathBuf,
    /// Share of decisions that are meant to be right: 0.90, 0.95 or 0.98.
    #[arg(long, default_value = "0.95", value_parser = parse_precision)]
    pub(crate) precision: Precision,
    /// Files of listings without codes (source, category, title, description; the language is the name of the file):
    /// tells how many are decided.
    #[arg(long)]
    pub(crate) pool: Vec<PathBuf>,
    /// A file of goods named in two languages (id, German, English): tells how often both lead to one heading.
    #[arg(long)]
    pub(crate) pairs: Option<PathBuf>,
    /// Prints this many of the texts whose heading is wrong, with the words that misled.
    #[arg(long, default_value_t = 0)]
    pub(crate) errors: usize,
    /// Writes a report with plots to this HTML file.
    #[arg(long)]
    pub(crate) report: Option<PathBuf>,
    /// Writes every text with its best classes and their confidence to this tab-separated file.
    #[arg(long)]
    pub(crate) answers: Option<PathBuf>,
    /// Measures the held-out rows of this corpus too, with a model that has not learnt them (`fit --measuring`).
    #[arg(long)]
    pub(crate) corpus: Option<PathBuf>,
    /// Directory of the label tables, which tell the held-out rows from those that were learnt.
    #[arg(long, default_value = "models/taxonomy/hs2022")]
    pub(crate) labels: PathBuf,
    /// Measures how often national lines are named rightly, with this directory of reference data.
    #[arg(long, requires = "taxonomy")]
    pub(crate) reference: Option<PathBuf>,
    /// The taxonomy of the codes that have more than six digits.
    #[arg(long, value_parser = parse_taxonomy)]
    pub(crate) taxonomy: Option<Taxonomy>,
}

/// Reads one of the balances from the command line.
pub(crate) fn parse_precision(text: &str) -> Result<Precision, String> {
    text.parse().ok().and_then(Precision::from_share).ok_or_else(|| "0.90, 0.95 or 0.98".to_owned())
}

/// A text with its code.
pub(crate) struct Case {
    pub(crate) set: String,
    pub(crate) language: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) code: ClassCode,
    /// The code as it was given.
    pub(crate) given: ClassCode,
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
            given: code,
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

/// Confusions that are printed.
const SHOWN_CONFUSIONS: usize = 15;
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
            // Where the truth ends at four digits, four are all that a decision of six can be right in.
            let digits = decision.code.digits().min(case.code.digits());
            let at = digits / 2 - 1;
            self.decided[at] += 1;
            self.decided_right[at] += usize::from(decision.code.prefix(digits) == case.code.prefix(digits));
        }
    }

    /// Per cent of texts whose class is among the first, by index of depth and of top.
    fn share(&self, depth: usize, top: usize) -> f64 {
        percent(self.top[depth][top], self.rows[depth])
    }

    fn line(&self, name: &str) -> String {
        let mut line = format!("{name:<14} {:>6} |", self.rows[0]);
        for depth in 0..DEPTHS.len() {
            for top in 0..TOPS.len() {
                line += &format!(" {:>5.1}", self.share(depth, top));
            }
            line += " |";
        }
        let (low, high) = report::interval(self.top[1][0], self.rows[1]);
        let (decided, right) = (self.decided[1] + self.decided[2], self.decided_right[1] + self.decided_right[2]);
        line + &format!(
            " {low:>4.0}-{high:<3.0} | {:>5.1} {:>5.1} | {:>5.1} {:>5.1} | {:>5.1}",
            percent(decided, self.rows[0]),
            percent(right, decided),
            percent(self.decided[2], self.rows[0]),
            percent(self.decided_right[2], self.decided[2]),
            percent(self.empty, self.rows[0]),
        )
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Measures a model and prints the figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let classifier = Classifier::load(&options.model)?;
    let loading = begin.elapsed();
    let mut cases = Vec::new();
    for file in &options.files {
        cases.extend(read(file)?);
    }
    if let Some(corpus) = &options.corpus {
        refuse_learnt(&classifier)?;
        cases.extend(held_out(corpus, &options.labels)?);
    }
    let answer = |case: &Case| {
        let ranking = classifier.rank(&case.text());
        let decision = classifier.decide(&ranking, options.precision);
        (ranking, decision)
    };
    let answers: Vec<(Ranking, Option<Decision>)> = cases.par_iter().map(answer).collect();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for (case, (ranking, decision)) in cases.iter().zip(&answers) {
        for name in [format!("{} {}", case.set, case.language), "all".to_owned()] {
            tallies.entry(name).or_default().add(case, ranking, *decision);
        }
    }
    let info = classifier.info();
    println!(
        "model {}, {:?}, loaded in {loading:.1?}",
        info.version,
        [false, true].map(|described| info.limits_for(options.precision, described))
    );
    println!(
        "per cent        texts | 2: t1    t3    t5 | 4: t1    t3    t5 | 6: t1    t3    t5 | 4: 95 % | 4+: made right | 6: made right | empty"
    );
    for (name, tally) in &tallies {
        println!("{}", tally.line(name));
    }
    if let Some(corpus) = &options.corpus {
        additions::print(&additions::measure(&classifier, corpus, &options.labels)?);
    }
    for path in &options.pool {
        unlabelled::print_pool(&classifier, path, options.precision)?;
    }
    if let Some(path) = &options.pairs {
        unlabelled::print_pairs(&classifier, path, options.precision)?;
    }
    if cases.is_empty() {
        return Ok(());
    }
    risk::print(&cases, &answers.iter().map(|(ranking, _)| ranking).collect::<Vec<_>>());
    let answered = || cases.iter().zip(answers.iter().map(|(ranking, _)| ranking));
    let reliability: Vec<(usize, Reliability)> =
        DEPTHS.into_iter().map(|digits| (digits, Reliability::of(answered(), digits))).collect();
    for (digits, reliability) in &reliability {
        let bins = reliability.bins.iter().filter(|bin| bin.rows > 0);
        let bins: Vec<String> = bins.map(|bin| format!("{:.2}:{:.2}", bin.confidence(), bin.share_right())).collect();
        println!("{digits} digits: calibration error {:.3}, confidence:right {}", reliability.error(), bins.join(" "));
    }
    let confusions = confusions(&cases, &answers);
    for (right, answered, count, example) in confusions.iter().take(SHOWN_CONFUSIONS) {
        println!("{count:>4} x {right} taken for {answered}: {example}");
    }
    errors(&classifier, &cases, &answers, options.errors);
    robustness::print(&robustness::measure(&classifier, &cases));
    speed(&classifier, &cases);
    if let (Some(directory), Some(taxonomy)) = (&options.reference, options.taxonomy) {
        national_lines(&classifier, &cases, Reference::load(directory)?.nomenclature(taxonomy));
    }
    if let Some(path) = &options.answers {
        write_answers(path, &cases, &answers)?;
    }
    if let Some(path) = &options.report {
        let tallies: Vec<(String, Tally)> = tallies.into_iter().collect();
        let page = report::page(&format!("Model {}", info.version), &tallies, &reliability, &confusions)?;
        fs::write(path, page).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Writes a line for each text: set, language, name, right code, then best class and confidence at each depth.
fn write_answers(path: &Path, cases: &[Case], answers: &[(Ranking, Option<Decision>)]) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(b'\t').from_path(path)?;
    for (case, (ranking, _)) in cases.iter().zip(answers) {
        let mut fields = vec![case.set.clone(), case.language.clone(), case.name.clone(), case.code.to_string()];
        for digits in DEPTHS {
            let best = ranking.roll_up(digits).first().copied();
            fields.push(best.map_or_else(String::new, |best| best.code.to_string()));
            fields.push(best.map_or_else(String::new, |best| format!("{:.4}", best.confidence)));
        }
        writer.write_record(&fields)?;
    }
    writer.flush().with_context(|| path.display().to_string())
}

/// Refuses a model that has learnt the rows which measure.
///
/// # Errors
/// When it has.
pub(crate) fn refuse_learnt(classifier: &Classifier) -> Result<()> {
    let has_learnt_all = classifier.info().has_learnt_all;
    ensure!(
        !has_learnt_all,
        "this model has learnt all rows of the corpus; `fit --measuring FILE` writes one that has not"
    );
    Ok(())
}

/// The held-out rows of a corpus as cases.
pub(crate) fn held_out(directory: &Path, labels: &Path) -> Result<Vec<Case>> {
    let corpus = corpus::read(directory, &[])?;
    let samples = fit::samples(&corpus.rows, &labels::read(labels)?);
    let held_out = samples.into_iter().filter(Sample::is_held_out);
    let case = |sample: Sample| Case {
        set: "held-out".to_owned(),
        language: sample.language_key().to_owned(),
        name: sample.name,
        description: sample.description.unwrap_or_default(),
        tags: sample.tags,
        code: sample.code,
        given: sample.code,
    };
    Ok(held_out.map(case).collect())
}

/// Pairs of headings that are taken for each other, most frequent first.
fn confusions(cases: &[Case], answers: &[(Ranking, Option<Decision>)]) -> Vec<Confusion> {
    const MOST: usize = 100;
    let mut pairs: BTreeMap<(ClassCode, ClassCode), (usize, &str)> = BTreeMap::new();
    for (case, (ranking, _)) in cases.iter().zip(answers).filter(|(case, _)| case.code.digits() >= 4) {
        let right = case.code.prefix(4);
        if let Some(best) = ranking.roll_up(4).first().filter(|best| best.code != right) {
            pairs.entry((right, best.code)).or_insert((0, &case.name)).0 += 1;
        }
    }
    let mut confusions: Vec<Confusion> = pairs
        .into_iter()
        .map(|((right, answered), (count, example))| {
            (right.to_string(), answered.to_string(), count, example.to_owned())
        })
        .collect();
    confusions.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
    confusions.truncate(MOST);
    confusions
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

/// Prints how often eight digits are named below the right subheading, and how often rightly.
fn national_lines(classifier: &Classifier, cases: &[Case], list: &Nomenclature) {
    const DIGITS: usize = 8;
    let divided = |case: &&Case| case.given.digits() >= DIGITS && list.has_children(case.code);
    let (labels, mut all, mut named, mut right) = (LabelWords::default(), 0, 0, 0);
    for case in cases.iter().filter(divided) {
        let line = Words::of(classifier, &case.text()).line(classifier, &labels, list, case.code, DIGITS);
        all += 1;
        named += usize::from(line != case.code);
        right += usize::from(line != case.code && line == case.given.prefix(line.digits()));
    }
    let (share, precision) = (percent(named, all), percent(right, named));
    println!("national lines: named for {share:.1} % of {all} texts of divided subheadings, right in {precision:.1} %");
}

/// Prints texts ranked a second on one thread: names alone, and whole texts.
fn speed(classifier: &Classifier, cases: &[Case]) {
    let names = |case: &Case| {
        let language = LanguageText { language: &case.language, name: Some(&case.name), ..LanguageText::default() };
        classifier.rank(&ProductText { languages: vec![language] }).roll_up(6).len()
    };
    let whole = |case: &Case| classifier.rank(&case.text()).roll_up(6).len();
    let rate = |of: &dyn Fn(&Case) -> usize| {
        let start = Instant::now();
        let found: usize = cases.iter().map(of).sum();
        (cases.len() as f64 / start.elapsed().as_secs_f64(), found as f64 / cases.len() as f64)
    };
    let ((names, candidates), (whole, _)) = (rate(&names), rate(&whole));
    println!("{names:.0} names/s, {whole:.0} whole texts/s on one thread; {candidates:.1} candidates each");
}

#[cfg(test)]
mod tests;
