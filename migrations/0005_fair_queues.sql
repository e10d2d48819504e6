-- Queues from which every account is served in turn, however much another one has put in.

set local statement_timeout = 0;

-- 0 where a version wrote the row that did not name the account.
alter table auto_queue add column account_id bigint not null default 0;

update auto_queue set account_id = products.account_id
from products where products.product_key = auto_queue.product_key;

-- The account leads, so that the next account with work, and its oldest work, are one step each.
alter table auto_queue drop constraint auto_queue_pkey;
alter table auto_queue add primary key (account_id, queue_id);
alter table search_outbox drop constraint search_outbox_pkey;
alter table search_outbox add primary key (account_id, outbox_id);

-- The search engine may take its time: a claim of the outbox is not a lock but a lease, which its holder renews, and
-- which ends by itself when the holder does.
alter table search_outbox add column lease uuid;
alter table search_outbox add column leased_until timestamptz;

-- Rows come and go: vacuum follows the number of dead ones, not their share of a table that is mostly empty.
alter table auto_queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
alter table search_outbox set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
    fillfactor = 80);
alter table orphaned_objects set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
