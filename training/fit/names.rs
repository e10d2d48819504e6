//! Names that stand in the corpus as wholes, with the heading under which people wrote them.

use std::collections::BTreeMap;

use rayon::prelude::*;
use vat_classification::classify::features::Extractor;
use vat_classification::classify::lexicon::Lexicon;
use vat_classification::classify::model::{ALONE, NAME};
use vat_classification::classify::table::{self, Table};

use super::learn::Tree;
use super::{Sample, SampleKind};

/// The names as the model file has them. One that stands under two headings, or somewhere without a heading, is left out.
pub(crate) fn build(tree: &Tree, samples: &[&Sample], lexicon: &[u8]) -> Option<Vec<u8>> {
    let lexicon = Lexicon::new(Table::over(lexicon)?);
    let extract = |(extractor, features): &mut (Extractor, Vec<_>), sample: &&Sample| {
        extractor.extract(&lexicon, &sample.text(), features);
        extractor.name_keys().to_vec()
    };
    let keys: Vec<Vec<u64>> = samples.par_iter().map_init(Default::default, extract).collect();
    let mut names: BTreeMap<u64, Name> = BTreeMap::new();
    for (sample, keys) in samples.iter().zip(keys) {
        let headings = tree.headings_of(&tree.under(&sample.code));
        let heading = (headings.len() == 1).then_some(headings.start as u16);
        let is_alone = sample.description.is_none() && sample.tags.is_empty();
        let is_written = is_alone && matches!(sample.kind, SampleKind::Written | SampleKind::Label);
        for key in keys {
            let name = names.entry(key).or_default();
            name.is_written |= is_written;
            name.rows[usize::from(!is_alone)].add(heading);
        }
    }
    let written = names.into_iter().filter(|(_, name)| name.is_written);
    Some(table::build::<NAME>(written.filter_map(|(key, name)| Some((key, u32::from(name.known()?))))))
}

/// What is known of a name.
#[derive(Default)]
struct Name {
    /// Where it stands with nothing beside it, and where beside a description or shelves.
    rows: [Stands; 2],
    /// Whether somebody wrote it and nothing beside it: templates and brands put words together that hardly anybody does, and
    /// what is described may have a name that tells no good.
    is_written: bool,
}

impl Name {
    /// Its heading as the file has it, if rows agree where nothing stands beside it.
    fn known(&self) -> Option<u16> {
        let Stands::Under(heading) = self.rows[0] else { return None };
        let agrees = matches!(self.rows[1], Stands::Nowhere) || self.rows[1] == Stands::Under(heading);
        Some(if agrees { heading } else { heading | ALONE })
    }
}

/// Under which heading rows stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stands {
    #[default]
    Nowhere,
    Under(u16),
    /// Under several, or under none that is told.
    Apart,
}

impl Stands {
    fn add(&mut self, heading: Option<u16>) {
        *self = match (*self, heading) {
            (Stands::Nowhere, Some(heading)) => Stands::Under(heading),
            (Stands::Under(known), Some(heading)) if known == heading => Stands::Under(known),
            _ => Stands::Apart,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vat_classification::classify::lexicon::WORD_INFO;
    use vat_classification::classify::words::Language;
    use vat_classification::domain::ClassCode;

    #[test]
    fn a_name_is_known_by_its_words_in_their_order_where_all_rows_agree() {
        let beside = |code: &str, language, name: &str, kind, tag: &str| Sample {
            code: ClassCode::new(code).expect("digits"),
            language,
            name: name.to_owned(),
            description: None,
            tags: tag.split_whitespace().map(str::to_owned).collect(),
            bucket: 1,
            group: 1,
            kind,
        };
        let sample = |code: &str, language, name: &str, kind| beside(code, language, name, kind, "");
        let (german, english) = (Language::German, Language::English);
        let rows = [
            sample("610910", german, "Rotes Hemd, 2 Stück", SampleKind::Written),
            sample("6109", german, "rote Hemden", SampleKind::Written),
            sample("890399", german, "Boot", SampleKind::Written),
            sample("640391", english, "boot", SampleKind::Written),
            sample("950300", german, "Puppe", SampleKind::Written),
            sample("950510", german, "Puppen", SampleKind::Written),
            sample("950300", german, "Ball", SampleKind::Generated),
            sample("95", german, "Spiel", SampleKind::Written),
            sample("640391", german, "Stiefel", SampleKind::Written),
            beside("640391", german, "Stiefel", SampleKind::Written, "Schuhe"),
            sample("890399", german, "Kanu", SampleKind::Written),
            beside("950300", german, "Kanu", SampleKind::Written, "Spielzeug"),
            beside("950300", german, "Zoo", SampleKind::Written, "Spielzeug"),
        ];
        let samples: Vec<&Sample> = rows.iter().collect();
        let tree = Tree::new(&[610910, 640391, 890399, 950300, 950510]);
        let no_words = table::build::<WORD_INFO>([]);
        let bytes = build(&tree, &samples, &no_words).expect("names");
        let names = Table::<NAME>::over(&bytes).expect("a table");
        let mut extractor = Extractor::default();
        let mut heading = |language, name: &str| {
            let text = super::super::product_text(language, name, None, &[]);
            extractor.extract(&Lexicon::new(Table::EMPTY), &text, &mut Vec::new());
            extractor.name_keys().first().and_then(|key| names.get(*key))
        };
        for (language, name, expected) in [
            (german, "Rote Hemden 500 g", Some(0)),
            (german, "Hemd rot", None),
            (german, "Rotes Hemd 42", None),
            (german, "Hemd für rotes", None),
            (german, "Boote", Some(2)),
            (english, "boots", Some(1)),
            (german, "Puppe", None),
            (german, "Ball", None),
            (german, "Spiel", None),
            (german, "Stiefel", Some(1)),
            (german, "Kanu", Some(2 | u32::from(ALONE))),
            (german, "Zoo", None),
        ] {
            assert_eq!(heading(language, name), expected, "{name}");
        }
    }
}
