//! `export-reviewed`: what merchants approved, as rows of the corpus, for `fit --extra`.
//!
//! The file holds texts of merchants: keep it outside the repository unless they agreed to its publication.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use futures::TryStreamExt;
use serde::Deserialize;
use sqlx::postgres::PgPoolOptions;
use vat_classification::domain::{ClassCode, ProductClass};
use vat_classification::embedded_postgres::EmbeddedPostgres;

use crate::corpus::{DESCRIPTION_MARK, TAGS_MARK};

/// Words of a description that are kept: what follows says little about what the good is.
const MAX_DESCRIPTION_WORDS: usize = 60;
/// Digits to which classes are cut: those below are national.
const MAX_DIGITS: usize = 6;

/// Approved classes with the texts of their products.
const APPROVED: &str = "select a.product_class, p.details->'languageAttributes'
    from assignments a join products p using (product_key)
    where a.status = 'APPROVED' and a.product_class is not null
    order by p.product_key, a.taxonomy";

/// Options of `export-reviewed`.
#[derive(Args)]
pub(crate) struct Options {
    /// PostgreSQL of the service; without it the private one in the data directory.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Data directory of the service.
    #[arg(long, env = "DATA_DIR", default_value = "./data")]
    pub(crate) data_dir: PathBuf,
    /// Where the rows are written.
    #[arg(long)]
    pub(crate) out: PathBuf,
}

/// The part of a product's texts that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Texts {
    product_name: Option<String>,
    product_description: Option<String>,
}

/// Rows by code and language.
type Sections = BTreeMap<(ClassCode, &'static str), BTreeSet<String>>;

/// Reads the approved assignments and writes them as rows.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sections = runtime.block_on(async {
        match &options.database_url {
            Some(url) => approved(url).await,
            None => {
                let private = EmbeddedPostgres::start(&options.data_dir).await?;
                let sections = approved(&private.url()).await;
                private.stop().await;
                sections
            }
        }
    })?;
    write(&options.out, &sections)?;
    let rows: usize = sections.values().map(BTreeSet::len).sum();
    eprintln!("{}: {rows} rows under {} codes and languages", options.out.display(), sections.len());
    Ok(())
}

async fn approved(database_url: &str) -> Result<Sections> {
    let pool =
        PgPoolOptions::new().max_connections(1).connect(database_url).await.context("no connection to the database")?;
    let mut rows = sqlx::query_as::<_, (String, Option<serde_json::Value>)>(APPROVED).fetch(&pool);
    let mut sections = Sections::new();
    while let Some((class, languages)) = rows.try_next().await? {
        let Some(languages) = languages else { continue };
        let languages: BTreeMap<String, Texts> = serde_json::from_value(languages).context("texts of a product")?;
        add(&mut sections, &class, &languages);
    }
    Ok(sections)
}

/// Adds the rows of one assignment; products without a name in German or English give none.
fn add(sections: &mut Sections, class: &str, languages: &BTreeMap<String, Texts>) {
    let Ok(class) = class.parse::<ProductClass>() else { return };
    let code = class.code.prefix(MAX_DIGITS);
    if code.digits() % 2 != 0 {
        return;
    }
    for (key, texts) in languages {
        let language = match key.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("de") => "de",
            Some("en") => "en",
            _ => continue,
        };
        if let Some(row) = row(texts) {
            sections.entry((code, language)).or_default().insert(row);
        }
    }
}

/// A row in the form of the corpus: one line, name and description parted by their mark, and no mark within them.
fn row(texts: &Texts) -> Option<String> {
    let words = |text: &str, most: usize| {
        let is_mark = |word: &&str| [DESCRIPTION_MARK, TAGS_MARK].iter().any(|mark| mark.trim() == *word);
        let words: Vec<&str> = text.split_whitespace().filter(|word| !is_mark(word)).take(most).collect();
        words.join(" ")
    };
    let name = words(texts.product_name.as_deref()?, usize::MAX);
    let description = words(texts.product_description.as_deref().unwrap_or_default(), MAX_DESCRIPTION_WORDS);
    if name.is_empty() {
        return None;
    }
    // A blank in front keeps a name that begins with one of the marks of the corpus a row.
    let blank = if name.starts_with(['#', '[', '$']) { " " } else { "" };
    Some(if description.is_empty() {
        format!("{blank}{name}")
    } else {
        format!("{blank}{name}{DESCRIPTION_MARK}{description}")
    })
}

fn write(path: &Path, sections: &Sections) -> Result<()> {
    let mut file = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    writeln!(file, "# what merchants approved")?;
    for ((code, language), rows) in sections {
        writeln!(file, "[{code} {language}]")?;
        for row in rows {
            writeln!(file, "{row}")?;
        }
    }
    file.flush().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn approved_classes_become_rows_that_the_corpus_reader_takes() {
        let texts = |name: &str, description: &str| Texts {
            product_name: Some(name.to_owned()),
            product_description: Some(description.to_owned()),
        };
        let languages = BTreeMap::from([
            ("de-AT".to_owned(), texts("# 1\nHemd ## neu", "weich :: fein ## gut")),
            ("en".to_owned(), texts("[Shirt]", "")),
            ("fr".to_owned(), texts("Chemise", "")),
            ("de".to_owned(), Texts::default()),
        ]);
        let mut sections = Sections::new();
        add(&mut sections, "6109100010-00-000", &languages);
        add(&mut sections, "not a class", &languages);
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("reviewed.txt");
        write(&path, &sections).expect("written");
        let corpus = corpus::read(directory.path(), &[]).expect("read");
        assert_eq!(corpus.faults, []);
        let rows: Vec<_> = corpus
            .rows
            .iter()
            .map(|row| (row.code.to_string(), row.name.as_str(), row.description.as_deref()))
            .collect();
        let code = || "610910".to_owned();
        assert!(corpus.rows.iter().all(|row| row.tags.is_empty()));
        assert_eq!(rows, [(code(), "# 1 Hemd neu", Some("weich fein gut")), (code(), "[Shirt]", None)]);
    }
}
