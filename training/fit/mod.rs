//! `fit`: from the corpus to one model file.
//!
//! A first base (vocabulary, profiles, learnt weights) is learnt from seven tenths of the rows, chosen by hash of what they say.
//! With it the ranker is fitted on two of the other tenths, and confidence and limits on the third, which also gives the
//! figures. The base that is shipped is then learnt from all rows.

pub(crate) mod adapt;
mod base;
pub(crate) mod calibrate;
mod learn;
mod names;
mod noise;
mod ranker;
pub(crate) mod refine;
mod second;
pub(crate) mod shelves;
mod split;
mod third;
mod tune;
mod vocabulary;
mod word_vectors;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use vat_classification::classify::features::FEATURE_VERSION;
use vat_classification::classify::text::TEXT_VERSION;
use vat_classification::classify::words::Language;
use vat_classification::classify::{Classifier, LanguageText, ModelInfo, ProductText};
use vat_classification::domain::ClassCode;

use crate::brands;
use crate::corpus;
use crate::labels::{self, Label};
use crate::random::{Random, fnv};
use crate::rows::{self, Corpus, Row};

/// Rows are put into this many buckets, those that say the same into one.
pub(crate) const BUCKETS: u64 = 10;
/// The bucket that is held out.
const HELD_OUT: u64 = 0;
/// Buckets on which the ranker is fitted.
const RANKER_BUCKETS: [u64; 2] = [1, 2];

/// Options of `fit`.
#[derive(Args)]
pub(crate) struct Options {
    /// Directory of the corpus.
    #[arg(long, default_value = "training/corpus")]
    pub(crate) corpus: PathBuf,
    /// Directory of the label tables.
    #[arg(long, default_value = "models/taxonomy/hs2022")]
    pub(crate) labels: PathBuf,
    /// Further rows in the form of the corpus, such as those of `export-reviewed`.
    #[arg(long, visible_alias = "with")]
    pub(crate) extra: Vec<PathBuf>,
    /// Where the model is written.
    #[arg(long, default_value = "models/classifier.bin")]
    pub(crate) out: PathBuf,
    /// What a model said of listings with known codes, from `fit-limits`; confidence and limits follow them where it is
    /// there.
    #[arg(long, default_value = "training/limits/limits.tsv")]
    pub(crate) limits: PathBuf,
    /// What listings add to the coefficients of the ranker, from `fit-limits`.
    #[arg(long, default_value = "training/limits/ranker.tsv")]
    pub(crate) adapted: PathBuf,
    /// A directory in which bases are kept, and from which they are taken while corpus and features stay the same: for work
    /// on ranker and confidence.
    #[arg(long)]
    pub(crate) bases: Option<PathBuf>,
    /// Where the model of the first base is written too: to measure on the rows that it has not learnt.
    #[arg(long)]
    pub(crate) measuring: Option<PathBuf>,
    /// Leaves faulty lines of the corpus out instead of refusing it.
    #[arg(long)]
    pub(crate) skip_faults: bool,
}

/// A row that is learnt from.
pub(crate) struct Sample {
    pub(crate) code: ClassCode,
    pub(crate) language: Language,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) bucket: u64,
    pub(crate) group: u64,
    pub(crate) kind: SampleKind,
}

/// Where a sample comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleKind {
    /// A line of the corpus.
    Written,
    /// A template of the corpus.
    Generated,
    /// A brand or product line.
    Brand,
    /// A label of the taxonomy.
    Label,
}

impl Sample {
    /// Whether the sample calibrates and measures.
    pub(crate) fn is_held_out(&self) -> bool {
        self.bucket == HELD_OUT
    }

    /// Whether the first base learns it.
    pub(crate) fn is_of_first_base(&self) -> bool {
        !self.is_held_out() && !RANKER_BUCKETS.contains(&self.bucket)
    }

    /// A hash of the text.
    pub(crate) fn text_hash(&self) -> u64 {
        Random(fnv(&self.name)).next()
    }

    /// Name, description and tags.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.description).chain(&self.tags)
    }

    /// Language key of the text.
    pub(crate) fn language_key(&self) -> &'static str {
        language_key(self.language)
    }

    /// The sample as the service would see it.
    pub(crate) fn text(&self) -> ProductText<'_> {
        product_text(self.language, &self.name, self.description.as_deref(), &self.tags)
    }
}

/// A text with its code, as ranker and calibration see it.
pub(crate) struct Prepared {
    pub(crate) code: ClassCode,
    pub(crate) language: Language,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) tags: Vec<String>,
    /// The name in the other language.
    pub(crate) other_name: Option<String>,
}

impl Prepared {
    /// A row as it is.
    pub(crate) fn plain(sample: &Sample) -> Prepared {
        Prepared {
            code: sample.code,
            language: sample.language,
            name: sample.name.clone(),
            description: sample.description.clone(),
            tags: sample.tags.clone(),
            other_name: None,
        }
    }

    /// The text as the service would see it.
    pub(crate) fn text(&self) -> ProductText<'_> {
        let mut text = product_text(self.language, &self.name, self.description.as_deref(), &self.tags);
        let other = other(self.language);
        text.languages.extend(self.other_name.iter().flat_map(|name| product_text(other, name, None, &[]).languages));
        text
    }
}

/// Six-digit rows, at most `most` of a code and language, each once as it is and once untidy.
pub(crate) fn prepared(samples: &[&Sample], most: usize) -> Vec<Prepared> {
    let mut taken: HashMap<_, usize> = HashMap::new();
    let mut rows: Vec<&&Sample> = samples.iter().filter(|sample| sample.code.digits() == 6).collect();
    rows.sort_by_key(|sample| sample.group);
    rows.retain(|sample| {
        let count = taken.entry((sample.code, sample.language)).or_default();
        *count += 1;
        *count <= most
    });
    let mut random = Random(2);
    let mut prepared = Vec::with_capacity(2 * rows.len());
    let shelves = shelves::Shelves::of(samples);
    for sample in rows {
        for mut row in [Prepared::plain(sample), noise::untidy(sample, samples, &mut random)] {
            shelves.furnish(&mut row, &mut random);
            prepared.push(row);
        }
    }
    prepared
}

/// A product text of one language.
pub(crate) fn product_text<'a>(
    language: Language,
    name: &'a str,
    description: Option<&'a str>,
    tags: &'a [String],
) -> ProductText<'a> {
    let language = language_key(language);
    ProductText { languages: vec![LanguageText { language, name: Some(name), description, tags }] }
}

/// The other language of the two.
pub(crate) fn other(language: Language) -> Language {
    match language {
        Language::German => Language::English,
        Language::English => Language::German,
    }
}

fn language_key(language: Language) -> &'static str {
    match language {
        Language::German => "de",
        Language::English => "en",
    }
}

/// Fits a model and writes it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let start = Instant::now();
    let corpus = corpus::read(&options.corpus, &options.extra)?;
    if !options.skip_faults {
        rows::refuse_faults(&corpus)?;
    }
    let labels = labels::read(&options.labels)?;
    let samples = samples(&corpus.rows, &labels);
    eprintln!(
        "{} rows, {} labels, {} vague phrases, {} own labels",
        corpus.rows.len(),
        labels.len(),
        corpus.marks.vague.len(),
        corpus.own_labels.len()
    );
    let codes = leaves(&samples, &labels);

    let first: Vec<&Sample> = samples.iter().filter(|sample| sample.is_of_first_base()).collect();
    let step = |what: &str| eprintln!("{:>6.1} s  {what}", start.elapsed().as_secs_f32());
    step("first base, without the rows of ranker and calibration");
    let mut info = ModelInfo { text_version: TEXT_VERSION, feature_version: FEATURE_VERSION, ..ModelInfo::default() };
    info.corpus = checksum(&corpus, &labels);
    let build = |name: &str, samples: &[&Sample], info: &ModelInfo| {
        let file = format!("{name}-{}-{FEATURE_VERSION}.bin", &info.corpus[..12]);
        let path = options.bases.as_ref().map(|directory| directory.join(file));
        if let Some(kept) = path.as_ref().filter(|path| path.exists()) {
            return fs::read(kept).with_context(|| kept.display().to_string());
        }
        let base = base::build(&codes, samples, &corpus, info)?;
        path.map_or(Ok(()), |path| write(&path, &base))?;
        Ok(base)
    };
    info.rows = first.len() as u64;
    info.classes = codes.len() as u64;
    info.version = format!("hs2022-{}", &info.corpus[..12]);
    let first = build("first", &first, &info)?;
    let classifier = Classifier::from_bytes(first.clone())?;
    step("ranker");
    let unseen: Vec<&Sample> = samples.iter().filter(|sample| RANKER_BUCKETS.contains(&sample.bucket)).collect();
    let of_corpus = ranker::fit(&classifier, &unseen)?;
    info.ranker.listings = adapt::read(&options.adapted)?;
    info.ranker.weights = adapt::applied(&of_corpus, &info.ranker.listings);
    if info.ranker.weights == of_corpus {
        info.ranker.listings.clear();
    }

    step("calibration");
    let held_out: Vec<&Sample> = samples.iter().filter(|sample| sample.is_held_out()).collect();
    calibrate::fit(&classifier, &held_out, &corpus.marks.vague, &mut info)?;
    let classifier = Classifier::from_bytes(base::with_info(&first, &info)?)?;
    info.metrics = calibrate::measure(&classifier, &held_out);
    calibrate::choose_limits(&classifier, &held_out, &mut info);
    refine::refine(&refine::read(&options.limits)?, &mut info);
    if let Some(measuring) = &options.measuring {
        write(measuring, &base::with_info(&first, &info)?)?;
    }
    drop((classifier, first));

    step("base of all rows");
    let all: Vec<&Sample> = samples.iter().collect();
    let base = build("all", &all, &info)?;
    info.rows = all.len() as u64;
    info.has_learnt_all = true;
    let bytes = base::with_info(&base, &info)?;
    write(&options.out, &bytes)?;
    step("written");
    eprintln!("{}: {:.1} MB, {}", options.out.display(), bytes.len() as f64 / 1e6, info.version);
    for (name, value) in &info.metrics {
        eprintln!("  {name} {value:.4}");
    }
    info.balances.iter().for_each(|balance| eprintln!("  {balance:?}"));
    Ok(())
}

/// Rows of corpus and labels. Labels and brands are always trained on: there is one of each, and the service needs it.
pub(crate) fn samples(rows: &[Row], labels: &[Label]) -> Vec<Sample> {
    let of_row = |row: &Row| Sample {
        code: row.code,
        language: row.language,
        name: row.name.clone(),
        description: row.description.clone(),
        tags: row.tags.clone(),
        bucket: BUCKETS,
        group: row.group,
        kind: match row.generated {
            _ if brands::is_of(row) => SampleKind::Brand,
            true => SampleKind::Generated,
            false => SampleKind::Written,
        },
    };
    let mut samples: Vec<Sample> = rows.iter().map(of_row).collect();
    for label in labels {
        for (language, text) in [(Language::German, &label.de), (Language::English, &label.en)] {
            let (code, name) = (label.code, text.clone());
            let group = fnv(text);
            samples.push(Sample {
                code,
                language,
                name,
                description: None,
                tags: Vec::new(),
                bucket: BUCKETS,
                group,
                kind: SampleKind::Label,
            });
        }
    }
    split::assign(&mut samples);
    samples
}

/// The disjoint six-digit classes, in rising order: those of the labels, or those of the rows when there are no labels.
fn leaves(samples: &[Sample], labels: &[Label]) -> Vec<u32> {
    let of_labels = labels.iter().map(|label| label.code);
    let of_rows = samples.iter().map(|sample| sample.code).filter(|_| labels.is_empty());
    let six = of_labels.chain(of_rows).filter(|code| code.digits() == 6);
    let mut leaves: Vec<u32> = six.filter_map(|code| code.as_str().parse().ok()).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

fn checksum(corpus: &Corpus, labels: &[Label]) -> String {
    let mut digest = Sha256::new();
    for row in &corpus.rows {
        digest.update(format!("{}\t{:?}\t{}\t{:?}\n", row.code, row.language, row.name, row.description));
        row.tags.iter().for_each(|tag| digest.update(format!("\t{tag}\n")));
    }
    for label in labels {
        digest.update(format!("{}\t{}\t{}\n", label.code, label.de, label.en));
    }
    let marks = &corpus.marks;
    let marked = [&marks.vague, &marks.want_a_good, &marks.describe, &corpus.own_labels];
    marked.into_iter().flatten().for_each(|phrase| digest.update(format!("{phrase}\n")));
    HEXLOWER.encode(&digest.finalize())
}

/// Writes beside the place and renames, so that a service which has the old file mapped keeps it whole.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, bytes).with_context(|| beside.display().to_string())?;
    fs::rename(&beside, path).with_context(|| path.display().to_string())
}

/// Named figures.
pub(crate) type Metrics = BTreeMap<String, f64>;
