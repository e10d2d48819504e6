//! Tables as they are after years, filled without going through the interface.

use sqlx::AssertSqlSafe;

use crate::app::App;

/// Columns of an assignment and what stands in each, unless a test says otherwise.
const ASSIGNMENT: [(&str, &str); 7] = [
    ("auto_state", "'DONE'"),
    ("status", "'ASSIGNED'"),
    ("strategy", "'DESCRIPTION'"),
    ("product_class", "'847130-00-000'"),
    ("confidence", "0.9"),
    ("labels", "'{}'"),
    ("review_needed", "false"),
];

/// Stores so many products, `p1` and so on, each with an assignment of TARIC, in whose columns these expressions stand.
/// They may name the columns of `products`, and `$1`, how many there are.
pub(crate) async fn fill(app: &App, products: i64, own: &[(&str, &str)]) {
    let of = |(column, usual): (&'static str, &'static str)| {
        own.iter().find(|(own, _)| *own == column).map_or(usual, |(_, expression)| *expression).to_owned()
    };
    let unknown = own.iter().find(|(own, _)| ASSIGNMENT.iter().all(|(column, _)| column != own));
    assert!(unknown.is_none(), "{unknown:?} is not filled");
    let columns = ASSIGNMENT.map(|(column, _)| column).join(", ");
    let values = ASSIGNMENT.map(of).join(", ");
    for statement in [
        "insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications,
                               application_tags, application_issues)
         select account_id, 0, 'p' || i, 1, '{}', '{}', '{}', '{}', '[]' from accounts, generate_series(1, $1) as i"
            .to_owned(),
        format!(
            "insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, {columns})
             select gen_random_uuid(), account_id, product_key, 0, product_id, shop_id, {values}
             from products where $1 > 0"
        ),
    ] {
        let filled = sqlx::query(AssertSqlSafe(statement)).bind(products).execute(app.store.pool()).await;
        filled.expect("filled");
    }
}

/// Adds the counts up, and lets the database look at what it has.
pub(crate) async fn settle(app: &App) {
    app.store.fold_counts().await.expect("folded");
    for table in ["products", "assignments", "assignment_counts", "assignment_count_changes"] {
        let analyze = AssertSqlSafe(format!("vacuum analyze {table}"));
        sqlx::raw_sql(analyze).execute(app.store.pool()).await.expect("analyzed");
    }
}
