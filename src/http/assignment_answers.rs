//! How assignments are written in answers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::assignment::Status;
use crate::domain::forms::TaxonomyName;
use crate::domain::product::{CustomsCodes, LanguageAttributes};
use crate::domain::vat::CountryVat;
use crate::domain::{Details, ProductClass, Taxonomy};
use crate::http::candidates::{CandidateAnswer, CandidateList, CodeReason, ModelAnswer, rounded};
use crate::http::described::kinds::{AutoStateName, EventName, StatusName, StrategyName};
use crate::http::products::instant;
use crate::store::assignments::{AssignmentRecord, Event};

/// Characters of a description that a list shows.
pub(super) const DESCRIPTION_SHOWN: usize = 300;

/// An assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssignmentFields {
    /// Its identity.
    assignment_uuid: Uuid,
    /// Its product.
    product_id: String,
    /// The shop of a local product.
    #[serde(skip_serializing_if = "Option::is_none")]
    shop_id: Option<i64>,
    /// TARIC, TARES or UKGT.
    #[schema(value_type = TaxonomyName)]
    taxonomy: &'static str,
    /// UNASSIGNED, ASSIGNED, APPROVED, REJECTED or DENIED.
    #[schema(value_type = StatusName)]
    assignment_status: String,
    /// DESCRIPTION, CUSTOMS-CODE, MANUAL or null.
    #[schema(value_type = Option<StrategyName>, required = true)]
    strategy: Option<String>,
    #[serde(flatten)]
    class: ClassFields,
    /// Labels attached.
    labels: Vec<String>,
    /// How sure auto-assignment was of the class in force, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// What is at stake where the class is wrong: the chance of that, times how far the VAT rates of the classes in
    /// question lie apart in percentage points, times the product's `reviewWeight`. `sort=impact` orders by it.
    impact: f64,
    /// PENDING, DONE or ABORTED.
    #[schema(value_type = AutoStateName)]
    auto_assignment: String,
    /// Whether the product changed after a person decided.
    review_needed: bool,
    /// When it last changed.
    updated_at: String,
    /// Versions by platform service.
    subscribed_platform_services: PlatformServices,
    /// With `embed=EVENTS`: what happened, oldest first; the last 20,000 events where there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventAnswer>>,
    /// With `embed=CANDIDATES`: the classes that come into question, the best first.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<CandidateAnswer>>,
    /// With `embed=CANDIDATES`: the model that ranked them.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelAnswer>,
    /// With `embed=CANDIDATES`: how the customs codes were read, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    customs_code_reason: Option<CodeReason>,
    /// With `embed=PRODUCT`: what a reviewer reads of the product.
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<ReviewedProductAnswer>,
}

/// One assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssignmentAnswer {
    #[serde(flatten)]
    pub(super) fields: AssignmentFields,
    /// With `embed=VAT_RATES`: the rates that follow from the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<CountryVat<'static>>>)]
    pub(super) vat_rates: Option<Vec<Value>>,
}

/// An assignment in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedAssignment {
    #[serde(flatten)]
    pub(super) fields: AssignmentFields,
    /// With `embed=VAT_RATES`: the distinct rates that follow from the class, with the countries of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) vat_rates: Option<Vec<RateOfCountries>>,
}

/// Countries with one rate.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct RateOfCountries {
    /// Per cent; null where the class does not decide it.
    #[schema(required = true)]
    pub(super) rate: Option<f64>,
    /// ISO 3166-1 alpha-2.
    pub(super) countries: Vec<String>,
}

/// What a reviewer reads of a product.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReviewedProductAnswer {
    /// The product's version.
    version: i64,
    /// Shops with which it is associated.
    shop_ids: Vec<i64>,
    /// By language: the name, the first 300 characters of the description, and the tags.
    language_attributes: BTreeMap<String, LanguageAttributes>,
    /// Customs codes, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    customs_codes: Option<CustomsCodes>,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    manufacturer_name: Option<String>,
    /// Its picture, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<PictureLink>,
}

/// Where a picture is.
#[derive(Serialize, ToSchema)]
pub(super) struct PictureLink {
    /// Its bytes.
    url: String,
}

/// The class in its three forms: absent when UNASSIGNED, null when a status was set without a class.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassFields {
    /// The code segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) product_class_code: Option<Option<String>>,
    /// `code-NN-NNN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) product_class: Option<Option<String>>,
    /// The code padded with zeros: 10 digits, 8 for TARES.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_width_product_class: Option<Option<String>>,
}

impl ClassFields {
    /// The fields for a class of a taxonomy; `shown` is false where no class field is.
    pub(super) fn new(taxonomy: Taxonomy, class: Option<ProductClass>, shown: bool) -> ClassFields {
        let field = |value: Option<String>| shown.then_some(value);
        ClassFields {
            product_class_code: field(class.map(|class| class.code.to_string())),
            product_class: field(class.map(|class| class.to_string())),
            fixed_width_product_class: field(class.map(|class| class.code.fixed_width(taxonomy))),
        }
    }
}

/// Versions by platform service.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformServices {
    vat_rules: PlatformService,
}

/// What a platform service knows of an assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformService {
    /// To be sent with the next action.
    assignment_version: i64,
}

/// What happened to an assignment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventAnswer {
    /// When.
    timestamp: String,
    /// The token's user, or `auto-assignment`.
    actor: String,
    /// CREATE, AUTO_ASSIGN, AUTO_ABORT, PRODUCT_CHANGED, REQUEUE, RULE_CHANGED, LABEL, UNLABEL, UNDO or one of the six actions.
    #[schema(value_type = EventName)]
    action: String,
    /// The status after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<StatusName>)]
    assignment_status: Option<String>,
    /// The code of the class after it; null without one.
    #[schema(required = true)]
    product_class_code: Option<String>,
    /// The class after it, `code-NN-NNN`; null without one.
    #[schema(required = true)]
    product_class: Option<String>,
    /// How the class was found; null where it was not.
    #[schema(value_type = Option<StrategyName>, required = true)]
    strategy: Option<String>,
    /// How sure auto-assignment was of the class after it, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    /// What the person wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    /// The action that it was part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<Uuid>,
    /// The model that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_version: Option<String>,
    /// The labels attached or detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
}

impl From<Event> for EventAnswer {
    fn from(event: Event) -> Self {
        let class: Option<ProductClass> = event.product_class.as_deref().and_then(|class| class.parse().ok());
        EventAnswer {
            timestamp: instant(event.happened_at),
            actor: event.actor,
            action: event.action,
            assignment_status: event.status,
            product_class_code: class.map(|class| class.code.to_string()),
            product_class: event.product_class,
            strategy: event.strategy,
            confidence: event.confidence.map(rounded),
            comment: event.comment,
            action_id: event.action_id,
            model_version: event.model_version,
            labels: event.labels,
        }
    }
}

impl From<AssignmentRecord> for AssignmentFields {
    fn from(record: AssignmentRecord) -> Self {
        let taxonomy = record.taxonomy();
        let shown = record.status != Status::Unassigned.name();
        AssignmentFields {
            assignment_uuid: record.assignment_uuid,
            shop_id: (record.shop_id > 0).then_some(record.shop_id),
            taxonomy: taxonomy.name(),
            class: ClassFields::new(taxonomy, record.class(), shown),
            assignment_status: record.status,
            strategy: record.strategy,
            labels: record.labels,
            confidence: record.confidence.map(rounded),
            impact: rounded(record.impact),
            auto_assignment: record.auto_state,
            review_needed: record.review_needed,
            updated_at: instant(record.updated_at),
            subscribed_platform_services: PlatformServices {
                vat_rules: PlatformService { assignment_version: record.version },
            },
            product_id: record.product_id,
            events: None,
            candidates: None,
            model: None,
            customs_code_reason: None,
            product: None,
        }
    }
}

impl AssignmentFields {
    pub(super) fn with_events(&mut self, events: Vec<Event>) {
        self.events = Some(events.into_iter().map(EventAnswer::from).collect());
    }

    pub(super) fn with_candidates(&mut self, listed: CandidateList) {
        self.candidates = Some(listed.candidates);
        self.model = Some(listed.model);
        self.customs_code_reason = listed.customs_code_reason;
    }

    pub(super) fn with_product(&mut self, product: ReviewedProductAnswer) {
        self.product = Some(product);
    }
}

impl ReviewedProductAnswer {
    /// What is shown of a product, with the URL of its picture.
    pub(super) fn new(version: i64, shop_ids: Vec<i64>, details: &Details, picture: Option<String>) -> Self {
        let texts = |(language, texts): (&str, &LanguageAttributes)| {
            let description = texts.product_description.as_deref();
            let shown = LanguageAttributes {
                product_name: texts.product_name.clone(),
                product_description: description.map(|text| text.chars().take(DESCRIPTION_SHOWN).collect()),
                product_tags: texts.product_tags.clone(),
                merchant_product_attributes: None,
            };
            (language.to_owned(), shown)
        };
        ReviewedProductAnswer {
            version,
            shop_ids,
            language_attributes: details.languages().map(texts).collect(),
            customs_codes: details.customs_codes.clone().filter(|codes| *codes != CustomsCodes::default()),
            manufacturer_name: details.manufacturer_name.clone(),
            picture: picture.map(|url| PictureLink { url }),
        }
    }
}
