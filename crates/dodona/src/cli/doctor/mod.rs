//! `dodona doctor`.

mod checks;
mod finding;
mod machine;
mod rules;

use std::io;

use clap::Args;
use dodona_proto::ExitKind;
use serde_json::json;

use crate::failure::Failure;
use crate::home::Home;
use crate::paint::Paint;
use crate::shell::Shell;
use finding::{Finding, Verdict};

const EXAMPLES: &str = "\
Examples:
  dodona doctor
  dodona doctor --json | jq '.checks[] | select(.verdict == \"wrong\")'

Exits with 1 if a check failed. It changes nothing, except that it creates the files that a first
start creates, and closes calls that a crashed process left open.";

/// Check the installation and suggest fixes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let home = Home::find()?;
        let findings = tokio::select! {
            biased;
            () = shell.interrupt.requested() => return Err(shell.cancelled(None)),
            findings = checks::all(&home) => findings,
        };
        let text = if self.json {
            as_json(&findings)
        } else {
            as_text(&findings, Paint::of(&io::stdout()))
        };
        super::print(&text)?;
        if findings
            .iter()
            .any(|finding| finding.verdict == Verdict::Wrong)
        {
            return Err(Failure::Told(ExitKind::Failed));
        }
        Ok(())
    }
}

fn as_json(findings: &[Finding]) -> String {
    let ok = findings
        .iter()
        .all(|finding| finding.verdict != Verdict::Wrong);
    format!("{}\n", json!({ "ok": ok, "checks": findings }))
}

fn as_text(findings: &[Finding], paint: Paint) -> String {
    let lines: String = findings
        .iter()
        .map(|finding| finding.lines(paint))
        .collect();
    let wrong = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Wrong)
        .count();
    let end = match wrong {
        0 => paint.good("all checks passed").to_string(),
        1 => paint.bad("1 check failed").to_string(),
        n => paint.bad(format!("{n} checks failed")).to_string(),
    };
    format!("{lines}\n{end}\n")
}
