-- Accounts and their credentials, products, assignments, and the journal of what happened to them.
--
-- Rules that hold throughout: all data belongs to an account; a change and the rows that announce it
-- (journal, auto_queue, search_outbox) are written in one transaction; versions and constraints decide races.

create table accounts (
    account_id bigint generated always as identity primary key,
    name text not null unique check (length(name) between 1 and 100),
    plan text not null check (plan in ('UNLIMITED', 'FREE_TRIAL')),
    disabled boolean not null default false,
    created_at timestamptz not null default now()
);

-- Of a token only its SHA-256 is kept. The user name is what the history of an assignment shows.
create table tokens (
    token_hash bytea primary key check (length(token_hash) = 32),
    account_id bigint not null references accounts,
    user_name text not null check (length(user_name) between 1 and 100),
    level text not null check (level in ('READ', 'EDIT', 'ADMIN')),
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz
);

-- Checks used in a calendar month (UTC). An account with a limit counts in shard 0, so that its row lock
-- guards the limit; an account without one spreads over shards, so that its writers do not wait for each other.
create table usage (
    account_id bigint not null references accounts,
    month date not null,
    shard smallint not null,
    used bigint not null,
    primary key (account_id, month, shard)
);

create table merchant_product_attributes (
    account_id bigint not null references accounts,
    field_name text collate "C" not null,
    display_name text,
    description text,
    is_language_specific boolean not null,
    format text not null,
    object_type text not null,
    tags text[] not null,
    created_at timestamptz not null default now(),
    primary key (account_id, field_name)
);

-- A product is known to its account by (shop, product id); shop 0 stands for global products.
-- product_id sorts by code point, which "C" is in UTF-8.
create table products (
    product_key bigint generated always as identity primary key,
    account_id bigint not null references accounts,
    shop_id bigint not null check (shop_id >= 0),
    product_id text collate "C" not null check (char_length(product_id) between 1 and 65),
    version bigint not null check (version >= 1),
    shop_ids bigint[] not null,
    -- The validated productDetails, without productAssignments.
    details jsonb not null,
    -- The applications that were asked for; those that are complete; what the others lack.
    applications text[] not null,
    application_tags text[] not null,
    application_issues jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint products_identity unique (account_id, shop_id, product_id)
);

create table pictures (
    product_key bigint primary key references products on delete cascade,
    -- The key of the bytes in the object store.
    object_key text not null,
    content_type text not null,
    width integer not null,
    height integer not null,
    size bigint not null,
    etag text not null
);

-- Objects that no picture row names any more; a job removes them from the object store.
create table orphaned_objects (
    object_key text primary key,
    orphaned_at timestamptz not null default now()
);

-- One assignment per product and taxonomy. product_id and shop_id repeat the product's, which never change,
-- for listing in their order. Columns that auto-assignment updates stand in no index, so that its updates stay in their page.
create table assignments (
    assignment_uuid uuid primary key,
    account_id bigint not null references accounts,
    product_key bigint not null references products on delete cascade,
    -- 0 TARIC, 1 TARES, 2 UKGT.
    taxonomy smallint not null check (taxonomy between 0 and 2),
    product_id text collate "C" not null,
    shop_id bigint not null,
    status text not null default 'UNASSIGNED'
        check (status in ('UNASSIGNED', 'ASSIGNED', 'APPROVED', 'REJECTED', 'DENIED')),
    strategy text check (strategy in ('DESCRIPTION', 'CUSTOMS-CODE', 'MANUAL')),
    -- Written code-NN-NNN.
    product_class text,
    confidence real,
    version bigint not null default 0,
    auto_state text not null check (auto_state in ('PENDING', 'DONE', 'ABORTED')),
    -- Grows whenever a result in the making must no longer be stored: on abort and on being queued again.
    auto_epoch bigint not null default 0,
    review_needed boolean not null default false,
    labels text[] not null default '{}',
    updated_at timestamptz not null default now(),
    constraint assignments_product unique (product_key, taxonomy),
    check (status not in ('ASSIGNED', 'APPROVED') or product_class is not null),
    check (status <> 'UNASSIGNED' or product_class is null)
) with (fillfactor = 70);

create index assignments_listed on assignments (account_id, taxonomy, product_id, shop_id);

-- Products that wait for auto-assignment. A worker locks rows with `skip locked` for as long as it computes,
-- and deletes them in the transaction that stores the results; a crash gives them back. Several rows may name one product.
create table auto_queue (
    queue_id bigint generated always as identity primary key,
    product_key bigint not null
);

create table assignment_labels (
    account_id bigint not null references accounts,
    label text collate "C" not null,
    color text not null,
    created_at timestamptz not null default now(),
    primary key (account_id, label)
);

-- What happened, for the history of an assignment and for the feed of changes; kept when a product is deleted.
--
-- sequence = (base + transaction id) * 131072 + a number within the transaction. A reader who takes only sequences
-- below the oldest transaction still running sees every row exactly once, in order, and no writer waits for another.
create table journal (
    sequence bigint not null,
    account_id bigint not null,
    product_key bigint not null,
    product_id text collate "C" not null,
    shop_id bigint not null,
    -- Null where the row is about the product itself.
    taxonomy smallint,
    action text not null,
    actor text not null,
    status text,
    strategy text,
    product_class text,
    -- The product's or the assignment's version after the change.
    version bigint not null,
    happened_at timestamptz not null default now()
);

create unique index journal_feed on journal (account_id, sequence);
create index journal_history on journal (product_key, sequence);

-- Raised at start when the database was restored into a cluster whose transaction ids begin lower.
create table journal_base (
    only_row boolean primary key default true check (only_row),
    base bigint not null
);

insert into journal_base (base) values (0);

create function journal_sequence(ordinal bigint) returns bigint language sql volatile as $$
    select ((select base from journal_base) + pg_current_xact_id()::text::bigint) * 131072 + ordinal
$$;

-- The first sequence that a transaction still running could yet write.
create function journal_horizon() returns bigint language sql volatile as $$
    select ((select base from journal_base) + pg_snapshot_xmin(pg_current_snapshot())::text::bigint) * 131072
$$;

-- Products whose entry in the search index is to be written or removed.
create table search_outbox (
    outbox_id bigint generated always as identity primary key,
    product_key bigint not null,
    account_id bigint not null,
    -- The product's version; a deletion has the last version plus one.
    version bigint not null,
    deleted boolean not null,
    queued_at timestamptz not null default now()
);
