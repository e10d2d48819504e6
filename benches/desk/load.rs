//! Makes the database: products as shops have them, and their assignments as they are after some months.

use std::path::Path;
use std::time::Instant;

use sqlx::{AssertSqlSafe, Connection, Executor as _, PgConnection};
use vat_classification::domain::Taxonomy;
use vat_classification::reference::Reference;
use vat_classification::store::Store;

use crate::service::run;

/// Products that are written at once.
const BATCH: i64 = 20_000;

/// The URL of the database for so many assignments on a server.
pub(crate) fn database_of(server: &str, assignments: i64) -> anyhow::Result<String> {
    let mut url: url::Url = server.parse()?;
    url.set_path(&name(assignments));
    Ok(url.to_string())
}

fn name(assignments: i64) -> String {
    format!("vat_classification_bench_desk_{assignments}")
}

pub(crate) async fn load(server: &str, database: &str, assignments: i64) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut connection = PgConnection::connect(server).await?;
    let name = name(assignments);
    connection.execute(AssertSqlSafe(format!("drop database if exists {name} with (force)"))).await?;
    connection.execute(AssertSqlSafe(format!("create database {name}"))).await?;
    let store = Store::connect(database).await?;
    store.migrate().await?;
    for account in ["bench", "other"] {
        run(database, &["account", "create", account])?;
    }
    let account: i64 =
        sqlx::query_scalar("select account_id from accounts where name = 'bench'").fetch_one(store.pool()).await?;
    let reference = Reference::load(Path::new("models"))?;
    let subheadings = reference.nomenclature(Taxonomy::Taric).codes().filter(|code| code.digits() == 6);
    let codes: Vec<String> = subheadings.map(|code| code.to_string()).collect();
    for first in (1..=assignments).step_by(BATCH as usize) {
        let last = (first + BATCH - 1).min(assignments);
        sqlx::query(PRODUCTS).bind(account).bind(first).bind(last).execute(store.pool()).await?;
        sqlx::query(ASSIGNMENTS).bind(account).bind(first).bind(last).bind(&codes).execute(store.pool()).await?;
        sqlx::query(JOURNAL).bind(account).bind(first).bind(last).execute(store.pool()).await?;
    }
    // Otherwise all would be judged by the rules of the day, and much of it changed, while reads are measured.
    store.set_rule_state(&reference.rule_set, chrono::Utc::now().date_naive(), None).await?;
    // The migration left products to be looked at by nobody; what is open in the queue is not part of this.
    let mut inside = PgConnection::connect(database).await?;
    while store.fold_counts().await? > 0 {}
    // Nothing here searches: without this the service would build its index of ten million products while reads are measured.
    inside.execute(BUILT).await?;
    inside.execute("vacuum analyze").await?;
    println!("{assignments} products with an assignment each in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The index of searches, as if it were there.
const BUILT: &str = "
insert into search_indexes (name, family, mapping_version, building) values ('postgresql', 'postgresql', 1, false)";

const PRODUCTS: &str = "
insert into products (account_id, shop_id, product_id, version, shop_ids, details, applications, application_tags,
                      application_issues)
select $1, case when n % 100 = 7 then 1 + n % 5 else 0 end, 'P-' || lpad(n::text, 8, '0'), 1,
       case when n % 50 = 3 then array[1 + n % 3] else '{}' end,
       jsonb_build_object('languageAttributes', jsonb_build_object(
           'de', jsonb_build_object(
               'productName', de[1 + n % 10] || ' ' || n,
               'productDescription', 'Ein schönes Produkt aus gutem Material, für den täglichen Gebrauch im Haushalt '
                   || 'und auf Reisen. Farbe nach Wahl, Lieferung im Karton. Artikel ' || n,
               'productTags', jsonb_build_array('Haushalt', 'Saison ' || n % 30)),
           'en', jsonb_build_object('productName', en[1 + n % 10] || ' ' || n))),
       '{}', '{}', '[]'
from generate_series($2, $3) as n,
     (values (array['Herren T-Shirt Baumwolle', 'USB-C Ladekabel 2 m', 'Kaffeebohnen geröstet 1 kg',
                    'Holzpuzzle für Kinder', 'LED Lampe E27', 'Damen Lederstiefel', 'Haarspülung 250 ml',
                    'Edelstahl Bratpfanne 28 cm', 'Gartenschlauch 20 m', 'Notizbuch A5 liniert'],
              array['mens cotton t-shirt', 'USB-C charging cable 2 m', 'roasted coffee beans 1 kg',
                    'wooden puzzle for children', 'LED lamp E27', 'womens leather boots', 'hair conditioner 250 ml',
                    'stainless steel frying pan 28 cm', 'garden hose 20 m', 'notebook A5 lined'])) as names (de, en)";

/// A quarter has no class; of the rest most wait for a person. Few classes have many products, most have few. A part is
/// labelled; the days of the last change go back three months.
const ASSIGNMENTS: &str = "
insert into assignments (assignment_uuid, account_id, product_key, taxonomy, product_id, shop_id, shop_ids, status,
                         strategy, product_class, confidence, version, auto_state, review_needed, labels, updated_at, risk)
select gen_random_uuid(), $1, product_key, 0, product_id, shop_id, nullif(shop_ids, '{}'), status,
       case when status in ('APPROVED', 'DENIED') then 'MANUAL'
            when status <> 'UNASSIGNED' and n % 5 = 0 then 'CUSTOMS-CODE'
            when status <> 'UNASSIGNED' then 'DESCRIPTION' end,
       case when status <> 'UNASSIGNED' then ($4::text[])[1 + floor(power(pick, 3) * cardinality($4::text[]))::int]
            || '-00-000' end,
       case when status <> 'UNASSIGNED' then (0.5 + 0.5 * sqrt(sure))::real end,
       1, case when n % 100 = 2 then 'ABORTED' else 'DONE' end, n % 200 = 9,
       case when n % 20 = 4 then array['label ' || n % 17]
            when n % 100 = 5 then array['label ' || n % 17, 'season'] else '{}' end,
       now() - make_interval(secs => 90 * 86400 * age), (sure * 20)::real
from (select product_key, product_id, shop_id, shop_ids, n, random() as pick, random() as sure, random() as age,
             case when r < 0.25 then 'UNASSIGNED' when r < 0.55 then 'REJECTED' when r < 0.93 then 'ASSIGNED'
                  when r < 0.99 then 'APPROVED' else 'DENIED' end as status
      from (select product_key, product_id, shop_id, shop_ids, substring(product_id from 3)::bigint as n, random() as r
            from products where account_id = $1 and product_id >= 'P-' || lpad($2::text, 8, '0')
                            and product_id <= 'P-' || lpad($3::text, 8, '0') offset 0) as drawn offset 0) as made";

/// That each product was made, as the feed tells it, and that every tenth was decided.
const JOURNAL: &str = "
insert into journal (sequence, account_id, product_key, product_id, shop_id, taxonomy, action, actor, status, version)
select start + row_number() over () - 1, $1, product_key, product_id, shop_id, taxonomy, action, 'bench', status, 1
from (select journal_sequence(0)) as first (start) cross join products
     cross join (values (1, null::smallint, 'PRODUCT_CREATED', null), (10, 0::smallint, 'AUTO_ASSIGN', 'ASSIGNED'))
          as event (each, taxonomy, action, status)
where account_id = $1 and product_id >= 'P-' || lpad($2::text, 8, '0') and product_id <= 'P-' || lpad($3::text, 8, '0')
      and product_key % each = 0";
