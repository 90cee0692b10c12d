//! What is known about the files of a project, in the database of the plugin `search`.

use dodona_plugin::store::{Db, DbError, Migration, Row, Tx};
use dodona_proto::{ProjectId, SourceKind};

use crate::parse::Parsed;

pub(super) const MIGRATIONS: &[Migration] = &[FILES, HISTORY, VECTORS];

const VECTORS: Migration = Migration::new(
    3,
    "vectors of passages",
    "
    alter table files add column embedded text not null default '';
    create table vectors (
        file_id    integer not null references files(id) on delete cascade,
        line_start integer not null,
        vector     blob not null,
        primary key (file_id, line_start)
    ) strict, without rowid;
    ",
);

const HISTORY: Migration = Migration::new(
    2,
    "aliases of notes, commits",
    "
    create table aliases (
        file_id integer not null references files(id) on delete cascade,
        alias   text not null
    ) strict;
    create index aliases_by_file on aliases(file_id);
    create table commits (
        project text not null,
        id      text not null,
        author  text not null,
        date    text not null,
        message text not null,
        primary key (project, id)
    ) strict, without rowid;
    create table heads (
        project text not null primary key,
        head    text not null
    ) strict;
    -- Files are read again, for their aliases.
    update files set mtime_ns = 0, hash = '';
    ",
);

const FILES: Migration = Migration::new(
    1,
    "files, symbols, references, links, tags",
    "
    create table files (
        id       integer primary key,
        project  text not null,
        path     text not null,
        size     integer not null,
        mtime_ns integer not null,
        hash     text not null,
        kind     text not null,
        language text,
        title    text not null,
        unique (project, path)
    ) strict;
    create table symbols (
        file_id    integer not null references files(id) on delete cascade,
        name       text not null,
        kind       text not null,
        container  text not null,
        line_start integer not null,
        line_end   integer not null,
        signature  text not null
    ) strict;
    create index symbols_by_name on symbols(name);
    create index symbols_by_file on symbols(file_id);
    create table uses (
        file_id integer not null references files(id) on delete cascade,
        name    text not null,
        line    integer not null
    ) strict;
    create index uses_by_name on uses(name);
    create index uses_by_file on uses(file_id);
    create table links (
        file_id integer not null references files(id) on delete cascade,
        target  text not null,
        heading text,
        alias   text,
        line    integer not null
    ) strict;
    create index links_by_file on links(file_id);
    create table tags (
        file_id integer not null references files(id) on delete cascade,
        tag     text not null
    ) strict;
    create index tags_by_tag on tags(tag);
    create index tags_by_file on tags(file_id);
    ",
);

/// A file as it was when it was read last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRow {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) hash: String,
    pub(crate) kind: SourceKind,
    pub(crate) language: Option<String>,
    pub(crate) title: String,
}

/// Where something is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) container: String,
    pub(crate) line_start: u32,
    pub(crate) line_end: u32,
    pub(crate) signature: String,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) line: u32,
}

/// A link of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkRow {
    pub(crate) path: String,
    pub(crate) target: String,
    pub(crate) line: u32,
}

/// What was found in a file, for the catalogue.
pub(super) struct Entry {
    pub(super) file: FileRow,
    pub(super) parsed: Parsed,
}

/// The catalogue of one project.
pub(crate) struct Catalogue {
    db: Db,
    project: String,
}

impl Catalogue {
    pub(super) fn new(db: Db, project: &ProjectId) -> Self {
        Self {
            db,
            project: project.to_string(),
        }
    }

    /// Runs a question about this project.
    pub(super) async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&Tx<'_>, &str) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let project = self.project.clone();
        self.db.read(move |tx| question(tx, &project)).await
    }

    /// Changes something about this project, in one transaction.
    pub(super) async fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(&Tx<'_>, &str) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let project = self.project.clone();
        self.db.write(move |tx| change(tx, &project)).await
    }

    pub(crate) async fn files(&self) -> Result<Vec<FileRow>, DbError> {
        self.ask(|tx, project| {
            let sql = "select path, size, mtime_ns, hash, kind, language, title from files where project = ?1 order by path";
            tx.query(sql, (project,), file_row)
        })
        .await
    }

    /// The path of every file.
    pub(super) async fn paths(&self) -> Result<Vec<String>, DbError> {
        self.ask(|tx, project| {
            let sql = "select path from files where project = ?1";
            tx.query(sql, (project,), |row| row.get(0))
        })
        .await
    }

    /// Takes in files, and lets go of those that are gone, in one transaction.
    pub(super) async fn replace(
        &self,
        entries: Vec<Entry>,
        gone: Vec<String>,
    ) -> Result<(), DbError> {
        self.change(move |tx, project| {
            for path in entries.iter().map(|entry| &entry.file.path).chain(&gone) {
                let sql = "delete from files where project = ?1 and path = ?2";
                tx.execute(sql, (project, path.as_str()))?;
            }
            entries
                .iter()
                .try_for_each(|entry| insert(tx, project, entry))
        })
        .await
    }

    /// Notes that a file was touched and not changed.
    pub(super) async fn touch(&self, files: Vec<(String, u64, i64)>) -> Result<(), DbError> {
        self.change(move |tx, project| {
            let sql = "update files set size = ?3, mtime_ns = ?4 where project = ?1 and path = ?2";
            files.iter().try_for_each(|(path, size, mtime)| {
                tx.execute(sql, (project, path.as_str(), *size, *mtime))
                    .map(drop)
            })
        })
        .await
    }

    /// Forgets everything: the index was lost.
    pub(super) async fn clear(&self) -> Result<(), DbError> {
        self.change(|tx, project| {
            for table in ["files", "commits", "heads"] {
                let sql = format!("delete from {table} where project = ?1");
                tx.execute(&sql, (project,))?;
            }
            Ok(())
        })
        .await
    }

    /// Where a name is defined, exact spelling first.
    pub(crate) async fn definitions(
        &self,
        name: &str,
        scope: Option<&str>,
    ) -> Result<Vec<Definition>, DbError> {
        let (name, scope) = (name.to_owned(), scope.unwrap_or_default().to_owned());
        self.ask(move |tx, project| {
            let sql =
                "select f.path, s.name, s.kind, s.container, s.line_start, s.line_end, s.signature
                from symbols s join files f on f.id = s.file_id
                where f.project = ?1 and s.name = ?2 and substr(f.path, 1, length(?3)) = ?3
                order by f.path, s.line_start limit 100";
            tx.query(sql, (project, name.as_str(), scope.as_str()), definition)
        })
        .await
    }

    /// Where a name is used.
    pub(crate) async fn references(&self, name: &str, limit: u32) -> Result<Vec<Place>, DbError> {
        let name = name.to_owned();
        self.ask(move |tx, project| {
            let sql = "select distinct f.path, u.line from uses u join files f on f.id = u.file_id
                where f.project = ?1 and u.name = ?2 order by f.path, u.line limit ?3";
            tx.query(sql, (project, name.as_str(), limit), |row| {
                Ok(Place {
                    path: row.get(0)?,
                    line: row.get(1)?,
                })
            })
        })
        .await
    }

    /// Every symbol below a path, with how often its name is used elsewhere.
    pub(crate) async fn ranked_symbols(
        &self,
        scope: &str,
    ) -> Result<Vec<(Definition, u64)>, DbError> {
        let scope = scope.to_owned();
        self.ask(move |tx, project| {
            let sql =
                "select f.path, s.name, s.kind, s.container, s.line_start, s.line_end, s.signature,
                    (select count(distinct u.file_id) from uses u join files g on g.id = u.file_id
                     where u.name = s.name and g.project = ?1 and u.file_id != s.file_id)
                from symbols s join files f on f.id = s.file_id
                where f.project = ?1 and substr(f.path, 1, length(?2)) = ?2";
            tx.query(sql, (project, scope.as_str()), |row| {
                Ok((definition(row)?, row.get(7)?))
            })
        })
        .await
    }

    /// Every other name of every note, with the note's path.
    pub(crate) async fn aliases(&self) -> Result<Vec<(String, String)>, DbError> {
        self.ask(|tx, project| {
            let sql = "select a.alias, f.path from aliases a join files f on f.id = a.file_id
                where f.project = ?1 and f.kind = 'note' order by f.path";
            tx.query(sql, (project,), |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .await
    }

    /// Every link of every note.
    pub(crate) async fn links(&self) -> Result<Vec<LinkRow>, DbError> {
        self.ask(|tx, project| {
            let sql =
                "select f.path, l.target, l.line from links l join files f on f.id = l.file_id
                where f.project = ?1 and f.kind = 'note' order by f.path, l.line";
            tx.query(sql, (project,), |row| {
                Ok(LinkRow {
                    path: row.get(0)?,
                    target: row.get(1)?,
                    line: row.get(2)?,
                })
            })
        })
        .await
    }

    /// Every tag, with the notes that have it.
    pub(crate) async fn tags(&self) -> Result<Vec<(String, String)>, DbError> {
        self.ask(|tx, project| {
            let sql = "select distinct t.tag, f.path from tags t join files f on f.id = t.file_id
                where f.project = ?1 and f.kind = 'note' order by t.tag, f.path";
            tx.query(sql, (project,), |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .await
    }
}

fn insert(tx: &Tx<'_>, project: &str, entry: &Entry) -> Result<(), DbError> {
    let Entry { file, parsed } = entry;
    tx.execute(
        "insert into files (project, path, size, mtime_ns, hash, kind, language, title) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (project, file.path.as_str(), file.size, file.mtime_ns, file.hash.as_str(), file.kind.as_str(), file.language.as_deref(), file.title.as_str()),
    )?;
    let id = tx.last_insert_id();
    for symbol in &parsed.symbols {
        tx.execute(
            "insert into symbols (file_id, name, kind, container, line_start, line_end, signature) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (id, symbol.name.as_str(), symbol.kind.as_str(), symbol.container.as_str(), symbol.line_start, symbol.line_end, symbol.signature.as_str()),
        )?;
    }
    for reference in &parsed.references {
        tx.execute(
            "insert into uses (file_id, name, line) values (?1, ?2, ?3)",
            (id, reference.name.as_str(), reference.line),
        )?;
    }
    for link in &parsed.links {
        let values = (
            id,
            link.target.as_str(),
            link.heading.as_deref(),
            link.alias.as_deref(),
            link.line,
        );
        tx.execute(
            "insert into links (file_id, target, heading, alias, line) values (?1, ?2, ?3, ?4, ?5)",
            values,
        )?;
    }
    for alias in &parsed.aliases {
        tx.execute(
            "insert into aliases (file_id, alias) values (?1, ?2)",
            (id, alias.as_str()),
        )?;
    }
    for tag in &parsed.tags {
        tx.execute(
            "insert into tags (file_id, tag) values (?1, ?2)",
            (id, tag.as_str()),
        )?;
    }
    Ok(())
}

fn definition(row: &Row<'_>) -> Result<Definition, DbError> {
    Ok(Definition {
        path: row.get(0)?,
        name: row.get(1)?,
        kind: row.get(2)?,
        container: row.get(3)?,
        line_start: row.get(4)?,
        line_end: row.get(5)?,
        signature: row.get(6)?,
    })
}

fn file_row(row: &Row<'_>) -> Result<FileRow, DbError> {
    Ok(FileRow {
        path: row.get(0)?,
        size: row.get(1)?,
        mtime_ns: row.get(2)?,
        hash: row.get(3)?,
        kind: SourceKind::from_name(row.text(4)?).unwrap_or(SourceKind::Text),
        language: row.get(5)?,
        title: row.get(6)?,
    })
}
