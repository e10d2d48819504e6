//! The subcommands `account memory`: what is remembered of the decisions of an account's people.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use uuid::Uuid;

use crate::app::database::on;
use crate::app::settings::{MemoryCommand, MemoryFile, NamedAccount};
use crate::domain::validation::{self, Declarations};
use crate::domain::{Product, ProductClass, ShopId, Taxonomy};
use crate::memory::MAX_DECISIONS_OF_ACCOUNT;
use crate::store::Store;
use crate::store::memory::MemoryEntry;

/// Longest line of a file of decisions, in bytes; the texts of a product are shorter.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// Decisions that are stored at once.
const STORED_AT_ONCE: usize = 500;

pub(super) async fn run(command: MemoryCommand) -> anyhow::Result<()> {
    let account = match &command {
        MemoryCommand::Show(account) | MemoryCommand::Clear(account) => account,
        MemoryCommand::Export(MemoryFile { account, .. }) | MemoryCommand::Import(MemoryFile { account, .. }) => {
            account
        }
    };
    on(&account.database, async |store| {
        let key = key(store, account).await?;
        match &command {
            MemoryCommand::Show(_) => {
                for size in store.memory_sizes(key).await? {
                    println!("{}\t{}\t{}", size.taxonomy().name(), size.right, size.wrong);
                }
            }
            MemoryCommand::Clear(_) => println!("{}", store.clear_memory(key).await?),
            MemoryCommand::Export(MemoryFile { file, .. }) => println!("{}", export(store, key, file).await?),
            MemoryCommand::Import(MemoryFile { file, .. }) => println!("{}", import(store, key, file).await?),
        }
        Ok(())
    })
    .await
}

async fn key(store: &Store, account: &NamedAccount) -> anyhow::Result<i64> {
    Ok(store.require_account(&account.name, &account.name).await?.account)
}

/// Writes what an account remembers, a decision a line in JSON, and answers how many there are.
///
/// # Errors
/// When the database or the file fails.
pub async fn export(store: &Store, account: i64, file: &Path) -> anyhow::Result<usize> {
    let output = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    let mut output = BufWriter::new(output);
    let (mut count, mut after) = (0, Uuid::nil());
    loop {
        let page = store.remembered_decisions(account, after).await?;
        let Some(last) = page.last() else { break };
        after = last.assignment_uuid;
        for entry in &page {
            serde_json::to_writer(&mut output, entry)?;
            writeln!(output)?;
        }
        count += page.len();
    }
    output.flush().with_context(|| format!("cannot write {}", file.display()))?;
    Ok(count)
}

/// Makes an account remember what a file holds, and answers how many decisions were new to it. The file is read twice: no
/// decision is taken of a file with a faulty line, nor all of them held in memory.
///
/// # Errors
/// When a line is no decision; when the file or the database fails. What was stored before the database failed stays.
pub async fn import(store: &Store, account: i64, file: &Path) -> anyhow::Result<u64> {
    let count = read(file)?.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
    ensure!(
        count <= MAX_DECISIONS_OF_ACCOUNT,
        "{}: {count} decisions, and an account remembers at most {MAX_DECISIONS_OF_ACCOUNT}",
        file.display()
    );
    let mut new = 0;
    let mut entries = read(file)?;
    loop {
        let some: Vec<_> = entries.by_ref().take(STORED_AT_ONCE).collect::<anyhow::Result<_>>()?;
        if some.is_empty() {
            return Ok(new);
        }
        new += store.remember_decisions(account, &some).await?;
    }
}

/// A decision with its taxonomy and class.
type Checked = (MemoryEntry, Taxonomy, ProductClass);

fn read(file: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Checked>>> {
    let mut input = BufReader::new(File::open(file).with_context(|| format!("cannot open {}", file.display()))?);
    let name = file.display().to_string();
    let mut number = 0;
    Ok(std::iter::from_fn(move || {
        let mut line = String::new();
        number += 1;
        match (&mut input).take(MAX_LINE_BYTES).read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(entry(&line).with_context(|| format!("{name}:{number}"))),
            Err(error) => Some(Err(error).with_context(|| format!("{name}:{number}"))),
        }
    }))
}

fn entry(line: &str) -> anyhow::Result<Checked> {
    let entry: MemoryEntry = serde_json::from_str(line).context("no decision")?;
    let (taxonomy, class) = entry.class().map_err(anyhow::Error::msg)?;
    let product = Product { product_details: entry.product_details.clone(), ..Product::default() };
    let faults = validation::faults(&product, ShopId::GLOBAL, &Declarations::new());
    let told: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
    ensure!(told.is_empty(), "{}", told.join("; "));
    Ok((entry, taxonomy, class))
}
