//! How the steps ended, as a table.

use std::time::Duration;

use anyhow::Result;

use super::times::Times;

/// How one step ended.
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    pub(super) time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    NotRun,
}

impl Outcome {
    /// The outcome of a step that an earlier failure kept from running.
    pub(super) fn skipped(name: &'static str) -> Self {
        Self {
            name,
            verdict: Verdict::NotRun,
            time: Duration::ZERO,
        }
    }
}

/// Stores the times of the steps that passed, for `--list`.
pub(super) fn record(outcomes: &[Outcome]) -> Result<()> {
    let mut times = Times::load();
    let passed = outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Passed);
    for outcome in passed {
        times.set(outcome.name, outcome.time);
    }
    times.save()
}

pub(super) fn failed(outcomes: &[Outcome]) -> Vec<&'static str> {
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Failed);
    failed.map(|outcome| outcome.name).collect()
}

pub(super) fn summary(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(outcome: &Outcome) -> String {
    match outcome.verdict {
        Verdict::Passed => format!("{:<10} passed   {:>8}", outcome.name, seconds(outcome.time)),
        Verdict::Failed => format!("{:<10} FAILED   {:>8}", outcome.name, seconds(outcome.time)),
        Verdict::NotRun => format!("{:<10} not run", outcome.name),
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_every_step_and_its_end() {
        let outcomes = [
            Outcome {
                name: "fmt",
                verdict: Verdict::Passed,
                time: Duration::from_millis(400),
            },
            Outcome {
                name: "clippy",
                verdict: Verdict::Failed,
                time: Duration::from_secs(12),
            },
            Outcome::skipped("tests"),
        ];
        let expected = "\
fmt        passed      0.4 s
clippy     FAILED     12.0 s
tests      not run";
        assert_eq!(summary(&outcomes), expected);
        assert_eq!(failed(&outcomes), ["clippy"]);
    }
}
