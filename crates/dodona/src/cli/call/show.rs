//! Showing the items of a call, to people or to programs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::Arc;
use std::time::Instant;

use dodona_proto::{DoneStatus, ErrorCode, ExitKind, HubStreamItem, ItemBody};
use dodona_store::journal::StoredItem;
use serde_json::Value;

use crate::failure::Failure;
use crate::live::Live;
use crate::paint::{Paint, harmless};
use crate::{quantity, shell};

/// What the root call came to.
struct Tally {
    began: Instant,
    /// Pieces of the result.
    data: u64,
    /// What broke the root call.
    error: Option<ErrorCode>,
    /// How it ended.
    done: Option<(DoneStatus, Option<String>)>,
}

/// Shows items as they come.
pub(super) struct Show {
    form: Form,
    tally: Tally,
}

enum Form {
    /// The flat objects, one in a line.
    Json,
    /// For people.
    Human(Human),
}

struct Human {
    live: Live,
    verbose: bool,
    out: Paint,
    err: Paint,
    /// Whether what is shown may do things to a terminal.
    to_terminal: bool,
    /// Whether the last line of text has not ended yet.
    mid_line: bool,
}

impl Show {
    pub(super) fn new(json: bool, verbose: bool) -> Self {
        let form = if json {
            Form::Json
        } else {
            Form::Human(Human {
                live: if verbose { Live::none() } else { Live::start() },
                verbose,
                out: Paint::of(&io::stdout()),
                err: Paint::of(&io::stderr()),
                to_terminal: io::stdout().is_terminal(),
                mid_line: false,
            })
        };
        let tally = Tally {
            began: Instant::now(),
            data: 0,
            error: None,
            done: None,
        };
        Self { form, tally }
    }

    /// Shows some items at once: what has come together is written together.
    pub(super) fn items(&mut self, batch: &[Arc<StoredItem>]) -> Result<(), Failure> {
        let mut text = String::new();
        for stored in batch {
            let item = stored.to_item().map_err(|error| {
                Failure::new(ExitKind::Failed, format!("an item cannot be read: {error}"))
            })?;
            self.tally.count(&item);
            match &mut self.form {
                Form::Json => {
                    stored.write_json(&mut text);
                    text.push('\n');
                }
                Form::Human(human) => human.item(&item, &mut text)?,
            }
        }
        match &mut self.form {
            Form::Json => write_out(&text),
            Form::Human(human) => human.write(&text),
        }
    }

    /// Tells how it ended, and makes that the command's own end.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        if let Form::Human(human) = &mut self.form {
            human.summary(&self.tally)?;
        }
        match self.tally.exit() {
            Some(exit) => Err(Failure::Told(exit)),
            None => Ok(()),
        }
    }
}

impl Tally {
    fn count(&mut self, item: &HubStreamItem) {
        let root = item.call_id.depth() == 0;
        match &item.body {
            ItemBody::Data { .. } => self.data += 1,
            ItemBody::Error {
                code,
                recoverable: false,
                ..
            } if root => self.error = Some(code.clone()),
            ItemBody::Done { status, reason } if root => {
                self.done = Some((*status, reason.clone()));
            }
            _ => {}
        }
    }

    fn exit(&self) -> Option<ExitKind> {
        match self.done.as_ref().map(|(status, _)| *status) {
            Some(DoneStatus::Complete) => None,
            Some(DoneStatus::Cancelled) => Some(ExitKind::Cancelled),
            Some(DoneStatus::Refused) => Some(ExitKind::Refused),
            Some(DoneStatus::Limited) => Some(ExitKind::Limited),
            Some(DoneStatus::Failed) | None => Some(
                self.error
                    .as_ref()
                    .map_or(ExitKind::Failed, ErrorCode::exit),
            ),
        }
    }
}

impl Human {
    fn item(&mut self, item: &HubStreamItem, text: &mut String) -> Result<(), Failure> {
        let path = item.plugin_path.to_string();
        match &item.body {
            ItemBody::Progress {
                message,
                percentage,
            } => {
                self.live.progress(&path, message, *percentage);
                if self.verbose {
                    let share = percentage.map(|share| format!("{share:.0} % "));
                    let share = share.unwrap_or_default();
                    let line = format!("{path}  {share}{}", harmless(message));
                    self.aside(text, &self.err.dim(line).to_string())?;
                }
            }
            ItemBody::Data { data, .. } => self.data(&path, data, text),
            ItemBody::Error {
                error, code, hint, ..
            } => {
                let (label, error) = (self.err.bad("error:"), harmless(error));
                let place = self.err.dim(format!("({path}, {code})"));
                let mut line = format!("{label} {error} {place}");
                if let Some(hint) = hint {
                    let _ = write!(line, "\n{} {}", self.err.code("hint:"), harmless(hint));
                }
                self.aside(text, &line)?;
            }
            ItemBody::Done { status, reason } => {
                if self.verbose && item.call_id.depth() > 0 {
                    let reason = reason
                        .as_ref()
                        .map(|reason| format!(": {}", harmless(reason)));
                    let (status, reason) = (status.as_str(), reason.unwrap_or_default());
                    let line = format!("{path}  {status}{reason}");
                    self.aside(text, &self.err.dim(line).to_string())?;
                }
            }
        }
        Ok(())
    }

    fn data(&mut self, path: &str, data: &Value, text: &mut String) {
        if let Some(delta) = delta(data) {
            let delta = harmless(delta);
            text.push_str(&delta);
            if !delta.is_empty() {
                self.mid_line = !delta.ends_with('\n');
            }
            return;
        }
        self.end_line(text);
        let data = data.to_string();
        let _ = writeln!(text, "{}  {}", self.out.dim(path), harmless(&data));
    }

    fn end_line(&mut self, text: &mut String) {
        if std::mem::take(&mut self.mid_line) {
            text.push('\n');
        }
    }

    /// Writes a line to standard error, in its place between what goes to standard output.
    fn aside(&mut self, text: &mut String, line: &str) -> Result<(), Failure> {
        self.end_line(text);
        self.write(text)?;
        text.clear();
        self.live.aside(|| shell::tell(line));
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        if self.to_terminal {
            self.live.aside(|| write_out(text))
        } else {
            write_out(text)
        }
    }

    fn summary(&mut self, tally: &Tally) -> Result<(), Failure> {
        let mut text = String::new();
        self.end_line(&mut text);
        self.write(&text)?;
        self.live.end();
        let (status, reason) = match &tally.done {
            Some((status, reason)) => (status.as_str(), reason.as_deref()),
            None => ("failed", Some("it ended without a word")),
        };
        // What an error item said, or the status itself, need not be said again.
        let reason = reason.filter(|reason| tally.error.is_none() && *reason != status);
        let reason = reason.map(|reason| format!(" ({})", harmless(reason)));
        let items = match tally.data {
            1 => "1 item".to_owned(),
            n => format!("{n} items"),
        };
        let elapsed = quantity::show_elapsed(tally.began.elapsed());
        let line = format!(
            "{status}{} · {items} · {elapsed}",
            reason.unwrap_or_default()
        );
        shell::tell(&self.err.dim(line).to_string());
        Ok(())
    }
}

/// The text of a piece that is nothing but text.
fn delta(data: &Value) -> Option<&str> {
    let fields = data.as_object()?;
    match fields.len() {
        1 => fields.get("text")?.as_str(),
        _ => None,
    }
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dodona_proto::{PluginName, PluginPath, StreamId};
    use serde_json::json;

    fn human() -> Human {
        Human {
            live: Live::none(),
            verbose: false,
            out: Paint::plain(),
            err: Paint::plain(),
            to_terminal: true,
            mid_line: false,
        }
    }

    fn data(data: Value) -> HubStreamItem {
        HubStreamItem {
            call_id: StreamId::random().root_call(),
            seq: 1,
            plugin_path: PluginPath::root(&PluginName::new("agent").unwrap()),
            body: ItemBody::Data {
                content_type: "TextDelta".into(),
                data,
            },
        }
    }

    fn shown(items: &[Value]) -> String {
        let (mut human, mut text) = (human(), String::new());
        for item in items {
            human.item(&data(item.clone()), &mut text).unwrap();
        }
        text
    }

    #[test]
    fn deltas_are_one_text() {
        assert_eq!(
            shown(&[
                json!({"text": "Turn "}),
                json!({"text": "back."}),
                json!({"n": 1})
            ]),
            "Turn back.\nagent  {\"n\":1}\n"
        );
        assert_eq!(
            shown(&[json!({"text": "a\n"}), json!({"text": ""}), json!({"n": 1})]),
            "a\nagent  {\"n\":1}\n"
        );
    }

    #[test]
    fn what_comes_with_the_text_is_not_lost() {
        assert_eq!(
            shown(&[json!({"text": "a", "lang": "en"})]),
            "agent  {\"text\":\"a\",\"lang\":\"en\"}\n"
        );
        assert_eq!(shown(&[json!({"text": "\u{1b}[2J"})]), "\u{fffd}[2J");
    }
}
