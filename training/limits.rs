//! `fit-limits`: confidence and limits of a model, from listings of shops whose codes two people gave independently.
//!
//! The repository holds no listing: `training/limits/labels.tsv` has the hash of a title, the hash of its source and the
//! code. Whoever has the listings makes of them, with a model, `training/limits/limits.tsv`: scores, and what is right. From
//! it `fit` takes confidence and limits without anything from outside; this command also puts them into the model.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rayon::prelude::*;
use vat_classification::classify::model::{self, ModelInfo};
use vat_classification::classify::{Classifier, Described, OPINIONS};
use vat_classification::domain::ClassCode;

use crate::evaluate::unlabelled::{Listing, Shown, read_pool};
use crate::fit::adapt::{self, Choice};
use crate::fit::calibrate;
use crate::fit::refine::{self, Candidate, Judged, Right};
use crate::random::{Random, fnv};

/// One source in this many measures; the others set the limits.
const MEASURING_SHARE: usize = 3;

/// Candidates whose logit is this much lower than the best one's have no share worth keeping, unless they are right.
const FAR_BEHIND: f32 = 9.0;

/// Options of `fit-limits`.
#[derive(Args)]
pub(crate) struct Options {
    /// Files of listings (source, category, title, description; the language is the name of the file).
    #[arg(long, required = true)]
    pub(crate) pool: Vec<PathBuf>,
    /// The labels: hash of the title, hash of the source, code.
    #[arg(long, default_value = "training/limits/labels.tsv")]
    pub(crate) labels: PathBuf,
    /// Two tables of independently given codes (n, code, sure): where they agree, the labels are written anew.
    #[arg(long, num_args = 2, requires = "titles")]
    pub(crate) given: Vec<PathBuf>,
    /// The table of listings that the numbers stand for: n, language, source, category, title, description.
    #[arg(long)]
    pub(crate) titles: Option<PathBuf>,
    /// The model, whose confidence and limits are replaced.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) model: PathBuf,
    /// Where scores and rightness are written.
    #[arg(long, default_value = "training/limits/limits.tsv")]
    pub(crate) out: PathBuf,
    /// Where is written what the listings add to the coefficients of the ranker.
    #[arg(long, default_value = "training/limits/ranker.tsv")]
    pub(crate) adapted: PathBuf,
}

/// The code of a listing; none when it is no good.
pub(crate) type Labels = HashMap<(String, String), Option<ClassCode>>;

/// Writes scores and rightness of the labelled listings, and puts confidence and limits into the model.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let (Some(titles), [first, second]) = (&options.titles, &options.given[..]) {
        write_labels(titles, first, second, &options.labels)?;
    }
    let labels = read_labels(&options.labels)?;
    let bytes = fs::read(&options.model).with_context(|| options.model.display().to_string())?;
    let classifier = Classifier::from_bytes(bytes.clone())?;
    let sources = sources(&labels);
    let mut shown: BTreeMap<(String, String), Vec<ShownListing>> = BTreeMap::new();
    for path in &options.pool {
        let (language, listings) = read_pool(path)?;
        let labelled = listings.iter().filter_map(|listing| {
            let key = (hash(&listing.title), hash(&listing.source));
            labels.get(&key).map(|code| (key, listing, *code))
        });
        let labelled: Vec<_> = labelled.collect();
        let of_listing = |(key, listing, code): &((String, String), &Listing, Option<ClassCode>)| {
            (key.clone(), describe(&classifier, &language, listing, *code, sources[&key.1]))
        };
        shown.extend(labelled.par_iter().map(of_listing).collect::<Vec<_>>());
    }
    ensure!(!shown.is_empty(), "none of the labelled listings is in the pool");
    eprintln!("{} of {} labelled listings found", shown.len(), labels.len());
    let shown: Vec<ShownListing> = shown.into_values().flatten().collect();
    let mut info: ModelInfo = classifier.info().clone();
    let choices: Vec<Choice> =
        shown.iter().filter(|listing| !listing.measures).filter_map(ShownListing::choice).collect();
    let taken_back: Vec<f32> = info.ranker.listings.iter().map(|added| -added).collect();
    let of_corpus = adapt::applied(&info.ranker.weights, &taken_back);
    info.ranker.listings = adapt::differences(&of_corpus, &choices);
    info.ranker.weights = adapt::applied(&of_corpus, &info.ranker.listings);
    adapt::write(&options.adapted, &info.ranker.listings)?;
    let judged: Vec<Judged> = shown.iter().map(|listing| listing.judged(&info.ranker.weights)).collect();
    let heading = "# part, source, language, features of the text, candidates (logit/heading/right/second/third); see training/limits.rs\n";
    let lines: String = std::iter::once(heading.to_owned()).chain(judged.iter().map(Judged::line)).collect();
    fs::write(&options.out, lines).with_context(|| options.out.display().to_string())?;
    // Numbers are read back as they were written, so that `fit` comes to the same limits.
    refine::refine(&refine::read(&options.out)?, &mut info);
    let sections = model::split(&bytes).context("not a model")?;
    crate::fit::write(&options.model, &model::assemble(&info, &sections)?)?;
    for balance in &info.balances {
        println!(
            "{} %: limits {:.3} (four digits), {:.3} (six) by a name, {:.3} and {:.3} with a description; on other sources {:.1} % decided, {:.1} % of them wrong",
            balance.percent,
            balance.named.heading,
            balance.named.subheading,
            balance.described.heading,
            balance.described.subheading,
            100.0 * balance.measured_decided,
            100.0 * balance.measured_wrong
        );
    }
    Ok(())
}

/// The number of each source in the order of their hashes, and whether it measures: those that do are spread evenly.
fn sources(labels: &Labels) -> HashMap<String, (u32, bool)> {
    let sources: BTreeSet<&String> = labels.keys().map(|(_, source)| source).collect();
    let numbered = sources.into_iter().enumerate();
    numbered.map(|(at, source)| (source.clone(), (at as u32, at % MEASURING_SHARE == 0))).collect()
}

/// A labelled listing as the ranker sees it.
struct ShownListing {
    source: u32,
    measures: bool,
    language: String,
    described: Described,
    right: Vec<Right>,
}

/// What the model sees of a listing, by its title and, where it has more, by all its texts.
fn describe(
    classifier: &Classifier,
    language: &str,
    listing: &Listing,
    code: Option<ClassCode>,
    (source, measures): (u32, bool),
) -> Vec<ShownListing> {
    let has_more = !listing.description.is_empty() || !listing.category.is_empty();
    let title = Shown { description: false, category: false };
    let all = Shown { description: true, category: true };
    let shown = [Some(title), has_more.then_some(all)];
    let shown = shown.into_iter().flatten().map(|shown| {
        let described = classifier.describe(&listing.text(language, shown));
        let right = described.candidates.iter().map(|(candidate, _)| rightness(candidate, code)).collect();
        ShownListing { source, measures, language: language.to_owned(), described, right }
    });
    shown.filter(|shown| !shown.described.candidates.is_empty()).collect()
}

impl ShownListing {
    /// The candidates with those that are right; none where nothing right is among them.
    fn choice(&self) -> Option<Choice> {
        let right = Right::indices(self.right.iter().copied());
        let candidates = self.described.candidates.iter().map(|(_, dense)| dense.clone()).collect();
        (!right.is_empty()).then_some(Choice { candidates, right })
    }

    /// What a ranker with these coefficients says of it.
    fn judged(&self, weights: &[f32]) -> Judged {
        let mut headings: Vec<ClassCode> = Vec::new();
        let candidate = |((candidate, dense), right): (&(ClassCode, Vec<f32>), &Right)| {
            let heading = candidate.prefix(4);
            let at = headings.iter().position(|known| *known == heading).unwrap_or_else(|| {
                headings.push(heading);
                headings.len() - 1
            });
            Candidate {
                logit: calibrate::logit(dense, weights),
                heading: at,
                right: *right,
                opinions: OPINIONS.map(|at| dense.get(at).copied().unwrap_or(0.0)),
            }
        };
        let mut candidates: Vec<Candidate> = self.described.candidates.iter().zip(&self.right).map(candidate).collect();
        let best = candidates.iter().map(|candidate| candidate.logit).fold(f32::MIN, f32::max);
        candidates.retain(|candidate| candidate.logit >= best - FAR_BEHIND || candidate.right != Right::No);
        Judged {
            measures: self.measures,
            source: self.source,
            language: self.language.clone(),
            text: self.described.text.clone(),
            candidates,
        }
    }
}

fn rightness(candidate: &ClassCode, code: Option<ClassCode>) -> Right {
    match code {
        Some(code) if code.prefix(4) != candidate.prefix(4) => Right::No,
        Some(code) if code.digits() < 6 => Right::HeadingAtLeast,
        Some(code) if code == *candidate => Right::Subheading,
        Some(_) => Right::Heading,
        None => Right::No,
    }
}

/// The hash of a text, as labels name it.
pub(crate) fn hash(text: &str) -> String {
    format!("{:016x}", Random(fnv(text)).next())
}

/// Reads labels; codes of less than four digits tell nothing of a decision and are left out.
pub(crate) fn read_labels(path: &Path) -> Result<Labels> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut labels = Labels::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[title, source, code] = &fields[..] else {
            anyhow::bail!("{}:{}: not hash, hash and code", path.display(), index + 1);
        };
        let code = match code {
            "-" => None,
            code => Some(ClassCode::new(code).with_context(|| format!("{}:{}: no code", path.display(), index + 1))?),
        };
        if code.is_none_or(|code| code.digits() >= 4) {
            labels.insert((title.to_owned(), source.to_owned()), code);
        }
    }
    Ok(labels)
}

/// Writes the labels on which two people agree, cut to the digits agreed on.
fn write_labels(titles: &Path, first: &Path, second: &Path, out: &Path) -> Result<()> {
    let read = |path: &Path| -> Result<HashMap<String, String>> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let fields = text.lines().map(|line| line.split('\t').map(str::trim).collect::<Vec<_>>());
        let pairs = fields.filter(|fields| fields.len() >= 2 && fields[0].parse::<u32>().is_ok());
        Ok(pairs.map(|fields| (fields[0].to_owned(), fields[1].to_owned())).collect())
    };
    let (first, second) = (read(first)?, read(second)?);
    let text = fs::read_to_string(titles).with_context(|| titles.display().to_string())?;
    let mut lines =
        vec!["# hash of the title, hash of the source, code on which two readers agree (- is no good)\n".to_owned()];
    let (mut both, mut same) = (0, 0);
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some(n), Some(source), Some(title)) = (fields.first(), fields.get(2), fields.get(4)) else { continue };
        let (Some(one), Some(other)) = (first.get(*n), second.get(*n)) else { continue };
        both += 1;
        let agreed = agreed(one, other);
        same += usize::from(agreed.is_some());
        lines.extend(agreed.map(|code| format!("{}\t{}\t{code}\n", hash(title), hash(source))));
    }
    lines[1..].sort_unstable();
    lines.dedup();
    if let Some(directory) = out.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    eprintln!("{both} listings have two codes, {same} of them agree in two digits or more");
    fs::write(out, lines.concat()).with_context(|| out.display().to_string())
}

/// The digits that two codes share, at least two; `-` where both say that there is no code.
fn agreed(one: &str, other: &str) -> Option<String> {
    if one == other {
        return Some(one.to_owned());
    }
    let shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b && a.is_ascii_digit()).count() / 2 * 2;
    (shared >= 2).then(|| one[..shared].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_cut_to_what_both_readers_say() {
        for (one, other, expected) in [
            ("610910", "610910", Some("610910")),
            ("610910", "610990", Some("6109")),
            ("610910", "6109", Some("6109")),
            ("610910", "620520", None),
            ("610910", "611020", Some("61")),
            ("-", "-", Some("-")),
            ("-", "6109", None),
        ] {
            assert_eq!(agreed(one, other).as_deref(), expected, "{one} {other}");
        }
    }

    #[test]
    fn labels_are_written_without_texts_and_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let titles = file(
            "titles.tsv",
            "n\tlang\tsource\tcategory\ttitle\tdescription\n1\tde\ta\t\tRotes Hemd\t\n2\ten\tb\t\tVoucher\t\n3\ten\tb\t\tThing\t\n",
        );
        let first = file("l1.tsv", "1\t610510\t1\n2\t-\t1\n3\t61\t0\n");
        let second = file("l2.tsv", "n\tcode\tsure\n1\t610520\t1\n2\t-\t1\n3\t61\t1\n");
        let out = directory.path().join("limits/labels.tsv");
        write_labels(&titles, &first, &second, &out).expect("labels");
        let written = fs::read_to_string(&out).expect("read");
        assert!(!written.contains("Hemd") && written.lines().count() == 4, "{written}");
        let labels = read_labels(&out).expect("labels");
        assert_eq!(labels[&(hash("Rotes Hemd"), hash("a"))], ClassCode::new("6105"));
        assert_eq!(labels[&(hash("Voucher"), hash("b"))], None);
        assert!(!labels.contains_key(&(hash("Thing"), hash("b"))));
    }

    #[test]
    fn a_candidate_is_right_as_far_as_the_label_goes() {
        let code = |digits: &str| ClassCode::new(digits);
        let candidate = code("610910").expect("digits");
        for (label, expected) in [
            ("610910", Right::Subheading),
            ("610990", Right::Heading),
            ("6109", Right::HeadingAtLeast),
            ("611020", Right::No),
        ] {
            assert_eq!(rightness(&candidate, code(label)), expected, "{label}");
        }
        assert_eq!(rightness(&candidate, None), Right::No);
    }
}
