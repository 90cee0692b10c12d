//! `dodona ask`.

use std::io::{self, Write};
use std::time::Instant;

use clap::Args;
use dodona_hub::CancelTarget;
use dodona_proto::{DoneStatus, ErrorCode, ExitKind, Item, ItemBody, Source};
use serde::Deserialize;
use serde_json::{Value, json};

use super::search;
use crate::failure::Failure;
use crate::live::Live;
use crate::paint::{Paint, harmless};
use crate::session::{Ask as Call, Session};
use crate::shell::{self, Shell};

const EXAMPLES: &str = "\
Examples:
  dodona ask \"How are rules evaluated?\"
  dodona ask \"Where is the journal written?\" --json | jq -r '.sources[].path'
  dodona ask --project ../other \"What does the server check first?\"";

/// Ask the project a question and get an answer that cites its sources
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ask {
    /// The question
    question: String,

    /// Print one JSON object: answer, sources, model, timings
    #[arg(long)]
    json: bool,
}

/// The last item of an answer.
#[derive(Deserialize)]
struct Response {
    text: String,
    sources: Vec<Source>,
    model: String,
    turns: u32,
}

impl Ask {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let session = shell.session_in_project().await?;
        let asked = self.on(&session, shell).await;
        session.close().await;
        asked
    }

    async fn on(&self, session: &Session, shell: &Shell) -> Result<(), Failure> {
        let began = Instant::now();
        let mut show = Show::new(self.json);
        let mut items = session
            .open(Call::new("agent.chat", json!({ "message": self.question })))
            .await?;
        let mut stopping = false;
        loop {
            let next = tokio::select! {
                biased;
                next = items.next() => next?,
                () = shell.interrupt.requested(), if !stopping => {
                    stopping = true;
                    // One that has just ended is not found, which is as well.
                    let _ = session.cancel(&CancelTarget::Stream(items.stream())).await;
                    continue;
                }
            };
            let Some(next) = next else { break };
            for item in next {
                let item = item
                    .to_item()
                    .map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))?;
                show.item(item)?;
            }
        }
        show.end(began, shell)
    }
}

/// Shows an answer as it comes.
struct Show {
    json: bool,
    live: Live,
    paint: Paint,
    searches: Vec<String>,
    response: Option<Response>,
    error: Option<(ErrorCode, String)>,
    status: Option<DoneStatus>,
}

impl Show {
    fn new(json: bool) -> Self {
        let live = if json { Live::none() } else { Live::start() };
        let paint = Paint::of(&io::stdout());
        Self {
            json,
            live,
            paint,
            searches: Vec::new(),
            response: None,
            error: None,
            status: None,
        }
    }

    fn item(&mut self, item: Item) -> Result<(), Failure> {
        let root = item.call_id.depth() == 0;
        match item.body {
            ItemBody::Progress {
                message,
                percentage,
            } => self
                .live
                .progress(item.plugin_path.as_str(), &message, percentage),
            ItemBody::Data { content_type, data } if root => self.data(&content_type, data)?,
            ItemBody::Error {
                error,
                code,
                recoverable: false,
            } if root => self.error = Some((code, error)),
            ItemBody::Done { status, .. } if root => self.status = Some(status),
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, content_type: &str, data: Value) -> Result<(), Failure> {
        match content_type {
            "ToolCall" => {
                let method = data["method"]
                    .as_str()
                    .or(data["name"].as_str())
                    .unwrap_or_default();
                let about = ["query", "path"]
                    .iter()
                    .find_map(|name| data["arguments"][name].as_str())
                    .map(|about| format!(" \"{about}\""));
                self.searches
                    .push(format!("{method}{}", about.unwrap_or_default()));
            }
            "TextDelta" if !self.json => {
                self.tell_searches();
                self.write(data["text"].as_str().unwrap_or_default())?;
            }
            "AgentResponse" => self.response = serde_json::from_value(data).ok(),
            _ => {}
        }
        Ok(())
    }

    /// One line about what was looked for, before the answer begins.
    fn tell_searches(&mut self) {
        self.live.end();
        if !self.searches.is_empty() {
            let line = format!("› {}", std::mem::take(&mut self.searches).join(" · "));
            shell::tell(&Paint::of(&io::stderr()).dim(harmless(&line)).to_string());
        }
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let written = out
            .write_all(harmless(text).as_bytes())
            .and_then(|()| out.flush());
        written.map_err(|error| Failure::output(&error))
    }

    fn end(self, began: Instant, shell: &Shell) -> Result<(), Failure> {
        self.live.end();
        match (self.status, &self.response, &self.error) {
            (Some(DoneStatus::Complete), Some(response), _) => self.finish(response, began),
            (Some(DoneStatus::Cancelled), ..) => Err(shell.cancelled(Some(began.elapsed()))),
            (_, _, Some((code, message))) => Err(Failure::new(code.exit(), message.clone())),
            _ => Err(Failure::new(ExitKind::Failed, "the answer broke off")),
        }
    }

    fn finish(&self, response: &Response, began: Instant) -> Result<(), Failure> {
        if self.json {
            let total_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let answer = json!({
                "answer": response.text,
                "sources": response.sources,
                "model": response.model,
                "turns": response.turns,
                "timings": { "total_ms": total_ms },
            });
            return super::print(&format!("{answer}\n"));
        }
        let mut text = String::from("\n");
        for (index, source) in response.sources.iter().enumerate() {
            let range = search::place(source);
            let title = source
                .title
                .as_deref()
                .map(|title| format!("  {}", self.paint.dim(harmless(title))))
                .unwrap_or_default();
            text.push_str(&format!(
                "  [{}] {}{title}\n",
                index + 1,
                self.paint.bold(range)
            ));
        }
        super::print(&text)
    }
}
