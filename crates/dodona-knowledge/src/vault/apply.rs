//! The file side of a change: doing it, taking it back, and finding out how far it came.

use std::io;
use std::path::{Path, PathBuf};

use super::change::{ChangeId, Edit, Planned, version_of};
use super::disk::{self, Step};
use super::error::WriteError;
use super::path::{NotePath, fold};

/// What came of a change.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Every file is as planned.
    Done,
    /// Somebody else changed one of the files. All are as they were, that one as they left it.
    Interfered {
        path: String,
        /// What they had written before that, if it is nowhere else.
        lost: Option<Vec<u8>>,
    },
}

/// How a note stands to an edit of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    Before,
    After,
    Other,
}

/// In which order files are changed: what is new comes first, what goes goes last, so that a note is
/// on the disk at every moment. A name that only changes its case is the other way round, because
/// for many systems both are one file.
pub(super) fn order(plan: &mut [Planned]) {
    let case_only = plan.iter().any(|gone| {
        gone.after.is_none()
            && plan
                .iter()
                .any(|new| new.after.is_some() && fold(&new.path) == fold(&gone.path))
    });
    plan.sort_by_key(|planned| planned.after.is_none() != case_only);
}

/// An edit, with its number in the change.
pub(super) type Numbered<'p> = (usize, &'p Planned);

/// Makes edits of a change, or leaves everything as it was.
pub(super) fn apply(
    root: &Path,
    change: ChangeId,
    plan: &[Numbered<'_>],
) -> Result<Outcome, WriteError> {
    for (at, &(n, planned)) in plan.iter().enumerate() {
        let stopped = match step(root, change, n, planned) {
            Ok(Step::Done) => continue,
            Ok(Step::Interfered(lost)) => Ok(Outcome::Interfered {
                path: planned.path.clone(),
                lost,
            }),
            Err(error) => Err(error),
        };
        take_back(root, change, &plan[..at])?;
        return stopped;
    }
    Ok(Outcome::Done)
}

/// Undoes the edits that were made. A file that somebody else has changed since stays theirs.
pub(super) fn take_back(
    root: &Path,
    change: ChangeId,
    made: &[Numbered<'_>],
) -> Result<(), WriteError> {
    for &(n, planned) in made.iter().rev() {
        let back = Planned {
            before: planned.after.clone(),
            after: planned.before.clone(),
            ..planned.clone()
        };
        step(root, change, n, &back)?;
    }
    Ok(())
}

fn step(root: &Path, change: ChangeId, n: usize, planned: &Planned) -> Result<Step, WriteError> {
    let place = place(root, &planned.path)?;
    let aside = aside(&place, change, n);
    let done = match (&planned.before, &planned.after) {
        (before, Some(after)) => disk::put(&place, &aside, after, before.as_deref()),
        (Some(before), None) => disk::take(&place, &aside, before),
        (None, None) => Ok(Step::Done),
    };
    done.map_err(WriteError::disk(&planned.path))
}

/// Where a note's file is. A folder may have become a link since its path was checked.
pub(super) fn place(root: &Path, path: &str) -> Result<PathBuf, WriteError> {
    Ok(NotePath::parse(path, None)?.place(root)?)
}

/// The name beside a file that only this edit uses. Hidden, so that nobody takes it for a note.
fn aside(place: &Path, change: ChangeId, n: usize) -> PathBuf {
    place.with_file_name(format!(".dodona-{change}-{n}.aside"))
}

/// Finds out how far an edit came, and clears away what was left beside its file. What somebody else
/// wrote and we had just displaced is put back.
pub(super) fn inspect(
    root: &Path,
    change: ChangeId,
    n: usize,
    edit: &Edit,
) -> Result<Stand, WriteError> {
    let Ok(place) = place(root, &edit.path) else {
        return Ok(Stand::Other);
    };
    look(&place, &aside(&place, change, n), edit).map_err(WriteError::disk(&edit.path))
}

fn look(place: &Path, aside: &Path, edit: &Edit) -> io::Result<Stand> {
    disk::remove(&disk::unfinished(aside))?;
    let known = |bytes: &[u8]| {
        let version = Some(version_of(bytes));
        version == edit.before || version == edit.after
    };
    if let Some(bytes) = disk::read(aside)? {
        let here = disk::read(place)?;
        // Where both are somebody else's, what is in place is the newer of the two.
        if !known(&bytes) && here.as_deref().is_none_or(known) {
            disk::restore(place, aside)?;
        }
        disk::remove(aside)?;
        disk::sync_folder(place)?;
    }
    let version = disk::read(place)?.as_deref().map(version_of);
    Ok(match version {
        version if version == edit.after => Stand::After,
        version if version == edit.before => Stand::Before,
        _ => Stand::Other,
    })
}
