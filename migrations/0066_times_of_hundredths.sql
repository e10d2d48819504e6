-- Lists of a range of confidence by the time of the last change, where few are selected.

set local statement_timeout = 0;

-- It tells now all that a list is sorted by; a page of 15,000 looked each up in the table.
drop index assignments_by_impact_of_hundredth;
create index assignments_by_impact_of_hundredth
    on assignments (account_id, taxonomy, status, confidence_hundredth(confidence), impact, product_id, shop_id)
    include (product_key, confidence, updated_at)
    where confidence is not null;
