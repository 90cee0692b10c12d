//! What a check found.

use serde::Serialize;

use crate::paint::{Paint, harmless};

/// One finding.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// What was checked.
    pub(super) check: &'static str,
    /// What it came to.
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// It could not be looked at, for a reason that is in order.
    Skipped,
    /// Something is to be done.
    Wrong,
}

/// How wide the names of checks are.
const WIDTH: usize = 12;

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, message)
    }

    pub(super) fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, Verdict::Skipped, message)
    }

    pub(super) fn wrong(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            advice: Some(advice.into()),
            ..Self::new(check, Verdict::Wrong, message)
        }
    }

    fn new(check: &'static str, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            check,
            verdict,
            message: message.into(),
            advice: None,
        }
    }

    /// The finding on a line, further lines of its message and its advice below.
    pub(super) fn lines(&self, paint: Paint) -> String {
        let mark = match self.verdict {
            Verdict::Ok => paint.good("✓"),
            Verdict::Skipped => paint.note("–"),
            Verdict::Wrong => paint.bad("✗"),
        };
        let indent = " ".repeat(WIDTH + 4);
        let message = harmless(&self.message).replace('\n', &format!("\n{indent}"));
        let mut text = format!("{mark} {:WIDTH$}  {message}\n", self.check);
        if let Some(advice) = &self.advice {
            let advice = harmless(advice);
            text.push_str(&format!("{indent}{} {advice}\n", paint.code("→")));
        }
        text
    }
}
