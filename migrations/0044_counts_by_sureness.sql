-- Counts that stay small at a million assignments, and answer ranges of confidence.
--
-- Headings and bands of confidence were kept together, which made a row for nearly every twentieth of every heading: tens
-- of thousands to add up for the chart of the chapters alone. They are kept apart now. Kinds of rows: 1 the day of the
-- last change (UTC), 2 a label, as before; 3 the heading; 4 the chapter and the twentieth in which the confidence lies;
-- 5 the hundredth in which it lies.

set local statement_timeout = 0;

-- Nobody changes assignments between the old counts and the new.
lock table assignments in share row exclusive mode;

-- The hundredth of a confidence as answers show it, with four decimals; -1 without a confidence.
create function confidence_hundredth(confidence real) returns smallint language sql immutable parallel safe as $$
    select case when confidence is null then -1 else least(floor((confidence + 0.00005) * 100)::integer, 99) end::smallint
$$;

drop function assignment_cells(text, smallint, date, text[]);

-- Where an assignment of a kind is counted.
create function assignment_cells(head text, hundredth smallint, day date, labels text[])
    returns table (kind smallint, value text, band smallint) language sql immutable parallel safe as $$
    values (1::smallint, day::text, (-1)::smallint),
           (3::smallint, split_part(coalesce(head, ''), '-', 1), (-1)::smallint),
           (4::smallint, left(split_part(coalesce(head, ''), '-', 1), 2),
            case when hundredth < 0 then hundredth else hundredth / 5 end::smallint),
           (5::smallint, '', hundredth)
    union all select 2::smallint, label, (-1)::smallint from unnest(labels) as label
$$;

create or replace function count_assignments() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, count(*) as n
              from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, sure, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    elsif tg_op = 'DELETE' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, -sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, count(*) as n
              from removed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, sure, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    else
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, sum(sign) as n
              from (select 1 as sign, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from added
                    union all
                    select -1, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from removed) as rows
              group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 having sum(sign) <> 0) as kinds,
             assignment_cells(head, sure, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9
        having sum(n) <> 0;
    end if;
    return null;
end
$$;

truncate assignment_counts, assignment_count_changes;

-- What there is already.
insert into assignment_counts
select account_id, taxonomy, kind, status, coalesce(strategy, ''), auto_state, review_needed, value, cell.band, count(*)
from assignments,
     assignment_cells(left(product_class, 4), confidence_hundredth(confidence),
                      (updated_at at time zone 'UTC')::date, labels) as cell
group by 1, 2, 3, 4, 5, 6, 7, 8, 9;

-- Each kind lies together, so that a count reads its rows and no others, with what it needs in the index.
alter table assignment_counts drop constraint assignment_counts_pkey;
alter table assignment_counts add primary key (account_id, taxonomy, kind, status, value, band, strategy, auto_state,
    review_needed);
