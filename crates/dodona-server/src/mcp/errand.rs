//! Carrying out what a request needs of the hub.

use dodona_proto::{CallError, ErrorCode};
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{InputRequiredResult, InputResponses};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::client::Client;
use super::desk::Desk;
use super::parked::Owner;
use super::progress::Progress;
use super::running::{Running, Step, Stop};

/// A method to call for a request.
pub(super) struct Errand<'a> {
    pub(super) method: &'a str,
    pub(super) params: Value,
    /// Whether nothing has to be journaled if nobody watches.
    pub(super) only_reads: bool,
}

/// What a client brings along that was asked something before.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) answers: Option<InputResponses>,
    pub(super) word: Option<String>,
}

/// What came of it.
pub(super) enum Outcome {
    Value(Value),
    /// The client has to answer this, and ask again.
    Asks(InputRequiredResult),
}

/// Carries a method out for a request, until its client does not want that any more.
pub(super) async fn carry(
    desk: &Desk,
    client: &Client,
    errand: Errand<'_>,
    brought: Brought,
    context: &RequestContext<RoleServer>,
) -> Result<Outcome, Stop> {
    let progress = Progress::new(&context.peer, context.meta.get_progress_token());
    tokio::select! {
        ended = go(desk, client, errand, brought, progress) => ended,
        // What was begun is dropped, and with that cancelled. Nobody reads what is answered.
        () = context.ct.cancelled() => Err(CallError::new(ErrorCode::Cancelled, "cancelled").into()),
    }
}

async fn go(
    desk: &Desk,
    client: &Client,
    errand: Errand<'_>,
    brought: Brought,
    mut progress: Progress,
) -> Result<Outcome, Stop> {
    let is_watched = progress.is_wanted() || client.follows() || brought.word.is_some();
    if desk.is_here() && errand.only_reads && !is_watched {
        let value = desk.call(errand.method, errand.params).await?;
        return Ok(Outcome::Value(value));
    }
    let owner = Owner {
        user: desk.user(),
        method: errand.method.to_owned(),
    };
    let mut given = brought.answers.unwrap_or_default();
    let running = match brought.word {
        None => Running::new(desk.open(errand.method, errand.params).await?),
        Some(word) => {
            let (running, question) = desk.parked().take(&word, &owner).ok_or_else(unknown)?;
            let Some(answers) = question.answers(&mut given) else {
                return Ok(park(desk, owner, running, question));
            };
            question.hand_over(desk, answers).await?;
            running
        }
    };
    let step = running
        .go_on(desk, client, &mut given, &mut progress)
        .await?;
    Ok(match step {
        Step::Done(value) => Outcome::Value(value),
        Step::Asks(running, question) => park(desk, owner, *running, question),
    })
}

/// Keeps a call until its client comes back with the answers.
fn park(
    desk: &Desk,
    owner: Owner,
    running: Running,
    question: super::question::Question,
) -> Outcome {
    let requests = question.requests.clone();
    let word = desk.parked().put(owner, running, question);
    Outcome::Asks(InputRequiredResult::new(Some(requests), Some(word)))
}

/// What was brought along names no call that waits for this client.
fn unknown() -> Stop {
    let message =
        "`requestState` names nothing that waits: it was changed, used already, or is too old";
    Stop::Refused(ErrorData::invalid_params(message, None))
}
