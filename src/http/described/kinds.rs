//! Texts of answers that are one of a few names, as types of their own: a client generated from the document has an
//! enumeration for each. The names are those of the domain.

use std::borrow::Cow;

use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::Taxonomy;
use crate::domain::access::Plan;
use crate::domain::assignment::{Action, Status, Strategy};

/// A type that stands for one of these names in the document.
macro_rules! names {
    ($($(#[$doc:meta])* $kind:ident $name:literal = $names:expr;)*) => {$(
        $(#[$doc])*
        pub(in crate::http) struct $kind;

        impl PartialSchema for $kind {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($names)).into()
            }
        }

        impl ToSchema for $kind {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )*};
}

/// What happens to an assignment besides the actions of people.
const EVENTS: [&str; 9] =
    ["CREATE", "AUTO_ASSIGN", "AUTO_ABORT", "PRODUCT_CHANGED", "REQUEUE", "RULE_CHANGED", "LABEL", "UNLABEL", "UNDO"];

fn events() -> Vec<&'static str> {
    EVENTS.into_iter().chain(Action::ALL.map(Action::name)).collect()
}

names! {
    /// A taxonomy.
    TaxonomyName "Taxonomy" = Taxonomy::ALL.map(Taxonomy::name);
    /// The status of an assignment.
    StatusName "AssignmentStatus" = Status::ALL.map(Status::name);
    /// How a class was found.
    StrategyName "Strategy" = Strategy::ALL.map(Strategy::name);
    /// What auto-assignment does about an assignment.
    AutoStateName "AutoAssignment" = ["PENDING", "DONE", "ABORTED"];
    /// What happened to an assignment.
    EventName "EventAction" = events();
    /// A plan of an account.
    PlanName "Plan" = [Plan::Unlimited, Plan::FreeTrial].map(Plan::name);
}

/// Bytes as they are.
pub(in crate::http) struct Binary;

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Binary {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Binary")
    }
}
