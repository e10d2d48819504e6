-- How sure a decision by text must be before it is made, as each account wants it.

-- Share of the decisions that are meant to be right, in per cent: the lower, the more is decided.
alter table accounts
    add column decision_precision smallint not null default 95
        check (decision_precision in (90, 95, 98));
