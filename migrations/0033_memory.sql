-- What people decided, remembered so that products that are alike are classified by it.
--
-- The journal tells of every decision in the transaction that makes it, whichever way it came (one product, many, an
-- action taken back); what is remembered follows from it there.

create table memory_decisions (
    account_id bigint not null,
    assignment_uuid uuid not null,
    product_key bigint not null,
    taxonomy smallint not null,
    -- 1: the class is right. -1: it is wrong. 0: what was decided has been taken back; kept for a day, so that every
    -- service hears of it.
    verdict smallint not null check (verdict between -1 and 1),
    product_class text,
    -- The product's texts as they were when the decision was made; it is remembered when the product is gone, too.
    texts jsonb not null,
    decided_at timestamptz not null default now(),
    -- The transaction that wrote the row. A service reads the rows of those that it has not seen yet: none is missed and
    -- none waits for a transaction that still runs.
    changed_in xid8 not null default pg_current_xact_id(),
    primary key (account_id, assignment_uuid)
);

create index memory_decisions_changed on memory_decisions (changed_in, assignment_uuid);
create index memory_decisions_taken_back on memory_decisions (decided_at) where verdict = 0;

-- Decisions whose alike products have yet to be looked at, each account's in its order.
create table memory_lessons (
    lesson_id bigint generated always as identity,
    account_id bigint not null,
    assignment_uuid uuid not null,
    -- Alike products up to this key have been looked at.
    worked_to bigint not null default -1,
    primary key (account_id, lesson_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

create function remember_decision() returns trigger language plpgsql as $$
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
    if new.action in ('ASSIGN', 'APPROVE') or (new.action = 'UNDO' and new.status = 'APPROVED') then
        told := 1;
    elsif new.action = 'REJECT' then
        told := -1;
    elsif new.action = 'UNASSIGN' and before = 1 then
        -- A person's own word, taken back.
        told := 0;
    elsif new.action = 'UNASSIGN' then
        told := -1;
        if before = -1 then
            return null;
        end if;
        select product_class into class from journal
        where product_key = new.product_key and taxonomy = new.taxonomy and sequence < new.sequence
          and status is not null
        order by sequence desc limit 1;
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

create trigger journal_decisions after insert on journal for each row
    when (new.action in ('ASSIGN', 'APPROVE', 'REJECT', 'UNASSIGN', 'UNDO') and new.taxonomy is not null)
    execute function remember_decision();

-- The weightiest words of each product, by which alike ones are found: hashes of word and account together, so that no
-- account looks through the products of another.
create table product_words (
    product_key bigint primary key,
    account_id bigint not null,
    words integer[] not null
);

create index product_words_words on product_words using gin (words);

create function forget_words() returns trigger language plpgsql as $$
begin
    delete from product_words using gone where product_words.product_key = gone.product_key;
    return null;
end
$$;

create trigger products_words_deleted after delete on products referencing old table as gone
    for each statement execute function forget_words();

-- Products that are there already get their words when auto-assignment comes by; nothing else of them changes.
insert into auto_queue (account_id, product_key) select account_id, product_key from products;
