-- Lists of what few assignments are, and of a class.

-- What needs a review, and what was given up, is one in a hundred or fewer: every order of them has an index of its own, so
-- that a page is read from its beginning. Rows that are neither are in none of these.
drop index assignments_to_review;
create index assignments_to_review on assignments (account_id, taxonomy, status, product_id, shop_id) where review_needed;
create index assignments_to_review_by_confidence
    on assignments (account_id, taxonomy, status, coalesce(confidence, -1), product_id, shop_id) where review_needed;
create index assignments_to_review_by_update
    on assignments (account_id, taxonomy, status, updated_at, product_id, shop_id) where review_needed;
create index assignments_to_review_by_impact
    on assignments (account_id, taxonomy, status, impact, product_id, shop_id) where review_needed;

create index assignments_aborted
    on assignments (account_id, taxonomy, status, product_id, shop_id) where auto_state = 'ABORTED';
create index assignments_aborted_by_confidence
    on assignments (account_id, taxonomy, status, coalesce(confidence, -1), product_id, shop_id)
    where auto_state = 'ABORTED';
create index assignments_aborted_by_update
    on assignments (account_id, taxonomy, status, updated_at, product_id, shop_id) where auto_state = 'ABORTED';
create index assignments_aborted_by_impact
    on assignments (account_id, taxonomy, status, impact, product_id, shop_id) where auto_state = 'ABORTED';

-- A class may be that of many or few. Its index tells the status and all that lists are sorted by, so that the places of few
-- are found in it alone and only what a page shows is fetched.
drop index assignments_by_class;
create index assignments_by_class
    on assignments (account_id, taxonomy, product_class collate "C", status, product_id, shop_id)
    include (product_key, confidence, updated_at, impact)
    where product_class is not null;
