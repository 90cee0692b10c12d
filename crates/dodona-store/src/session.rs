//! One open connection and the transactions run on it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, MAIN_DB, OpenFlags};

use crate::classify;
use crate::clock::StatementClock;
use crate::error::{Cause, DbError};
use crate::files;
use crate::guard;
use crate::job::Job;
use crate::options::{DataLoss, Durability};
use crate::target::Target;
use crate::tx::{Access, Tx};

/// Memory for pages, in KiB. Many databases may be open at once and the operating system caches
/// their files anyway, so both are well below the engine's own default of 2 MiB.
const WRITER_CACHE_KIB: i64 = 512;
const READER_CACHE_KIB: i64 = 256;

/// The size, in bytes, to which the write-ahead log is cut back once it has been written home.
const LOG_BYTES: i64 = 4 << 20;

/// Statements kept prepared per connection.
const PREPARED_STATEMENTS: usize = 32;

/// A connection with every safety switch set.
pub(crate) struct Session {
    conn: Connection,
    file: String,
    access: Access,
    /// Set while a caller's own SQL runs, which may do less than ours.
    guest: Arc<AtomicBool>,
    /// Times a caller's statements, where they are bounded.
    clock: Option<Arc<StatementClock>>,
}

/// A script that failed, and the line at which it did.
pub(crate) struct ScriptError {
    pub(crate) line: usize,
    pub(crate) source: DbError,
}

impl Session {
    /// Opens the database for writing, creating it if need be.
    pub(crate) fn writer(target: &Target) -> Result<Self, DbError> {
        check_loss(target)?;
        files::create_file(&target.path)
            .map_err(|error| classify::file_access(&target.file, &error))?;
        let session = Session::open(target, Access::Write)?;
        // Told to write a file it may only read, the engine opens it for reading instead.
        if session
            .conn
            .is_readonly(MAIN_DB)
            .map_err(|error| session.error(&error))?
        {
            let source = Cause::new("the file could be opened for reading only");
            return Err(DbError::ReadOnly {
                file: session.file,
                source,
            });
        }
        session
            .tune_writer(target)
            .map_err(|error| match session.error(&error) {
                // The database itself is open by now; what cannot be opened are the files that the
                // engine creates beside it.
                DbError::Open { file, source } => DbError::ReadOnly { file, source },
                other => other,
            })?;
        if let Some(registry) = &target.registry
            && !is_absent(target)
        {
            // Only once the first page is in the file: a disk that fails before that leaves an
            // empty file, which must not count as a lost database at the next start.
            registry.add(&target.file, target.durability.into());
        }
        Ok(session)
    }

    /// Undoes what a process that was killed in a transaction left half done, if there is
    /// anything. Only a database that is not in log mode yet can be in that state: its first
    /// moments, until the switch to the log is complete. A connection that cannot write cannot
    /// read it, and would refuse it for ever.
    pub(crate) fn undo_half_done(target: &Target) -> Result<(), DbError> {
        let mut journal = target.path.as_os_str().to_owned();
        journal.push("-journal");
        if !fs::metadata(journal).is_ok_and(|file| file.len() > 0) {
            return Ok(());
        }
        // Any read makes the engine look for it.
        Session::open(target, Access::Write)?.control("SELECT 1 FROM sqlite_schema")
    }

    /// Opens the database without the means to change one byte of it or of its log.
    pub(crate) fn reader(target: &Target) -> Result<Self, DbError> {
        let session = Session::open(target, Access::Read)?;
        session
            .tune_reader()
            .map_err(|error| session.error(&error))?;
        Ok(session)
    }

    /// Opens the database as `reader` does, inside a read transaction.
    pub(crate) fn snapshot(target: &Target) -> Result<Self, DbError> {
        let session = Session::reader(target)?;
        session.control("BEGIN")?;
        Ok(session)
    }

    fn open(target: &Target, access: Access) -> Result<Self, DbError> {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        // One thread owns the connection, so the engine need not lock it.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| classify::opening(&target.file, &error);
        let mut conn = Connection::open_with_flags(&target.path, flags).map_err(failed)?;
        let guest = Arc::new(AtomicBool::new(false));
        guard::install(&mut conn, &guest).map_err(failed)?;
        conn.busy_timeout(target.options.busy_timeout)
            .map_err(failed)?;
        conn.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        let limits = target.limits.as_ref();
        let clock = limits.map(|limits| Arc::new(StatementClock::new(limits.statement_time)));
        if let (Some(limits), Some(clock)) = (limits, &clock) {
            guard::bound(&mut conn, limits, clock).map_err(failed)?;
        }
        Ok(Session {
            conn,
            file: target.file.clone(),
            access,
            guest,
            clock,
        })
    }

    fn tune_writer(&self, target: &Target) -> rusqlite::Result<()> {
        let synchronous = match target.durability {
            Durability::Full => "FULL",
            Durability::Rebuildable => "NORMAL",
        };
        self.conn
            .pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
        self.conn
            .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        self.conn.pragma_update(None, "synchronous", synchronous)?;
        self.conn
            .pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
        let own = target.limits.map(|limits| limits.max_bytes);
        if let Some(bytes) = own.or(target.options.max_database_bytes) {
            let page: u32 = self
                .conn
                .pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages = u32::try_from(bytes / u64::from(page.max(1)))
                .unwrap_or(u32::MAX)
                .max(1);
            self.conn
                .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        Ok(())
    }

    fn tune_reader(&self) -> rusqlite::Result<()> {
        // On Unix a file opened for reading cannot be locked for this anyway; elsewhere the last
        // connection to close would write the log into the database.
        self.conn
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        self.conn
            .pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        self.conn.pragma_update(None, "query_only", true)
    }

    /// Runs our own SQL, such as `COMMIT`. It is not kept prepared: a caller's text equal to it
    /// would be found among the prepared statements and run unchecked.
    pub(crate) fn control(&self, sql: &str) -> Result<(), DbError> {
        self.conn
            .execute_batch(sql)
            .map_err(|error| classify::statement(&self.file, sql, &error))
    }

    /// Runs a caller's work inside the transaction that has been begun.
    pub(crate) fn run(&self, job: &mut dyn Job) -> Result<(), DbError> {
        self.as_guest(|tx| job.run(tx))
    }

    /// Runs a caller's SQL of several statements inside the transaction that has been begun.
    pub(crate) fn run_script(&self, sql: &str) -> Result<(), ScriptError> {
        self.as_guest(|_| {
            let mut batch = Batch::new(&self.conn, sql);
            let mut done = 0;
            loop {
                if let Some(clock) = &self.clock {
                    clock.start();
                }
                let ran = batch.next().and_then(|statement| match statement {
                    None => Ok(None),
                    Some(mut statement) => {
                        statement.raw_query().next()?;
                        // Without parameters this is the original text of the statement.
                        Ok(Some(statement.expanded_sql().map_or(0, |sql| sql.len())))
                    }
                });
                match ran {
                    Ok(None) => return Ok(()),
                    Ok(Some(length)) => done += length,
                    Err(error) => {
                        let rest = &sql[beginning(sql, done)..];
                        let statement = rest.split(';').next().unwrap_or_default();
                        let words: Vec<&str> = statement.split_whitespace().collect();
                        return Err(ScriptError {
                            line: line_of(sql, done, &error),
                            source: classify::statement(&self.file, &words.join(" "), &error),
                        });
                    }
                }
            }
        })
    }

    /// For our own statements with values and answers, inside the transaction that has been begun.
    pub(crate) fn tx(&self) -> Tx<'_> {
        Tx::new(&self.conn, &self.file, self.access, self.clock.as_deref())
    }

    /// Whether a transaction is open. The engine itself ends one on some failures.
    pub(crate) fn in_transaction(&self) -> bool {
        !self.conn.is_autocommit()
    }

    /// The connection, for the parts of the engine that have no SQL.
    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    fn as_guest<R>(&self, work: impl FnOnce(&Tx<'_>) -> R) -> R {
        self.guest.store(true, Ordering::Relaxed);
        let result = work(&self.tx());
        self.guest.store(false, Ordering::Relaxed);
        if let Some(clock) = &self.clock {
            clock.stop();
        }
        result
    }

    fn error(&self, error: &rusqlite::Error) -> DbError {
        classify::opening(&self.file, error)
    }
}

/// The line, from 1, at which a script failed after `done` bytes of it have run: where the engine
/// found the fault, or else where the failing statement begins.
fn line_of(script: &str, done: usize, error: &rusqlite::Error) -> usize {
    let at = match error {
        rusqlite::Error::SqlInputError { sql, offset, .. } => {
            let rest = script.len().saturating_sub(sql.len());
            rest + usize::try_from(*offset).unwrap_or(0)
        }
        _ => beginning(script, done),
    };
    1 + script[..floor(script, at)].matches('\n').count()
}

/// Where the next statement begins: after blank lines and comments.
fn beginning(script: &str, done: usize) -> usize {
    let mut at = floor(script, done);
    loop {
        let rest = &script[at..];
        let blank = rest.len() - rest.trim_start().len();
        let rest = &rest[blank..];
        at += blank;
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len())
        } else {
            return at;
        }
    }
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

fn is_absent(target: &Target) -> bool {
    fs::metadata(&target.path).map_or(true, |found| found.len() == 0)
}

/// Refuses to create a database again that has been there: its loss must not go unnoticed.
fn check_loss(target: &Target) -> Result<(), DbError> {
    let is_known = || {
        let registry = target.registry.as_ref();
        registry.is_some_and(|registry| registry.is_known(&target.file))
    };
    if !is_absent(target) || target.durability == Durability::Rebuildable || !is_known() {
        return Ok(());
    }
    let file = target.file.clone();
    match target.options.data_loss {
        DataLoss::Refused => Err(DbError::Missing { file }),
        DataLoss::Accepted => {
            tracing::warn!(file, "creating a lost database again; its data is gone");
            Ok(())
        }
    }
}
