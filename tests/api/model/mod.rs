//! Random operations against a plain model of what they should do: whatever the order, the service says and holds what
//! the model says and holds.
//!
//! `MODEL_SEED=… MODEL_STEPS=… cargo test --release --test api model` runs a sequence again, or another length of it. A
//! failure names seed and step.

mod plain;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use vat_classification::domain::assignment::Strategy;
use vat_classification::domain::{Found, Verdict};
use vat_classification::jobs::auto_assignment::decide_by;
use vat_classification::store::auto_queue::Claim;

use crate::app::{App, action_body, version};
use plain::{Assignment, CLASSES, Dice, Product, found};

/// Operations of a run, unless told otherwise.
const STEPS: usize = 10_000;
/// Operations between two comparisons of everything.
const COMPARED_EVERY: usize = 1_000;
const TAXONOMIES: [&str; 3] = ["TARIC", "TARES", "UKGT"];
const ACTIONS: [&str; 6] = ["ASSIGN", "APPROVE", "REJECT", "DENY", "RECONFIRM", "UNASSIGN"];
/// The last one is not defined.
const LABELS: [&str; 3] = ["hot", "red", "undefined"];
const PRODUCTS: &str = "/products/global";

fn rule(claim: &Claim) -> Vec<Verdict> {
    let name = claim.details.languages().find_map(|(_, texts)| texts.product_name.as_deref()?[1..].parse().ok());
    let found = found(name).map(|(class, sufficient)| Found {
        class: class.parse().expect("a class"),
        strategy: Strategy::Description,
        confidence: 0.9,
        sufficient,
    });
    vec![Verdict { found, risk: 0.0 }; claim.slots.len()]
}

struct Model {
    app: App,
    dice: Dice,
    products: BTreeMap<String, Product>,
    /// Whether each class of `CLASSES` is sufficient, by taxonomy.
    sufficient: [[bool; 2]; 3],
    /// What happened to products: type, id, version.
    told: Vec<(&'static str, String, i64)>,
}

impl Model {
    async fn new(seed: u64) -> Model {
        let app = App::start().await;
        for label in &LABELS[..2] {
            app.post("/assignments/assignment-labels", json!({"label": label, "color": "#00AAFF"})).await.expect(201);
        }
        let mut sufficient = [[false; 2]; 3];
        for (taxonomy, known) in TAXONOMIES.iter().zip(&mut sufficient) {
            for (class, known) in CLASSES.iter().zip(known) {
                let rates = app.get(&format!("/vat-rates/{taxonomy}/{class}")).await.expect(200).body;
                *known = rates["sufficient"].as_bool().expect("a judgement");
            }
        }
        Model { app, dice: Dice(seed), products: BTreeMap::new(), sufficient, told: Vec::new() }
    }

    fn details(&mut self) -> (Option<usize>, Option<usize>) {
        let mut some = |sides| Some(self.dice.roll(sides)).filter(|value| *value > 0);
        (some(6), some(3))
    }

    async fn create(&mut self) {
        let (ids, update) = (self.dice.ids(3), self.dice.one_in(2));
        let new: Vec<_> = ids.into_iter().map(|id| (id, self.details())).collect();
        let body = new.iter().map(|(id, (name, maker))| (id.clone(), Product::document(*name, *maker)));
        let path = format!("{PRODUCTS}?updateIfExists={update}");
        let answer = self.app.post(&path, Value::Object(body.collect())).await;
        if !update && new.iter().any(|(id, _)| self.products.contains_key(id)) {
            answer.expect(422);
            return;
        }
        answer.expect(201);
        // New ones are told of before those that are replaced.
        let (fresh, known): (Vec<_>, Vec<_>) = new.into_iter().partition(|(id, _)| !self.products.contains_key(id));
        for (id, (name, maker)) in fresh {
            self.told.push(("PRODUCT_CREATED", id.clone(), 1));
            self.products.insert(id, Product::new(name, maker));
        }
        for (id, (name, maker)) in known {
            self.change(&id, name, maker);
        }
    }

    fn change(&mut self, id: &str, name: Option<usize>, maker: Option<usize>) {
        let product = self.products.get_mut(id).expect("a product");
        product.change(name, maker);
        self.told.push(("PRODUCT_UPDATED", id.to_owned(), product.version));
    }

    async fn put(&mut self) {
        let id = self.dice.ids(1).remove(0);
        let right = self.products.get(&id).map_or(0, |product| product.version);
        let (sent, (name, maker)) = (self.dice.version(right), self.details());
        let path = format!("{PRODUCTS}?productId={id}&currentVersion={sent}");
        let answer = self.app.put(&path, Product::document(name, maker)).await;
        match (right, sent == right) {
            (0, true) => {
                answer.expect(201);
                self.told.push(("PRODUCT_CREATED", id.clone(), 1));
                self.products.insert(id, Product::new(name, maker));
            }
            (0, false) => drop(answer.expect(404)),
            (_, false) => assert_eq!(answer.expect(409).body["currentVersion"], right),
            (_, true) => {
                assert_eq!(answer.expect(200).body["version"], right + 1);
                self.change(&id, name, maker);
            }
        }
    }

    async fn patch(&mut self) {
        let id = self.dice.ids(1).remove(0);
        let right = self.products.get(&id).map_or(1, |product| product.version);
        let (sent, maker, clears) = (self.dice.version(right), self.dice.roll(3), self.dice.one_in(4));
        let mut details = json!({"manufacturerName": format!("m{maker}")});
        if clears {
            details["languageAttributes"] = Value::Null;
        }
        let path = format!("{PRODUCTS}?productId={id}&currentVersion={sent}");
        let answer = self.app.patch(&path, json!({"productDetails": details})).await;
        let Some(product) = self.products.get(&id) else { return drop(answer.expect(404)) };
        if sent != right {
            return drop(answer.expect(409));
        }
        assert_eq!(answer.expect(200).body["version"], right + 1);
        let name = product.name.filter(|_| !clears);
        self.change(&id, name, Some(maker));
    }

    async fn delete(&mut self) {
        let id = self.dice.ids(1).remove(0);
        let right = self.products.get(&id).map_or(1, |product| product.version);
        let sent = self.dice.version(right);
        let answer = self.app.delete(&format!("{PRODUCTS}?productId={id}&currentVersion={sent}")).await;
        if !self.products.contains_key(&id) {
            answer.expect(404);
        } else if sent != right {
            answer.expect(409);
        } else {
            answer.expect(204);
            self.products.remove(&id);
            self.told.push(("PRODUCT_DELETED", id, right + 1));
        }
    }

    async fn act(&mut self) {
        let (ids, taxonomy, action) = (self.dice.ids(3), self.dice.roll(3), self.dice.of(&ACTIONS));
        let class = if self.dice.one_in(20) { 2 } else { self.dice.roll(2) };
        let items: Vec<(String, i64)> = ids
            .into_iter()
            .map(|id| {
                let right = self.products.get(&id).map_or(0, |product| product.assignments[taxonomy].version);
                let sent = self.dice.version(right);
                (id, sent)
            })
            .collect();
        let given = if action == "ASSIGN" { format!("&productClass={}", CLASSES[class]) } else { String::new() };
        let path = format!("/assignments/{}?assignmentAction={action}{given}", TAXONOMIES[taxonomy]);
        let named: Vec<(&str, i64)> = items.iter().map(|(id, version)| (id.as_str(), *version)).collect();
        let answer = self.app.patch(&path, action_body(&named)).await;
        for (id, _) in &items {
            let pending = self.products.get_mut(id).into_iter().flat_map(|product| &mut product.assignments);
            pending.filter(|assignment| assignment.auto == "PENDING").for_each(|one| one.auto = "ABORTED");
        }
        if items.iter().any(|(id, _)| !self.products.contains_key(id)) {
            return drop(answer.expect(404));
        }
        if items.iter().any(|(id, sent)| self.products[id].assignments[taxonomy].version != *sent) {
            return drop(answer.expect(409));
        }
        let sufficient = class < 2 && self.sufficient[taxonomy][class];
        let after: Option<Vec<Assignment>> = items
            .iter()
            .map(|(id, _)| self.products[id].assignments[taxonomy].after(action, CLASSES[class], sufficient))
            .collect();
        match after.filter(|_| action != "ASSIGN" || class < 2) {
            None => drop(answer.expect(422)),
            Some(after) => {
                answer.expect(200);
                for ((id, _), after) in items.iter().zip(after) {
                    self.products.get_mut(id).expect("a product").assignments[taxonomy] = after;
                }
            }
        }
    }

    async fn label(&mut self) {
        let (id, taxonomy, label) = (self.dice.ids(1).remove(0), self.dice.roll(3), self.dice.roll(LABELS.len()));
        let attach = self.dice.one_in(2);
        let uuid = match self.products.contains_key(&id) {
            true => self.app.assignment(TAXONOMIES[taxonomy], &id).await["assignmentUuid"].clone(),
            false => json!("00000000-0000-0000-0000-000000000000"),
        };
        let body = json!({"assignmentUuids": [uuid], "labels": [LABELS[label]]});
        let answer = self.app.call(if attach { "PUT" } else { "DELETE" }, "/assignments", body).await;
        let Some(product) = self.products.get_mut(&id) else { return drop(answer.expect(404)) };
        if label == 2 {
            return drop(answer.expect(422));
        }
        answer.expect(200);
        let labels = &mut product.assignments[taxonomy].labels;
        if attach {
            labels.insert(LABELS[label])
        } else {
            labels.remove(LABELS[label])
        };
    }

    async fn requeue(&mut self) {
        let ids = self.dice.ids(3);
        let items: Vec<Value> = ids.iter().map(|id| json!({"productId": id})).collect();
        let answer = self.app.post("/assignments/auto-assignment", json!({"products": items})).await;
        if ids.iter().any(|id| !self.products.contains_key(id)) {
            return drop(answer.expect(404));
        }
        let mut queued = 0;
        for id in &ids {
            let product = self.products.get_mut(id).expect("a product");
            let open = product.assignments.iter_mut().filter(|one| one.status == "UNASSIGNED");
            queued += usize::from(open.map(|one| one.auto = "PENDING").count() > 0);
        }
        assert_eq!(answer.expect(200).body["queued"], queued);
    }

    async fn assign(&mut self) {
        while let Some(batch) = self.app.store.claim_auto_assignments(100).await.expect("a claim") {
            let (batch, results) = decide_by(batch, rule).await;
            batch.complete(&results).await.expect("stored");
        }
        for product in self.products.values_mut() {
            let found = found(product.name);
            for one in product.assignments.iter_mut().filter(|one| one.auto == "PENDING") {
                one.status = match found {
                    None => "UNASSIGNED",
                    Some((_, false)) => "REJECTED",
                    Some((_, true)) => "ASSIGNED",
                };
                one.class = found.map(|(class, _)| class);
                one.strategy = found.map(|_| "DESCRIPTION");
                one.version += 1;
                one.auto = "DONE";
            }
        }
    }

    async fn step(&mut self) {
        match self.dice.roll(20) {
            0..=2 => self.create().await,
            3..=5 => self.put().await,
            6..=8 => self.patch().await,
            9 => self.delete().await,
            10..=14 => self.act().await,
            15 | 16 => self.label().await,
            17 => self.requeue().await,
            18 => self.assign().await,
            _ => self.look().await,
        }
    }

    /// Compares one product.
    async fn look(&mut self) {
        let id = self.dice.ids(1).remove(0);
        let answer = self.app.get(&format!("{PRODUCTS}/{id}")).await;
        match self.products.get(&id) {
            None => drop(answer.expect(404)),
            Some(product) => same_product(product, &answer.expect(200).body),
        }
    }

    /// Compares everything: products, assignments, counts.
    async fn compare(&self) {
        let listed = self.app.get(&format!("{PRODUCTS}?size=1000")).await.expect(200).body;
        let listed = listed["items"].as_array().expect("items");
        assert_eq!(listed.len(), self.products.len());
        for ((id, product), shown) in self.products.iter().zip(listed) {
            assert_eq!(shown["productId"], id.as_str());
            same_product(product, shown);
        }
        for (at, taxonomy) in TAXONOMIES.iter().enumerate() {
            let path = format!("/assignments/{taxonomy}?assignmentStatus=ALL&size=1000");
            let listed = self.app.get(&path).await.expect(200).body;
            let listed = listed["items"].as_array().expect("items");
            assert_eq!(listed.len(), self.products.len());
            let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
            for ((id, product), shown) in self.products.iter().zip(listed) {
                assert_eq!(shown["productId"], id.as_str());
                same_assignment(&product.assignments[at], shown);
                *counts.entry(product.assignments[at].status).or_default() += 1;
            }
            let counted = self.app.get(&format!("/assignments/{taxonomy}/counts?by=assignmentStatus")).await;
            let counted = counted.expect(200).body;
            let of = |item: &Value| (item["assignmentStatus"].as_str().map(str::to_owned), item["count"].as_i64());
            let counted: BTreeMap<_, _> = counted["items"].as_array().expect("items").iter().map(of).collect();
            let wanted = counts.into_iter().map(|(status, count)| (Some(status.to_owned()), Some(count)));
            assert_eq!(counted, wanted.collect());
        }
    }

    /// Compares what the feed tells of products with what was done to them.
    async fn compare_feed(&self) {
        let (mut after, mut told) = ("0".to_owned(), Vec::new());
        let types = "types=PRODUCT_CREATED&types=PRODUCT_UPDATED&types=PRODUCT_DELETED";
        while told.len() < self.told.len() {
            let page =
                self.app.get(&format!("/changes?after={after}&size=1000&wait=30&{types}")).await.expect(200).body;
            for item in page["items"].as_array().expect("items") {
                let text = |field: &str| item[field].as_str().expect("a text").to_owned();
                told.push((text("type"), text("productId"), item["version"].as_i64().expect("a version")));
            }
            after = page["next"].as_str().expect("a place").to_owned();
        }
        let wanted: Vec<_> =
            self.told.iter().map(|(kind, id, version)| ((*kind).to_owned(), id.clone(), *version)).collect();
        assert_eq!(told, wanted);
    }
}

fn same_product(product: &Product, shown: &Value) {
    let mut wanted = Product::document(product.name, product.maker);
    wanted["productDetails"]["productAssignments"] = shown["productDetails"]["productAssignments"].clone();
    let names = |value: &Value| value["languageAttributes"]["de"]["productName"].clone();
    assert_eq!(shown["version"], product.version);
    assert_eq!(names(&shown["productDetails"]), names(&wanted["productDetails"]));
    assert_eq!(shown["productDetails"]["manufacturerName"], wanted["productDetails"]["manufacturerName"]);
}

fn same_assignment(one: &Assignment, shown: &Value) {
    let told = (
        shown["assignmentStatus"].as_str(),
        shown["productClass"].as_str(),
        shown["strategy"].as_str(),
        version(shown),
        shown["autoAssignment"].as_str(),
        shown["reviewNeeded"].as_bool(),
        shown["labels"].as_array().expect("labels").iter().filter_map(Value::as_str).collect::<BTreeSet<&str>>(),
    );
    let wanted =
        (Some(one.status), one.class, one.strategy, one.version, Some(one.auto), Some(one.review), one.labels.clone());
    assert_eq!(told, wanted, "{shown}");
}

/// Where the test is; tells it when the test fails, so that it can be run again up to there.
struct Place(u64, usize);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MODEL_SEED={} MODEL_STEPS={}", self.0, self.1);
        }
    }
}

#[tokio::test]
async fn random_operations_do_what_a_plain_model_of_them_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = number("MODEL_SEED").unwrap_or_else(|| getrandom::u64().expect("random bits") >> 32);
    let steps = number("MODEL_STEPS").map_or(STEPS, |steps| steps as usize);
    println!("MODEL_SEED={seed}");
    let mut place = Place(seed, 0);
    let mut model = Model::new(seed).await;
    for step in 1..=steps {
        place.1 = step;
        model.step().await;
        if step % COMPARED_EVERY == 0 || step == steps {
            model.compare().await;
        }
    }
    model.compare_feed().await;
}
