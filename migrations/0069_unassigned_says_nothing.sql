-- Who unassigns a product leaves it open: no decision of a person stands, so that nothing is remembered, neither for the class
-- that it had nor against it. Who says that a class is wrong rejects it or assigns another.

create or replace function remember_decision() returns trigger language plpgsql as $$
declare
    decided uuid;
    before smallint;
    told smallint;
    class text := new.product_class;
begin
    select assignment_uuid into decided from assignments
    where product_key = new.product_key and taxonomy = new.taxonomy;
    if decided is null then
        return null;
    end if;
    select verdict into before from memory_decisions
    where account_id = new.account_id and assignment_uuid = decided;
    if new.action in ('ASSIGN', 'APPROVE') then
        told := 1;
    elsif new.action = 'UNDO' and new.strategy = 'MANUAL' and new.status <> 'DENIED' then
        -- What a person had said before stands again. A rejected class was said to be wrong, unless it was assigned and
        -- only leaves rates open.
        select case when new.status = 'REJECTED' and earlier.action = 'REJECT' then -1 else 1 end into told
        from journal as earlier
        where product_key = new.product_key and taxonomy = new.taxonomy and sequence < new.sequence
          and earlier.action in ('ASSIGN', 'APPROVE', 'REJECT') and earlier.status = new.status
          and earlier.product_class is not distinct from new.product_class
        order by sequence desc limit 1;
        told := coalesce(told, 1);
    elsif new.action = 'REJECT' then
        told := -1;
    else
        told := 0;
    end if;
    if class is null then
        told := 0;
    end if;
    if told = 0 and coalesce(before, 0) = 0 then
        return null;
    end if;
    insert into memory_decisions (account_id, assignment_uuid, product_key, taxonomy, verdict, product_class, texts)
    select new.account_id, decided, new.product_key, new.taxonomy, told, class,
           jsonb_strip_nulls(jsonb_build_object('languageAttributes', details -> 'languageAttributes'))
    from products where product_key = new.product_key
    on conflict (account_id, assignment_uuid) do update
    set verdict = excluded.verdict, product_class = excluded.product_class, texts = excluded.texts,
        decided_at = now(), changed_in = pg_current_xact_id();
    insert into memory_lessons (account_id, assignment_uuid) values (new.account_id, decided);
    return null;
end
$$;
