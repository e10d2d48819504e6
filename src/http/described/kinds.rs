//! Names, texts and lists in requests and answers, as types of their own for the OpenAPI document: at a parameter as
//! `inline(Option<PageSize>)`, at a field as its `value_type`. A client generated from the document has an enumeration
//! for the names of answers. The names are those of the domain.

use utoipa::Number;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};

use crate::domain::access::Plan;
use crate::domain::applications::Application;
use crate::domain::assignment::{Action, Status, Strategy};
use crate::domain::attributes::{MAX_DESCRIPTION_CHARACTERS, MAX_DISPLAY_CHARACTERS, MAX_TAGS};
use crate::domain::forms::{LANGUAGE, each_once, formed, forms, number, one_of, some_of, text, whole};
use crate::domain::{Precision, changes};
use crate::http::allowed::{
    ALL_STATUSES, AUTO_STATES, DEPTHS, EMBEDDED, GROUPED_BY, MAX_COMMENT_CHARACTERS, MAX_GROUPED_BY,
    MAX_LABEL_CHARACTERS, ORDERS,
};
use crate::http::params::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
use crate::webhooks::MAX_URL_CHARACTERS;

/// The code of a class.
const CODE: &str = "^[0-9]{2,10}$";
/// A class as it is sent with an action; it has at least four digits.
const ASSIGNED_CLASS: &str = "^[0-9]{4,10}-[0-9]{2}-[0-9]{3}$";
/// The beginning of a code.
const CODE_PREFIX: &str = "^[0-9]{1,10}$";
/// A class in a path, where the segments may be left out.
const CLASS_OR_CODE: &str = "^[0-9]{2,10}(-[0-9]{2}-[0-9]{3})?$";
/// A day that every month has, or an instant of it.
const DAY_OR_INSTANT: &str =
    "^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$";
/// A column and what it stands for.
const MAPPING: &str = "^[^=]+=(productId|shopId|gtin|[a-z]{2}:productName)?$";
/// A colour.
const COLOR: &str = "^#[0-9A-Fa-f]{6}$";
/// An http or https URL with a host. Where it leads is another matter.
const WEB_ADDRESS: &str = r"^https?://[A-Za-z0-9\[][^\s@#\\]*$";
/// A label.
const LABEL: &str = r"^[^!,\u0000][^,\u0000]*$";

/// What happens to an assignment besides the actions of people.
const EVENTS: [&str; 9] =
    ["CREATE", "AUTO_ASSIGN", "AUTO_ABORT", "PRODUCT_CHANGED", "REQUEUE", "RULE_CHANGED", "LABEL", "UNLABEL", "UNDO"];

fn events() -> Vec<&'static str> {
    EVENTS.into_iter().chain(Action::ALL.map(Action::name)).collect()
}

forms! {
    /// The status of an assignment.
    StatusName "AssignmentStatus" = one_of(Status::ALL.map(Status::name));
    /// How a class was found.
    StrategyName "Strategy" = one_of(Strategy::ALL.map(Strategy::name));
    /// What auto-assignment does about an assignment.
    AutoStateName "AutoAssignment" = one_of(AUTO_STATES);
    /// What happened to an assignment.
    EventName "EventAction" = one_of(events());
    /// A plan of an account.
    PlanName "Plan" = one_of([Plan::Unlimited, Plan::FreeTrial].map(Plan::name));
    /// Bytes as they are.
    Binary "Binary" = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));

    /// How much of a product is shown.
    DetailName "Detail" = one_of(["Small", "Medium", "Large"]);
    /// What happens where one of many cannot be done.
    ConflictRule "OnConflict" = one_of(["FAIL", "SKIP"]);
    /// An action on assignments.
    ActionName "AssignmentAction" = one_of(Action::ALL.map(Action::name));
    /// An order of assignments.
    OrderName "AssignmentOrder" = one_of(ORDERS.map(|(name, _)| name));
    /// A format of files that are written.
    FileFormat "FileFormat" = one_of(["CSV", "XLSX"]);
    /// Whether something was delivered.
    DeliveryState "DeliveryState" = one_of(["PENDING", "DELIVERED", "FAILED"]);
    /// The type of an attribute's values.
    ObjectTypeName "ObjectType" = one_of(["Text", "Number", "Boolean", "Date"]);
    /// The format of an attribute's values.
    ValueFormatName "ValueFormat" = one_of(["None", "URL", "EMAIL", "ISO_DATE", "INTEGER", "DECIMAL"]);

    /// Statuses of assignments, or all of them.
    StatusList "AssignmentStatuses" = some_of(Status::ALL.map(Status::name).into_iter().chain([ALL_STATUSES]));
    /// Applications to validate for.
    ApplicationList "Applications" = some_of(Application::ALL.map(Application::name));
    /// What an assignment is answered with.
    EmbedList "Embedded" = some_of(EMBEDDED);
    /// How classes were found.
    StrategyList "Strategies" = some_of(Strategy::ALL.map(Strategy::name));
    /// What auto-assignment does.
    AutoStateList "AutoAssignments" = some_of(AUTO_STATES);
    /// What assignments are counted by.
    GroupList "Groups" = each_once(one_of(GROUPED_BY.map(|(name, _)| name)), MAX_GROUPED_BY);
    /// Types of changes.
    TypeList "ChangeTypes" = some_of(changes::types());
    /// Types of changes, of which one may be named again.
    TypeNames "ChangeTypeNames" = ArrayBuilder::new().items(one_of(changes::types())).min_items(Some(1));
    /// Languages.
    LanguageList "Languages" = ArrayBuilder::new().items(formed(LANGUAGE));
    /// Columns and what they stand for.
    MappingList "Mappings" = ArrayBuilder::new().items(formed(MAPPING));
    /// Ids, labels.
    TextList "Texts" = ArrayBuilder::new().items(text());
    /// Shops.
    ShopList "Shops" = ArrayBuilder::new().items(whole(1));

    /// The code of a class.
    CodeForm "ClassCode" = formed(CODE);
    /// The beginning of one.
    CodePrefix "ClassCodePrefix" = formed(CODE_PREFIX);
    /// A class as it is sent with an action.
    AssignedClass "AssignedClass" = formed(ASSIGNED_CLASS);
    /// A class whose segments may be left out.
    ClassOrCode "ClassOrCode" = formed(CLASS_OR_CODE);
    /// Depths at which candidates are asked for.
    Depth "Digits" = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(DEPTHS));
    /// Shares of right decisions that may be asked for. Generators know no enumeration of numbers with a point.
    PrecisionShare "Precision" = Precision::ALL.into_iter().fold(OneOfBuilder::new(), |shares, precision| {
        shares.item(number().extensions(Some([("const", precision.share())].into_iter().collect())))
    });
    /// How sure something is.
    Confidence "Confidence" = number().minimum(Some(Number::Int(0))).maximum(Some(Number::Int(1)));
    /// A day.
    Day "Day" = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)));
    /// A day, or an instant.
    DayOrInstant "DayOrInstant" = formed(DAY_OR_INSTANT);
    /// Items of a page.
    PageSize "PageSize" =
        whole(1).maximum(Some(Number::Int(MAX_PAGE_SIZE as isize))).default(Some(DEFAULT_PAGE_SIZE.into()));
    /// Why something was done.
    CommentText "Comment" = text().max_length(Some(MAX_COMMENT_CHARACTERS));
    /// An address on the web.
    WebAddress "WebAddress" = formed(WEB_ADDRESS).max_length(Some(MAX_URL_CHARACTERS));
    /// A colour.
    ColorForm "Color" = formed(COLOR);
    /// A label.
    LabelForm "Label" =
        formed(LABEL).min_length(Some(1)).max_length(Some(MAX_LABEL_CHARACTERS));
    /// What an attribute is called.
    DisplayText "DisplayName" = text().max_length(Some(MAX_DISPLAY_CHARACTERS));
    /// What an attribute is for.
    AttributeText "AttributeDescription" = text().max_length(Some(MAX_DESCRIPTION_CHARACTERS));
    /// Tags of an attribute.
    AttributeTags "AttributeTags" = ArrayBuilder::new()
        .items(text().max_length(Some(MAX_DISPLAY_CHARACTERS)))
        .max_items(Some(MAX_TAGS));
}
