//! No account sees or changes anything of another: for every operation, ids of another account are ids of nobody.

use std::collections::BTreeSet;

use axum::body::Body;
use data_encoding::BASE64URL_NOPAD;
use image::ImageFormat;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;
use vat_classification::domain::access::{Level, Plan};
use vat_classification::http::BASE_PATH;
use vat_classification::store::moving::{COPIED, MADE_ANEW};

use crate::app::{Answer, App, german, version};
use crate::pictures::picture;

/// Requests: method, path with ids by the names of their parameters, status of the answer to another account, and body.
/// Those for global products are sent for those of a shop as well. None with 404 would, if the owner sent it, take away
/// what a later one names.
const CALLS: &str = r##"
GET /products/global?cursor={cursor} 200
GET /products/global?productIds={productId}&shopIds={shopId}&count=true 200
GET /products/global?filterCriteria=%5B%5D&count=true 200
GET /products/global/{productId} 404
POST /products/global/search 200 {"productIds": ["{productId}"], "filterCriteria": [{"productId": "{productId}"}]}
POST /products/global 201 {"{productId}": {"productDetails": {}}}
POST /products/global?updateIfExists=true&onConflict=SKIP 201 {"{productId}": {"productDetails": {}}}
POST /products/global 422 {"own": {"productDetails": {"merchantProductAttributes": {"{fieldName}": "x"}}}}
POST /products/global/updates 404 {"updates": [{"productId": "{productId}", "currentVersion": 2, "patch": {}}]}
POST /products/global/updates 200 {"updates": [{"productId": "{productId}", "currentVersion": 2, "patch": {}}], {skip}}
PUT /products/global?productId={productId}&currentVersion=0 201 {"productDetails": {}}
PUT /products/global?productId={productId}&currentVersion=2 404 {"productDetails": {}}
PATCH /products/global?productId={productId}&currentVersion=2 404 {"productDetails": {}}
GET /products/global/product-picture?productId={productId} 404
POST /products/global/product-picture?productId={productId} 404 PICTURE
PUT /products/global/product-picture?productId={productId} 404 PICTURE
DELETE /products/global/product-picture?productId={productId} 404
POST /products/global/deletions 404 {"products": [{"productId": "{productId}", "currentVersion": 2}]}
DELETE /products/global?productId={productId}&currentVersion=2 404
GET /products/merchant-product-attributes 200
POST /products/merchant-product-attributes 201 {"fieldName": "{fieldName}", "objectType": "Text"}
PATCH /products/merchant-product-attributes/{fieldName} 404 {"displayName": "x"}
DELETE /products/merchant-product-attributes/{fieldName} 404
PUT /assignments 404 {"assignmentUuids": ["{assignmentUuid}"], "labels": ["{label}"]}
DELETE /assignments 404 {"assignmentUuids": ["{assignmentUuid}"], "labels": ["{label}"]}
GET /assignments/assignment-labels 200
POST /assignments/assignment-labels 201 {"label": "{label}", "color": "#00AAFF"}
PATCH /assignments/assignment-labels/{label} 404 {"color": "#00AAFF"}
DELETE /assignments/assignment-labels/{label} 404
GET /assignments/{taxonomy}?assignmentStatus=ALL&embed=PRODUCT,EVENTS,CANDIDATES,VAT_RATES&count=true 200
GET /assignments/{taxonomy}?assignmentStatus=ALL&productIds={productId}&labels={label}&shopId={shopId} 200
GET /assignments/{taxonomy}?assignmentStatus=ALL&filterCriteria=%5B%7B%22productId%22:%22{productId}%22%7D%5D 200
GET /assignments/{assignmentUuid}?embed=EVENTS 404
GET /assignments/{taxonomy}/{assignmentUuid}?embed=PRODUCT,EVENTS,CANDIDATES,VAT_RATES 404
GET /assignments/{taxonomy}/{assignmentUuid}/alike 404
GET /assignments/{taxonomy}/counts?by=label,assignmentStatus 200
PATCH /assignments/{taxonomy}?assignmentAction=DENY 404 {"products": [{"productId": "{productId}", {version}}]}
PATCH /assignments/{taxonomy}?assignmentAction=DENY 200 {"products": [{"productId": "{productId}", {version}}], {skip}}
POST /assignments/{taxonomy}/actions 202 {"action": "DENY", "filter": {"assignmentStatus": "ALL", "labels": "{label}"}}
GET /assignments/actions/{actionId} 404
POST /assignments/actions/{actionId}/undo 404
POST /assignments/auto-assignment 404 {"products": [{"productId": "{productId}"}]}
POST /assignments/auto-assignment 404 {"products": [{"productId": "{productId}", "shopId": {shopId}}]}
POST /classifications 200 {"taxonomy": "TARIC", "items": [{"languageAttributes": {"de": {"productName": "{taught}"}}}]}
GET /vat-rates/{taxonomy}/{productClass} 200
GET /product-classes/{taxonomy}?query=coffee 200
POST /imports 200 FILE
GET /exports?languages=de 200
GET /changes?after=0&size=1000 200
GET /usage 200
GET /tokens 200
GET /webhooks 200
POST /webhooks 201 {"url": "http://127.0.0.1:1/{productId}", "types": ["PRODUCT_CREATED"]}
GET /webhooks/{webhookId} 404
GET /webhooks/{webhookId}/deliveries 404
PATCH /webhooks/{webhookId} 404 {"enabled": false}
DELETE /webhooks/{webhookId} 404
"##;
/// Lists that hold something for everybody.
const FOR_EVERYBODY: [&str; 3] = ["POST /classifications", "GET /product-classes/{taxonomy}", "GET /tokens"];
/// Fields that have another value in every answer.
const PASSING: &str =
    "instance timestamp createdAt updatedAt finishedAt lastUsedAt actionId webhookId secret tokenId productAssignments";
/// Stands in everything that the owner has, uuids apart.
const MARK: &str = "zwiebelfisch";
/// A shop of the owner.
const SHOP: i64 = 4_711_004_711;
/// Words of which no model has heard, and about which a person of the owner has decided.
const TAUGHT: &str = "Zanbar Quillet Morvo";

/// The name of a parameter, and what takes its place.
type Id = (&'static str, String);

/// A request of the table.
struct Call {
    method: String,
    path: String,
    status: u16,
    body: String,
}

impl Call {
    fn all() -> Vec<Call> {
        let both = |line: &str| {
            let local = line.replacen("/products/global", "/shops/{shopId}/products/local", 1);
            [Some(line.to_owned()), (local != line).then_some(local)]
        };
        CALLS.trim().lines().flat_map(both).flatten().map(|line| Call::read(&line)).collect()
    }

    fn read(line: &str) -> Call {
        let mut parts = line.splitn(4, ' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Call { method: next(), path: next(), status: next().parse().expect("a status"), body: next() }
    }

    /// The operation as the document names it.
    fn operation(&self) -> String {
        let route = self.path.split('?').next().unwrap_or_default();
        // The URL of a single assignment lies at the place of the lists.
        let route = if route == "/assignments/{assignmentUuid}" { "/assignments/{taxonomy}" } else { route };
        format!("{} {route}", self.method)
    }

    async fn send(&self, app: &App, token: &str, ids: &[Id]) -> Answer {
        let filled = |text: &str| ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id));
        let (kind, body) = match self.body.as_str() {
            "PICTURE" => ("multipart/form-data; boundary=X", form()),
            "FILE" => ("text/csv", filled("productId,de:productName\n{productId},Tee\n").into_bytes()),
            text => ("application/json", filled(text).into_bytes()),
        };
        app.raw(token, &self.method, &filled(&self.path), kind, Body::from(body)).await
    }

    /// A text of the answer with the names of the ids that were sent in their place.
    fn shown(&self, text: &str, ids: &[Id]) -> String {
        let sent = ids.iter().filter(|(name, _)| self.path.contains(*name) || self.body.contains(*name));
        sent.fold(text.to_owned(), |text, (name, id)| text.replace(id.as_str(), name))
    }
}

/// The form that uploads a picture.
fn form() -> Vec<u8> {
    let mut form = b"--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
    form.extend(picture(ImageFormat::Png));
    form.extend(b"\r\n--X--\r\n");
    form
}

/// Removes what is new in every answer.
fn settle(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| !PASSING.split(' ').any(|passing| passing == name));
        fields.values_mut().for_each(settle);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(settle);
    }
}

/// What an answer tells whenever it is given.
fn lasting(answer: &Answer) -> String {
    if answer.body.is_null() {
        return String::from_utf8_lossy(&answer.bytes).into_owned();
    }
    let mut body = answer.body.clone();
    // The end of the feed moves on.
    drop(body.get_mut("next").map(Value::take));
    settle(&mut body);
    body.to_string()
}

/// Every operation below the base path, as the service itself tells of them.
async fn documented(app: &App) -> BTreeSet<String> {
    let document = app.get("http://service.example/openapi.json").await.expect(200).body;
    let paths = document["paths"].as_object().expect("paths").iter();
    let below = paths.filter_map(|(path, item)| Some((path.strip_prefix(BASE_PATH)?, item.as_object()?)));
    below.flat_map(|(path, item)| item.keys().map(move |name| format!("{} {path}", name.to_uppercase()))).collect()
}

/// Everything that is stored of the owner.
async fn stored(app: &App) -> Vec<String> {
    let rows = |table: &str| {
        let owner = match table {
            "pictures" => "join products using (product_key)",
            "assignment_action_items" => "join assignment_actions using (action_id)",
            "webhook_deliveries" => "join webhooks using (webhook_id)",
            _ => "",
        };
        let account = "(select account_id from accounts where name = 'shop')";
        format!("select '{table} ' || entry::text from {table} as entry {owner} where account_id = {account}")
    };
    let all: Vec<String> = COPIED.into_iter().chain(MADE_ANEW).map(rows).collect();
    let statement = AssertSqlSafe(format!("{} order by 1", all.join(" union all ")));
    sqlx::query_scalar(statement).fetch_all(app.store.pool()).await.expect("rows")
}

/// Ids of one kind: all names begin with a stem.
fn ids(stem: &str, shop: i64, [assignment, action, webhook]: [String; 3]) -> Vec<Id> {
    let cursor = json!({"a": format!("{stem}-a")}).to_string();
    vec![
        ("{productId}", format!("{stem}-p")),
        ("{shopId}", shop.to_string()),
        ("{fieldName}", format!("{stem}_f")),
        ("{label}", format!("{stem}-l")),
        ("{assignmentUuid}", assignment),
        ("{actionId}", action),
        ("{webhookId}", webhook),
        ("{cursor}", BASE64URL_NOPAD.encode(cursor.as_bytes())),
        ("{taxonomy}", "TARIC".to_owned()),
        ("{productClass}", "090121".to_owned()),
        ("{taught}", TAUGHT.to_owned()),
        ("{version}", r#""assignmentVersion": {"vatRules": 1}"#.to_owned()),
        ("{skip}", r#""onConflict": "SKIP""#.to_owned()),
    ]
}

/// Gives the account of the service a bit of everything: its ids, and what nobody else may read.
async fn fill(app: &App) -> (Vec<Id>, Vec<String>) {
    let (product, field, label) = (format!("{MARK}-p"), format!("{MARK}_f"), format!("{MARK}-l"));
    let (other, local) = (format!("{MARK}-q"), format!("/shops/{SHOP}/products/local"));
    let attribute = json!({"fieldName": field, "objectType": "Text", "displayName": MARK});
    app.post("/products/merchant-product-attributes", attribute).await.expect(201);
    app.post("/assignments/assignment-labels", json!({"label": label, "color": "#AABBCC"})).await.expect(201);
    let mut marked = german(&format!("{MARK} Kaffee"));
    marked["shopIds"] = json!([SHOP]);
    marked["productDetails"]["merchantProductAttributes"] = json!({field: MARK});
    app.post("/products/global", json!({&product: marked, &other: german(TAUGHT)})).await.expect(201);
    app.post(&local, json!({&product: german(MARK)})).await.expect(201);
    for list in ["/products/global", local.as_str()] {
        let path = format!("{list}/product-picture?productId={product}");
        app.raw(&app.token, "POST", &path, "multipart/form-data; boundary=X", form().into()).await.expect(201);
    }
    let file = format!("productId,de:productName\n{MARK}-i,{MARK}\n");
    app.raw(&app.token, "POST", "/imports", "text/csv", file.into()).await.expect(200);
    app.patch(&format!("/products/global?productId={product}&currentVersion=1"), json!({})).await.expect(200);
    app.assign().await;
    let (own, taught) = (app.assignment("TARIC", &product).await, app.assignment("TARIC", &other).await);
    let named = json!({"productId": other, "assignmentVersion": {"vatRules": version(&taught)}});
    let path = "/assignments/TARIC?assignmentAction=ASSIGN&productClass=090121-00-000";
    let acted = app.patch(path, json!({"products": [named], "comment": MARK})).await.expect(200).body;
    app.learn().await;
    let labelling = json!({"assignmentUuids": [own["assignmentUuid"]], "labels": [label]});
    app.put("/assignments", labelling).await.expect(200);
    let hook = json!({"url": format!("http://127.0.0.1:1/{MARK}"), "types": ["PRODUCT_CREATED"]});
    let hook = app.post("/webhooks", hook).await.expect(201).body;
    let delivery = "insert into webhook_deliveries
                        (webhook_id, sequence, message_id, product_key, product_id, type, body)
                    select webhook_id, product_key, gen_random_uuid(), product_key, product_id, 'PRODUCT_CREATED', ''
                    from webhooks, products";
    sqlx::query(delivery).execute(app.store.pool()).await.expect("deliveries");
    app.token("shop", MARK, Level::Read).await;
    app.index().await;
    let uuids = [&own["assignmentUuid"], &acted["actionId"], &hook["webhookId"], &taught["assignmentUuid"]];
    let uuids = uuids.map(|uuid| uuid.as_str().expect("a uuid").to_owned());
    let secrets = uuids.iter().cloned().chain([MARK.to_owned()]).collect();
    let [assignment, action, webhook, _] = uuids;
    (ids(MARK, SHOP, [assignment, action, webhook]), secrets)
}

#[tokio::test]
async fn what_another_account_has_is_to_every_operation_what_nobody_has() {
    let app = App::start().await;
    let (owners, secrets) = fill(&app).await;
    let nobodys = ids("nirgendwo", SHOP + 1, [(); 3].map(|()| Uuid::new_v4().to_string()));
    let calls = Call::all();
    // An operation that is new has to be written into the table.
    assert_eq!(calls.iter().map(Call::operation).collect::<BTreeSet<_>>(), documented(&app).await);
    let before = stored(&app).await;
    for (at, call) in calls.iter().enumerate() {
        let what = format!("{} {} {}", call.method, call.path, call.body);
        let mut answers = Vec::new();
        for (whose, ids) in [("owner's", &owners), ("nobody's", &nobodys)] {
            let name = format!("{whose} {at}");
            app.store.create_account(&name, Plan::Unlimited).await.expect("an account");
            let token = app.token(&name, "eve", Level::Admin).await;
            let answer = call.send(&app, &token, ids).await;
            let shown = call.shown(&String::from_utf8_lossy(&answer.bytes), ids);
            assert!(secrets.iter().all(|secret| !shown.contains(secret.as_str())), "{what}: {shown}");
            let told = ["items", "total", "selected", "used"].map(|field| &answer.body[field]);
            let is_empty = told.iter().all(|told| told.is_null() || **told == json!([]) || **told == json!(0));
            assert!(is_empty || FOR_EVERYBODY.contains(&call.operation().as_str()), "{what}: {shown}");
            answers.push((answer.status, call.shown(&lasting(&answer), ids)));
        }
        assert_eq!(answers[0], answers[1], "{what}");
        assert_eq!(answers[0].0, call.status, "{what}: {}", answers[0].1);
        assert_eq!(stored(&app).await, before, "{what}");
    }
    // Ids that the owner does not have either would have told nothing.
    for call in calls.iter().filter(|call| call.status == 404) {
        let answer = call.send(&app, &app.token, &owners).await;
        assert_ne!(answer.status, 404, "{} {}: {}", call.method, call.path, answer.body);
    }
}
