-- The feed of changes no longer loses events, a start no longer reads the journal, and what cannot be worked off is
-- set aside.

-- The horizon has to come from the snapshot of the query that uses it. A volatile function takes a newer one of its own
-- under read committed: what commits between the two would lie below the horizon, unseen, and the reader's cursor would
-- pass it for ever. A stable function shares the snapshot of its caller.
alter function journal_horizon() stable;

-- The cluster whose transaction ids the base goes with. Only in another one, such as that of a restored dump, is the
-- highest sequence looked for.
alter table journal_base add column cluster bigint;

-- Products whose auto-assignment failed for what they hold: they are out of the queue until they change or are sent
-- again, and keep what they were assigned before.
create table auto_parked (
    account_id bigint not null,
    product_key bigint not null,
    reason text not null,
    parked_at timestamptz not null default now(),
    primary key (account_id, product_key)
);
