-- Lists of what carries a label, and of what is most at stake among what is about so sure.

set local statement_timeout = 0;

-- Few assignments are labelled, and which label one carries is no order: every order of those that carry any has an index of
-- its own, so that a page of a frequent label is read from its beginning. Rows without a label are in none of these; what
-- few carry is found by `assignments_labelled`, as before.
create index assignments_labelled_by_product
    on assignments (account_id, taxonomy, status, product_id, shop_id) where labels <> '{}';
create index assignments_labelled_by_confidence
    on assignments (account_id, taxonomy, status, coalesce(confidence, -1), product_id, shop_id) where labels <> '{}';
create index assignments_labelled_by_update
    on assignments (account_id, taxonomy, status, updated_at, product_id, shop_id) where labels <> '{}';
create index assignments_labelled_by_impact
    on assignments (account_id, taxonomy, status, impact, product_id, shop_id) where labels <> '{}';

-- What is at stake hangs together with how sure a class is, so that a list of a range of confidence by what is at stake would go
-- past most of a status. In each hundredth it is in order, and the beginnings of a hundred hundredths are soon merged.
create index assignments_by_impact_of_hundredth
    on assignments (account_id, taxonomy, status, confidence_hundredth(confidence), impact, product_id, shop_id)
    include (product_key, confidence)
    where confidence is not null;
