//! What the methods that change notes do.

use std::path::Path;
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, ErrorCode};

use super::change::{Change, Planned, Why, version_of};
use super::error::WriteError;
use super::moving::{self, Moving};
use super::overview::{Overview, Summaries};
use super::path::NotePath;
use super::scribe::{Plan, Scribe, Turn};
use super::types::{
    DeleteParams, Done, IndexParams, MoveParams, NoteText, ReadParams, UndoParams, WriteParams,
};
use super::undo::{UNDO, Undoing, can_undo};
use super::{notes, past, text};
use crate::library::Shelf;

/// How many changes of a query are taken back at most.
const MOST_OF_A_QUERY: u32 = 10_000;

/// What names the version of a note that is not there.
const NO_NOTE: &str = "none";

pub(super) async fn read(
    shelf: &Shelf,
    scribe: &Scribe,
    p: ReadParams,
) -> Result<NoteText, CallError> {
    // Without the vault's folder: Markdown elsewhere in the project may be read.
    NotePath::parse(&p.path, None)?;
    shelf.check_open(&p.path)?;
    let Some(named) = p.version else {
        let (source, text, next_line) = shelf.quote(&p.path, p.from, None).await?;
        return Ok(NoteText {
            source: Some(source),
            version: shelf.hash_of_file(&p.path).await?,
            text,
            next_line,
        });
    };
    let version = past::version(scribe, &p.path, &named).await?;
    let bytes = past::content(scribe, &p.path, &version).await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(NoteText {
        source: None,
        version,
        text,
        next_line: None,
    })
}

pub(super) async fn write(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    p: WriteParams,
) -> Result<Done, CallError> {
    let path = note_path(shelf, &p.path)?;
    let plan = move |root: &Path| {
        path.locate(root, None)?;
        let before = moving::read(root, path.as_str())?;
        expect_version(&path, before.as_deref(), p.if_version.as_deref())?;
        let existing = before.as_deref().map(std::str::from_utf8).transpose();
        let existing = existing.map_err(|_| WriteError::NotText {
            path: path.as_str().to_owned(),
        })?;
        let after = text::compose(existing, &p.body, p.title.as_deref()).map_err(|_| {
            WriteError::TitleInFrontmatter {
                path: path.as_str().to_owned(),
            }
        })?;
        Ok(vec![Planned {
            path: path.as_str().to_owned(),
            after: Some(after.into_bytes()),
            before,
            origin: None,
        }])
    };
    let turn = scribe.turn(shelf).await;
    change(ctx, scribe, turn, "write", Arc::new(plan)).await
}

pub(super) async fn r#move(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    p: MoveParams,
) -> Result<Done, CallError> {
    let turn = scribe.turn(shelf).await;
    shelf.freshen(ctx).await?;
    let moving = Moving {
        from: note_path(shelf, &p.old_path)?,
        to: note_path(shelf, &p.new_path)?,
        notes: notes(shelf)
            .await?
            .into_iter()
            .map(|note| note.path)
            .collect(),
        aliases: shelf.catalogue.aliases().await?,
        links: shelf.catalogue.links().await?,
    };
    let plan = move |root: &Path| {
        if p.if_version.is_some() {
            let before = moving::read(root, moving.from.as_str())?;
            expect_version(&moving.from, before.as_deref(), p.if_version.as_deref())?;
        }
        moving.plan(root)
    };
    change(ctx, scribe, turn, "move", Arc::new(plan)).await
}

pub(super) async fn delete(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    p: DeleteParams,
) -> Result<Done, CallError> {
    let path = note_path(shelf, &p.path)?;
    let plan = move |root: &Path| {
        let before = moving::read(root, path.as_str())?;
        expect_version(&path, before.as_deref(), p.if_version.as_deref())?;
        if before.is_none() {
            return Err(WriteError::Missing {
                path: path.as_str().to_owned(),
            });
        }
        Ok(vec![Planned {
            path: path.as_str().to_owned(),
            before,
            after: None,
            origin: None,
        }])
    };
    let turn = scribe.turn(shelf).await;
    change(ctx, scribe, turn, "delete", Arc::new(plan)).await
}

pub(super) async fn create_index(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    p: IndexParams,
) -> Result<Done, CallError> {
    let turn = scribe.turn(shelf).await;
    shelf.freshen(ctx).await?;
    let vault = shelf.vault_root()?;
    let folder = match (p.folder.trim_matches('/'), vault) {
        ("" | ".", vault) => vault.unwrap_or_default(),
        (folder, _) => folder.to_owned(),
    };
    let folder = folder.trim_matches('/').to_owned();
    let path = match folder.as_str() {
        "" => "index.md".to_owned(),
        folder => format!("{folder}/index.md"),
    };
    let below = |path: &str| {
        let rest = path.strip_prefix(&folder);
        folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let listed = notes(shelf).await?.into_iter();
    let listed = listed.filter(|note| below(&note.path));
    let overview = Overview {
        path: note_path(shelf, &path)?,
        title: p.title,
        summaries: match p.include_summaries {
            true => Summaries::Shown,
            false => Summaries::Left,
        },
        notes: listed.map(|note| (note.path, note.title)).collect(),
        folder,
    };
    if overview.notes.is_empty() {
        let message = format!("there are no notes in `{}`", overview.folder);
        return Err(
            CallError::new(ErrorCode::NotFound, message).hint("`vault.list` tells the notes")
        );
    }
    let plan = move |root: &Path| overview.plan(root);
    change(ctx, scribe, turn, "create_index", Arc::new(plan)).await
}

pub(super) async fn undo(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    p: UndoParams,
) -> Result<Done, CallError> {
    if let (Some(path), Some(version), None, None) = (&p.path, &p.version, &p.query, p.change) {
        return restore(ctx, shelf, scribe, path, version).await;
    }
    let turn = scribe.turn(shelf).await;
    let changes = match (p.path, p.version, p.query, p.change) {
        (Some(path), None, None, None) => newest(scribe, &path).await?,
        (None, None, Some(query), None) => of_query(scribe, query).await?,
        (None, None, None, Some(id)) => one(scribe, id).await?,
        _ => {
            let message = "say what to undo by one of `path`, `query` and `change`";
            return Err(CallError::new(ErrorCode::InvalidParams, message)
                .hint("`version` goes with `path` alone"));
        }
    };
    let undoing = Undoing::of(&changes)?;
    let contents = scribe.ledger.contents(undoing.versions()).await;
    let contents = contents.map_err(WriteError::from)?;
    let plan = move |root: &Path| undoing.plan(root, &contents);
    let undone = changes.iter().map(|change| change.id).collect();
    let why = Why::of(ctx, UNDO);
    let made = scribe.change(turn, why, undone, Arc::new(plan)).await?;
    Ok(made.into())
}

/// The newest change of a note that can be taken back.
async fn newest(scribe: &Scribe, path: &str) -> Result<Vec<Change>, WriteError> {
    let history = scribe.ledger.history(path, MOST_OF_A_QUERY).await?;
    let found = history.iter().find(|(change, _)| can_undo(change));
    match found {
        Some((change, _)) => one(scribe, change.id).await,
        None => Err(WriteError::NothingToUndo {
            why: format!(
                "`{path}` was not changed since it was seen first, or all of it is undone"
            ),
        }),
    }
}

async fn one(scribe: &Scribe, id: i64) -> Result<Vec<Change>, WriteError> {
    let none = |why: &str| WriteError::NothingToUndo {
        why: format!("change {id} {why}"),
    };
    match scribe.ledger.change(id).await? {
        None => Err(none("is not one of this project")),
        Some(change) if change.undone_by.is_some() => Err(none("is undone already")),
        Some(change) if !can_undo(&change) => Err(none("is not one that can be undone")),
        Some(change) => Ok(vec![change]),
    }
}

/// Everything of a query that is not taken back yet, in the order it was done.
async fn of_query(scribe: &Scribe, query: String) -> Result<Vec<Change>, WriteError> {
    let named = query.clone();
    let mut changes = scribe.ledger.changes(Some(query), MOST_OF_A_QUERY).await?;
    changes.retain(can_undo);
    changes.reverse();
    match changes.is_empty() {
        true => Err(WriteError::NothingToUndo {
            why: format!("no change of the query `{named}` is left"),
        }),
        false => Ok(changes),
    }
}

/// Brings back a version of a note, whatever became of it since.
async fn restore(
    ctx: &CallCtx,
    shelf: &Arc<Shelf>,
    scribe: &Arc<Scribe>,
    path: &str,
    version: &str,
) -> Result<Done, CallError> {
    let path = note_path(shelf, path)?;
    let version = past::version(scribe, path.as_str(), version).await?;
    let after = past::content(scribe, path.as_str(), &version).await?;
    let plan = move |root: &Path| {
        Ok(vec![Planned {
            path: path.as_str().to_owned(),
            before: moving::read(root, path.as_str())?,
            after: Some(after.clone()),
            origin: None,
        }])
    };
    let turn = scribe.turn(shelf).await;
    change(ctx, scribe, turn, "restore", Arc::new(plan)).await
}

async fn change(
    ctx: &CallCtx,
    scribe: &Arc<Scribe>,
    turn: Turn,
    method: &str,
    plan: Plan,
) -> Result<Done, CallError> {
    let why = Why::of(ctx, method);
    let made = scribe.change(turn, why, Vec::new(), plan).await?;
    Ok(made.into())
}

/// A path that a caller gave.
fn note_path(shelf: &Shelf, path: &str) -> Result<NotePath, CallError> {
    let vault = shelf.vault_root()?;
    let note = NotePath::parse(path, vault.as_deref())?;
    shelf.check_open(note.as_str())?;
    Ok(note)
}

/// Whether a note is what a caller expects.
fn expect_version(
    path: &NotePath,
    here: Option<&[u8]>,
    expected: Option<&str>,
) -> Result<(), WriteError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let current = here.map(version_of);
    let is_expected = match &current {
        None => expected == NO_NOTE,
        Some(version) => expected.len() >= 8 && version.starts_with(expected),
    };
    match is_expected {
        true => Ok(()),
        false => Err(WriteError::Conflict {
            path: path.as_str().to_owned(),
            current,
        }),
    }
}
