-- An account goes from one database to another while both serve others.

-- AWAY: it is being copied to another database. HERE: it is being copied into this one. COPIED: all of it is here, and it
-- may be still there. In each case requests are asked to come again, since which of the two is in force is not decided.
alter table accounts add column moving text check (moving in ('AWAY', 'HERE', 'COPIED'));
