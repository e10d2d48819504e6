-- Rebuilds of the search index go on where they stopped, and a database that was put back to an earlier state is noticed.

-- The key of the last product that is safely in an index that is being built; null where nothing is yet.
alter table search_indexes add column built_to bigint;

-- Whether the index may hold what the database no longer does: it answers until it is built anew.
alter table search_indexes add column stale boolean not null default false;

-- The timeline of the cluster that the base goes with: it grows when a backup is restored to a point in time, or a
-- standby takes over. What happened after that point may have been seen by clients and by the search index.
alter table journal_base add column timeline integer;
