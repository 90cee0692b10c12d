//! What can go wrong with a migration.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::{Cause, DbError};

/// Migrations that were not applied; the schema and the data are as they were.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The list given is not numbered 1, 2, 3 and so on. Fix the caller.
    #[error("migration {expected} of `{file}` is numbered {found}; versions count up from 1")]
    Numbering {
        /// The database to migrate.
        file: String,
        /// The number that belongs at this place of the list.
        expected: u32,
        /// The number found there.
        found: u32,
    },
    /// The database could not be read. The source says what to do.
    #[error("failed to read the migrations of `{file}`")]
    Inspect {
        /// The database to migrate.
        file: String,
        source: DbError,
    },
    /// A newer binary has migrated the database. Tell the user to use that binary again.
    #[error(
        "the database `{file}` is at version {found}, newer than version {known} that this binary \
         knows; install the newer version again, or restore a backup"
    )]
    Newer {
        /// The database to migrate.
        file: String,
        /// The version of the database.
        found: u32,
        /// The newest version in the list given.
        known: u32,
    },
    /// A migration was edited after it had been applied. Fix the caller.
    #[error(
        "migration {version} (`{name}`) of `{file}` was changed after it had been applied; restore \
         its text and add a new migration instead"
    )]
    Changed {
        /// The database to migrate.
        file: String,
        version: u32,
        name: String,
    },
    /// The record of applied migrations has a gap. Restore a backup.
    #[error("the database `{file}` has no record of its migration {version}, but of a later one")]
    Gap {
        /// The database to migrate.
        file: String,
        /// The first version missing.
        version: u32,
    },
    /// The copy that must precede a migration could not be made. Tell the user.
    #[error("could not copy `{file}` to `{}` before migrating it", backup.display())]
    Backup {
        /// The database to migrate.
        file: String,
        /// Where the copy was to be.
        backup: PathBuf,
        /// What the engine or the operating system said.
        source: Cause,
    },
    /// One of the migrations failed, and none was applied. Fix that migration.
    #[error("migration {version} (`{name}`) of `{file}` failed at line {line}")]
    Apply {
        /// The database to migrate.
        file: String,
        version: u32,
        name: String,
        /// The line of its text, from 1.
        line: usize,
        source: DbError,
    },
    /// The migrations would leave rows pointing to nothing. Fix the migrations.
    #[error("the migrations of `{file}` leave rows of `{table}` that point to no row")]
    Dangling {
        /// The database to migrate.
        file: String,
        /// The first table with such rows.
        table: String,
    },
    /// The transaction around the migrations could not be begun or committed, or the database
    /// could not be opened for it. The source says what to do.
    #[error("could not begin or commit the migration of `{file}`")]
    Transaction {
        /// The database to migrate.
        file: String,
        source: DbError,
    },
    /// The handle does not work, or not any more. The source says what to do.
    #[error("could not ask `{file}` to migrate")]
    Handle {
        /// The database to migrate.
        file: String,
        source: DbError,
    },
}
