//! Where the model and the facts lie, and how they are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use chrono::{NaiveDate, Utc};

use crate::app::settings::ModelSettings;
use crate::decision::Engine;
use crate::reference::Reference;

/// The model's file in the models directory.
const MODEL_FILE: &str = "classifier.bin";

/// Loads the model with the facts.
pub(super) fn load_engine(settings: &ModelSettings) -> anyhow::Result<Engine> {
    let model = models_dir(settings)?.join(MODEL_FILE);
    let reference = load_reference(settings)?;
    Engine::load(&model, Arc::new(reference)).with_context(|| format!("the model {}", model.display()))
}

/// Loads taxonomies and VAT rules, with the codes that are alive today.
pub(super) fn load_reference(settings: &ModelSettings) -> anyhow::Result<Reference> {
    load_reference_as_of(settings, Utc::now().date_naive())
}

/// Loads taxonomies and VAT rules, with the codes that are alive on a day.
pub(super) fn load_reference_as_of(settings: &ModelSettings, day: NaiveDate) -> anyhow::Result<Reference> {
    let facts = match &settings.taxonomy_dir {
        Some(dir) => dir.clone(),
        None => models_dir(settings)?,
    };
    Reference::load_as_of(&facts, day).with_context(|| format!("facts in {}", facts.display()))
}

fn models_dir(settings: &ModelSettings) -> anyhow::Result<PathBuf> {
    match &settings.models_dir {
        Some(dir) => Ok(dir.clone()),
        None => find_models(),
    }
}

/// `models` in the working directory, or beside the program, or beside the build directory that the program lies in.
fn find_models() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.ancestors().skip(1).take(4).map(|dir| dir.join("models"));
    let found = std::iter::once(PathBuf::from("models")).chain(beside).find(|dir| has_model(dir));
    found.context("there is no directory models with classifier.bin here; name it with MODELS_DIR")
}

fn has_model(dir: &Path) -> bool {
    dir.join(MODEL_FILE).is_file()
}
