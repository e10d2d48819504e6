-- How many assignments there are of each kind, so that a count reads some thousand rows and not ten million.
--
-- Every statement that changes assignments appends what it adds and takes to assignment_count_changes, in its own
-- transaction: nothing is overwritten, so that no writer waits for another. A job adds them up into assignment_counts.
-- Both together are exact at every moment.

create table assignment_counts (
    account_id bigint not null,
    taxonomy smallint not null,
    -- What value and band are: 0 the heading (four digits, or fewer, or none) and the band of confidence; 1 the day of the
    -- last change (UTC); 2 a label.
    kind smallint not null,
    status text collate "C" not null,
    -- Empty where there is none.
    strategy text collate "C" not null,
    auto_state text collate "C" not null,
    review_needed boolean not null,
    value text collate "C" not null,
    -- Twentieths, 0 to 19; -1 without a confidence.
    band smallint not null,
    count bigint not null,
    primary key (account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, band)
);

create table assignment_count_changes (
    account_id bigint not null,
    taxonomy smallint not null,
    kind smallint not null,
    status text collate "C" not null,
    strategy text collate "C" not null,
    auto_state text collate "C" not null,
    review_needed boolean not null,
    value text collate "C" not null,
    band smallint not null,
    count bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

create index assignment_count_changes_account on assignment_count_changes (account_id, taxonomy, kind);

-- The band of a confidence as answers show it, with four decimals.
create function confidence_band(confidence real) returns smallint language sql immutable parallel safe as $$
    select case when confidence is null then -1 else least(floor((confidence + 0.00005) * 20)::integer, 19) end::smallint
$$;

-- Where an assignment of a kind is counted.
create function assignment_cells(head text, within smallint, day date, labels text[])
    returns table (kind smallint, value text, band smallint) language sql immutable parallel safe as $$
    values (0::smallint, split_part(coalesce(head, ''), '-', 1), within), (1::smallint, day::text, (-1)::smallint)
    union all select 2::smallint, label, (-1)::smallint from unnest(labels) as label
$$;

-- Rows are first put together as they are, of which a statement has few kinds, and only those are told apart.
create function count_assignments() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_band(confidence) as band, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, count(*) as n
              from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, kinds.band, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    elsif tg_op = 'DELETE' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, -sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_band(confidence) as band, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, count(*) as n
              from removed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, kinds.band, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    else
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_band(confidence) as band, (updated_at at time zone 'UTC')::date as day,
                     labels collate "C" as labels, sum(sign) as n
              from (select 1 as sign, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from added
                    union all
                    select -1, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from removed) as rows
              group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 having sum(sign) <> 0) as kinds,
             assignment_cells(head, kinds.band, day, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9
        having sum(n) <> 0;
    end if;
    return null;
end
$$;

create trigger assignments_added after insert on assignments
    referencing new table as added for each statement execute function count_assignments();
create trigger assignments_changed after update on assignments
    referencing new table as added old table as removed for each statement execute function count_assignments();
create trigger assignments_removed after delete on assignments
    referencing old table as removed for each statement execute function count_assignments();

-- What there is already.
insert into assignment_counts
select account_id, taxonomy, kind, status, coalesce(strategy, ''), auto_state, review_needed, value, cell.band, count(*)
from assignments,
     assignment_cells(left(product_class, 4), confidence_band(confidence), (updated_at at time zone 'UTC')::date, labels)
         as cell
group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
