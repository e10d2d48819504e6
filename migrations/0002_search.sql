-- What search keeps in the database: the projection that answers filterCriteria where there is no Elasticsearch,
-- the indices that are being fed where there is one, and the products that could not be indexed.

create extension if not exists pg_trgm;

-- One row per product, written from search_outbox; it can be rebuilt from products at any time. Texts are in NFKC with
-- case folded by the service, so that comparing them needs no rule of the database's own.
create table search_documents (
    product_key bigint primary key,
    -- Null once the product is deleted: the row then only keeps its version, so that no late write brings the product
    -- back, until it is removed a day later.
    account_id bigint,
    shop_id bigint not null,
    product_id text collate "C" not null,
    version bigint not null,
    country text collate "C",
    id_text text collate "C" not null,
    -- By language: the texts of a field, one per line.
    keyword_texts jsonb not null,
    name_texts jsonb not null,
    tag_texts jsonb not null,
    -- By language: the words of each text, one text per line, with a blank before and behind every word.
    keyword_words jsonb not null,
    name_words jsonb not null,
    tag_words jsonb not null,
    -- The texts of all languages, one per line: what the trigram indices are made of.
    all_keywords text collate "C" not null,
    all_names text collate "C" not null,
    all_tags text collate "C" not null,
    written_at timestamptz not null default now()
);

-- Pages are read in this order. A product that was deleted and made again may be here twice for a moment.
create index search_documents_listed on search_documents (account_id, shop_id, product_id);
create index search_documents_id on search_documents using gin (id_text gin_trgm_ops);
create index search_documents_keywords on search_documents using gin (all_keywords gin_trgm_ops);
create index search_documents_names on search_documents using gin (all_names gin_trgm_ops);
create index search_documents_tags on search_documents using gin (all_tags gin_trgm_ops);

create index search_documents_removed on search_documents (written_at) where account_id is null;

-- The indices that changes are written to: the one that answers searches, and for the time of a rebuild also the one
-- that will. The table above has a row of its own once it is filled.
create table search_indexes (
    name text primary key,
    -- The prefix of the indices in Elasticsearch, or postgresql.
    family text not null,
    mapping_version integer not null,
    building boolean not null,
    created_at timestamptz not null default now()
);

-- Versions of products that the search engine refused for what they hold. A later version is tried afresh.
create table search_parked (
    product_key bigint primary key,
    account_id bigint not null,
    version bigint not null,
    reason text not null,
    parked_at timestamptz not null default now()
);
