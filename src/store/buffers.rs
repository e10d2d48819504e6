//! What connections to the database keep in memory between two uses.

use sqlx::Connection;
use sqlx::postgres::PgPoolOptions;

/// Lets connections that are given back keep no more than a few kilobytes for what they send and receive. Each would
/// otherwise keep for ever as much as its largest statement or row took: a body of 32 MiB that every connection has once
/// stored is more than a gigabyte.
pub(super) fn kept_small(pool: PgPoolOptions) -> PgPoolOptions {
    pool.after_release(|connection, _| {
        connection.shrink_buffers();
        Box::pin(async { Ok(true) })
    })
}
