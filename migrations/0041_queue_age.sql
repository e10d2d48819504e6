-- How long products wait for auto-assignment, for whoever watches the service.

alter table auto_queue add column queued_at timestamptz not null default now();
