//! `ask`: a question to the agent, which searches by itself and cites what it found.

use std::fmt::Write;
use std::sync::Arc;

use dodona_proto::{CallError, ErrorCode};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};

use super::groups;

/// The method behind it.
pub(super) const METHOD: &str = "agent.chat";

const DESCRIPTION: &str = "Ask Dodona a question about the project. It searches notes, threads, \
    source code and history by itself and answers with citations. Use it for questions that need \
    several searches or the reasons behind a decision; use the search tools to look at passages \
    yourself. It may take a minute.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskParams {
    question: String,
    context_id: Option<String>,
    model: Option<String>,
}

/// What is read of the agent's answer.
#[derive(Deserialize)]
struct Answer {
    text: String,
    sources: Vec<Cited>,
    truncated: bool,
    model: String,
    query_id: String,
    context_id: String,
}

#[derive(Deserialize)]
struct Cited {
    kind: String,
    path: String,
    line_start: u32,
    line_end: u32,
    title: Option<String>,
}

/// The tool as it is offered.
pub(super) fn tool() -> Tool {
    let title = "Ask about the project";
    let hints = ToolAnnotations::from_raw(
        Some(title.to_owned()),
        // It may use tools that change something, with a person's agreement.
        Some(false),
        Some(false),
        Some(false),
        None,
    );
    Tool::new(groups::ASK, DESCRIPTION, fields(input()))
        .with_title(title)
        .with_raw_output_schema(Arc::new(fields(output())))
        .with_annotations(hints)
}

fn fields(schema: Value) -> JsonObject {
    match schema {
        Value::Object(fields) => fields,
        _ => JsonObject::default(),
    }
}

fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "question": {
                "type": "string", "minLength": 1, "maxLength": 4194304,
                "description": "The question, with everything one needs to know to answer it.",
            },
            "context_id": {
                "type": "string",
                "description": "The conversation to go on with, by id or name; the default one without.",
            },
            "model": {
                "type": "string",
                "description": "The model, by its name in Dodona's configuration; the default one without.",
            },
        },
        "required": ["question"],
        "additionalProperties": false,
    })
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": { "type": "string", "description": "The answer; `[1]` refers to the first source." },
            "sources": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "kind": { "type": "string" },
                        "path": { "type": "string" },
                        "line_start": { "type": "integer" },
                        "line_end": { "type": "integer" },
                        "title": { "type": ["string", "null"] },
                    },
                    "required": ["kind", "path", "line_start", "line_end"],
                },
            },
            "truncated": { "type": "boolean", "description": "Whether the model had to stop before it was done." },
            "model": { "type": "string" },
            "query_id": { "type": "string" },
            "context_id": { "type": "string" },
        },
        "required": ["answer", "sources", "truncated", "model", "query_id", "context_id"],
    })
}

/// What the agent is asked with.
pub(super) fn params(arguments: Value) -> Result<Value, CallError> {
    let p: AskParams = serde_json::from_value(arguments).map_err(|error| {
        let message = format!("invalid parameters: {error}");
        CallError::new(ErrorCode::InvalidParams, message).hint("ask with `question`")
    })?;
    let mut params = json!({ "message": p.question });
    for (name, value) in [("context_id", p.context_id), ("model", p.model)] {
        if let Some(value) = value {
            params[name] = value.into();
        }
    }
    Ok(params)
}

/// What the agent answered with, as a tool's result.
pub(super) fn result(value: Value) -> Result<CallToolResult, CallError> {
    let answer = serde_json::from_value(value).map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            "the agent answered in a form of its own",
        )
        .log(error)
    })?;
    Ok(shown(&answer))
}

fn shown(answer: &Answer) -> CallToolResult {
    let mut text = answer.text.clone();
    let mut sources = Vec::new();
    for (at, source) in answer.sources.iter().enumerate() {
        let Cited {
            kind,
            path,
            line_start,
            line_end,
            title,
        } = source;
        let before = if at == 0 { "\n\nSources:" } else { "" };
        // A string takes everything.
        let _ = write!(
            text,
            "{before}\n[{}] {path}:{line_start}-{line_end}",
            at + 1
        );
        sources.push(json!({
            "kind": kind, "path": path, "line_start": line_start, "line_end": line_end, "title": title,
        }));
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({
        "answer": answer.text,
        "sources": sources,
        "truncated": answer.truncated,
        "model": answer.model,
        "query_id": answer.query_id,
        "context_id": answer.context_id,
    }));
    result
}
