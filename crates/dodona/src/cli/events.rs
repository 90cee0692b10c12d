//! `dodona events`.

use std::fmt::Write as _;

use clap::Args;
use dodona_proto::{Event, Severity};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{Form, answer, tell};
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona events                        what rules and plugins emitted lately
  dodona events --type custom.release  of this type and below
  dodona events --type tool.call       how tools were called
  dodona events --all --limit 200      everything
  dodona events --json | jq '.events[].payload'

A rule emits an event with the action `emit_event`.";

/// The type of events that rules and plugins emit.
const CUSTOM: &str = "custom";

/// List what happened lately: events that rules and plugins emitted, the latest last
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Events of this type and below
    #[arg(long = "type", value_name = "TYPE", default_value = CUSTOM)]
    kind: String,

    /// Events of every type
    #[arg(long, conflicts_with = "kind")]
    all: bool,

    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    #[command(flatten)]
    form: Form,
}

#[derive(Serialize, Deserialize)]
struct Recent {
    events: Vec<Event>,
    more: bool,
}

impl Events {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project_if_any().await?;
        let kind = if self.all { "" } else { &self.kind };
        let params = json!({ "type": kind, "limit": self.limit });
        tell(shell, session, async |session| {
            let recent: Recent = answer(session, "events.recent", params).await?;
            Ok(self
                .form
                .text(&recent, |recent, paint| table(recent, kind, paint)))
        })
        .await
    }
}

/// A line for each, the latest last.
fn table(recent: &Recent, kind: &str, paint: Paint) -> String {
    if recent.events.is_empty() {
        return match kind {
            "" => "nothing has happened\n".to_owned(),
            CUSTOM => "no rule and no plugin has emitted an event\n".to_owned(),
            kind => format!("there is no event of type `{}`\n", one_line(kind)),
        };
    }
    let kinds = recent.events.iter().map(|event| event.kind.len());
    let kinds = kinds.max().unwrap_or(0);
    let mut out = String::new();
    if recent.more {
        let _ = writeln!(out, "{}", paint.dim("… older ones: see --limit"));
    }
    for event in recent.events.iter().rev() {
        let kind = format!("{:kinds$}", one_line(&event.kind));
        let kind = match event.severity {
            Severity::Error => paint.bad(kind).to_string(),
            Severity::Warning => paint.note(kind).to_string(),
            Severity::Info | Severity::Debug => paint.bold(kind).to_string(),
        };
        let _ = writeln!(
            out,
            "{}  {kind}  {}  {}{}",
            paint.dim(event.timestamp.strftime("%Y-%m-%d %H:%M:%S")),
            paint.dim(one_line(&event.source)),
            particulars(&event.payload),
            paint.dim(after(&event.causes)),
        );
    }
    out
}

/// The payload in a line, cut where it is long.
fn particulars(payload: &Value) -> String {
    const MOST: usize = 160;
    if payload.is_null() {
        return String::new();
    }
    let text = one_line(&payload.to_string());
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// What led to it.
fn after(causes: &[String]) -> String {
    match causes.is_empty() {
        true => String::new(),
        false => format!("  after {}", one_line(&causes.join(" → "))),
    }
}
