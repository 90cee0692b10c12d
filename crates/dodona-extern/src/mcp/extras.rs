//! What servers have besides tools: resources and prompts, as methods that read.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError, Handler, Method, schema_hash};
use dodona_proto::{MethodDescriptor, MethodKind, MethodName, Mutation, PluginName};
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities,
};
use serde_json::{Map, Value, json};

use super::call;
use super::mount::Calls;
use super::result::Parts;
use super::session::Session;
use crate::text;

/// How many entries a listing has at most, and on how many pages it is looked for.
const ENTRIES: usize = 1_000;
const PAGES: usize = 50;

/// What a method of ours does.
type Work =
    fn(Arc<Session>, Value, usize) -> dodona_plugin::BoxFuture<'static, Result<Value, CallError>>;

/// The methods for what a server says it has.
pub(crate) fn methods(
    plugin: &PluginName,
    has: &ServerCapabilities,
    calls: &Arc<Calls>,
    timeout: Duration,
) -> Vec<Method> {
    let mut methods = Vec::new();
    if has.resources.is_some() {
        methods.push(method(
            plugin,
            calls,
            timeout,
            RESOURCES,
            |session, _, most| Box::pin(async move { resources(&session, most).await }),
        ));
        methods.push(method(
            plugin,
            calls,
            timeout,
            READ_RESOURCE,
            |session, params, most| {
                Box::pin(async move { read_resource(&session, &params, most).await })
            },
        ));
    }
    if has.prompts.is_some() {
        methods.push(method(
            plugin,
            calls,
            timeout,
            PROMPTS,
            |session, _, most| Box::pin(async move { prompts(&session, most).await }),
        ));
        methods.push(method(
            plugin,
            calls,
            timeout,
            GET_PROMPT,
            |session, params, most| {
                Box::pin(async move { get_prompt(&session, &params, most).await })
            },
        ));
    }
    methods.into_iter().flatten().collect()
}

/// A method of ours: verb, description, parameters, result.
struct Shape {
    verb: &'static str,
    description: &'static str,
    params: fn() -> Value,
    result: fn() -> Value,
}

const RESOURCES: Shape = Shape {
    verb: "resources",
    description: "Lists what the server has to read, and the patterns of what else there may be.",
    params: || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    result: || {
        json!({
            "title": "Resources",
            "type": "object",
            "properties": {
                "resources": { "type": "array", "items": { "type": "object" } },
                "templates": { "type": "array", "items": { "type": "object" } },
            },
            "required": ["resources", "templates"],
        })
    },
};

const READ_RESOURCE: Shape = Shape {
    verb: "read_resource",
    description: "Reads a resource of the server.",
    params: || {
        json!({
            "type": "object",
            "properties": { "uri": { "type": "string", "description": "Which one, as `resources` lists it." } },
            "required": ["uri"],
            "additionalProperties": false,
        })
    },
    result: super::tools::plain_result,
};

const PROMPTS: Shape = Shape {
    verb: "prompts",
    description: "Lists the prompts that the server has prepared, with what each needs.",
    params: || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    result: || {
        json!({
            "title": "Prompts",
            "type": "object",
            "properties": { "prompts": { "type": "array", "items": { "type": "object" } } },
            "required": ["prompts"],
        })
    },
};

const GET_PROMPT: Shape = Shape {
    verb: "get_prompt",
    description: "Reads a prompt of the server, filled in. It is text to look at: nothing runs it.",
    params: || {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Which one, as `prompts` lists it." },
                "arguments": {
                    "type": "object",
                    "description": "What it is filled in with.",
                    "additionalProperties": { "type": "string" },
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        })
    },
    result: || {
        json!({
            "title": "Prompt",
            "type": "object",
            "properties": {
                "description": { "type": "string" },
                "messages": { "type": "array", "items": { "type": "object" } },
            },
            "required": ["messages"],
        })
    },
};

fn method(
    plugin: &PluginName,
    calls: &Arc<Calls>,
    timeout: Duration,
    shape: Shape,
    work: Work,
) -> Option<Method> {
    let (params, result) = ((shape.params)(), (shape.result)());
    let descriptor = MethodDescriptor {
        name: MethodName::new(&format!("{plugin}.{}", shape.verb)).ok()?,
        description: shape.description.to_owned(),
        kind: MethodKind::Unary,
        mutation: Mutation::Reads,
        scope: Some(format!("{plugin}:read").parse().ok()?),
        tool: None,
        timeout: Some(timeout),
        schema_hash: schema_hash(&json!({ "params": params, "result": result })),
        params,
        result,
    };
    let calls = Arc::clone(calls);
    let handler = Handler::Unary(Arc::new(move |ctx: CallCtx, params| {
        let calls = Arc::clone(&calls);
        Box::pin(async move {
            let session = calls.session(&ctx).await?;
            work(session, params, calls.most()).await
        })
    }));
    Some(Method::from_parts(descriptor, handler))
}

async fn resources(session: &Session, most: usize) -> Result<Value, CallError> {
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = session.peer.list_resources(Some(params)).await;
        let page = page.map_err(|error| call::failed(session, &error))?;
        found.extend(page.resources.iter().map(|one| json!(one)));
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= ENTRIES {
            break;
        }
    }
    // Many servers have no patterns and say that they do not know the question.
    let templates = session.peer.list_resource_templates(None).await;
    let templates = templates
        .map(|page| page.resource_templates)
        .unwrap_or_default();
    let mut room = most;
    let templates = listed(templates.iter().map(|one| json!(one)), &mut room);
    Ok(json!({ "resources": listed(found.into_iter(), &mut room), "templates": templates }))
}

async fn read_resource(session: &Session, params: &Value, most: usize) -> Result<Value, CallError> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let answer = session
        .peer
        .read_resource_once(ReadResourceRequestParams::new(uri))
        .await
        .map_err(|error| call::failed(session, &error))?;
    let ReadResourceResponse::Complete(result) = answer else {
        return Err(input_required());
    };
    let contents = result.contents.iter().map(|content| {
        let content = json!(content);
        match content["text"].as_str() {
            Some(text) => json!({ "type": "text", "text": text }),
            None => {
                json!({ "type": "blob", "mimeType": content["mimeType"], "data": content["blob"] })
            }
        }
    });
    let Parts { text, blocks } = Parts::of(contents, most);
    let mut object = Map::from_iter([("text".to_owned(), Value::String(text))]);
    if !blocks.is_empty() {
        object.insert("blocks".to_owned(), Value::Array(blocks));
    }
    Ok(Value::Object(object))
}

async fn prompts(session: &Session, most: usize) -> Result<Value, CallError> {
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = session.peer.list_prompts(Some(params)).await;
        let page = page.map_err(|error| call::failed(session, &error))?;
        found.extend(page.prompts.iter().map(|one| json!(one)));
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= ENTRIES {
            break;
        }
    }
    let mut room = most;
    Ok(json!({ "prompts": listed(found.into_iter(), &mut room) }))
}

async fn get_prompt(session: &Session, params: &Value, most: usize) -> Result<Value, CallError> {
    let name = params["name"].as_str().unwrap_or_default();
    let mut request = GetPromptRequestParams::new(name);
    request.arguments = params["arguments"].as_object().cloned();
    let answer = session.peer.get_prompt_once(request).await;
    let answer = answer.map_err(|error| call::failed(session, &error))?;
    let GetPromptResponse::Complete(result) = answer else {
        return Err(input_required());
    };
    let mut room = most;
    let messages = listed(
        result.messages.iter().map(|message| json!(message)),
        &mut room,
    );
    let mut object = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    if let Some(description) = result.description {
        object.insert(
            "description".to_owned(),
            text::clean(&description, 4_000).into(),
        );
    }
    Ok(Value::Object(object))
}

fn input_required() -> CallError {
    let message = "the server asks for input of a person or a model, which it is not given here";
    CallError::plugin("mcp.input_required", message)
}

/// As many entries as there is room for. What follows is counted.
fn listed(entries: impl Iterator<Item = Value>, room: &mut usize) -> Vec<Value> {
    let (mut listed, mut left_out) = (Vec::new(), 0_usize);
    for entry in entries {
        let size = entry.to_string().len();
        if left_out == 0 && size <= *room && listed.len() < ENTRIES {
            *room -= size;
            listed.push(entry);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        listed.push(json!({ "omitted": format!("{left_out} more, too large for one result") }));
    }
    listed
}
