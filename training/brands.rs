//! Brands and product lines with what is sold under them, as rows of the corpus.
//!
//! A table has a name a line: `name <tab> kind <tab> language (de, en, both) <tab> codes`, the codes with their shares
//! of what is sold, in per cent: `190531:60 180690:40`. A `line` names its good (`Galaxy Tab`): it is learnt alone and with
//! words of packs. A `brand` is learnt beside names of the goods it makes, so that alone it is weak evidence. A `label` is
//! what shops call their own goods: it has no codes, and is evidence of nothing.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vat_classification::classify::words::Language;
use vat_classification::domain::ClassCode;

use crate::random::{Random, fnv};
use crate::rows::{Corpus, Fault, Place, Row};

/// Rows of a brand and language, spread over its codes by their shares.
const ROWS_OF_BRAND: f32 = 5.0;
/// Rows of a product line and language.
const ROWS_OF_LINE: f32 = 4.0;
/// Most words of the name of a good that stands beside a brand.
const MAX_GOOD_WORDS: usize = 3;
/// What stands behind the name of a line, by language.
const PACKS: [(Language, &[&str]); 2] = [
    (Language::German, &["", "1 Stück", "2er Pack", "Set", "neu", "Original"]),
    (Language::English, &["", "1 piece", "pack of 2", "set", "new", "original"]),
];

/// What the places of brands begin with.
const FILES: &str = "brands/";

/// Whether a row of the corpus was made of a brand.
pub(crate) fn is_of(row: &Row) -> bool {
    row.place.file.starts_with(FILES)
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Brand,
    Line,
    Label,
}

/// A line of a table.
#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    kind: Kind,
    languages: Vec<Language>,
    /// Codes with their shares, 0 to 1.
    codes: Vec<(ClassCode, f32)>,
}

/// Reads every `*.tsv` of a directory and adds its rows to the corpus; an absent directory is an empty one.
pub(crate) fn add(corpus: &mut Corpus, directory: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = Vec::new();
    if directory.is_dir() {
        for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
            files.push(entry?.path());
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "tsv"));
    files.sort();
    let goods = Goods::of(&corpus.rows);
    let mut known: BTreeSet<(String, Language)> = BTreeSet::new();
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file = format!("{FILES}{}", path.file_name().unwrap_or_default().to_string_lossy());
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let place = Place { file: file.clone(), line: index + 1 };
            match parse(line) {
                Ok(entry) => {
                    for &language in &entry.languages {
                        if !known.insert((entry.name.to_lowercase(), language)) {
                            let what = format!("{} stands here a second time", entry.name);
                            corpus.faults.push(Fault { place: place.clone(), what });
                        }
                    }
                    corpus.brands += 1;
                    if entry.kind == Kind::Label {
                        corpus.own_labels.push(entry.name.clone());
                    }
                    corpus.rows.extend(rows(&entry, &goods, &place));
                }
                Err(what) => corpus.faults.push(Fault { place, what }),
            }
        }
    }
    Ok(())
}

fn parse(line: &str) -> Result<Entry, String> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let form = "a brand is written `name<tab>brand|line|label<tab>de|en|both<tab>190531:60 180690:40`";
    let (&[name, kind, language, codes] | &[name, kind, language, codes, ..]) = &fields[..] else {
        return match fields[..] {
            [name, "label", language] => entry(name, Kind::Label, language, ""),
            _ => Err(form.to_owned()),
        };
    };
    let kind = match kind {
        "brand" => Kind::Brand,
        "line" => Kind::Line,
        "label" => Kind::Label,
        _ => return Err(form.to_owned()),
    };
    entry(name, kind, language, codes)
}

fn entry(name: &str, kind: Kind, language: &str, codes: &str) -> Result<Entry, String> {
    let languages = match language {
        "de" => vec![Language::German],
        "en" => vec![Language::English],
        "both" => vec![Language::German, Language::English],
        _ => return Err("the language of a brand is de, en or both".to_owned()),
    };
    let code = |text: &str| {
        let (code, share) = text.split_once(':').unwrap_or((text, "100"));
        let code = ClassCode::new(code).filter(|code| [4, 6].contains(&code.digits()));
        let share = share.parse::<f32>().ok().filter(|share| *share > 0.0 && *share <= 100.0);
        let pair = code.zip(share.map(|share| share / 100.0));
        pair.ok_or_else(|| format!("`{text}` is no code of four or six digits with a share"))
    };
    let codes = codes.split(' ').filter(|text| !text.is_empty() && *text != "-");
    let codes = codes.map(code).collect::<Result<Vec<_>, String>>()?;
    if name.is_empty() || (codes.is_empty() != (kind == Kind::Label)) {
        return Err("a brand or line has a name and codes, a label only a name".to_owned());
    }
    if codes.iter().map(|(_, share)| share).sum::<f32>() > 1.02 {
        return Err(format!("the shares of {name} are more than 100"));
    }
    Ok(Entry { name: name.to_owned(), kind, languages, codes })
}

/// Short names of goods by code of four or six digits.
struct Goods(HashMap<(ClassCode, Language), Vec<String>>);

impl Goods {
    fn of(rows: &[Row]) -> Goods {
        let mut goods: HashMap<(ClassCode, Language), Vec<String>> = HashMap::new();
        let short = |row: &&Row| row.name.split_whitespace().count() <= MAX_GOOD_WORDS && !row.generated;
        for row in rows.iter().filter(short) {
            goods.entry((row.code, row.language)).or_default().push(row.name.clone());
            if row.code.digits() == 6 {
                goods.entry((row.code.prefix(4), row.language)).or_default().push(row.name.clone());
            }
        }
        Goods(goods)
    }

    fn pick(&self, code: ClassCode, language: Language, random: &mut Random) -> Option<&str> {
        let goods = self.0.get(&(code, language)).or_else(|| self.0.get(&(code.prefix(4), language)))?;
        goods.get((random.next() % goods.len() as u64) as usize).map(String::as_str)
    }
}

fn rows(entry: &Entry, goods: &Goods, place: &Place) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut random = Random(fnv(&entry.name));
    let group = random.next();
    for &language in &entry.languages {
        for &(code, share) in &entry.codes {
            let mut push = |name: String| {
                let place = place.clone();
                rows.push(Row {
                    code,
                    language,
                    name,
                    description: None,
                    tags: Vec::new(),
                    place,
                    group,
                    generated: true,
                });
            };
            match entry.kind {
                Kind::Label => {}
                Kind::Line => {
                    let packs = PACKS.iter().find(|(of, _)| *of == language).map_or(&[][..], |(_, packs)| packs);
                    for at in 0..(share * ROWS_OF_LINE).ceil() as usize {
                        let pack = packs.get(at % packs.len().max(1)).copied().unwrap_or_default();
                        push(format!("{} {pack}", entry.name).trim_end().to_owned());
                    }
                }
                Kind::Brand => {
                    let mut seen = BTreeSet::new();
                    for _ in 0..(share * ROWS_OF_BRAND).ceil() as usize {
                        let Some(good) = goods.pick(code, language, &mut random) else { continue };
                        if seen.insert(good) {
                            push(format!("{} {good}", entry.name));
                        }
                    }
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brands_become_rows_beside_goods_and_lines_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = "# comment\nMilka\tbrand\tboth\t180632:75 190531:25\nGalaxy Tab\tline\ten\t847130:100\nja!\tlabel\tde\t-\nBeste Wahl\tlabel\tde\n";
        fs::write(directory.path().join("food.tsv"), text).expect("written");
        let row = |language, name: &str| Row {
            code: ClassCode::new("180632").expect("digits"),
            language,
            name: name.to_owned(),
            description: None,
            tags: Vec::new(),
            place: Place { file: "18.txt".to_owned(), line: 1 },
            group: 1,
            generated: false,
        };
        let rows = vec![row(Language::German, "Tafel Schokolade"), row(Language::English, "chocolate bar")];
        let mut corpus = Corpus { rows, ..Corpus::default() };
        add(&mut corpus, directory.path()).expect("read");
        assert_eq!((&corpus.faults[..], corpus.brands), (&[][..], 4));
        assert_eq!(corpus.own_labels, ["ja!", "Beste Wahl"]);
        let names: Vec<&str> = corpus.rows[2..].iter().map(|row| row.name.as_str()).collect();
        assert!(names.contains(&"Milka Tafel Schokolade") && names.contains(&"Milka chocolate bar"), "{names:?}");
        assert!(names.contains(&"Galaxy Tab") && names.contains(&"Galaxy Tab pack of 2") && !names.contains(&"Milka"));
        assert!(corpus.rows[2..].iter().all(|row| row.generated));
        add(&mut Corpus::default(), &directory.path().join("none")).expect("no directory is no brands");
    }

    #[test]
    fn malformed_brands_are_faults() {
        for line in [
            "Milka",
            "Milka\tbrand\tboth\t",
            "Milka\tthing\tboth\t180632:100",
            "Milka\tbrand\tfr\t180632:100",
            "Milka\tbrand\tde\t18063:100",
            "Milka\tbrand\tde\t180632:0",
            "Milka\tbrand\tde\t180632:80 190531:40",
            "ja!\tlabel\tde\t180632:100",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(parse("ja!\tlabel\tde").expect("a label").codes, []);
    }
}
