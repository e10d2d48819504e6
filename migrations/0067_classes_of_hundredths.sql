-- Counts by class within a range of confidence.

set local statement_timeout = 0;

-- It tells the class too now, so that a count looks up none of a million assignments in the table.
drop index assignments_by_impact_of_hundredth;
create index assignments_by_impact_of_hundredth
    on assignments (account_id, taxonomy, status, confidence_hundredth(confidence), impact, product_id, shop_id)
    include (product_key, confidence, updated_at, product_class)
    where confidence is not null;
