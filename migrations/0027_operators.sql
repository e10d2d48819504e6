-- Tokens that are lost can be ended, and accounts can go without leaving anything behind.

-- By which operators name a token: it tells nothing of the token itself. Old tokens get one, too.
alter table tokens
    add column token_id text not null default left(replace(gen_random_uuid()::text, '-', ''), 12)
        constraint tokens_id unique,
    -- Written at most once an hour.
    add column last_used_at timestamptz;

-- When an account was deleted. What requests write that were under way then is erased by a job; the row, which by
-- then holds no name, follows a day later.
alter table accounts add column deleted_at timestamptz;

create index accounts_deleted on accounts (deleted_at) where deleted_at is not null;
