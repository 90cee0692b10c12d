//! What git knows: commits, and who wrote a line.

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{Source, SourceKind};
use jiff::Timestamp;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::types::{Blame, BlameParams, BlameRange, LogEntry, LogParams, Logged};
use crate::library::{Blamed, COMMIT, Commit, Git, Shelf, hash_of};
use crate::search::Question;

/// How many of a path's commits are searched.
const OF_A_PATH: usize = 5_000;

/// How many commits are asked of the index when only some of them count.
const CANDIDATES: usize = 200;

/// Commits: those that answer a question, best first, or the newest.
pub(super) async fn log(shelf: &Shelf, p: LogParams) -> Result<Logged, CallError> {
    let git = repository(shelf)?;
    let limit = p.limit as usize;
    let Some(query) = p.query.filter(|query| !query.trim().is_empty()) else {
        if git.head().await?.is_none() {
            return Ok(Logged::default());
        }
        let commits = git.log("HEAD", p.path.as_deref(), limit).await?;
        return Ok(Logged {
            commits: commits.into_iter().map(entry).collect(),
        });
    };
    let of_path = match &p.path {
        Some(path) => Some(git.log("HEAD", Some(path), OF_A_PATH).await?),
        None => None,
    };
    let question = Question {
        text: query,
        kinds: vec![SourceKind::Commit],
        limit: if of_path.is_some() { CANDIDATES } else { limit },
        ..Question::default()
    };
    let mut found = Logged::default();
    for hit in shelf.search(question).await? {
        let id = hit.path.strip_prefix(COMMIT).unwrap_or(&hit.path);
        let counts = of_path
            .as_ref()
            .is_none_or(|commits| commits.iter().any(|commit| commit.id == id));
        if counts && let Some(commit) = shelf.catalogue.commit(id).await? {
            found.commits.push(LogEntry {
                score: Some(hit.score),
                ..entry(commit)
            });
        }
        if found.commits.len() == limit {
            break;
        }
    }
    Ok(found)
}

fn repository(shelf: &Shelf) -> Result<&Git, CallError> {
    shelf.git.as_ref().ok_or_else(|| {
        CallError::new(
            ErrorCode::NotFound,
            "the project is not in a git repository",
        )
    })
}

fn entry(commit: Commit) -> LogEntry {
    let lines: Vec<&str> = commit.message.lines().collect();
    let source = Source {
        kind: SourceKind::Commit,
        path: format!("{COMMIT}{}", commit.id),
        line_start: 1,
        line_end: u32::try_from(lines.len().max(1)).unwrap_or(u32::MAX),
        hash: hash_of(&lines.join("\n")),
        title: Some(commit.subject().to_owned()),
    };
    LogEntry {
        source,
        author: commit.author,
        date: commit.date,
        text: commit.message,
        score: None,
    }
}

/// Who wrote the lines of a file, as it stands in the working tree.
pub(super) async fn blame(shelf: &Shelf, p: BlameParams) -> Result<Blame, CallError> {
    if p.to.is_some_and(|to| to < p.from) {
        let message = "`to` lies before `from`";
        return Err(CallError::new(ErrorCode::InvalidParams, message));
    }
    let git = repository(shelf)?;
    // Also refuses whatever leads out of the project.
    let now = shelf.text(&p.path).await?;
    let unknown = || {
        CallError::new(
            ErrorCode::NotFound,
            format!("`{}` is in no commit yet", p.path),
        )
    };
    let ranges = git.blame(&p.path).await?.ok_or_else(unknown)?;
    let committed = git.committed(&p.path).await?.ok_or_else(unknown)?;
    let mut lines = by_line(&committed, &now, &ranges);
    let to =
        p.to.map_or(lines.len(), |to| (to as usize).min(lines.len()));
    lines.truncate(to);
    Ok(Blame {
        path: p.path,
        ranges: joined(&ranges, &lines, p.from),
    })
}

/// For each line of the working tree, the range of `HEAD` it comes from; `None` where it was
/// changed since.
fn by_line(committed: &str, now: &str, ranges: &[Blamed]) -> Vec<Option<usize>> {
    let before: Vec<&str> = committed.lines().collect();
    let after: Vec<&str> = now.lines().collect();
    let mut lines = vec![None; after.len()];
    let range_of = |line: usize| {
        ranges
            .iter()
            .position(|range| (range.line_start..=range.line_end).contains(&(line as u32 + 1)))
    };
    for op in capture_diff_slices(Algorithm::Myers, &before, &after) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            (0..len).for_each(|step| lines[new_index + step] = range_of(old_index + step));
        }
    }
    lines
}

/// Neighbouring lines of one commit as one range.
fn joined(ranges: &[Blamed], lines: &[Option<usize>], from: u32) -> Vec<BlameRange> {
    let mut joined: Vec<BlameRange> = Vec::new();
    let mut last = None;
    for (number, line) in (1..).zip(lines).skip(from.max(1) as usize - 1) {
        let commit = line.and_then(|index| ranges.get(index));
        let id = commit.map(|commit| commit.commit.as_str());
        match joined.last_mut() {
            Some(range) if last == Some(id) => range.line_end = number,
            _ => joined.push(BlameRange {
                line_start: number,
                line_end: number,
                commit: id.map(str::to_owned),
                author: commit.map(|commit| commit.author.clone()),
                date: commit.and_then(|commit| Timestamp::from_second(commit.time).ok()),
                subject: commit.map(|commit| commit.subject.clone()),
            }),
        }
        last = Some(id);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(line_start: u32, line_end: u32, commit: &str) -> Blamed {
        Blamed {
            line_start,
            line_end,
            commit: commit.to_owned(),
            author: String::new(),
            time: 0,
            subject: String::new(),
        }
    }

    #[test]
    fn lines_that_were_changed_since_belong_to_no_commit() {
        let ranges = [range(1, 2, "a"), range(3, 4, "b")];
        let lines = by_line(
            "one\ntwo\nthree\nfour\n",
            "one\nnew\nthree\nfour\n",
            &ranges,
        );
        assert_eq!(lines, [Some(0), None, Some(1), Some(1)]);
        let shown: Vec<_> = joined(&ranges, &lines, 2)
            .into_iter()
            .map(|range| (range.line_start, range.line_end, range.commit))
            .collect();
        assert_eq!(shown, [(2, 2, None), (3, 4, Some("b".to_owned()))]);
    }
}
