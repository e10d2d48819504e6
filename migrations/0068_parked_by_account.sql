-- What an operator asks of one account's parked work reads that account's alone, in the order in which it is listed.
create index search_parked_account on search_parked (account_id, product_key);
create index auto_parked_product on auto_parked (product_key);
