-- A delivery that its receiver always refuses is given up by itself, and does not stop the others of its webhook.

-- When the receiver last took a delivery: who takes nothing for three days has the webhook disabled.
alter table webhooks add column taken_at timestamptz;

alter table webhook_deliveries
    -- Since when the receiver is known to refuse this one while it takes others; null while it may be away altogether.
    add column overtaken_at timestamptz,
    -- Whether it ended without being taken. Then `delivered_at` says when it ended, by which the version before knows
    -- that it is not to be sent any more.
    add column given_up boolean not null default false;
