-- How large products are, and where the objects of pictures lie.

-- Waiting for the index is worth more than a limit that leaves the service without it.
set local statement_timeout = 0;

-- Bytes of the details as JSON, by which claims and pages are kept small. Null where a version wrote the row that did
-- not count them.
alter table products add column details_size integer;

-- By which object a picture is known: to tell in one look whether an object still has one.
create unique index pictures_object on pictures (object_key);

-- The store of objects that holds it, by a name that the store keeps itself: the directory of one host is not that of
-- another. Null where it is not known.
alter table pictures add column place text;
alter table orphaned_objects add column place text;

-- Objects are removed in the order in which they were orphaned, or last tried to be removed in vain.
create index orphaned_objects_due on orphaned_objects (orphaned_at);
