-- Vacuum of tables that grow with products.

-- By the server's own settings a table is vacuumed when a fifth of it is dead: of 30,000,000 assignments 6,000,000 rows, and
-- until then indices that tell everything by themselves go to the table for each row, and lists pass what is gone. A fixed
-- number keeps the work of one round, and what a page may pass, the same at every size.
alter table assignments set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
alter table journal set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
alter table products set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
alter table search_documents set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
alter table product_words set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000);
