-- How many products hold a part of a word is supposed from a sample of their texts; by it a page of a search goes by the index
-- of parts, or product by product in the order of ids. A hundred texts, as is usual, tell one in a hundred from none;
-- either way may then take seconds. With a thousand, of three million products, the slowest tenth of the pages for parts of three
-- to six characters begins at half the time. The next analyze of the table, which the database makes by itself, brings them.
alter table search_documents alter all_names set statistics 1000;
alter table search_documents alter all_tags set statistics 1000;
alter table search_documents alter all_keywords set statistics 1000;
