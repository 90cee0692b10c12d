//! The threads of a project, in the database of the plugin `thread`.

use dodona_plugin::CallCtx;
use dodona_plugin::store::{Db, DbError, Migration, Tx};
use jiff::Timestamp;

use super::entry::{COLUMNS, Entry, EntryType};
use super::error::{MAX_CONTENT, MAX_ENTRIES, MAX_THREADS, ThreadError};
use super::types::Status;
use crate::author::Author;

pub(crate) const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "threads and their entries",
    "
    create table threads (
        project  text not null,
        id       text not null,
        archived integer not null default 0,
        entries  integer not null default 0,
        began    integer not null,
        latest   integer not null,
        primary key (project, id)
    ) strict, without rowid;
    create table entries (
        id         integer primary key autoincrement,
        project    text not null,
        thread     text not null,
        n          integer not null,
        at         integer not null,
        author     text not null,
        user       text not null,
        entry_type text not null,
        content    text not null,
        query      text,
        call       text not null,
        call_path  text not null,
        unique (project, thread, n)
    ) strict;
    create trigger entries_stay before update on entries
        begin select raise(abort, 'an entry of a thread is never changed'); end;
    ",
)];

/// A thread as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadRow {
    pub(super) id: String,
    pub(super) archived: bool,
    pub(super) entries: u64,
    pub(super) began: i64,
    pub(super) latest: i64,
    /// The newest entry.
    pub(super) last: String,
}

/// What is written, before it has a place.
pub(super) struct Draft {
    pub(super) thread: String,
    pub(super) entry_type: EntryType,
    pub(super) content: String,
}

/// The threads of all projects.
#[derive(Clone)]
pub(super) struct Book {
    db: Db,
}

impl Book {
    pub(super) fn new(db: Db) -> Self {
        Self { db }
    }

    /// Writes an entry at the end of a thread, which begins with its first one.
    pub(super) async fn push(
        &self,
        ctx: &CallCtx,
        project: &str,
        draft: Draft,
    ) -> Result<Entry, ThreadError> {
        check_name(&draft.thread)?;
        let size = draft.content.len();
        if draft.content.trim().is_empty() || size > MAX_CONTENT {
            return Err(ThreadError::Size { size });
        }
        let entry = Entry {
            id: 0,
            n: 0,
            at: Timestamp::now().as_millisecond(),
            author: Author::of(ctx),
            user: ctx.principal.user.to_string(),
            query: ctx.snapshot.as_ref().map(|query| query.query_id.clone()),
            thread: draft.thread,
            entry_type: draft.entry_type,
            content: draft.content,
        };
        let (project, call, path) = (
            project.to_owned(),
            ctx.call_id.to_string(),
            ctx.path.to_string(),
        );
        let written = self.db.write(move |tx| {
            let n = next(tx, &project, &entry)?;
            let mut entry = Entry { n, ..entry };
            insert(tx, &project, &entry, &call, &path)?;
            entry.id = tx.last_insert_id();
            Ok(entry)
        });
        Ok(written.await?)
    }

    /// The newest entries of a thread before one, oldest first.
    pub(super) async fn read(
        &self,
        project: &str,
        thread: &str,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Entry>, ThreadError> {
        check_name(thread)?;
        let (project, id) = (project.to_owned(), thread.to_owned());
        let read = self.db.read(move |tx| {
            let sql = format!(
                "select {COLUMNS} from entries where project = ?1 and thread = ?2
                 and (?3 is null or n < ?3) order by n desc limit ?4"
            );
            let values = (project.as_str(), id.as_str(), before, limit);
            tx.query(&sql, values, Entry::read)
        });
        let mut entries = read.await?;
        entries.reverse();
        match entries.is_empty() && before.is_none() {
            true => Err(ThreadError::Missing {
                id: thread.to_owned(),
            }),
            false => Ok(entries),
        }
    }

    /// One entry.
    pub(super) async fn entry(
        &self,
        project: &str,
        thread: &str,
        n: u64,
    ) -> Result<Entry, ThreadError> {
        let before = n.saturating_add(1);
        let found = self.read(project, thread, Some(before), 1).await?;
        let found = found.into_iter().find(|entry| entry.n == n);
        found.ok_or_else(|| ThreadError::NoEntry {
            id: thread.to_owned(),
            n,
        })
    }

    /// The threads, the one with the newest entry first.
    pub(super) async fn list(
        &self,
        project: &str,
        status: Status,
    ) -> Result<Vec<ThreadRow>, ThreadError> {
        let project = project.to_owned();
        let archived = match status {
            Status::Active => Some(false),
            Status::Archived => Some(true),
            Status::All => None,
        };
        let listed = self.db.read(move |tx| {
            let sql = "select t.id, t.archived, t.entries, t.began, t.latest, e.content
                from threads t join entries e
                on e.project = t.project and e.thread = t.id and e.n = t.entries
                where t.project = ?1 and (?2 is null or t.archived = ?2)
                order by t.latest desc, t.id";
            tx.query(sql, (project.as_str(), archived), |row| {
                Ok(ThreadRow {
                    id: row.get(0)?,
                    archived: row.get(1)?,
                    entries: row.get(2)?,
                    began: row.get(3)?,
                    latest: row.get(4)?,
                    last: row.get(5)?,
                })
            })
        });
        Ok(listed.await?)
    }

    /// Puts a thread away, or brings it back.
    pub(super) async fn archive(
        &self,
        project: &str,
        thread: &str,
        archived: bool,
    ) -> Result<(), ThreadError> {
        check_name(thread)?;
        let (project, id) = (project.to_owned(), thread.to_owned());
        let done = self.db.write(move |tx| {
            let sql = "update threads set archived = ?3 where project = ?1 and id = ?2";
            match tx.execute(sql, (project.as_str(), id.as_str(), archived))? {
                0 => Err(DbError::abort(ThreadError::Missing { id })),
                _ => Ok(()),
            }
        });
        Ok(done.await?)
    }

    /// The entries of a project that came after one, oldest first.
    pub(super) async fn since(&self, project: &str, id: i64) -> Result<Vec<Entry>, DbError> {
        let project = project.to_owned();
        let read = self.db.read(move |tx| {
            let sql =
                format!("select {COLUMNS} from entries where project = ?1 and id > ?2 order by id");
            tx.query(&sql, (project.as_str(), id), Entry::read)
        });
        read.await
    }
}

/// The place of a new entry; the thread is made where there is none.
fn next(tx: &Tx<'_>, project: &str, entry: &Entry) -> Result<u64, DbError> {
    let id = entry.thread.as_str();
    let full = |error: ThreadError| Err(DbError::abort(error));
    let sql = "select archived, entries from threads where project = ?1 and id = ?2";
    let known = tx.query_opt(sql, (project, id), |row| {
        Ok((row.get::<bool>(0)?, row.get::<u64>(1)?))
    })?;
    match known {
        Some((true, _)) => full(ThreadError::Archived { id: id.to_owned() }),
        Some((false, entries)) if entries >= MAX_ENTRIES => {
            full(ThreadError::Full { id: id.to_owned() })
        }
        Some((false, entries)) => {
            let sql = "update threads set entries = ?3, latest = ?4 where project = ?1 and id = ?2";
            tx.execute(sql, (project, id, entries + 1, entry.at))?;
            Ok(entries + 1)
        }
        None => {
            let sql = "select count(*) from threads where project = ?1";
            if tx.query_one(sql, (project,), |row| row.get::<u64>(0))? >= MAX_THREADS {
                return full(ThreadError::TooMany);
            }
            let sql = "insert into threads (project, id, entries, began, latest) values (?1, ?2, 1, ?3, ?3)";
            tx.execute(sql, (project, id, entry.at))?;
            Ok(1)
        }
    }
}

fn insert(
    tx: &Tx<'_>,
    project: &str,
    entry: &Entry,
    call: &str,
    path: &str,
) -> Result<(), DbError> {
    tx.execute(
        "insert into entries (project, thread, n, at, author, user, entry_type, content, query, call, call_path)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        (
            project,
            entry.thread.as_str(),
            entry.n,
            entry.at,
            entry.author.as_str(),
            entry.user.as_str(),
            entry.entry_type.as_str(),
            entry.content.as_str(),
            entry.query.as_deref(),
            call,
            path,
        ),
    )
    .map(drop)
}

fn check_name(id: &str) -> Result<(), ThreadError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = id.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && id.len() <= 100 && id.chars().all(fits) {
        true => Ok(()),
        false => Err(ThreadError::Name {
            id: id.chars().take(80).collect(),
        }),
    }
}
