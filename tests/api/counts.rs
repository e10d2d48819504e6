//! How many assignments there are: counts that are exact after every change, and lists and counts that read no whole table.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use vat_classification::domain::Taxonomy;
use vat_classification::domain::assignment::Status;
use vat_classification::store::assignments::{AssignmentFilter, AssignmentOrder, CountBy, ListRequest};

use crate::app::{App, version};
use crate::filling::{fill, settle};
use crate::review::{list, mixed};

fn counted(body: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let item = |item: &Value| {
        let fields = item.as_object().expect("an object").iter().filter(|(name, _)| *name != "count");
        let values = fields.map(|(_, value)| value).chain([&item["count"]]);
        values.map(text).collect::<Vec<_>>().join(" ")
    };
    body["items"].as_array().expect("items").iter().map(item).collect()
}

#[tokio::test]
async fn counts_are_exact_after_every_change_folded_or_not() {
    let app = mixed().await;
    let counts = |query: &'static str| {
        let app = &app;
        async move { counted(&app.get(&format!("/assignments/TARIC/counts?{query}")).await.expect(200).body) }
    };
    let today = chrono::Utc::now().format("%Y-%m-%d").to_string();
    for folded in [false, true] {
        if folded {
            assert!(app.store.fold_counts().await.expect("folded") > 0);
            assert_eq!(app.store.fold_counts().await.expect("folded"), 0);
        }
        assert_eq!(counts("by=assignmentStatus").await, ["ASSIGNED 3", "REJECTED 1", "UNASSIGNED 1"]);
        assert_eq!(counts("by=strategy").await, ["CUSTOMS-CODE 4", "null 1"]);
        assert_eq!(counts("by=autoAssignment").await, ["DONE 5"]);
        assert_eq!(counts("by=reviewNeeded").await, ["false 5"]);
        assert_eq!(counts("by=chapter").await, ["09 3", "19 1", "null 1"]);
        assert_eq!(counts("by=heading&productClass=09").await, ["0901 2", "0902 1"]);
        assert_eq!(counts("by=chapter,assignmentStatus&assignmentStatus=REJECTED").await, ["REJECTED 19 1"]);
        assert_eq!(counts("by=day").await, [format!("{today} 5")]);
        assert_eq!(counts("by=label").await, Vec::<String>::new());
        // What is kept and what is counted one by one agree.
        assert_eq!(counts("by=chapter&confidenceFrom=0").await, ["09 3", "19 1"]);
        assert_eq!(counts("by=assignmentStatus&shopId=7").await, ["ASSIGNED 3"]);
        assert_eq!(counts("by=heading&productClass=090121").await, ["0901 2"]);
    }
    let bands = counts("by=confidenceBand").await;
    assert!(bands.iter().any(|band| band.ends_with(" 1") && band.starts_with("null")), "{bands:?}");
    assert!(bands.iter().any(|band| band.starts_with("0.9")), "{bands:?}");

    app.act("TARIC", "tea", "DENY", 1).await.expect(200);
    app.post("/assignments/assignment-labels", json!({"label": "red", "color": "#FF0000"})).await.expect(201);
    let uuids: Vec<Value> = list(&app, "productClass=09").await["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["assignmentUuid"].clone())
        .collect();
    app.put("/assignments", json!({"assignmentUuids": uuids, "labels": ["red"]})).await.expect(200);
    app.delete("/products/global?productId=bread&currentVersion=1").await.expect(204);
    for folded in [false, true] {
        if folded {
            app.store.fold_counts().await.expect("folded");
        }
        assert_eq!(counts("by=assignmentStatus").await, ["ASSIGNED 2", "DENIED 1", "UNASSIGNED 1"]);
        assert_eq!(counts("by=label,assignmentStatus").await, ["ASSIGNED red 2", "DENIED red 1"]);
        assert_eq!(counts("by=strategy&labels=red").await, ["CUSTOMS-CODE 2", "MANUAL 1"]);
        assert_eq!(counts("by=label,chapter").await, ["09 red 3"]);
    }
    app.get("/assignments/HS/counts?by=day").await.expect(404);
    for bad in ["", "by=status", "by=day,day", "by=day&size=1", "by=day&assignmentStatus=NEW"] {
        app.get(&format!("/assignments/TARIC/counts?{bad}")).await.expect(400);
    }
}

#[tokio::test]
async fn counts_of_ranges_and_of_what_is_left_out_agree_with_lists() {
    let app = App::start().await;
    fill(&app, 3_000, &VARIED).await;
    settle(&app).await;
    for statement in [
        "update assignments set confidence = (product_key % 997) / 997.0, updated_at = now() - make_interval(hours => product_key::int % 90)",
        "update assignments set labels = labels || 'blue'::text where product_key % 7 = 0 and product_key < 200",
        "update assignments set status = 'UNASSIGNED', product_class = null, strategy = null, confidence = null
         where product_key % 11 = 0",
        "update products set shop_ids = array[4] where product_key % 13 = 0",
    ] {
        sqlx::query(statement).execute(app.store.pool()).await.expect(statement);
    }
    let since = (Utc::now() - chrono::TimeDelta::hours(40)).to_rfc3339().replace("+00:00", "Z");
    for folded in [false, true] {
        if folded {
            while app.store.fold_counts().await.expect("folded") > 0 {}
        }
        for filter in [
            "confidenceFrom=0.85&confidenceTo=0.8999".to_owned(),
            "confidenceFrom=0.1234&confidenceTo=0.9".to_owned(),
            "confidenceFrom=0.501&confidenceTo=0.508".to_owned(),
            "confidenceTo=0.25&assignmentStatus=REJECTED".to_owned(),
            "confidenceFrom=0.9951".to_owned(),
            "labels=!rare".to_owned(),
            "labels=!rare,!blue&productClass=17".to_owned(),
            "labels=blue,!rare".to_owned(),
            format!("updatedFrom={since}"),
            format!("updatedFrom={since}&updatedTo={since}"),
            "strategy=MANUAL&reviewNeeded=true".to_owned(),
            "shopId=4".to_owned(),
            "shopId=4&labels=rare".to_owned(),
            "productClass=1234".to_owned(),
        ] {
            let all = if filter.contains("assignmentStatus") { "" } else { "&assignmentStatus=ALL" };
            let mut found = 0;
            for sort in ["productId", "confidence", "impact", "-updatedAt"] {
                let order = if sort == "productId" { String::new() } else { format!("&sort={sort}") };
                let mut next = Some(format!("/assignments/TARIC?{filter}{all}&size=1000&count=true{order}"));
                let mut total = None;
                found = 0;
                while let Some(path) = next {
                    let page = app.get(&path).await.expect(200).body;
                    found += page["items"].as_array().map_or(0, Vec::len) as i64;
                    total = total.or(page["total"].as_i64());
                    next = page["links"]["next"].as_str().map(str::to_owned);
                }
                assert_eq!(total, Some(found), "{filter} by {sort}");
            }
            for by in ["assignmentStatus", "chapter", "confidenceBand", "day"] {
                let counts = app.get(&format!("/assignments/TARIC/counts?by={by}&{filter}")).await.expect(200).body;
                let items = counts["items"].as_array().expect("items");
                let sum: i64 = items.iter().filter_map(|item| item["count"].as_i64()).sum();
                assert_eq!(sum, found, "{filter} by {by}");
                assert!(items.iter().all(|item| item["count"].as_i64() > Some(0)), "{filter} by {by}: {counts}");
            }
        }
    }
}

#[tokio::test]
async fn a_shop_with_many_products_lists_its_own_and_what_is_associated_with_it() {
    let app = App::start().await;
    fill(&app, 10_400, &VARIED).await;
    // As an earlier version writes: of the shops of an assignment's product it knows nothing.
    for statement in [
        "update products set shop_ids = array[4, 9] where product_key % 2 = 0",
        "update products set shop_ids = array[4] where product_key % 2 = 1",
        "with made as (
             insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                                   application_tags, application_issues)
             select account_id, 0, 'old', 1, '{9}', '{}', '{}', '{}', '[]' from accounts returning *
         )
         insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, auto_state)
         select gen_random_uuid(), account_id, product_key, 0, product_id, shop_id, 'DONE' from made",
    ] {
        sqlx::query(statement).execute(app.store.pool()).await.expect(statement);
    }
    let of_shops = |shops: &[i64]| json!({"shopIds": shops, "productDetails": {"manufacturerName": "M"}});
    let made = json!({"new": of_shops(&[9]), "gone": of_shops(&[9]), "other": of_shops(&[4])});
    app.post("/products/global", made).await.expect(201);
    app.post("/shops/9/products/local", json!({"own": of_shops(&[])})).await.expect(201);
    for (id, shops) in [("gone", &[4][..]), ("p3", &[9, 4]), ("p4", &[])] {
        let path = format!("/products/global?productId={id}&currentVersion=1");
        app.put(&path, of_shops(shops)).await.expect(200);
    }
    let mut wanted: Vec<String> = (1..=10_400).filter(|n| n % 2 == 0 && *n != 4).map(|n| format!("p{n}")).collect();
    wanted.extend(["old", "new", "own", "p3"].map(str::to_owned));
    wanted.sort();
    let surer: Vec<String> = wanted.iter().filter(|id| id.starts_with('p')).cloned().collect();
    // The range ends with a confidence that only products of another shop have.
    let number = |id: &String| id[1..].parse::<usize>().expect("a number");
    let less_sure: Vec<String> = surer.iter().filter(|id| number(id) % 20 <= 11).cloned().collect();
    for (query, wanted) in [
        ("", &wanted),
        ("&sort=confidence", &wanted),
        ("&sort=-confidence", &wanted),
        ("&sort=updatedAt", &wanted),
        ("&sort=-updatedAt", &wanted),
        ("&sort=impact", &wanted),
        ("&sort=impact&confidenceFrom=0.5", &surer),
        ("&confidenceTo=0.91", &less_sure),
        ("&sort=-updatedAt&confidenceTo=0.91", &less_sure),
        ("&sort=impact&confidenceTo=0.91", &less_sure),
    ] {
        let mut found: Vec<String> = Vec::new();
        let mut next = Some(format!("/assignments/TARIC?assignmentStatus=ALL&shopId=9&size=1000{query}"));
        while let Some(path) = next {
            let page = app.get(&path).await.expect(200).body;
            let ids = page["items"].as_array().expect("items").iter().filter_map(|item| item["productId"].as_str());
            found.extend(ids.map(str::to_owned));
            next = page["links"]["next"].as_str().map(str::to_owned);
        }
        assert!(!query.is_empty() || found.is_sorted(), "in the order of ids");
        found.sort();
        assert!(found == *wanted, "{query}: {} instead of {}", found.len(), wanted.len());
    }
}

/// What assignments of a large account are.
const VARIED: [(&str, &str); 7] = [
    ("auto_state", "case when product_key % 250 = 1 then 'ABORTED' else 'DONE' end"),
    ("status", "case when product_key % 200 = 0 then 'REJECTED' else 'ASSIGNED' end"),
    ("strategy", "case when product_key % 300 = 0 then 'MANUAL' else 'DESCRIPTION' end"),
    ("product_class", "(1000 + product_key % 900)::text || '-00-000'"),
    ("confidence", "0.8 + (product_key % 20) / 100.0"),
    (
        "labels",
        "case when product_key % 500 = 0 then array['rare'] when product_key % 3 = 1 then array['stock'] else '{}' end",
    ),
    ("review_needed", "product_key % 400 = 0"),
];

#[tokio::test]
async fn no_list_and_no_count_reads_a_whole_table() {
    let app = App::start().await;
    fill(&app, 20_000, &VARIED).await;
    let associated = "update products set shop_ids = array[9] where product_key % 20 = 0";
    sqlx::query(associated).execute(app.store.pool()).await.expect("associated");
    settle(&app).await;
    let account = app.caller("anna").await.account;
    let rejected = AssignmentFilter { statuses: vec![Status::Rejected], ..AssignmentFilter::default() };
    let all = AssignmentFilter::default();
    let filters = [
        ("all", all.clone()),
        ("a rare status", rejected.clone()),
        ("two statuses", AssignmentFilter { statuses: vec![Status::Rejected, Status::Denied], ..all.clone() }),
        ("a label", AssignmentFilter { with_labels: vec!["rare".to_owned()], ..all.clone() }),
        ("a frequent label", AssignmentFilter { with_labels: vec!["stock".to_owned()], ..all.clone() }),
        ("in need of review", AssignmentFilter { review_needed: Some(true), ..all.clone() }),
        (
            "decided by people",
            AssignmentFilter {
                strategies: vec![vat_classification::domain::assignment::Strategy::Manual],
                ..all.clone()
            },
        ),
        ("given up", AssignmentFilter { auto_states: vec!["ABORTED".to_owned()], ..all.clone() }),
        ("a class", AssignmentFilter { class_prefix: Some("1234".to_owned()), ..all.clone() }),
        ("a shop", AssignmentFilter { shop: vat_classification::domain::ShopId::local(9), ..all.clone() }),
        ("products", AssignmentFilter { product_ids: Some(vec!["p1".to_owned(), "p2".to_owned()]), ..all.clone() }),
    ];
    // What has indices for itself: one for each order, or one that tells all orders.
    let told = [
        ("in need of review", "Scan using assignments_to_review", "Scan Backward using assignments_to_review"),
        ("given up", "Scan using assignments_aborted", "Scan Backward using assignments_aborted"),
        ("a class", "Index Only Scan using assignments_by_class", "Index Only Scan using assignments_by_class"),
        ("a frequent label", "Scan using assignments_labelled_by", "Scan Backward using assignments_labelled_by"),
        ("a shop", "Scan using assignments_associated_by", "Scan Backward using assignments_associated_by"),
    ];
    for (name, filter) in &filters {
        for order in [
            AssignmentOrder::Product,
            AssignmentOrder::Confidence,
            AssignmentOrder::ConfidenceDown,
            AssignmentOrder::Updated,
            AssignmentOrder::UpdatedDown,
            AssignmentOrder::Impact,
        ] {
            let request = ListRequest { account, taxonomy: Taxonomy::Taric, filter, order, size: 50 };
            let plan = app.store.explain_list(&request, &[CountBy::Status]).await.expect("a plan");
            for line in &plan {
                let scans = ["Seq Scan on assignments", "Seq Scan on products"].iter().any(|scan| line.contains(scan));
                assert!(!scans, "{name} {order:?}:\n{}", plan.join("\n"));
            }
            // A page in the order of an index needs no sort of everything; only merged beginnings are sorted.
            let sorted = plan.iter().any(|line| line.contains("Sort") && line.contains("rows=20"));
            assert!(!sorted, "{name} {order:?}:\n{}", plan.join("\n"));
            if let Some((_, up, down)) = told.iter().find(|(told, ..)| told == name) {
                let by_index = plan.iter().any(|line| line.contains(up) || line.contains(down));
                assert!(by_index, "{name} {order:?}:\n{}", plan.join("\n"));
                assert!(*name == "a class" || !plan.iter().any(|line| line.contains("few")), "{}", plan.join("\n"));
            }
        }
    }
    for by in [CountBy::Chapter, CountBy::ConfidenceBand, CountBy::Day, CountBy::Label] {
        let request = ListRequest {
            account,
            taxonomy: Taxonomy::Taric,
            filter: &rejected,
            order: AssignmentOrder::Product,
            size: 50,
        };
        let plan = app.store.explain_list(&request, &[by]).await.expect("a plan");
        assert!(!plan.iter().any(|line| line.contains("Seq Scan on assignments")), "{by:?}: {}", plan.join("\n"));
    }
    let page = app.get("/assignments/TARIC?assignmentStatus=REJECTED&count=true&size=1").await.expect(200).body;
    assert_eq!((&page["total"], version(&page["items"][0])), (&json!(100), 0));
}

#[tokio::test]
async fn a_list_to_which_the_way_is_long_is_sorted_instead() {
    let app = App::start().await;
    fill(&app, 6_000, &[("confidence", "(product_key % 97) / 100.0")]).await;
    let associated = "update products set shop_ids = array[9] where product_key % 200 = 0";
    sqlx::query(associated).execute(app.store.pool()).await.expect("associated");
    for few in ["productClass=8471", "shopId=9"] {
        let path = format!("/assignments/TARIC?assignmentStatus=ALL&{few}&sort=confidence&size=20");
        let undisturbed = app.get(&path).await.expect(200).body;
        // Nobody reads the table now, so that the walk ends without an answer, and what comes after it waits.
        let mut holds = app.store.pool().begin().await.expect("begun");
        sqlx::raw_sql("lock table assignments in access exclusive mode").execute(&mut *holds).await.expect("held");
        let waits = "select max(waitstart) from pg_locks where not granted and relation = 'assignments'::regclass
                     and database = (select oid from pg_database where datname = current_database())";
        let let_go_at_the_second = async {
            let mut begun = std::collections::BTreeSet::new();
            while begun.len() < 2 {
                let wait: Option<DateTime<Utc>> =
                    sqlx::query_scalar(waits).fetch_one(app.store.pool()).await.expect("a look");
                begun.extend(wait);
                tokio::task::yield_now().await;
            }
            holds.rollback().await.expect("let go");
        };
        let (sorted, ()) = tokio::join!(app.get(&path), let_go_at_the_second);
        let sorted = sorted.expect(200).body;
        assert_eq!(sorted["items"], undisturbed["items"], "{few}");
        assert_eq!(sorted["items"].as_array().map(Vec::len), Some(20), "{few}");
    }
}
