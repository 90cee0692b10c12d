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

It exits with 1 when something is wrong. It changes nothing, except that it creates what a first
start would, and closes what an earlier process left open.";

/// Check that everything is all right, and tell what to do where it is not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// Print JSON for programs
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
        0 => paint.good("everything is all right").to_string(),
        1 => paint.bad("1 thing is wrong").to_string(),
        n => paint.bad(format!("{n} things are wrong")).to_string(),
    };
    format!("{lines}\n{end}\n")
}
