//! The recent log lines of an external plugin.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of lines.
const LINES: usize = 1_000;
/// Maximum length of a line in bytes.
const LINE_BYTES: usize = 4_096;

/// Severity of a log line.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Details for finding a fault.
    Debug,
    /// Normal operation, for information.
    Info,
    /// A problem that did not cause a failure.
    Warning,
    /// An operation that failed.
    Error,
}

impl LogLevel {
    /// The level in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One line of a plugin's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Line number from 1, without gaps, including lines that were removed.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// Which part of the plugin it comes from, such as `stderr` or a method's name.
    pub part: String,
    /// The text, one line of it.
    pub text: String,
}

/// The recent log lines of a plugin. Cheap to clone; clones share the log. Number and length of lines are
/// bounded.
#[derive(Clone, Default)]
pub struct PluginLog(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    kept: VecDeque<LogLine>,
    written: u64,
}

impl PluginLog {
    /// A log without lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a text, one entry per line.
    pub fn write(&self, level: LogLevel, part: &str, text: &str) {
        let at = Timestamp::now();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in text.lines().take(LINES) {
            lines.written += 1;
            let number = lines.written;
            lines.kept.push_back(LogLine {
                number,
                at,
                level,
                part: part.chars().take(64).collect(),
                text: shortened(line),
            });
            if lines.kept.len() > LINES {
                lines.kept.pop_front();
            }
        }
    }

    /// The recent lines, oldest first.
    pub fn last(&self, most: usize) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = lines.kept.len().saturating_sub(most);
        lines.kept.iter().skip(skip).cloned().collect()
    }
}

impl fmt::Debug for PluginLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "a log of {} lines", lines.kept.len())
    }
}

/// Truncates a line and removes terminal control characters.
fn shortened(line: &str) -> String {
    let end = line.floor_char_boundary(LINE_BYTES);
    let clean = line[..end]
        .chars()
        .filter(|c| !c.is_control() || *c == '\t');
    let mut clean: String = clean.collect();
    if end < line.len() {
        clean.push('…');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_no_more_than_so_much_of_each() {
        let log = PluginLog::new();
        for number in 0..LINES + 10 {
            log.write(LogLevel::Info, "stderr", &format!("line {number}"));
        }
        let kept = log.last(usize::MAX);
        assert_eq!((kept.len(), kept[0].number), (LINES, 11));
        log.write(LogLevel::Error, "x", &"é".repeat(LINE_BYTES));
        let last = log.last(1).pop().unwrap();
        assert!(last.text.len() <= LINE_BYTES + '…'.len_utf8() && last.text.ends_with('…'));
    }

    #[test]
    fn a_text_of_two_lines_is_two_and_escapes_are_taken_out() {
        let log = PluginLog::new();
        log.write(LogLevel::Warning, "main", "one\n\u{1b}[31mtwo\r");
        let texts: Vec<String> = log.last(9).into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["one", "[31mtwo"]);
    }
}
