-- Products by the shops with which they are associated. Most have none, and cost nothing here.

create index products_shops on products using gin (shop_ids) where shop_ids <> '{}';
