//! Asking a question and showing the answer as it comes, for `dodona ask` and `dodona chat`.

mod consent;
mod markdown;
mod screen;
mod tool;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use dodona_hub::CancelTarget;
use dodona_proto::{DoneStatus, ExitKind, HubStreamItem, ItemBody, Source, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::paint::one_line;
use crate::session::{Ask, Items, Session};
use crate::shell::{self, Shell};
pub(super) use consent::approvers;
pub(super) use screen::{Form, Screen};

/// What to ask, and how.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The question itself.
    pub(super) message: String,
    /// The agent, by its name; that of the conversation, or the default one, without.
    pub(super) agent: Option<String>,
    /// The conversation, by name or id; the default one without.
    pub(super) context: Option<String>,
    /// The model, by its name in the settings; the default one without.
    pub(super) model: Option<String>,
    /// Whether the model is offered tools.
    pub(super) tools: bool,
}

/// The last item of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Response {
    #[serde(rename(serialize = "answer"))]
    pub(super) text: String,
    pub(super) sources: Vec<Source>,
    pub(super) uncited: Vec<String>,
    pub(super) truncated: bool,
    pub(super) model: String,
    pub(super) turns: u32,
    pub(super) usage: Usage,
    pub(super) cost_micros: Option<u64>,
    pub(super) query_id: String,
    pub(super) context_id: String,
    pub(super) agent_id: String,
}

/// An answer, and how long it took.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: Response,
    /// Until its first text.
    pub(super) first_text: Option<Duration>,
    /// Until its end.
    pub(super) total: Duration,
}

impl Answer {
    /// As one object.
    pub(super) fn to_json(&self) -> Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut answer = json!(self.response);
        answer["timings"] = json!({
            "first_text_ms": self.first_text.map(millis),
            "total_ms": millis(self.total),
        });
        answer
    }
}

impl Question {
    fn params(&self) -> Value {
        let mut params = json!({ "message": self.message, "tools": self.tools });
        if let Some(agent) = &self.agent {
            params["agent_id"] = json!(agent);
        }
        if let Some(context) = &self.context {
            params["context_id"] = json!(context);
        }
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        params
    }
}

/// Creates the conversation that a question names if there is none of that name. Text that looks
/// like an id is left alone: a mistyped id must not create a conversation.
pub(super) async fn ensure_context(session: &Session, question: &Question) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Listed {
        contexts: Vec<Context>,
    }
    #[derive(Deserialize)]
    struct Context {
        id: String,
        name: Option<String>,
    }
    let Some(given) = question.context.as_deref() else {
        return Ok(());
    };
    let looks_like_id =
        given.len() >= 8 && given.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if looks_like_id || given == "default" {
        return Ok(());
    }
    let Listed { contexts } = session.ask("agent.contexts", json!({})).await?;
    let is_given =
        |context: &Context| context.name.as_deref() == Some(given) || context.id.ends_with(given);
    if contexts.iter().any(is_given) {
        return Ok(());
    }
    let mut params = json!({ "name": given });
    if let Some(agent) = &question.agent {
        params["agent_id"] = json!(agent);
    }
    let _: Value = session.ask("agent.create", params).await?;
    shell::tell(&format!("created conversation `{}`", one_line(given)));
    Ok(())
}

/// Asks, and shows what comes on the screen. An interrupt stops the query.
pub(super) async fn ask(
    session: &Session,
    shell: &Shell,
    question: &Question,
    screen: &mut Screen,
) -> Result<Answer, Failure> {
    let began = Instant::now();
    screen.waiting();
    let asked = tokio::select! {
        biased;
        asked = session.open(Ask::new("agent.chat", question.params())) => asked,
        () = shell.interrupt.requested() => {
            screen.end();
            return Err(shell.cancelled(Some(began.elapsed())));
        }
    };
    let mut watch = Watch {
        session,
        shell,
        items: asked.inspect_err(|_| screen.end())?,
        queue: VecDeque::new(),
    };
    let mut story = Story::new(began);
    let told = follow(&mut watch, &mut story, screen).await;
    screen.end();
    if told.is_err() {
        // Nobody sees what it does any more, and a server would go on with it.
        watch.stop().await;
    }
    told?;
    story.end(shell)
}

/// A query whose items are being read.
struct Watch<'a> {
    session: &'a Session,
    shell: &'a Shell,
    items: Items,
    /// Read, and not yet shown.
    queue: VecDeque<HubStreamItem>,
}

impl Watch<'_> {
    /// Waits for more items; false when there are none. Safe to drop and call again.
    async fn more(&mut self) -> Result<bool, Failure> {
        let Some(items) = self.items.next().await? else {
            return Ok(false);
        };
        for item in items {
            let item = item
                .to_item()
                .map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))?;
            self.queue.push_back(item);
        }
        Ok(true)
    }

    /// Stops the query. One that has just ended is not found, which is as well.
    async fn stop(&self) {
        let target = CancelTarget::Stream(self.items.stream());
        let _ = self.session.cancel(&target).await;
    }
}

async fn follow(
    watch: &mut Watch<'_>,
    story: &mut Story,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut stopping = false;
    loop {
        while let Some(item) = watch.queue.pop_front() {
            story.note(&item);
            screen.item(&item)?;
            if let Some(request) = consent::requested(&item).filter(|_| !stopping) {
                consent::ask(watch, &request, screen).await?;
            }
        }
        tokio::select! {
            biased;
            () = watch.shell.interrupt.requested(), if !stopping => {
                stopping = true;
                watch.stop().await;
            }
            more = watch.more() => if !more? {
                return Ok(());
            },
        }
    }
}

/// What the items of an answer come to.
struct Story {
    began: Instant,
    first_text: Option<Duration>,
    response: Option<Response>,
    failure: Option<Failure>,
    status: Option<DoneStatus>,
    /// Why it ended so.
    reason: Option<String>,
}

impl Story {
    fn new(began: Instant) -> Self {
        Self {
            began,
            first_text: None,
            response: None,
            failure: None,
            status: None,
            reason: None,
        }
    }

    fn note(&mut self, item: &HubStreamItem) {
        if item.call_id.depth() > 0 {
            return;
        }
        match &item.body {
            ItemBody::Data { content_type, data } => match content_type.as_ref() {
                "TextDelta" => {
                    self.first_text.get_or_insert(self.began.elapsed());
                }
                "AgentResponse" => self.response = Response::deserialize(data).ok(),
                _ => {}
            },
            ItemBody::Error {
                error,
                code,
                recoverable: false,
                hint,
            } => self.failure = Some(Failure::item(code, error.clone(), hint.clone())),
            ItemBody::Done { status, reason } => {
                self.status = Some(*status);
                self.reason.clone_from(reason);
            }
            _ => {}
        }
    }

    fn end(self, shell: &Shell) -> Result<Answer, Failure> {
        let total = self.began.elapsed();
        match (self.status, self.response, self.failure) {
            (Some(DoneStatus::Complete), Some(response), _) => Ok(Answer {
                response,
                first_text: self.first_text,
                total,
            }),
            (Some(DoneStatus::Cancelled), ..) => Err(shell.cancelled(Some(total))),
            (.., Some(failure)) => Err(failure),
            _ => Err(Failure::new(
                ExitKind::Failed,
                match self.reason {
                    Some(reason) => format!("the answer broke off: {reason}"),
                    None => "the answer broke off".to_owned(),
                },
            )),
        }
    }
}
