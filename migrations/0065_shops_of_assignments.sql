-- Lists of a shop that has many global products.

set local statement_timeout = 0;

-- With which shops its global product is associated; null for none, which takes no room. A list of a shop looked up each
-- global product on its way, 37,000 of 10,000,000 for a page where a shop has one in 150.
alter table assignments add column shop_ids bigint[];

create function assignments_follow_shops() returns trigger language plpgsql as $$
begin
    update assignments set shop_ids = nullif(new.shop_ids, '{}')
    where product_key = new.product_key and shop_ids is distinct from nullif(new.shop_ids, '{}');
    return null;
end $$;

-- Where a service of the version before writes products, these keep the column true.
create trigger products_associated after insert on products
    for each row when (new.shop_ids <> '{}') execute function assignments_follow_shops();
create trigger products_associated_anew after update of shop_ids on products
    for each row when (old.shop_ids is distinct from new.shop_ids) execute function assignments_follow_shops();

-- No count knows a shop.
alter table assignments disable trigger assignments_changed;
update assignments set shop_ids = products.shop_ids
from products where products.shop_ids <> '{}' and assignments.product_key = products.product_key;
alter table assignments enable trigger assignments_changed;

-- Rows of products without such shops are in none of these.
create index assignments_associated_by_product
    on assignments (account_id, taxonomy, status, product_id, shop_id) where shop_ids is not null;
create index assignments_associated_by_confidence
    on assignments (account_id, taxonomy, status, coalesce(confidence, -1), product_id, shop_id) where shop_ids is not null;
create index assignments_associated_by_update
    on assignments (account_id, taxonomy, status, updated_at, product_id, shop_id) where shop_ids is not null;
create index assignments_associated_by_impact
    on assignments (account_id, taxonomy, status, impact, product_id, shop_id) where shop_ids is not null;
