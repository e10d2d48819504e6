//! From what is known of a product to its class in each taxonomy: customs codes first, then the text.
//!
//! Auto-assignment and `POST /classifications` both decide here, so that they never differ.

pub mod national;
mod recall;
mod stakes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::NaiveDate;

use crate::classify::{
    Classifier, Decision, Evidence, LanguageText, ModelError, ModelInfo, Neighbour, ProductText, Scored,
};
use crate::domain::assignment::Strategy;
use crate::domain::customs_codes::{self, CodeEvidence};
use crate::domain::languages;
use crate::domain::nomenclature::Nomenclature;
use crate::domain::sides::{self, Facts};
use crate::domain::{ClassCode, Details, Found, ProductClass, Segment, Taxonomy, Verdict};
use crate::memory::{Memory, Recalled};
use crate::reference::Reference;

use national::{LabelWords, Words as LineWords};
pub use recall::{Basis, MAX_KEY_WORDS, Texts, Words};
use stakes::Stakes;

/// Most words that are told for a candidate.
pub const MAX_EVIDENCE_WORDS: usize = 8;

/// Digits at which the classifier ends.
const SUBHEADING_DIGITS: usize = 6;

/// Fewest digits of a class that is assigned.
const HEADING_DIGITS: usize = 4;
/// Most lines named where a code is none of them.
pub const MAX_LINES_NAMED: usize = 20;

/// Most rows of the corpus that are told for a candidate.
pub const MAX_SIMILAR_ROWS: usize = 3;

/// A class that comes into question.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its code.
    pub code: ClassCode,
    /// 0 to 1.
    pub confidence: f32,
    /// The words, or the customs code, that spoke for it, the strongest first.
    pub evidence: Vec<Evidence>,
    /// The decision of a person on a product that is alike and speaks for it, the most alike one.
    pub taught: Option<Recalled>,
}

/// The answer about one product in one taxonomy, with its reasons.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What auto-assignment would store.
    pub verdict: Verdict,
    /// What the customs codes say, where there are any.
    pub codes: Option<CodeEvidence>,
    /// The best classes, the best first; disjoint.
    pub candidates: Vec<Candidate>,
}

/// The classifier, the facts, and what people decided, ready to decide.
pub struct Engine {
    model_path: PathBuf,
    classifier: Arc<ArcSwap<Classifier>>,
    reference: ArcSwap<Reference>,
    labels: LabelWords,
    stakes: Stakes,
    memory: Arc<Memory>,
}

/// Says that a code is no class, and which classes lie where it seems to belong.
fn unlisted(nomenclature: &Nomenclature, code: ClassCode) -> String {
    let taxonomy = nomenclature.taxonomy();
    let Some(above) = nomenclature.longest_listed(code) else { return format!("{code} is no class of {taxonomy}") };
    let below: Vec<String> = nomenclature.children(above).into_iter().map(|(line, _)| line.to_string()).collect();
    match below.len() {
        0 => format!("{code} is no class of {taxonomy}; {above} is, and nothing lies below it"),
        all if all > MAX_LINES_NAMED => {
            let named = below[..MAX_LINES_NAMED].join(", ");
            format!(
                "{code} is no class of {taxonomy}; below {above} there are {named} and {} more",
                all - MAX_LINES_NAMED
            )
        }
        _ => format!("{code} is no class of {taxonomy}; below {above} there are {}", below.join(", ")),
    }
}

/// What the classifier reads of a product: its German and English texts.
fn text(details: &Details) -> ProductText<'_> {
    let read = details.languages().filter(|(language, _)| languages::is_read(language));
    let languages = read.map(|(language, texts)| LanguageText {
        language,
        name: texts.product_name.as_deref(),
        description: texts.product_description.as_deref(),
        tags: texts.product_tags.as_deref().unwrap_or_default(),
    });
    ProductText { languages: languages.collect() }
}

impl Engine {
    /// Loads the model beside facts that are loaded already.
    ///
    /// # Errors
    /// When the model cannot be used.
    pub fn load(model_path: &Path, reference: Arc<Reference>) -> Result<Engine, ModelError> {
        let classifier = Arc::new(ArcSwap::from_pointee(Classifier::load(model_path)?));
        let reference = ArcSwap::new(reference);
        let (labels, stakes, memory) = (LabelWords::default(), Stakes::default(), Arc::default());
        Ok(Engine { model_path: model_path.to_owned(), classifier, reference, labels, stakes, memory })
    }

    /// Takes the model file anew; the one in use stays when it cannot be used.
    ///
    /// # Errors
    /// When the model cannot be used.
    pub fn reload(&self) -> Result<ModelInfo, ModelError> {
        let classifier = Classifier::load(&self.model_path)?;
        let info = classifier.info().clone();
        self.classifier.store(Arc::new(classifier));
        Ok(info)
    }

    /// The model in use.
    pub fn model(&self) -> ModelInfo {
        self.classifier.load().info().clone()
    }

    /// Taxonomies and VAT rules in use. What is computed from one answer stays of one piece when others take their place.
    pub fn reference(&self) -> Arc<Reference> {
        self.reference.load_full()
    }

    /// Takes other taxonomies and VAT rules into use.
    pub fn replace_reference(&self, reference: Arc<Reference>) {
        self.reference.store(reference);
        self.stakes.forget();
    }

    /// Decides for the taxonomies named, in their order: by customs codes, then by memory, then by text, as sure as
    /// the basis wants it.
    pub fn decide(&self, details: &Details, taxonomies: &[Taxonomy], basis: Basis, today: NaiveDate) -> Vec<Verdict> {
        self.decide_by(&Texts::default(), details, taxonomies, basis, today)
    }

    /// The same with what was read of the product before, and for what is to be read of it later.
    pub fn decide_by(
        &self,
        texts: &Texts,
        details: &Details,
        taxonomies: &[Taxonomy],
        basis: Basis,
        today: NaiveDate,
    ) -> Vec<Verdict> {
        let classifier = self.classifier.load();
        let decide = |taxonomy: &Taxonomy| {
            if let Some(evidence) = self.codes(details, *taxonomy) {
                let classes = std::iter::once(evidence.code).chain(evidence.conflicts.iter().map(|(_, code)| *code));
                let verdict = self.by_codes(details, *taxonomy, &evidence, today);
                return self.with_risk(verdict, *taxonomy, classes, today);
            }
            let judgement = self.asked(&classifier, texts, details, *taxonomy, basis);
            let ranking = texts.ranking(&classifier, details);
            let by_model = || self.by_text(details, classifier.decide(ranking, basis.precision), *taxonomy, today);
            let (verdict, _) = self.by_memory(&judgement, by_model, *taxonomy, basis, today);
            let classes = ranking.candidates.iter().map(|candidate| candidate.code);
            self.with_risk(verdict, *taxonomy, classes, today)
        };
        taxonomies.iter().map(decide).collect()
    }

    /// Decides for one taxonomy and tells the reasons: at most `limit` candidates, cut to `digits` where given.
    pub fn explain(
        &self,
        details: &Details,
        taxonomy: Taxonomy,
        basis: Basis,
        digits: Option<usize>,
        limit: usize,
        today: NaiveDate,
    ) -> Explained {
        let classifier = self.classifier.load();
        let text = text(details);
        let texts = Texts::default();
        let judgement = self.asked(&classifier, &texts, details, taxonomy, basis);
        let ranking = texts.ranking(&classifier, details);
        let codes = self.codes(details, taxonomy);
        let (verdict, recalled) = match &codes {
            Some(evidence) => (self.by_codes(details, taxonomy, evidence, today), None),
            None => {
                let by_model = || self.by_text(details, classifier.decide(ranking, basis.precision), taxonomy, today);
                self.by_memory(&judgement, by_model, taxonomy, basis, today)
            }
        };
        let cut = |code: ClassCode| digits.map_or(code, |digits| code.prefix(digits));
        let given = match (&codes, recalled) {
            (Some(found), _) => Some((found.code, found.confidence, Some(given_code(details, found.field)))),
            (None, Some(recalled)) => Some((recalled.class.code, recalled.confidence, None)),
            (None, None) => None,
        };
        let given = given.map(|(code, confidence, word)| (Scored { code: cut(code), confidence }, word));
        let rest = 1.0 - given.as_ref().map_or(0.0, |(scored, _)| scored.confidence);
        let ranked = match digits {
            Some(digits) => ranking.roll_up(digits),
            None => ranking.candidates.clone(),
        };
        let mut candidates: Vec<Candidate> = Vec::new();
        if let Some((scored, code)) = &given {
            let evidence = match code {
                Some(code) => vec![Evidence { word: code.clone(), weight: scored.confidence }],
                None => classifier.explain(&text, scored.code, MAX_EVIDENCE_WORDS),
            };
            candidates.push(Candidate { code: scored.code, confidence: scored.confidence, evidence, taught: None });
        }
        let apart = |code: &ClassCode| {
            given.as_ref().is_none_or(|(own, _)| !code.is_under(&own.code) && !own.code.is_under(code))
        };
        let reference = self.reference();
        let depth = digits.filter(|digits| *digits > SUBHEADING_DIGITS);
        let words = depth.map(|digits| (LineWords::of(&classifier, &text), digits));
        for scored in ranked.iter().filter(|scored| apart(&scored.code)).take(limit.saturating_sub(candidates.len())) {
            let evidence = classifier.explain(&text, scored.code, MAX_EVIDENCE_WORDS);
            let (mut code, mut confidence) = (scored.code, scored.confidence * rest);
            if let Some((words, digits)) = &words {
                code = words.line(&classifier, &self.labels, reference.nomenclature(taxonomy), code, *digits);
                confidence *= if code == scored.code { 1.0 } else { national::SHARE_RIGHT };
            }
            candidates.push(Candidate { code, confidence, evidence, taught: None });
        }
        candidates[usize::from(given.is_some())..].sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        candidates.truncate(limit);
        if let Some(recalled) = judgement.class {
            let class = cut(recalled.class.code);
            let speaks_for =
                |candidate: &&mut Candidate| candidate.code.is_under(&class) || class.is_under(&candidate.code);
            if let Some(candidate) = candidates.iter_mut().find(speaks_for) {
                candidate.taught = Some(recalled);
            }
        }
        Explained { verdict, codes, candidates }
    }

    /// The classes that a good of this name may belong to, the surest first: what the words of shops mean.
    pub fn led_to(&self, words: &str, taxonomy: Taxonomy, limit: usize) -> Vec<Scored> {
        // Nothing says in which language the words are.
        let name = |language| LanguageText { language, name: Some(words), description: None, tags: &[] };
        let text = ProductText { languages: vec![name("de"), name("en")] };
        let ranking = self.classifier.load().rank(&text);
        let reference = self.reference();
        let nomenclature = reference.nomenclature(taxonomy);
        let listed = ranking.candidates.into_iter().filter(|scored| nomenclature.contains(scored.code));
        listed.take(limit).collect()
    }

    /// The rows of the corpus below a class that resemble a product most.
    pub fn similar(&self, details: &Details, code: ClassCode) -> Vec<Neighbour> {
        self.classifier.load().nearest(&text(details), code, MAX_SIMILAR_ROWS)
    }

    /// The class that a client means: known to the taxonomy, in its canonical form, with a segment that it has.
    ///
    /// # Errors
    /// Says what is unknown about it.
    pub fn class(&self, taxonomy: Taxonomy, sent: ProductClass) -> Result<ProductClass, String> {
        let reference = self.reference();
        let nomenclature = reference.nomenclature(taxonomy);
        let known = nomenclature.canonical(sent.code).filter(|code| nomenclature.contains(*code));
        let code = known.ok_or_else(|| unlisted(nomenclature, sent.code))?;
        if sent.segment != Segment::PLAIN && !reference.vat.defines_segment(taxonomy, code, sent.segment) {
            return Err(format!("the class {code} of {taxonomy} has no segment {}", sent.segment));
        }
        Ok(ProductClass { code, segment: sent.segment })
    }

    /// Whether every country's rate follows from a class on a day.
    pub fn is_sufficient(&self, taxonomy: Taxonomy, class: ProductClass, day: NaiveDate) -> bool {
        let reference = self.reference.load();
        reference.vat.is_sufficient(reference.nomenclature(taxonomy), class, day)
    }

    fn with_risk(
        &self,
        verdict: Verdict,
        taxonomy: Taxonomy,
        classes: impl Iterator<Item = ClassCode>,
        today: NaiveDate,
    ) -> Verdict {
        let confidence = verdict.found.map(|found| found.confidence);
        // Without any class in question there is nothing to be wrong about.
        let mut classes = classes.peekable();
        let risk = match classes.peek() {
            Some(_) => self.stakes.risk(&self.reference(), taxonomy, classes, confidence, today),
            None => 0.0,
        };
        Verdict { risk, ..verdict }
    }

    fn codes(&self, details: &Details, taxonomy: Taxonomy) -> Option<CodeEvidence> {
        customs_codes::evidence(details.customs_codes.as_ref()?, self.reference.load().nomenclature(taxonomy))
    }

    fn by_codes(&self, details: &Details, taxonomy: Taxonomy, evidence: &CodeEvidence, today: NaiveDate) -> Verdict {
        self.verdict(details, taxonomy, evidence.code, Strategy::CustomsCode, evidence.confidence, today)
    }

    fn by_text(&self, details: &Details, decided: Option<Decision>, taxonomy: Taxonomy, today: NaiveDate) -> Verdict {
        match decided {
            Some(decided) => {
                self.verdict(details, taxonomy, decided.code, Strategy::Description, decided.confidence, today)
            }
            None => Verdict::default(),
        }
    }

    fn verdict(
        &self,
        details: &Details,
        taxonomy: Taxonomy,
        code: ClassCode,
        strategy: Strategy,
        confidence: f32,
        today: NaiveDate,
    ) -> Verdict {
        let reference = self.reference();
        let nomenclature = reference.nomenclature(taxonomy);
        // The classifier knows the Harmonized System; an operator's own taxonomy may lack a class of it, though seldom
        // its heading.
        let listed = [code, code.prefix(HEADING_DIGITS)].into_iter().find_map(|code| nomenclature.canonical(code));
        let Some(code) = listed else { return Verdict::default() };
        let class = ProductClass { code, segment: self.side(details, taxonomy, code) };
        let sufficient = self.is_sufficient(taxonomy, class, today);
        Verdict { found: Some(Found { class, strategy, confidence, sufficient }), ..Verdict::default() }
    }

    /// The sides of partial VAT rules that the product's own data and words settle.
    fn side(&self, details: &Details, taxonomy: Taxonomy, code: ClassCode) -> Segment {
        let reference = self.reference.load();
        let named = reference.vat.segments(taxonomy, code);
        if named.is_empty() {
            return Segment::PLAIN;
        }
        let segments: Vec<(Segment, &[u8])> = named.iter().map(|named| (named.segment, named.parts)).collect();
        sides::settle(code, &segments, &Facts::of(details))
    }
}

/// A customs code as the merchant gave it.
fn given_code(details: &Details, field: &str) -> String {
    let mut codes = details.customs_codes.iter().flat_map(|codes| codes.given());
    codes.find(|(known, _)| *known == field).map(|(_, code)| code.to_owned()).unwrap_or_default()
}
