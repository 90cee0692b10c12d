//! Calling a tool.

use dodona_proto::{CallError, MethodKind, Mutation};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::catalogue::Work;
use super::client::Client;
use super::desk::Desk;
use super::errand::{self, Brought, Errand, Outcome};
use super::running::Stop;
use super::{ask, blocks};

/// Calls a tool, until its client does not want it any more.
pub(super) async fn run(
    desk: &Desk,
    client: &Client,
    work: &Work,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let brought = Brought {
        answers: request.input_responses,
        word: request.request_state,
    };
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let ended = match errand(work, arguments) {
        Ok(errand) => errand::carry(desk, client, errand, brought, context).await,
        Err(error) => Err(error.into()),
    };
    let ended = match ended {
        Ok(Outcome::Value(value)) => result(work, value).map(CallToolResponse::from),
        Ok(Outcome::Asks(asks)) => Ok(asks.into()),
        Err(Stop::Call(error)) => Err(error),
        Err(Stop::Refused(refusal)) => return Err(refusal),
    };
    let outcome = match &ended {
        Ok(CallToolResponse::InputRequired(_)) => "asked",
        Ok(_) => "ok",
        Err(_) => "error",
    };
    metrics::counter!("dodona_mcp_calls_total", "outcome" => outcome).increment(1);
    Ok(ended.unwrap_or_else(|error| blocks::failure(&error).into()))
}

/// What has to be called.
fn errand(work: &Work, arguments: Value) -> Result<Errand<'_>, CallError> {
    Ok(match work {
        Work::Method(method) => Errand {
            method: method.name.as_str(),
            params: arguments,
            only_reads: method.kind == MethodKind::Unary && method.mutation == Mutation::Reads,
        },
        Work::Ask => Errand {
            method: ask::METHOD,
            params: ask::params(arguments)?,
            only_reads: false,
        },
    })
}

fn result(work: &Work, value: Value) -> Result<CallToolResult, CallError> {
    match work {
        Work::Method(method) => Ok(blocks::success(method, value)),
        Work::Ask => ask::result(value),
    }
}
