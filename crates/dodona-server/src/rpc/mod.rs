//! JSON-RPC 2.0, the same on every transport.

mod envelope;
mod execute;
mod subscribe;

use std::sync::Arc;

use dodona_proto::CallError;
use futures_util::{StreamExt, stream};

use crate::app::App;
use crate::auth::Caller;
pub(crate) use envelope::{Call, Frame, Incoming, failure, value};
use envelope::{Id, success};
pub(crate) use execute::{Answer, execute, request, run};
pub(crate) use subscribe::{Opened, Room, unsubscribe_target};

/// Answers a frame over HTTP; `None` when there is nothing to say (notifications).
pub(crate) async fn answer_http(app: &Arc<App>, caller: &Caller, frame: &[u8]) -> Option<String> {
    match Frame::parse(frame, app.options.batch) {
        Ok(Frame::One(incoming)) => one_http(app, caller, incoming).await,
        Ok(Frame::Batch(all)) => {
            let calls: Vec<_> = all
                .into_iter()
                .map(|incoming| one_http(app, caller, incoming))
                .collect();
            batch(
                stream::iter(calls)
                    .buffered(app.options.batch_parallel)
                    .collect()
                    .await,
            )
        }
        Err(error) => Some(failure(None, &error)),
    }
}

async fn one_http(app: &Arc<App>, caller: &Caller, incoming: Incoming<'_>) -> Option<String> {
    let Incoming { id, request } = incoming;
    let outcome = match request {
        Ok(call) => execute(app, caller, call, None)
            .await
            .map(Answer::over_http),
        Err(error) => Err(error),
    };
    reply(id, outcome.as_deref())
}

/// A response, unless it was a notification.
pub(crate) fn reply(id: Id<'_>, outcome: Result<&str, &CallError>) -> Option<String> {
    let id = id.to_answer()?;
    Some(match outcome {
        Ok(result) => success(id, result),
        Err(error) => failure(Some(id), error),
    })
}

/// The answers of a batch, in its order; `None` when all were notifications.
pub(crate) fn batch(answers: Vec<Option<String>>) -> Option<String> {
    let answers: Vec<String> = answers.into_iter().flatten().collect();
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}
