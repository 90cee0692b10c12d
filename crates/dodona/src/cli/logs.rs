//! `dodona logs`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use dodona_proto::{ErrorCode, Severity};
use dodona_rules::log::RuleLogLine;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form;
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::quantity;
use crate::session::Session;
use crate::shell::{Shell, tell};

const EXAMPLES: &str = "\
Examples:
  dodona logs                          the last lines of the project's rules
  dodona logs --follow                 and every further line as it is written
  dodona logs --rule track-searches --since 2h
  dodona logs --level warning --all    of every project
  dodona logs --json | jq -r '.lines[].message'

A rule writes a line with the action `log`. With `--follow`, `--json` prints one object per line.";

/// How long to wait between two looks for new lines.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The most lines of one answer.
const MAX_LINES: u32 = 1_000;

/// Show lines logged by rules, latest last
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Logs {
    /// Print further lines as they are written, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Only lines of this rule: its id, or `plugin/id`
    #[arg(long)]
    rule: Option<String>,

    /// Only lines of this level and above
    #[arg(long, value_name = "LEVEL", value_parser = ["debug", "info", "warning", "error"])]
    level: Option<String>,

    /// Only lines since a time (`2026-01-31T10:00:00Z`) or for a duration (`2h`)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,

    /// Include lines of every project
    #[arg(long)]
    all: bool,

    /// Maximum number of lines
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A time, or how long ago it was.
fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let ago = quantity::duration(text)
        .map_err(|error| format!("{error}; or a time such as 2026-01-31T10:00:00Z"))?;
    let ago = jiff::SignedDuration::try_from(ago).unwrap_or(jiff::SignedDuration::MAX);
    Ok(Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::MIN))
}

#[derive(Serialize, Deserialize)]
struct Lines {
    lines: Vec<RuleLogLine>,
}

impl Logs {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        if self.follow {
            return tokio::select! {
                biased;
                () = shell.interrupt.requested() => Ok(()),
                ended = self.follow(shell) => ended,
            };
        }
        let session = shell.session_in_project_if_any().await?;
        form::tell(shell, session, async |session| {
            let read = self.read(session, None, self.limit).await?;
            let paint = Paint::of(&io::stdout());
            Ok(form::show(self.json, &read, || table(&read.lines, paint)))
        })
        .await
    }

    /// Prints lines for ever. Where no server runs, the home is free between two looks, so that other
    /// commands can use it.
    async fn follow(&self, shell: &Shell) -> Result<(), Failure> {
        let mut open: Option<Session> = None;
        let mut after = None;
        let mut is_told = false;
        loop {
            let session = match open.take() {
                Some(session) => session,
                None => shell.session_in_project_if_any().await?,
            };
            if session.url().is_none() && !is_told && io::stderr().is_terminal() {
                is_told = true;
                tell("no server runs; showing lines of other commands as they end");
            }
            let limit = after.map_or(self.limit, |_| MAX_LINES);
            let read = self.read(&session, after, limit).await;
            match session.url() {
                Some(_) if read.is_ok() => open = Some(session),
                _ => session.close().await,
            }
            match read {
                Ok(read) => {
                    let last = read.lines.last().map(|line| line.id);
                    after = last.or(after).or(Some(0));
                    self.print(&read.lines)?;
                }
                // The server was stopped or restarted.
                Err(error) if error.code == ErrorCode::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn read(
        &self,
        session: &Session,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Lines, dodona_proto::CallError> {
        session
            .ask("rules.log_lines", self.params(after, limit))
            .await
    }

    fn params(&self, after: Option<i64>, limit: u32) -> Value {
        let mut params = json!({ "limit": limit, "all_projects": self.all });
        let named = [
            ("rule", self.rule.as_ref().map(|rule| json!(rule))),
            ("level", self.level.as_ref().map(|level| json!(level))),
            ("since", self.since.map(|since| json!(since))),
            ("after", after.map(|after| json!(after))),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                params[name] = value;
            }
        }
        params
    }

    fn print(&self, lines: &[RuleLogLine]) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        super::print(&match self.json {
            true => lines
                .iter()
                .map(|line| format!("{}\n", json!(line)))
                .collect(),
            false => rows(lines, Paint::of(&io::stdout())),
        })
    }
}

fn table(lines: &[RuleLogLine], paint: Paint) -> String {
    match lines.is_empty() {
        true => "no rule has logged a line\n".to_owned(),
        false => rows(lines, paint),
    }
}

/// Time, level, rule and message of each line.
fn rows(lines: &[RuleLogLine], paint: Paint) -> String {
    let mut text = String::new();
    for line in lines {
        let level = match line.level {
            Severity::Error => paint.bad("error  ").to_string(),
            Severity::Warning => paint.note("warning").to_string(),
            Severity::Info => "info   ".to_owned(),
            Severity::Debug => paint.dim("debug  ").to_string(),
        };
        let _ = writeln!(
            text,
            "{}  {level}  {}  {}",
            paint.dim(line.at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")),
            paint.bold(one_line(short(&line.rule))),
            one_line(&line.message)
        );
    }
    text
}

/// The name of a rule; the plugin `rules` goes without saying.
fn short(rule: &str) -> &str {
    rule.strip_prefix("rules/").unwrap_or(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_time_or_a_duration() {
        assert_eq!(
            since("2026-01-31T10:00:00Z").unwrap().to_string(),
            "2026-01-31T10:00:00Z"
        );
        assert!(since("2h").unwrap() < Timestamp::now());
        assert!(since("soon").unwrap_err().contains("2026-01-31"));
    }
}
