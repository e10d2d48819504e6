-- Requests that carry an Idempotency-Key, with their answers, for 24 hours.

-- A row is made before the request is done, with a lease that ends if the service dies; its answer comes in the
-- transaction of the change itself. A key belongs to an account and to the level of its token, so that nobody gets an
-- answer that their level would not have got.
create table idempotency_keys (
    account_id bigint not null references accounts on delete cascade,
    level text not null,
    key text collate "C" not null check (char_length(key) between 1 and 255),
    -- Who holds the key while there is no answer.
    attempt uuid not null,
    leased_until timestamptz not null,
    -- SHA-256 of method, path, query and body; all null while the request runs.
    request_hash bytea,
    status smallint,
    -- Pairs of name and value.
    headers jsonb,
    body bytea,
    created_at timestamptz not null default now(),
    primary key (account_id, level, key)
);

create index idempotency_keys_age on idempotency_keys (created_at);

-- What accounts keep, counted now and then: an account beyond its share gets no new keys until old ones are gone.
create table idempotency_usage (
    account_id bigint primary key references accounts on delete cascade,
    keys bigint not null,
    bytes bigint not null
);
