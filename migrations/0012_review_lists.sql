-- The reviewer's lists: their order and their filters are answered from indices, at ten million assignments as at ten.

alter table assignments
    -- What is at stake if the class is wrong: the chance of that, times how far the VAT rates of the classes in
    -- question lie apart, in percentage points.
    add column risk real not null default 0,
    -- How much the product matters to the merchant (productDetails.reviewWeight); 1 where nothing is said.
    add column review_weight real not null default 1,
    add column impact real not null generated always as (risk * review_weight) stored;

-- Each order is kept by status, since a rare status is what reviewers ask for; a list of several statuses merges them.
drop index assignments_listed;
create index assignments_listed on assignments (account_id, taxonomy, status, product_id, shop_id);
create index assignments_by_confidence
    on assignments (account_id, taxonomy, status, coalesce(confidence, -1), product_id, shop_id);
create index assignments_by_update on assignments (account_id, taxonomy, status, updated_at, product_id, shop_id);
create index assignments_by_impact on assignments (account_id, taxonomy, status, impact, product_id, shop_id);

-- Filters that select little.
create index assignments_by_class on assignments (account_id, taxonomy, product_class collate "C", product_id, shop_id)
    where product_class is not null;
create index assignments_labelled on assignments using gin (labels) where labels <> '{}';
create index assignments_to_review on assignments (account_id, taxonomy, product_id, shop_id) where review_needed;
create index assignments_by_people on assignments (account_id, taxonomy, product_id, shop_id)
    where strategy = 'MANUAL';
create index assignments_not_done on assignments (account_id, taxonomy, auto_state, product_id, shop_id)
    where auto_state <> 'DONE';
create index if not exists products_shop_ids on products using gin (shop_ids) where shop_ids <> '{}';
