//! The switches that keep SQL, ours or a plugin's, from doing harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Sets every safety switch. While `guest` is set, SQL may work with tables but not with
/// transactions, other files or the engine's settings.
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
