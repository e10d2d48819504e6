//! What a model does with texts whose codes nobody knows: how many it decides, and whether it says the same of one good
//! in two languages.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use rayon::prelude::*;
use vat_classification::classify::{Classifier, LanguageText, ProductText};
use vat_classification::domain::{ClassCode, Precision};

use super::percent;

/// Most titles of a source that are read, spread evenly over it, so that no shop drowns the others.
const MAX_OF_SOURCE: usize = 400;

/// A listing without a code.
pub(crate) struct Listing {
    /// Where it comes from.
    pub(crate) source: String,
    /// The shop's own category.
    pub(crate) category: Vec<String>,
    /// Its title.
    pub(crate) title: String,
    /// Its description.
    pub(crate) description: String,
}

/// Fields of a listing that are shown to the classifier.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) description: bool,
    pub(crate) category: bool,
}

impl Listing {
    /// The listing as the service would see it.
    pub(crate) fn text<'a>(&'a self, language: &'a str, shown: Shown) -> ProductText<'a> {
        let description = Some(self.description.as_str()).filter(|text| shown.description && !text.is_empty());
        let tags = if shown.category { &self.category[..] } else { &[] };
        ProductText { languages: vec![LanguageText { language, name: Some(&self.title), description, tags }] }
    }
}

/// Reads a file of listings (source, category, title, description); its language is the beginning of its name.
pub(crate) fn read_pool(path: &Path) -> Result<(String, Vec<Listing>)> {
    let language = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut reader = table(path)?;
    let mut listings = Vec::new();
    for record in reader.records() {
        let record = record.with_context(|| path.display().to_string())?;
        let field = |at: usize| record.get(at).unwrap_or_default().to_owned();
        let category = Some(field(1)).filter(|category| !category.is_empty()).into_iter().collect();
        listings.push(Listing { source: field(0), category, title: field(2), description: field(3) });
    }
    Ok((language, listings))
}

/// A tab-separated file with a header and without quotes.
fn table(path: &Path) -> Result<csv::Reader<std::fs::File>> {
    let mut builder = csv::ReaderBuilder::new();
    let reader = builder.delimiter(b'\t').quoting(false).flexible(true).from_path(path);
    reader.with_context(|| path.display().to_string())
}

/// Prints how many titles of each source are decided, and how a description or a shelf changes that.
pub(crate) fn print_pool(classifier: &Classifier, path: &Path, precision: Precision) -> Result<()> {
    let (language, listings) = read_pool(path)?;
    let mut sources: BTreeMap<&str, Vec<&Listing>> = BTreeMap::new();
    for listing in &listings {
        sources.entry(&listing.source).or_default().push(listing);
    }
    let decided = |listing: &Listing, shown: Shown| {
        classifier.decide(&classifier.rank(&listing.text(&language, shown)), precision).is_some()
    };
    let kinds = [(false, false), (true, false), (false, true), (true, true)];
    let kinds = kinds.map(|(description, category)| Shown { description, category });
    let mut all = [0usize; 4];
    let (mut texts, mut shares) = (0, 0.0);
    println!("pool {language}: decided at four digits or more by title, + description, + category, + both");
    for (source, listings) in sources {
        let step = listings.len().div_ceil(MAX_OF_SOURCE).max(1);
        let taken: Vec<&Listing> = listings.into_iter().step_by(step).collect();
        let count = |shown: Shown| taken.par_iter().filter(|listing| decided(listing, shown)).count();
        let counts = kinds.map(count);
        let line = counts.map(|count| format!("{:>5.1}", percent(count, taken.len()))).join(" ");
        println!("  {source:<24} {:>5} | {line}", taken.len());
        texts += taken.len();
        shares += counts[0] as f64 / taken.len() as f64;
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    let line = all.map(|count| format!("{:>5.1}", percent(count, texts))).join(" ");
    println!("  {:<24} {texts:>5} | {line}", "all");
    println!("  {:<24} {:>5} | {:>5.1}", "mean of sources", "", {
        let sources = listings.iter().map(|listing| listing.source.as_str()).collect::<HashSet<_>>();
        100.0 * shares / sources.len().max(1) as f64
    });
    Ok(())
}

/// Prints how often the German and the English name of one good lead to one heading. The file has a good a line: id,
/// German, English; of a path with `>` the last step is the name.
pub(crate) fn print_pairs(classifier: &Classifier, path: &Path, precision: Precision) -> Result<()> {
    let mut reader = table(path)?;
    let mut pairs: Vec<[String; 2]> = Vec::new();
    for record in reader.records() {
        let record = record.with_context(|| path.display().to_string())?;
        pairs.push([1, 2].map(|at| record.get(at).unwrap_or_default().to_owned()));
    }
    let above: HashSet<&str> = pairs.iter().filter_map(|pair| Some(pair[1].rsplit_once(" > ")?.0)).collect();
    let answer = |pair: &[String; 2]| {
        let of_language = |at: usize| {
            let name = pair[at].rsplit(" > ").next().unwrap_or_default();
            let language = LanguageText { language: ["de", "en"][at], name: Some(name), ..LanguageText::default() };
            let ranking = classifier.rank(&ProductText { languages: vec![language] });
            let best = ranking.roll_up(4).first().map(|best| best.code);
            (best, classifier.decide(&ranking, precision).map(|decision| decision.code.prefix(4)))
        };
        (!above.contains(pair[1].as_str()), of_language(0), of_language(1))
    };
    type Answer = (Option<ClassCode>, Option<ClassCode>);
    let answers: Vec<(bool, Answer, Answer)> = pairs.par_iter().map(answer).collect();
    for (what, leaves_only) in [("all names", false), ("names of leaves", true)] {
        let chosen: Vec<_> = answers.iter().filter(|(is_leaf, ..)| *is_leaf || !leaves_only).collect();
        let share = |of: &dyn Fn(&Answer, &Answer) -> bool| {
            percent(chosen.iter().filter(|(_, de, en)| of(de, en)).count(), chosen.len())
        };
        let same = share(&|de, en| de.0.is_some() && de.0 == en.0);
        let (de, en) = (share(&|de, _| de.1.is_some()), share(&|_, en| en.1.is_some()));
        let both = chosen.iter().filter(|(_, de, en)| de.1.is_some() && en.1.is_some()).count();
        let agreed = chosen.iter().filter(|(_, de, en)| de.1.is_some() && de.1 == en.1).count();
        println!(
            "{} {what}: both languages one heading {same:.1} %; decided de {de:.1} %, en {en:.1} %, of both {:.1} % alike",
            chosen.len(),
            percent(agreed, both)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_with_their_language_and_shown_in_parts() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("de.tsv");
        std::fs::write(
            &path,
            "source\tcategory\ttitle\tdescription\nshop\tTee\tKanne \"rot\"\tAus Glas\nshop\t\tHemd\t\n",
        )
        .expect("written");
        let (language, listings) = read_pool(&path).expect("read");
        assert_eq!((language.as_str(), listings.len()), ("de", 2));
        let all = listings[0].text("de", Shown { description: true, category: true });
        assert_eq!(all.languages[0].name, Some("Kanne \"rot\""));
        assert_eq!((all.languages[0].description, all.languages[0].tags.len()), (Some("Aus Glas"), 1));
        let title = listings[0].text("de", Shown { description: false, category: false });
        assert_eq!((title.languages[0].description, title.languages[0].tags.len()), (None, 0));
        assert_eq!(listings[1].text("de", Shown { description: true, category: true }).languages[0].tags.len(), 0);
    }
}
