//! Lines that match a pattern.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::Source;
use ignore::overrides::{Override, OverrideBuilder};
use regex::{Regex, RegexBuilder};

use super::types::{GrepParams, Match, Matches};
use crate::library::{FileRow, Shelf, blocking, hash_of};

/// The most memory that a pattern may take.
const PATTERN_SIZE: usize = 1 << 20;

/// Longer lines are shown in part.
const LINE: usize = 300;

/// Finds the lines of the project's text files that match.
pub(super) async fn run(shelf: &Shelf, p: GrepParams) -> Result<Matches, CallError> {
    let pattern = RegexBuilder::new(&p.pattern)
        .case_insensitive(p.ignore_case)
        .size_limit(PATTERN_SIZE)
        .build()
        .map_err(|error| wrong("pattern", &error))?;
    let wanted = globs(shelf.root(), p.glob.as_deref())?;
    let mut files = shelf.catalogue.files().await?;
    // A file without a hash holds no text.
    files.retain(|file| !file.hash.is_empty() && !wanted.matched(&file.path, false).is_ignore());
    let (root, limit) = (shelf.root().to_owned(), p.limit as usize);
    let stop = StopOnDrop::default();
    let stopped = Arc::clone(&stop.0);
    blocking(move || search(&root, &files, &pattern, limit, &stopped)).await
}

/// Tells a search that nobody waits for it any longer.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn wrong(field: &str, error: &dyn std::fmt::Display) -> CallError {
    CallError::new(
        ErrorCode::InvalidParams,
        format!("`{field}` cannot be used: {error}"),
    )
}

/// Which paths are wanted: those that a glob names, all without one.
fn globs(root: &Path, glob: Option<&str>) -> Result<Override, CallError> {
    let mut builder = OverrideBuilder::new(root);
    if let Some(glob) = glob {
        builder.add(glob).map_err(|error| wrong("glob", &error))?;
    }
    builder.build().map_err(|error| wrong("glob", &error))
}

fn search(
    root: &Path,
    files: &[FileRow],
    pattern: &Regex,
    limit: usize,
    stopped: &AtomicBool,
) -> Matches {
    let mut matches = Vec::new();
    for file in files {
        if stopped.load(Ordering::Relaxed) || matches.len() > limit {
            break;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&file.path)) else {
            continue;
        };
        let lines = (1..)
            .zip(text.lines())
            .filter(|(_, line)| pattern.is_match(line));
        let room = limit + 1 - matches.len();
        matches.extend(
            lines
                .take(room)
                .map(|(number, line)| found(file, number, line)),
        );
    }
    let more = matches.len() > limit;
    matches.truncate(limit);
    Matches { matches, more }
}

fn found(file: &FileRow, line: u32, text: &str) -> Match {
    let source = Source {
        kind: file.kind,
        path: file.path.clone(),
        line_start: line,
        line_end: line,
        hash: hash_of(text),
        title: None,
    };
    let shown = &text[..text.floor_char_boundary(LINE)];
    Match {
        source,
        text: shown.to_owned(),
    }
}
