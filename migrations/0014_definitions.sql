-- Labels and attributes can be changed and removed.

alter table assignment_labels
    -- A label that is renamed or removed leaves the assignments that carry it in small steps. Until it is gone from all of
    -- them its name cannot be used anew.
    add column leaving boolean not null default false,
    -- The label that takes its place, where it is renamed.
    add column becomes text collate "C",
    -- Who renamed or removed it.
    add column left_by text;

create index assignment_labels_leaving on assignment_labels (account_id) where leaving;

-- The names of the merchant's attributes that a product has values of.
create function used_attributes(details jsonb) returns text[] language sql immutable parallel safe as $$
    select coalesce(array_agg(distinct name #>> '{}'), '{}') from (
        select jsonb_path_query(details, '$.merchantProductAttributes.keyvalue().key', silent => true)
        union all
        select jsonb_path_query(details, '$.languageAttributes.*.merchantProductAttributes.keyvalue().key', silent => true)
    ) as used (name)
$$;

create index products_attributes on products using gin (used_attributes(details))
    where jsonb_path_exists(details, '$.merchantProductAttributes')
       or jsonb_path_exists(details, '$.languageAttributes.*.merchantProductAttributes');
