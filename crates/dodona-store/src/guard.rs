//! Safety settings for SQL, our own and that of plugins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use crate::clock::StatementClock;
use crate::options::DatabaseLimits;

/// Engine instructions between two checks of the time limit: a few microseconds.
const INSTRUCTIONS: i32 = 10_000;

/// Applies all safety settings. While `guest` is set, SQL may use tables, but not transactions, other files or
/// engine settings.
pub(crate) fn install(conn: &mut Connection, guest: &Arc<AtomicBool>) -> rusqlite::Result<()> {
    // No statement may damage the file, not even through the engine's own tables.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A schema is data: one that was tampered with must not run functions with side effects.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A misspelt column in double quotes is an error, here as in Postgres, and not a text.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    let guest = Arc::clone(guest);
    conn.authorizer(Some(move |context: AuthContext<'_>| {
        if guest.load(Ordering::Relaxed) {
            authorize(context.action)
        } else {
            Authorization::Allow
        }
    }))
}

/// Bounds what statements may cost, for SQL of plugins from outside the program. One function call can
/// allocate as much as a value may have, and runs without a look at the clock.
pub(crate) fn bound(
    conn: &mut Connection,
    limits: &DatabaseLimits,
    clock: &Arc<StatementClock>,
) -> rusqlite::Result<()> {
    let value = i32::try_from(limits.max_value_bytes).unwrap_or(i32::MAX);
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, value),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_VDBE_OP, 1_000_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 50),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        conn.set_limit(limit, most)?;
    }
    let clock = Arc::clone(clock);
    conn.progress_handler(INSTRUCTIONS, Some(move || clock.is_over()))
}

fn authorize(action: AuthAction<'_>) -> Authorization {
    match action {
        // The engine asks for these two on its own account, and they change nothing: the first
        // for full-text search, the second to see whether a new column's rules hold.
        AuthAction::Pragma {
            pragma_name: "data_version" | "quick_check",
            ..
        } => Authorization::Allow,
        AuthAction::Pragma { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Attach { .. }
        | AuthAction::Detach { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }
}
