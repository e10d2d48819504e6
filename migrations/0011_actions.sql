-- What people do with assignments, kept so that it can be told, gone on with after a restart, and taken back.

-- An event tells what it was about as fully as the assignment did then.
alter table journal
    add column confidence real,
    -- What the person wrote beside the action.
    add column comment text,
    -- The action that it was part of.
    add column action_id uuid,
    -- The model that decided.
    add column model_version text,
    -- The labels attached or detached.
    add column labels text[];

-- One action of a person on assignments of one taxonomy: those that a request named, or all that a filter selected.
create table assignment_actions (
    action_id uuid primary key,
    account_id bigint not null references accounts on delete cascade,
    taxonomy smallint not null check (taxonomy between 0 and 2),
    -- One of the six actions, or UNDO.
    action text not null,
    -- The class given with it, and whether it was sufficient that day.
    product_class text,
    sufficient boolean not null default false,
    comment text,
    actor text not null,
    -- The filter that selected, as it was sent.
    filter jsonb,
    -- The action that this one takes back.
    undoes uuid,
    state text not null check (state in ('RUNNING', 'DONE')),
    selected integer not null,
    done integer not null default 0,
    skipped integer not null default 0,
    failed integer not null default 0,
    -- The last product that was worked off: it moves on in the transaction that changes the assignments, so that each
    -- is changed once, whatever dies in between.
    worked_to bigint not null default -1,
    created_at timestamptz not null default now(),
    worked_at timestamptz not null default now(),
    finished_at timestamptz
);

create index assignment_actions_open on assignment_actions (worked_at) where state = 'RUNNING';
create index assignment_actions_finished on assignment_actions (finished_at);
create index assignment_actions_account on assignment_actions (account_id, created_at);
create index assignment_actions_undoes on assignment_actions (undoes) where undoes is not null;

-- The assignments of an action, with what each was before it.
create table assignment_action_items (
    action_id uuid not null references assignment_actions on delete cascade,
    product_key bigint not null,
    product_id text collate "C" not null,
    shop_id bigint not null,
    -- The version that was selected; another one is somebody else's, and is left.
    version bigint not null,
    -- Null until it is worked off.
    outcome text check (outcome in ('DONE', 'SKIPPED', 'FAILED')),
    -- The code of what stood against it.
    reason text,
    status_before text,
    strategy_before text,
    class_before text,
    confidence_before real,
    review_before boolean,
    -- Of the assignment after the action; while they are the same, nobody has changed it since.
    version_after bigint,
    epoch_after bigint,
    review_after boolean,
    primary key (action_id, product_key)
);
