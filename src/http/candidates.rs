//! The classes that come into question, as answers show them: for an assignment, and where nothing is stored.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::classify::Evidence;
use crate::decision::{Candidate, Engine, Explained};
use crate::domain::nomenclature::Labels;
use crate::domain::product::Details;
use crate::domain::{ClassCode, Taxonomy};
use crate::memory::Recalled;

/// Candidates with the model that ranked them.
pub(super) struct CandidateList {
    /// The best classes, the best first.
    pub(super) candidates: Vec<CandidateAnswer>,
    /// The model that ranked them.
    pub(super) model: ModelAnswer,
    /// How the customs codes were read, where there are any.
    pub(super) customs_code_reason: Option<CodeReason>,
}

/// The model that answered.
#[derive(Serialize, ToSchema)]
pub(super) struct ModelAnswer {
    /// Its version.
    version: String,
    /// The checksum of the corpus that it was trained on.
    corpus: String,
}

/// A class that comes into question.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CandidateAnswer {
    /// Its code.
    product_class_code: String,
    /// 0 to 1.
    confidence: f64,
    /// What it is called.
    labels: LabelsAnswer,
    /// Classes from the chapter down to it, where an assignment shows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<PathStep>,
    /// The decision of a person on a product that is alike; then the words, or the customs code, that spoke for it,
    /// the strongest first.
    evidence: Vec<EvidenceAnswer>,
    /// Texts under it that the model was trained on and that resemble the product, where an assignment shows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    similar: Vec<SimilarAnswer>,
}

/// A text that the model was trained on.
#[derive(Serialize, ToSchema)]
pub(super) struct SimilarAnswer {
    text: String,
    /// 0 to 1.
    similarity: f64,
}

/// A name in both languages.
#[derive(Serialize, ToSchema)]
pub(super) struct LabelsAnswer {
    /// German.
    pub(super) de: String,
    /// English.
    pub(super) en: String,
}

/// A class above another.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PathStep {
    pub(super) product_class_code: String,
    pub(super) labels: LabelsAnswer,
}

/// What spoke for a class: a word with its weight, or a person's decision with its similarity.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct EvidenceAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<String>,
    /// How much; the greater the more.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    /// The assignment of a product that is alike, for which a person decided on this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Uuid>,
    /// How alike that product is, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

/// How customs codes were read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CodeReason {
    /// The field that decided.
    field: String,
    /// The class it led to.
    product_class_code: String,
    /// How it led there.
    reason: &'static str,
    /// Fields that speak for other classes.
    conflicts: Vec<CodeConflict>,
}

/// A code that speaks for another class.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CodeConflict {
    field: String,
    product_class_code: String,
}

/// The candidates of an assignment.
pub(super) fn candidate_list(
    engine: &Engine,
    taxonomy: Taxonomy,
    product: &Details,
    explained: Explained,
) -> CandidateList {
    let field = |field: &str| format!("productDetails.customsCodes.{field}");
    CandidateList {
        candidates: candidate_answers(engine, taxonomy, &explained, Some(product)),
        model: model(engine),
        customs_code_reason: explained.codes.map(|codes| CodeReason {
            field: field(codes.field),
            product_class_code: codes.code.to_string(),
            reason: codes.reason.text(),
            conflicts: codes
                .conflicts
                .iter()
                .map(|(other, code)| CodeConflict { field: field(other), product_class_code: code.to_string() })
                .collect(),
        }),
    }
}

/// The candidates; for the product of an assignment with the path of each and the texts that resemble it.
pub(super) fn candidate_answers(
    engine: &Engine,
    taxonomy: Taxonomy,
    explained: &Explained,
    product: Option<&Details>,
) -> Vec<CandidateAnswer> {
    let word = |evidence: &Evidence| EvidenceAnswer {
        word: Some(evidence.word.clone()),
        weight: Some(rounded(evidence.weight)),
        ..EvidenceAnswer::default()
    };
    let taught = |recalled: Recalled| EvidenceAnswer {
        decision: Some(recalled.decision),
        similarity: Some(rounded(recalled.similarity)),
        ..EvidenceAnswer::default()
    };
    let answer = |candidate: &Candidate| {
        let path = path(engine, taxonomy, candidate.code);
        let (de, en) = path.last().map(|step| (step.labels.de.clone(), step.labels.en.clone())).unwrap_or_default();
        CandidateAnswer {
            product_class_code: candidate.code.to_string(),
            confidence: rounded(candidate.confidence),
            labels: LabelsAnswer { de, en },
            path: if product.is_some() { path } else { Vec::new() },
            evidence: candidate.taught.map(taught).into_iter().chain(candidate.evidence.iter().map(word)).collect(),
            similar: product.map(|details| similar(engine, details, candidate.code)).unwrap_or_default(),
        }
    };
    explained.candidates.iter().map(answer).collect()
}

/// The model of an engine.
pub(super) fn model(engine: &Engine) -> ModelAnswer {
    let info = engine.model();
    ModelAnswer { version: info.version, corpus: info.corpus }
}

/// The path of labels down to a class; its last step is the class itself, or the nearest that has a label.
pub(super) fn path(engine: &Engine, taxonomy: Taxonomy, code: ClassCode) -> Vec<PathStep> {
    let reference = engine.reference();
    let steps = reference.nomenclature(taxonomy).path(code).into_iter();
    let step = |(code, labels): (ClassCode, Labels<'_>)| PathStep {
        product_class_code: code.to_string(),
        labels: LabelsAnswer { de: labels.de.to_owned(), en: labels.en.to_owned() },
    };
    steps.map(step).collect()
}

/// A confidence as answers write it: four decimals say more than any calibration holds.
pub(super) fn rounded(confidence: f32) -> f64 {
    (f64::from(confidence) * 1e4).round() / 1e4
}

fn similar(engine: &Engine, details: &Details, code: ClassCode) -> Vec<SimilarAnswer> {
    let rows = engine.similar(details, code).into_iter();
    rows.map(|row| SimilarAnswer { text: row.text, similarity: rounded(row.similarity) }).collect()
}
