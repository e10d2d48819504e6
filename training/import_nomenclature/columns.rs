//! Finds what a file has by the names of its columns, which every authority chooses for itself.

use anyhow::bail;

use super::Language;

/// Names that authorities give to a column, without case, spaces and punctuation.
const CODE: &[&str] = &[
    "goodscode",
    "cncode",
    "code",
    "commoditycode",
    "commodity",
    "goodsnomenclatureitemid",
    "itemid",
    "hs8",
    "tarifnummer",
    "zolltarifnummer",
    "tarifnr",
    "tariffnumber",
    "tarifnumber",
    "numerodetarif",
    "numerodutarif",
    "numm",
    "tn8nr",
];
const SUFFIX: &[&str] =
    &["commoditysuffix", "productlinesuffix", "producline", "productline", "suffix", "pls", "producelinesuffix"];
const START: &[&str] = &[
    "startdate",
    "validitystart",
    "commodityvaliditystart",
    "validitystartdate",
    "validfrom",
    "gultigab",
    "gueltigab",
    "tn8vdat",
];
const END: &[&str] = &[
    "enddate",
    "validityend",
    "commodityvalidityend",
    "validityenddate",
    "validto",
    "gultigbis",
    "gueltigbis",
    "tn8bdat",
];
/// The Swiss tariff structure says of each line what it is.
const KIND: &[&str] = &["typ"];
const LANGUAGE: &[&str] = &["language", "lang", "sprache"];
const LEVEL: &[&str] = &["hierpos", "hierarchicalposition"];
const INDENT: &[&str] =
    &["indent", "indents", "numberofindents", "numberindents", "indentation", "commodityindent", "einrueck"];
const TEXT: &[&str] =
    &["description", "commoditydescription", "text", "designation", "bezeichnung", "selfexplanatorytext"];
const GERMAN: &[&str] = &[
    "designationde",
    "descriptionde",
    "textde",
    "bezeichnungde",
    "bezeichnungd",
    "textd",
    "deutsch",
    "german",
    "de",
    "d",
];
const ENGLISH: &[&str] = &[
    "designationen",
    "descriptionen",
    "texten",
    "bezeichnungen",
    "bezeichnunge",
    "texte",
    "englisch",
    "english",
    "en",
    "e",
];
const PARENT: &[&str] = &["parentcode", "parentcommoditycode", "parent"];
const PARENT_SUFFIX: &[&str] = &["parentsuffix", "parentproductlinesuffix"];

/// Where a file has what.
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) code: usize,
    pub(super) suffix: Option<usize>,
    pub(super) start: Option<usize>,
    pub(super) end: Option<usize>,
    pub(super) language: Option<usize>,
    pub(super) level: Option<usize>,
    pub(super) indent: Option<usize>,
    pub(super) kind: Option<usize>,
    pub(super) text: Option<(usize, Option<Language>)>,
    pub(super) german: Option<usize>,
    pub(super) english: Option<usize>,
    pub(super) parent: Option<(usize, Option<usize>)>,
}

impl Columns {
    /// The columns of a header; `language` is that of files that do not say it.
    pub(super) fn find(file: &str, header: &[String], language: Option<Language>) -> anyhow::Result<Columns> {
        let names: Vec<String> = header.iter().map(|name| plain(name)).collect();
        let find = |known: &[&str]| known.iter().find_map(|known| names.iter().position(|name| name == known));
        let Some(code) = find(CODE) else {
            bail!("{file} has no column with codes; its columns are {}", header.join(", "));
        };
        let parent = find(PARENT).map(|parent| (parent, find(PARENT_SUFFIX)));
        let (start, said, indent) = (find(START), find(LANGUAGE), find(INDENT));
        let (german, english) = (find(GERMAN), find(ENGLISH));
        // The list that names parents or counts indents without saying its language is the British one.
        let language = language.or((parent.is_some() || indent.is_some()).then_some(Language::En));
        let text = find(TEXT).map(|text| (text, language));
        // A list of days of validity needs no texts of its own; they stand in another file of the same list.
        if german.is_none() && english.is_none() && (text.is_some() || start.is_none()) {
            match text {
                None => bail!("{file} has no column with texts; its columns are {}", header.join(", ")),
                Some((_, None)) if said.is_none() => bail!("{file} does not say its language; give it with --lang"),
                Some(_) => {}
            }
        }
        Ok(Columns {
            code,
            suffix: find(SUFFIX),
            start,
            end: find(END),
            language: said,
            level: find(LEVEL),
            indent,
            kind: find(KIND),
            text,
            german,
            english,
            parent,
            names: header.to_vec(),
        })
    }

    /// Whether the file says what its codes mean, and not only when they are valid.
    pub(super) fn has_texts(&self) -> bool {
        self.text.is_some() || self.german.is_some() || self.english.is_some()
    }

    /// Whether the file is a list of all codes, rather than texts for some.
    pub(super) fn is_of_whole_list(&self) -> bool {
        [self.start, self.language, self.indent, self.german].iter().any(Option::is_some) || self.parent.is_some()
    }
}

/// Whether a row has the name of a column with codes, as only a header does.
pub(super) fn is_header(row: &[String]) -> bool {
    row.iter().any(|name| CODE.contains(&plain(name).as_str()))
}

/// A column's name in lower case, letters and digits only, umlauts without their dots.
fn plain(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            'ä' => 'a',
            'ö' => 'o',
            'ü' => 'u',
            'é' | 'è' => 'e',
            c => c,
        })
        .filter(char::is_ascii_alphanumeric)
        .collect()
}
