//! What is wrong with a rule's file.

use std::fmt;

use dodona_plugin::reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a rule with the problem runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProblemSeverity {
    /// The rule runs, but a part of its file is ignored or doubtful.
    Warning,
    /// The rule does not run.
    Error,
}

/// Something wrong in a file: where, what, and the next thing to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Whether the rule runs all the same.
    pub severity: ProblemSeverity,
    /// File, place with the text of its line, message and hint.
    #[serde(flatten)]
    pub fault: reading::Problem,
}

impl Problem {
    /// What keeps a rule from running.
    pub fn error(fault: reading::Problem) -> Self {
        Self {
            severity: ProblemSeverity::Error,
            fault,
        }
    }

    pub fn warning(fault: reading::Problem) -> Self {
        Self {
            severity: ProblemSeverity::Warning,
            fault,
        }
    }

    /// Whether it keeps a rule from running.
    pub fn is_error(&self) -> bool {
        self.severity == ProblemSeverity::Error
    }

    /// The line of the file, from 1; 0 for the file as a whole.
    pub fn line(&self) -> usize {
        self.fault.place.as_ref().map_or(0, |place| place.line)
    }

    /// The column in characters, from 1; 0 for the file as a whole.
    pub fn column(&self) -> usize {
        self.fault.place.as_ref().map_or(0, |place| place.column)
    }

    /// The line with the place marked below it, where there is one.
    pub fn excerpt(&self) -> Option<String> {
        let place = self.fault.place.as_ref()?;
        let before = place.text.chars().take(place.column - 1);
        // A tab stays one, so that the mark stands below what it means.
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let begins: usize = (place.text.chars().take(place.column - 1))
            .map(char::len_utf8)
            .sum();
        let rest = &place.text[begins..];
        let meant = &rest[..rest.floor_char_boundary(place.width)];
        let marks = "^".repeat(meant.chars().count().max(1));
        Some(format!("  {}\n  {indent}{marks}", place.text))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            ProblemSeverity::Error => "error",
            ProblemSeverity::Warning => "warning",
        };
        f.write_str(&self.fault.path)?;
        if self.fault.place.is_some() {
            write!(f, ":{}:{}", self.line(), self.column())?;
        }
        write!(f, "  {word}: {}", self.fault.message)?;
        match &self.fault.hint {
            Some(hint) => write!(f, ", {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_marks_what_is_meant_below_its_line() {
        let place = reading::Place {
            line: 2,
            column: 4,
            width: 3,
            text: "\té ü = 1".to_owned(),
        };
        let problem = Problem::error(reading::Problem {
            path: "x.toml".to_owned(),
            place: Some(place),
            message: "no".to_owned(),
            hint: Some("try `u`".to_owned()),
        });
        assert_eq!(problem.to_string(), "x.toml:2:4  error: no, try `u`");
        assert_eq!(problem.excerpt().unwrap(), "  \té ü = 1\n  \t  ^^");
    }
}
