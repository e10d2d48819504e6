-- When a VAT rule begins or ends, the assignments whose class it touches are judged again.

-- The assignments of a class, in the order in which their rows are locked.
create index assignments_class on assignments (taxonomy, product_class, product_key) where product_class is not null;

-- What the assignments were last judged by as a whole: a fingerprint of taxonomies and rules, and the day.
create table rule_state (
    only_row boolean primary key default true check (only_row),
    rule_set text not null,
    judged_on date not null
);
