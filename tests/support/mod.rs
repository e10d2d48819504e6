//! Real PostgreSQL and real Elasticsearch for tests, started where the environment names none.
//!
//! Nothing is skipped: a test whose server cannot be had fails and says what is missing. Nothing outlives the tests: a
//! watchdog ends each server with the process it was started for, however that ends.
//!
//! Each test binary uses a part of this.
#![allow(dead_code, unused_imports)]

mod containers;
mod database;
mod elasticsearch;
mod outage;
mod pooler;
mod watchdog;

pub(crate) use database::{RESTORED, TestDatabase, database, empty_database};
pub(crate) use elasticsearch::elasticsearch;
pub(crate) use outage::OwnServer;
pub(crate) use pooler::{Pooler, pooler};
