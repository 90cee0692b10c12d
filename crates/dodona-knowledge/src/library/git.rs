//! The history of a project, where it is a git repository.
//!
//! Git itself is asked: it is there wherever a repository is worked on, and knows every format.
//! A repository may come from anywhere, so nothing is asked of git that would run a program which
//! the repository's configuration names: no pager, no hook, no signature check, no filter.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use dodona_plugin::{CallError, ErrorCode};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// The most that is read of what git writes.
const MAX_OUTPUT: u64 = 64 << 20;

/// What separates the fields of a commit; no name and no date has it.
const FIELD: char = '\u{1f}';

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) author: String,
    /// When it was written, as RFC 3339.
    pub(crate) date: String,
    /// The whole message.
    pub(crate) message: String,
}

impl Commit {
    /// The first line of the message.
    pub(crate) fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// Lines of a file that one commit brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blamed {
    /// As they stand in that commit's successor `HEAD`.
    pub(crate) line_start: u32,
    pub(crate) line_end: u32,
    pub(crate) commit: String,
    pub(crate) author: String,
    /// Seconds since 1970.
    pub(crate) time: i64,
    pub(crate) subject: String,
}

/// A repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    root: PathBuf,
}

impl Git {
    /// The repository whose working tree begins at a directory, or contains it.
    pub(crate) fn around(root: &Path) -> Option<Self> {
        root.ancestors()
            .any(|dir| dir.join(".git").exists())
            .then(|| Self {
                root: root.to_owned(),
            })
    }

    /// The newest commit; `None` before the first.
    pub(crate) async fn head(&self) -> Result<Option<String>, CallError> {
        let found = self
            .ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .await?;
        Ok(found.map(|text| text.trim().to_owned()))
    }

    /// Whether one commit comes before another.
    pub(crate) async fn is_before(&self, old: &str, new: &str) -> Result<bool, CallError> {
        let asked = self
            .ask(&["merge-base", "--is-ancestor", "--end-of-options", old, new])
            .await?;
        Ok(asked.is_some())
    }

    /// Commits, newest first: those of a range, or those that touched a path.
    pub(crate) async fn log(
        &self,
        range: &str,
        path: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Commit>, CallError> {
        let limit = format!("--max-count={limit}");
        let mut arguments = vec![
            "log",
            "-z",
            "--no-color",
            "--no-show-signature",
            "--no-mailmap",
            "--format=%H%x1f%an%x1f%aI%x1f%B",
            &limit,
            "--end-of-options",
            range,
            "--",
        ];
        arguments.extend(path);
        let text = self.ask(&arguments).await?.unwrap_or_default();
        Ok(text.split('\0').filter_map(commit).collect())
    }

    /// Who wrote the lines of a file as it is in `HEAD`.
    pub(crate) async fn blame(&self, path: &str) -> Result<Option<Vec<Blamed>>, CallError> {
        let asked = self
            .ask(&["blame", "--porcelain", "--no-textconv", "HEAD", "--", path])
            .await?;
        Ok(asked.map(|text| blamed(&text)))
    }

    /// A file as it is in `HEAD`.
    pub(crate) async fn committed(&self, path: &str) -> Result<Option<String>, CallError> {
        let name = format!("HEAD:./{path}");
        self.ask(&["cat-file", "blob", &name]).await
    }

    /// What git says; `None` when it says no. Dropping this ends git.
    async fn ask(&self, arguments: &[&str]) -> Result<Option<String>, CallError> {
        let mut child = Command::new("git")
            .args(["--no-pager", "--literal-pathspecs"])
            .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath="])
            .args(arguments)
            .current_dir(&self.root)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| not_run(&error))?;
        let mut out = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = stdout.take(MAX_OUTPUT);
            stdout
                .read_to_end(&mut out)
                .await
                .map_err(|error| not_run(&error))?;
        }
        let status = child.wait().await.map_err(|error| not_run(&error))?;
        if out.len() as u64 == MAX_OUTPUT {
            return Err(CallError::new(
                ErrorCode::TooLarge,
                format!("git answered with more than {} MiB", MAX_OUTPUT >> 20),
            ));
        }
        let text = String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(status.success().then_some(text))
    }
}

fn not_run(error: &io::Error) -> CallError {
    let refused = CallError::new(ErrorCode::NotFound, "git could not be asked");
    match error.kind() {
        io::ErrorKind::NotFound => refused.hint("install git, or put it on the PATH"),
        _ => refused.log(error),
    }
}

fn commit(record: &str) -> Option<Commit> {
    let mut fields = record.trim_start_matches('\n').splitn(4, FIELD);
    let mut field = || fields.next().map(str::to_owned);
    let (id, author, date) = (field()?, field()?, field()?);
    let message = field()?.trim_end().to_owned();
    Some(Commit {
        id,
        author,
        date,
        message,
    })
}

/// Reads the porcelain form: a header for each line, the commit's particulars the first time it
/// is named, and the line itself after a tab.
fn blamed(text: &str) -> Vec<Blamed> {
    let mut ranges: Vec<Blamed> = Vec::new();
    let mut known: std::collections::HashMap<&str, (String, i64, String)> =
        std::collections::HashMap::new();
    let (mut id, mut line) = ("", 0);
    let (mut author, mut time, mut subject) = (String::new(), 0, String::new());
    for row in text.lines() {
        if row.starts_with('\t') {
            let (author, time, subject) = known
                .entry(id)
                .or_insert_with(|| (author.clone(), time, subject.clone()))
                .clone();
            match ranges.last_mut() {
                Some(last) if last.commit == id && last.line_end + 1 == line => {
                    last.line_end = line;
                }
                _ => ranges.push(Blamed {
                    line_start: line,
                    line_end: line,
                    commit: id.to_owned(),
                    author,
                    time,
                    subject,
                }),
            }
            continue;
        }
        match row.split_once(' ') {
            Some(("author", name)) => author = name.to_owned(),
            Some(("author-time", seconds)) => time = seconds.parse().unwrap_or_default(),
            Some(("summary", text)) => subject = text.to_owned(),
            Some((first, rest)) if is_id(first) => {
                id = first;
                let number = rest.split(' ').nth(1);
                line = number.and_then(|n| n.parse().ok()).unwrap_or_default();
            }
            _ => {}
        }
    }
    ranges
}

fn is_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_hold_anything() {
        let found = commit("0a\u{1f}Ada\u{1f}2026-01-02T03:04:05Z\u{1f}why\n\na\u{1f}b\n\n");
        let message = "why\n\na\u{1f}b";
        assert_eq!(found.as_ref().map(|c| c.message.as_str()), Some(message));
        assert_eq!(found.as_ref().map(Commit::subject), Some("why"));
        assert_eq!(commit(""), None);
    }

    #[test]
    fn neighbouring_lines_of_a_commit_are_one_range() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "{a} 1 1 2\nauthor Ada\nauthor-time 7\nsummary first\n\tx\n{a} 2 2\n\ty\n\
             {b} 1 3 1\nauthor Bo\nauthor-time 9\nsummary second\n\tz\n{a} 3 4 1\n\tw\n"
        );
        let ranges: Vec<(u32, u32, String, i64)> = blamed(&text)
            .into_iter()
            .map(|range| (range.line_start, range.line_end, range.author, range.time))
            .collect();
        let expected = [(1, 2, "Ada", 7), (3, 3, "Bo", 9), (4, 4, "Ada", 7)]
            .map(|(from, to, who, when)| (from, to, who.to_owned(), when));
        assert_eq!(ranges, expected);
    }
}
