//! `dodona events`.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::Args;
use dodona_hub::CancelTarget;
use dodona_proto::{CallError, DoneStatus, ErrorCode, Event, ExitKind, ItemBody, Severity};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{Form, answer, tell};
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::session::{Ask, Session};
use crate::shell::Shell;

const EXAMPLES: &str = "\
Examples:
  dodona events                        what rules and plugins emitted lately
  dodona events --type custom.release  of this type and below
  dodona events --type tool.call       how tools were called
  dodona events --all --limit 200      everything
  dodona events --json | jq '.events[].payload'
  dodona events --follow               and every further one as it happens, until Ctrl-C
  dodona events --follow --after 4711 --json   one JSON object in each line, from a position on

A rule emits an event with the action `emit_event`, a plugin with `dodona.publish`.";

/// The type of events that rules and plugins emit.
const CUSTOM: &str = "custom";

/// List recent events, latest last
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Only events whose type starts with this prefix
    #[arg(long = "type", value_name = "TYPE", default_value = CUSTOM)]
    kind: String,

    /// Include events of every type
    #[arg(long, conflicts_with = "kind")]
    all: bool,

    /// Maximum number of results
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// Print new events as they happen; needs a running server
    #[arg(long, short)]
    follow: bool,

    /// With --follow: start after this position instead of listing recent events; 0 is the oldest
    #[arg(long, value_name = "POSITION", requires = "follow")]
    after: Option<u64>,

    #[command(flatten)]
    form: Form,
}

#[derive(Serialize, Deserialize)]
struct Recent {
    events: Vec<EventRecord>,
    more: bool,
}

/// An event and its position in the journal.
#[derive(Serialize, Deserialize)]
struct EventRecord {
    position: u64,
    #[serde(flatten)]
    event: Event,
}

impl Events {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project_if_any().await?;
        let kind = if self.all { "" } else { &self.kind };
        if self.follow {
            let followed = self.follow(&session, kind, shell).await;
            session.close().await;
            return followed;
        }
        let params = json!({ "type": kind, "limit": self.limit });
        tell(shell, session, async |session| {
            let recent: Recent = answer(session, "events.recent", params).await?;
            Ok(self
                .form
                .text(&recent, |recent, paint| table(recent, kind, paint)))
        })
        .await
    }

    /// Prints the recent events and then each further one.
    async fn follow(&self, session: &Session, kind: &str, shell: &Shell) -> Result<(), Failure> {
        if session.url().is_none() {
            let message = "no server is running, so no new events can arrive";
            return Err(Failure::usage(message)
                .hint("run `dodona serve` in another terminal, or leave out `--follow`"));
        }
        let mut position = match self.after {
            Some(after) => after,
            None => {
                let params = json!({ "type": kind, "limit": self.limit });
                let recent: Recent = answer(session, "events.recent", params).await?;
                for record in recent.events.iter().rev() {
                    self.print(record)?;
                }
                recent.events.first().map_or(0, |newest| newest.position)
            }
        };
        loop {
            // A watch has an end; the next one goes on where it ended.
            let watching = self.watch(session, kind, &mut position, shell);
            watching.await?;
        }
    }

    /// Prints the events of one watch.
    async fn watch(
        &self,
        session: &Session,
        kind: &str,
        position: &mut u64,
        shell: &Shell,
    ) -> Result<(), Failure> {
        let params = json!({ "types": [kind], "after": *position });
        let mut items = session.open(Ask::new("events.watch", params)).await?;
        let target = CancelTarget::Stream(items.stream());
        loop {
            let next = tokio::select! {
                biased;
                () = shell.interrupt.requested() => {
                    // A server would go on with it for a while.
                    let _ = session.cancel(&target).await;
                    return Err(Failure::Told(ExitKind::Cancelled));
                }
                next = items.next() => next?,
            };
            for item in next.into_iter().flatten() {
                match item.to_item().map_err(unreadable)?.body {
                    ItemBody::Data { data, .. } => {
                        let record: EventRecord =
                            serde_json::from_value(data).map_err(unreadable)?;
                        *position = record.position;
                        let printed = self.print(&record);
                        if printed.is_err() {
                            let _ = session.cancel(&target).await;
                        }
                        printed?;
                    }
                    ItemBody::Error {
                        error, code, hint, ..
                    } => return Err(Failure::item(&code, error, hint)),
                    ItemBody::Done {
                        status: DoneStatus::Complete,
                        ..
                    } => return Ok(()),
                    ItemBody::Done { reason, .. } => {
                        let reason = reason.unwrap_or_else(|| "the watch ended".to_owned());
                        return Err(CallError::new(ErrorCode::Interrupted, reason).into());
                    }
                    ItemBody::Progress { .. } => {}
                }
            }
        }
    }

    fn print(&self, record: &EventRecord) -> Result<(), Failure> {
        let paint = Paint::of(&io::stdout());
        let text = match self.form.json {
            true => format!("{}\n", json!(record)),
            false => line(&record.event, 0, paint),
        };
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| Failure::output(&error))
    }
}

fn unreadable(error: serde_json::Error) -> Failure {
    let message = format!("an event could not be read: {error}");
    Failure::new(ExitKind::Failed, message)
}

/// A line for each, the latest last.
fn table(recent: &Recent, kind: &str, paint: Paint) -> String {
    if recent.events.is_empty() {
        return match kind {
            "" => "no events\n".to_owned(),
            CUSTOM => "no events emitted by rules or plugins\n".to_owned(),
            kind => format!("no events of type `{}`\n", one_line(kind)),
        };
    }
    let kinds = recent.events.iter().map(|record| record.event.kind.len());
    let kinds = kinds.max().unwrap_or(0);
    let mut out = String::new();
    if recent.more {
        let _ = writeln!(out, "{}", paint.dim("… older ones: see --limit"));
    }
    for record in recent.events.iter().rev() {
        out.push_str(&line(&record.event, kinds, paint));
    }
    out
}

/// One event in a line; its type takes up at least so many columns.
fn line(event: &Event, kinds: usize, paint: Paint) -> String {
    let kind = format!("{:kinds$}", one_line(&event.kind));
    let kind = match event.severity {
        Severity::Error => paint.bad(kind).to_string(),
        Severity::Warning => paint.note(kind).to_string(),
        Severity::Info | Severity::Debug => paint.bold(kind).to_string(),
    };
    format!(
        "{}  {kind}  {}  {}{}\n",
        paint.dim(event.timestamp.strftime("%Y-%m-%d %H:%M:%S")),
        paint.dim(one_line(&event.source)),
        particulars(&event.payload),
        paint.dim(after(&event.causes)),
    )
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
