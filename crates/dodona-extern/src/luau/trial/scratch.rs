//! A database for one test, with the plugin's migrations.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dodona_plugin::reading::Problem;
use dodona_plugin::store::{DatabaseLimits, Durability, MigrateError, Store, StoreOptions};
use serde_json::Value;

use crate::database::{DbSession, PluginDb, Statement, Wanted};
use crate::migrations;

/// A database in a temporary directory, which is removed at the end.
pub(super) struct Scratch {
    store: Store,
    folder: PathBuf,
    db: PluginDb,
}

impl Scratch {
    /// Creates it, migrates it, and fills it with a test's own statements.
    pub(super) async fn create(plugin: &Path, sql: &[String]) -> Result<Self, String> {
        let folder = folder();
        let options = StoreOptions::default();
        let store = Store::open(&folder, options).map_err(|error| error.to_string())?;
        let limits = DatabaseLimits {
            max_bytes: 64 << 20,
            statement_time: Duration::from_secs(5),
            max_value_bytes: 16 << 20,
        };
        let db = store.bounded_database("test.db", Durability::Rebuildable, limits);
        let migrations = migrations::read(plugin).map_err(|problems| brief(&problems))?;
        let migrated = db.migrate(migrations).await;
        let db = PluginDb::new(db);
        let scratch = Self { store, folder, db };
        if let Err(error) = migrated {
            let why = migration_fault(&error);
            scratch.remove().await;
            return Err(why);
        }
        for sql in sql {
            let filled = scratch.run(sql, Wanted::Changes).await;
            if let Err(why) = filled {
                scratch.remove().await;
                return Err(format!("`{sql}`: {why}"));
            }
        }
        Ok(scratch)
    }

    /// What a script gets.
    pub(super) fn session(&self) -> DbSession {
        DbSession::new(self.db.clone())
    }

    /// Runs a statement of the test itself.
    pub(super) async fn run(&self, sql: &str, wanted: Wanted) -> Result<Value, String> {
        let statement = Statement::read(&sql.into(), &Value::Null)?;
        self.db.run(statement, wanted).await
    }

    pub(super) async fn remove(self) {
        self.store.close().await;
        let _ = fs::remove_dir_all(self.folder);
    }
}

/// A failing migration, with file, line and cause.
pub(super) fn migration_fault(error: &MigrateError) -> String {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(std::error::Error::source).or(cause);
    let why = cause.map(ToString::to_string).unwrap_or_default();
    match error {
        MigrateError::Apply { name, line, .. } => format!("{name}:{line}: {why}"),
        error => format!("{error}: {why}"),
    }
}

fn brief(problems: &[Problem]) -> String {
    problems.first().map(Problem::brief).unwrap_or_default()
}

/// A name that no other test has.
fn folder() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.as_nanos());
    let id = std::process::id();
    std::env::temp_dir().join(format!("dodona-test-{id}-{nanos}-{number}"))
}
