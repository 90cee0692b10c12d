//! Every version of every note of a project, in the database of the plugin `vault`.

use std::collections::{BTreeMap, HashMap};

use dodona_plugin::store::{Db, DbError, Migration, Row, Tx};
use dodona_proto::ProjectId;
use jiff::Timestamp;

use super::change::{
    COLUMNS, Change, ChangeId, Edit, FOUND, Found, OUTSIDE, Planned, Why, version_of,
};

/// The schema. A change is `intended` before the first file is touched and `done` after the last;
/// whoever opens a vault settles what a process that died left `intended`.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration::new(
    1,
    "versions of notes, and the changes between them",
    "
    create table contents (
        version text not null primary key,
        bytes   blob not null
    ) strict;
    create table changes (
        id        integer primary key autoincrement,
        project   text not null,
        at        integer not null,
        state     text not null check (state in ('intended', 'done', 'abandoned')),
        method    text not null,
        author    text,
        user      text,
        call      text,
        call_path text,
        query     text,
        undone_by integer references changes(id)
    ) strict;
    create index changes_by_state on changes(project, state) where state = 'intended';
    create index changes_by_query on changes(project, query) where query is not null;
    create table edits (
        change integer not null references changes(id),
        n      integer not null,
        path   text not null,
        before text,
        after  text,
        origin text,
        primary key (change, n)
    ) strict, without rowid;
    create index edits_by_path on edits(path, change);
    create table undoes (
        change integer not null references changes(id),
        undone integer not null references changes(id),
        primary key (change, undone)
    ) strict, without rowid;
    create table heads (
        project text not null,
        path    text not null,
        version text not null,
        primary key (project, path)
    ) strict, without rowid;
    ",
)];

/// A note that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) path: String,
    pub(super) version: String,
    pub(super) change: Change,
}

/// What is remembered of one project's notes.
#[derive(Clone)]
pub(super) struct Ledger {
    db: Db,
    project: String,
}

impl Ledger {
    pub(super) fn new(db: Db, project: &ProjectId) -> Self {
        Self {
            db,
            project: project.to_string(),
        }
    }

    async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>, &str) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let project = self.project.clone();
        self.db.read(move |tx| work(tx, &project)).await
    }

    async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>, &str) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let project = self.project.clone();
        self.db.write(move |tx| work(tx, &project)).await
    }

    /// Remembers a change before it is made: everything that is needed to finish it, or to take it
    /// back.
    pub(super) async fn intend(
        &self,
        why: Why,
        plan: Vec<Planned>,
        undoes: Vec<ChangeId>,
    ) -> Result<ChangeId, DbError> {
        self.write(move |tx, project| {
            let change = insert(tx, project, "intended", &why)?;
            for (n, planned) in plan.iter().enumerate() {
                for bytes in [&planned.before, &planned.after].into_iter().flatten() {
                    keep(tx, bytes)?;
                }
                insert_edit(tx, change, n, &Edit::from(planned))?;
            }
            for undone in undoes {
                tx.execute(
                    "insert into undoes (change, undone) values (?1, ?2)",
                    (change, undone),
                )?;
            }
            Ok(change)
        })
        .await
    }

    /// Says that a change is made.
    pub(super) async fn settle(&self, change: ChangeId) -> Result<(), DbError> {
        self.write(move |tx, project| {
            tx.execute("update changes set state = 'done' where id = ?1", (change,))?;
            tx.execute(
                "update changes set undone_by = ?1
                 where id in (select undone from undoes where change = ?1)",
                (change,),
            )?;
            for edit in edits(tx, change)? {
                set_head(tx, project, &edit.path, edit.after.as_deref())?;
            }
            Ok(())
        })
        .await
    }

    /// Says that a change was not made.
    pub(super) async fn abandon(&self, change: ChangeId) -> Result<(), DbError> {
        self.write(move |tx, _| {
            let sql = "update changes set state = 'abandoned' where id = ?1";
            tx.execute(sql, (change,)).map(drop)
        })
        .await
    }

    /// What was found changed on the disk, as one change. What was there when a vault was seen
    /// first, or is new, is where histories begin: no change that could be taken back.
    pub(super) async fn found(&self, found: Vec<Found>) -> Result<(), DbError> {
        if found.is_empty() {
            return Ok(());
        }
        self.write(move |tx, project| {
            let is_new = |found: &Found| found.before.is_none() && found.origin.is_none();
            let (new, changed): (Vec<_>, Vec<_>) = found.into_iter().partition(is_new);
            for (method, found) in [(FOUND, new), (OUTSIDE, changed)] {
                if found.is_empty() {
                    continue;
                }
                let change = insert(tx, project, "done", &Why::outside(method))?;
                for (n, found) in found.iter().enumerate() {
                    if let Some(bytes) = &found.after {
                        keep(tx, bytes)?;
                    }
                    let edit = found.edit();
                    insert_edit(tx, change, n, &edit)?;
                    set_head(tx, project, &edit.path, edit.after.as_deref())?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Changes that were begun and not finished, oldest first.
    pub(super) async fn intended(&self) -> Result<Vec<(ChangeId, Vec<Edit>)>, DbError> {
        self.read(|tx, project| {
            let sql =
                "select id from changes where project = ?1 and state = 'intended' order by id";
            let ids: Vec<ChangeId> = tx.query(sql, (project,), |row| row.get(0))?;
            ids.into_iter().map(|id| Ok((id, edits(tx, id)?))).collect()
        })
        .await
    }

    /// The version of every note as it was last seen.
    pub(super) async fn heads(&self) -> Result<HashMap<String, String>, DbError> {
        self.read(|tx, project| {
            let sql = "select path, version from heads where project = ?1";
            let heads = tx.query(sql, (project,), |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(heads.into_iter().collect())
        })
        .await
    }

    /// The bytes of versions.
    pub(super) async fn contents(
        &self,
        versions: Vec<String>,
    ) -> Result<BTreeMap<String, Vec<u8>>, DbError> {
        self.read(move |tx, _| {
            let mut found = BTreeMap::new();
            for version in versions {
                let sql = "select bytes from contents where version = ?1";
                let bytes = tx.query_opt(sql, (version.as_str(),), |row| {
                    row.blob(0).map(<[u8]>::to_vec)
                })?;
                found.extend(bytes.map(|bytes| (version, bytes)));
            }
            Ok(found)
        })
        .await
    }

    /// The changes of a note, newest first, also from when it had other paths.
    pub(super) async fn history(
        &self,
        path: &str,
        limit: u32,
    ) -> Result<Vec<(Change, Edit)>, DbError> {
        let mut path = path.to_owned();
        self.read(move |tx, project| {
            let sql = format!(
                "select {COLUMNS}, e.path, e.before, e.after, e.origin
                 from edits e join changes c on c.id = e.change
                 where c.project = ?1 and c.state = 'done' and e.path = ?2 and c.id <= ?3
                 order by c.id desc limit ?4"
            );
            let (mut history, mut until) = (Vec::new(), i64::MAX);
            loop {
                let left = (limit as usize).saturating_sub(history.len());
                let found = tx.query(&sql, (project, path.as_str(), until, left), |row| {
                    Ok((Change::read(row)?, edit(row, 9)?))
                })?;
                let mut came_from = None;
                for (change, edit) in found {
                    came_from = edit.origin.clone().map(|origin| (origin, change.id));
                    history.push((change, edit));
                    if came_from.is_some() {
                        break;
                    }
                }
                match came_from {
                    // What was done to the old path in the same change is the other side of this.
                    Some((origin, change)) => (path, until) = (origin, change - 1),
                    None => return Ok(history),
                }
            }
        })
        .await
    }

    /// A change that is done.
    pub(super) async fn change(&self, id: ChangeId) -> Result<Option<Change>, DbError> {
        self.read(move |tx, project| {
            let sql = format!(
                "select {COLUMNS} from changes c where c.project = ?1 and c.id = ?2 and c.state = 'done'"
            );
            let found = tx.query_opt(&sql, (project, id), Change::read)?;
            found.map(|change| with_edits(tx, change)).transpose()
        })
        .await
    }

    /// The newest changes, newest first, or those of a query alone.
    pub(super) async fn changes(
        &self,
        query: Option<String>,
        limit: u32,
    ) -> Result<Vec<Change>, DbError> {
        self.read(move |tx, project| {
            // A query is named by its own id, or by that of the call it was asked with; a call's
            // own id begins with that.
            let sql = format!(
                "select {COLUMNS} from changes c where c.project = ?1 and c.state = 'done'
                 and (?2 is null or c.query = ?2 or c.call = ?2
                      or substr(c.call, 1, length(?2) + 1) = ?2 || '.')
                 order by c.id desc limit ?3"
            );
            let found = tx.query(&sql, (project, query.as_deref(), limit), Change::read)?;
            found
                .into_iter()
                .map(|change| with_edits(tx, change))
                .collect()
        })
        .await
    }

    /// Notes that were deleted and are not there again.
    pub(super) async fn gone(&self, limit: u32) -> Result<Vec<Gone>, DbError> {
        self.read(move |tx, project| {
            let sql = format!(
                "select {COLUMNS}, e.path, e.before from edits e join changes c on c.id = e.change
                 where c.project = ?1 and c.state = 'done' and e.after is null and e.before is not null
                 and not exists (select 1 from heads h where h.project = ?1 and h.path = e.path)
                 and not exists (select 1 from edits o where o.change = e.change and o.origin = e.path)
                 and not exists (select 1 from edits l join changes d on d.id = l.change
                                 where l.path = e.path and d.project = ?1 and d.state = 'done'
                                 and l.change > e.change)
                 order by c.id desc limit ?2"
            );
            tx.query(&sql, (project, limit), |row| {
                Ok(Gone {
                    change: Change::read(row)?,
                    path: row.get(9)?,
                    version: row.get(10)?,
                })
            })
        })
        .await
    }
}

fn insert(tx: &Tx<'_>, project: &str, state: &str, why: &Why) -> Result<ChangeId, DbError> {
    tx.execute(
        "insert into changes (project, at, state, method, author, user, call, call_path, query)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            project,
            Timestamp::now().as_millisecond(),
            state,
            why.method.as_str(),
            why.author.map(|author| author.as_str()),
            why.user.as_deref(),
            why.call.as_deref(),
            why.call_path.as_deref(),
            why.query.as_deref(),
        ),
    )?;
    Ok(tx.last_insert_id())
}

fn insert_edit(tx: &Tx<'_>, change: ChangeId, n: usize, edit: &Edit) -> Result<(), DbError> {
    tx.execute(
        "insert into edits (change, n, path, before, after, origin) values (?1, ?2, ?3, ?4, ?5, ?6)",
        (
            change,
            n,
            edit.path.as_str(),
            edit.before.as_deref(),
            edit.after.as_deref(),
            edit.origin.as_deref(),
        ),
    )
    .map(drop)
}

fn keep(tx: &Tx<'_>, bytes: &[u8]) -> Result<(), DbError> {
    let sql = "insert into contents (version, bytes) values (?1, ?2) on conflict do nothing";
    tx.execute(sql, (version_of(bytes).as_str(), bytes))
        .map(drop)
}

fn set_head(tx: &Tx<'_>, project: &str, path: &str, version: Option<&str>) -> Result<(), DbError> {
    match version {
        Some(version) => tx.execute(
            "insert or replace into heads (project, path, version) values (?1, ?2, ?3)",
            (project, path, version),
        ),
        None => tx.execute(
            "delete from heads where project = ?1 and path = ?2",
            (project, path),
        ),
    }
    .map(drop)
}

fn edits(tx: &Tx<'_>, change: ChangeId) -> Result<Vec<Edit>, DbError> {
    let sql = "select path, before, after, origin from edits where change = ?1 order by n";
    tx.query(sql, (change,), |row| edit(row, 0))
}

fn with_edits(tx: &Tx<'_>, change: Change) -> Result<Change, DbError> {
    let edits = edits(tx, change.id)?;
    Ok(Change { edits, ..change })
}

fn edit(row: &Row<'_>, first: usize) -> Result<Edit, DbError> {
    Ok(Edit {
        path: row.get(first)?,
        before: row.get(first + 1)?,
        after: row.get(first + 2)?,
        origin: row.get(first + 3)?,
    })
}
