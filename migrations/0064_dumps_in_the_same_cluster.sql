-- A dump that is restored in the cluster that it was taken from is noticed, too: cluster and timeline are the same there,
-- and the table is another one.

-- The table that the base was written in; what a dump brings is the number of the one that was dumped.
alter table journal_base add column relation oid;
update journal_base set relation = 'journal_base'::regclass::oid;
