-- Counts are kept at a fraction of what they cost: rows of a statement are put together by what they hold, and what
-- follows from that (the day of an instant, an empty list of labels) is worked out for each kind and not for each row.
--
-- Storing products and their results spent a fifth of the database's time on it before.

create or replace function count_assignments() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, updated_at,
                     case when cardinality(labels) > 0 then labels end as labels, count(*) as n
              from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, sure, (updated_at at time zone 'UTC')::date, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    elsif tg_op = 'DELETE' then
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, -sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, updated_at,
                     case when cardinality(labels) > 0 then labels end as labels, count(*) as n
              from removed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) as kinds,
             assignment_cells(head, sure, (updated_at at time zone 'UTC')::date, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9;
    else
        insert into assignment_count_changes
        select account_id, taxonomy, kind, status, strategy, auto_state, review_needed, value, cell.band, sum(n)
        from (select account_id, taxonomy, status collate "C" as status, coalesce(strategy, '') collate "C" as strategy,
                     auto_state collate "C" as auto_state, review_needed, left(product_class, 4) collate "C" as head,
                     confidence_hundredth(confidence) as sure, updated_at,
                     case when cardinality(labels) > 0 then labels end as labels, sum(sign) as n
              from (select 1 as sign, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from added
                    union all
                    select -1, account_id, taxonomy, status, strategy, auto_state, review_needed, product_class,
                           confidence, updated_at, labels from removed) as rows
              group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 having sum(sign) <> 0) as kinds,
             assignment_cells(head, sure, (updated_at at time zone 'UTC')::date, labels) as cell
        group by 1, 2, 3, 4, 5, 6, 7, 8, 9
        having sum(n) <> 0;
    end if;
    return null;
end
$$;

-- Counts that have come down to nothing are removed without looking through the others.
create index assignment_counts_empty on assignment_counts (account_id) where count = 0;

-- Two migrations made the same index.
drop index if exists products_shop_ids;
