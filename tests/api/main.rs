//! The interface as clients see it: the real router on real PostgreSQL, a database for each test.
//!
//! Auto-assignment runs when a test calls for it, so that every order can be forced and nothing sleeps.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod actions;
mod app;
mod assignments;
mod attributes;
mod budgets;
mod bulk;
mod changes;
mod classification;
mod connections;
mod console;
mod counts;
mod deliveries;
mod errors;
mod examples;
mod fairness;
mod feed;
mod feed_http;
mod files;
mod filling;
mod forced;
mod housekeeping;
mod idempotency;
mod instances;
mod labels;
mod limits;
mod lists;
mod memory;
mod model;
mod moving;
mod operators;
mod outage;
mod parked;
mod parts;
mod pictures;
mod plans;
mod pooled;
mod pooler;
mod products;
mod races;
mod reads;
mod review;
mod rule_changes;
mod subcommands;
mod tenants;
mod transfers;
mod upgrades;
mod webhooks;
