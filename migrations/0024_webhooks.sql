-- Webhooks: addresses to which changes are sent as they happen.

-- A webhook follows the journal of its account: `position` is how far its deliveries are made, so that none is lost
-- however long a receiver or the service is away.
create table webhooks (
    webhook_id uuid primary key,
    account_id bigint not null references accounts on delete cascade,
    url text not null,
    -- Types of changes that are sent.
    types text[] not null,
    -- Null for all taxonomies.
    taxonomy smallint check (taxonomy between 0 and 2),
    -- The key of signatures. It is needed as it is, with every delivery.
    secret bytea not null,
    disabled_at timestamptz,
    disabled_reason text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    position bigint not null,
    -- Rounds in a row in which nothing was delivered, and when the next round may be.
    failures integer not null default 0,
    next_round_at timestamptz not null default now(),
    -- The service that makes a round; the lease ends by itself when that service does.
    lease uuid,
    leased_until timestamptz
);

create index webhooks_account on webhooks (account_id, created_at);

-- Deliveries that are made or were made lately. In order for each product: one that is pending holds back those behind it.
create table webhook_deliveries (
    webhook_id uuid not null references webhooks on delete cascade,
    -- The sequence of the change in the journal.
    sequence bigint not null,
    -- The same at every attempt, so that a receiver knows a repetition.
    message_id uuid not null,
    product_key bigint not null,
    product_id text not null,
    type text not null,
    body text not null,
    delivered_at timestamptz,
    attempts integer not null default 0,
    first_attempt_at timestamptz,
    last_attempt_at timestamptz,
    next_attempt_at timestamptz not null default now(),
    last_status smallint,
    last_error text,
    created_at timestamptz not null default now(),
    primary key (webhook_id, sequence)
);

create index webhook_deliveries_pending on webhook_deliveries (webhook_id, product_key, sequence)
    where delivered_at is null;

alter table webhook_deliveries set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
