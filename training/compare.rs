//! `compare`: the classifier beside fastText and scikit-learn, trained and measured on the same rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rayon::prelude::*;
use serde::Deserialize;
use vat_classification::classify::{Classifier, ProductText};
use vat_classification::domain::ClassCode;

use crate::evaluate;
use crate::fit;
use crate::{corpus, labels};

/// Digits at which all are compared.
const DIGITS: usize = 4;

/// Options of `compare`.
#[derive(Args)]
pub(crate) struct Options {
    /// Files of texts with known codes, as for `evaluate`; the held-out rows of the corpus are a further set.
    pub(crate) files: Vec<PathBuf>,
    /// A model that has learnt no more than the peers will: what `fit --measuring` wrote.
    #[arg(long)]
    pub(crate) model: PathBuf,
    /// Directory of the corpus.
    #[arg(long, default_value = "training/corpus")]
    pub(crate) corpus: PathBuf,
    /// Directory of the label tables.
    #[arg(long, default_value = "models/taxonomy/hs2022")]
    pub(crate) labels: PathBuf,
    /// Further rows the model was fitted on.
    #[arg(long)]
    pub(crate) extra: Vec<PathBuf>,
    /// The script that runs the peers.
    #[arg(long, default_value = "training/compare/compare.py")]
    pub(crate) script: PathBuf,
    /// Python, with fasttext-wheel and scikit-learn.
    #[arg(long, default_value = "python3")]
    pub(crate) python: PathBuf,
    /// Where rows are handed to the script; made when missing.
    #[arg(long, default_value = "target/compare")]
    pub(crate) directory: PathBuf,
}

/// Figures of one contestant on one set.
#[derive(Clone, Debug, Deserialize)]
struct Figure {
    set: String,
    peer: String,
    top1: f64,
    top5: f64,
    #[serde(default)]
    speed: f64,
}

/// Trains the peers, measures all, and prints one line a contestant.
pub(crate) fn run(options: &Options) -> Result<()> {
    let corpus = corpus::read(&options.corpus, &options.extra)?;
    let samples = fit::samples(&corpus.rows, &labels::read(&options.labels)?);
    let held_out = samples.iter().filter(|sample| sample.is_held_out());
    let trained = samples.iter().filter(|sample| sample.is_of_first_base());
    let classifier = Classifier::load(&options.model)?;
    evaluate::refuse_learnt(&classifier)?;
    let mut cases = Vec::new();
    for file in &options.files {
        cases.extend(evaluate::read(file)?);
    }
    let mut tests: Vec<(String, ClassCode, ProductText<'_>)> = Vec::new();
    for case in cases.iter().filter(|case| case.code.digits() >= DIGITS) {
        tests.push((format!("{} {}", case.set, case.language), case.code.prefix(DIGITS), case.text()));
    }
    for sample in held_out.filter(|sample| sample.code.digits() >= DIGITS) {
        tests.push((format!("held-out {}", sample.language_key()), sample.code.prefix(DIGITS), sample.text()));
    }
    fs::create_dir_all(&options.directory).with_context(|| options.directory.display().to_string())?;
    let trained = trained.filter(|sample| sample.code.digits() >= DIGITS);
    let lines = trained.map(|sample| format!("{}\t{}\n", sample.code.prefix(DIGITS), plain(&sample.text())));
    fs::write(options.directory.join("train.tsv"), lines.collect::<String>())?;
    let lines = tests.iter().map(|(set, code, text)| format!("{set}\t{code}\t{}\n", plain(text)));
    fs::write(options.directory.join("test.tsv"), lines.collect::<String>())?;

    let mut figures = ours(&classifier, &tests);
    let peers = Command::new(&options.python)
        .arg(&options.script)
        .arg(&options.directory)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| options.python.display().to_string())?;
    ensure!(peers.status.success(), "{} failed: {}", options.script.display(), peers.status);
    for line in String::from_utf8_lossy(&peers.stdout).lines() {
        figures.push(serde_json::from_str(line).with_context(|| line.to_owned())?);
    }
    print(&figures);
    Ok(())
}

/// All of a text in one line, as the peers read it.
fn plain(text: &ProductText<'_>) -> String {
    let mut words = Vec::new();
    for language in &text.languages {
        words.extend(language.name.into_iter().chain(language.description).flat_map(str::split_whitespace));
        words.extend(language.tags.iter().flat_map(|tag| tag.split_whitespace()));
    }
    words.join(" ")
}

fn ours(classifier: &Classifier, tests: &[(String, ClassCode, ProductText<'_>)]) -> Vec<Figure> {
    let rank = |(_, code, text): &(String, ClassCode, ProductText<'_>)| {
        classifier.rank(text).roll_up(DIGITS).iter().position(|class| class.code == *code)
    };
    let ranks: Vec<Option<usize>> = tests.par_iter().map(rank).collect();
    let mut tallies: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for ((set, ..), rank) in tests.iter().zip(ranks) {
        let tally = tallies.entry(set).or_default();
        tally.0 += 1;
        tally.1 += usize::from(rank == Some(0));
        tally.2 += usize::from(rank.is_some_and(|rank| rank < 5));
    }
    let figure = |(set, (rows, top1, top5)): (&str, (usize, usize, usize))| Figure {
        set: set.to_owned(),
        peer: "this classifier".to_owned(),
        top1: top1 as f64 / rows as f64,
        top5: top5 as f64 / rows as f64,
        speed: 0.0,
    };
    tallies.into_iter().map(figure).collect()
}

/// Prints top-1 / top-5 in per cent: a line for each contestant, a column for each set, means by language at the end.
fn print(figures: &[Figure]) {
    let mut sets: Vec<&str> = figures.iter().map(|figure| figure.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut peers: Vec<&str> = Vec::new();
    for figure in figures {
        if !peers.contains(&figure.peer.as_str()) {
            peers.push(&figure.peer);
        }
    }
    print!("{:52}", "top-1 / top-5 at 4 digits, %");
    sets.iter().for_each(|set| print!("{set:>15}"));
    println!("{:>10}{:>10}", "mean de", "mean en");
    for peer in peers {
        let of_set = |set: &str| figures.iter().find(|figure| figure.peer == peer && figure.set == set);
        print!("{peer:52}");
        for set in &sets {
            let (top1, top5) = of_set(set).map_or((0.0, 0.0), |figure| (figure.top1, figure.top5));
            print!("{:>15}", format!("{:.1} / {:.1}", 100.0 * top1, 100.0 * top5));
        }
        for language in ["de", "en"] {
            let of_language = sets.iter().filter(|set| set.ends_with(language)).filter_map(|set| of_set(set));
            let values: Vec<f64> = of_language.map(|figure| figure.top1).collect();
            print!("{:>10.1}", 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64);
        }
        let speed = figures.iter().find(|figure| figure.peer == peer).map_or(0.0, |figure| figure.speed);
        println!("{}", if speed > 0.0 { format!("   {speed:.0} texts/s") } else { String::new() });
    }
}
