//! Moving a note, with every link that would go astray.

use std::collections::BTreeSet;
use std::path::Path;

use super::apply;
use super::change::Planned;
use super::disk;
use super::error::WriteError;
use super::links::Links;
use super::path::NotePath;
use super::rewrite::Move;
use crate::library::LinkRow;

/// What is known of the notes before one moves.
pub(super) struct Moving {
    pub(super) from: NotePath,
    pub(super) to: NotePath,
    /// Every note.
    pub(super) notes: Vec<String>,
    pub(super) aliases: Vec<(String, String)>,
    pub(super) links: Vec<LinkRow>,
}

impl Moving {
    /// What to do to which file.
    pub(super) fn plan(&self, root: &Path) -> Result<Vec<Planned>, WriteError> {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        if from == to {
            return Ok(Vec::new());
        }
        let bytes = read(root, from)?.ok_or_else(|| WriteError::Missing {
            path: from.to_owned(),
        })?;
        let place = self.to.locate(root, Some(&self.from))?;
        // Where letters have no case, the note itself is there.
        let is_itself = super::path::fold(from) == super::path::fold(to);
        if !is_itself && disk::read(&place).map_err(WriteError::disk(to))?.is_some() {
            return Err(WriteError::Exists {
                path: to.to_owned(),
            });
        }
        let (before, after) = self.links();
        let moving = Move {
            from,
            to,
            before: &before,
            after: &after,
        };
        let rewritten = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| moving.rewrite(from, text));
        let mut plan = vec![
            Planned {
                path: to.to_owned(),
                before: None,
                after: Some(rewritten.map_or_else(|| bytes.clone(), String::into_bytes)),
                origin: Some(from.to_owned()),
            },
            Planned {
                path: from.to_owned(),
                before: Some(bytes),
                after: None,
                origin: None,
            },
        ];
        for note in self.astray(&moving) {
            plan.extend(relinked(root, note, &moving)?);
        }
        Ok(plan)
    }

    fn links(&self) -> (Links, Links) {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        let moved = |path: &str| if path == from { to } else { path }.to_owned();
        let notes = || self.notes.iter().map(String::as_str);
        let before = Links::new(notes().chain([from]), self.aliases.clone());
        let aliases = self.aliases.iter();
        let aliases = aliases.map(|(alias, path)| (alias.clone(), moved(path)));
        let others = notes().filter(|note| *note != from);
        (before, Links::new(others.chain([to]), aliases.collect()))
    }

    /// Other notes with a link that would go astray.
    fn astray(&self, moving: &Move<'_>) -> BTreeSet<&str> {
        self.links
            .iter()
            .filter(|link| link.path != moving.from)
            .filter(|link| moving.may_stray(&link.path, &link.target))
            .map(|link| link.path.as_str())
            .collect()
    }
}

/// A note with its links put right. One that is no text, or whose name is none we write, is left as
/// it is.
fn relinked(root: &Path, note: &str, moving: &Move<'_>) -> Result<Option<Planned>, WriteError> {
    if NotePath::parse(note, None).is_err() {
        return Ok(None);
    }
    let Some(bytes) = read(root, note)? else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes).ok();
    let after = text.and_then(|text| moving.rewrite(note, text));
    Ok(after.map(|after| Planned {
        path: note.to_owned(),
        after: Some(after.into_bytes()),
        before: Some(bytes),
        origin: None,
    }))
}

/// What a note's file holds.
pub(super) fn read(root: &Path, path: &str) -> Result<Option<Vec<u8>>, WriteError> {
    let place = apply::place(root, path)?;
    disk::read(&place).map_err(WriteError::disk(path))
}
