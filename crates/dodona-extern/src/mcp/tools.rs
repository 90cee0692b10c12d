//! A server's tools as methods: names, schemas and words that are fit for us.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dodona_plugin::schema_hash;
use dodona_proto::{
    Approval, MethodDescriptor, MethodKind, MethodName, Mutation, PluginName, ToolCategory,
    ToolMark,
};
use dodona_schema::Validator;
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::config::{Ask, Policy, ServerConfig};
use crate::text;

/// The longest description, the largest schema, and the deepest.
const DESCRIPTION: usize = 4_000;
const SCHEMA: usize = 128 * 1024;
const DEPTH: usize = 64;

/// How much all schemas of a server may have together.
const SCHEMAS: usize = 4 << 20;

/// The longest a method's whole name may be: models know no longer ones.
const NAME: usize = 64;

/// Names that are ours on every server.
pub(crate) const OURS: [&str; 4] = ["resources", "read_resource", "prompts", "get_prompt"];

/// A tool as we offer it.
#[derive(Clone)]
pub(crate) struct Offered {
    /// What the server calls it.
    pub(crate) tool: String,
    pub(crate) descriptor: MethodDescriptor,
    /// What its structured result must fit.
    pub(crate) output: Option<Arc<Validator>>,
}

/// Makes methods of tools. One that cannot be offered is left out, with the reason; the others
/// are not affected.
pub(crate) fn offer(
    plugin: &PluginName,
    mut tools: Vec<Tool>,
    config: &ServerConfig,
) -> (Vec<Offered>, Vec<String>) {
    // Which of two tools gets a name must not depend on the order in which they are told. One that
    // has the name as it is comes before one that is given it.
    tools.sort_by(|a, b| {
        let given = |tool: &Tool| verb(plugin, &tool.name) != tool.name;
        (given(a), &a.name).cmp(&(given(b), &b.name))
    });
    let (mut offered, mut left_out) = (BTreeMap::new(), Vec::new());
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let mut room = SCHEMAS;
    for tool in tools {
        let verb = verb(plugin, &tool.name);
        let shown = text::line(&tool.name, 80);
        if let Some(other) = taken.get(&verb) {
            left_out.push(format!(
                "the tool `{shown}` is left out: `{plugin}.{verb}` is `{other}`"
            ));
            continue;
        }
        match one(plugin, &verb, &tool, config, &mut room) {
            Ok(one) => {
                taken.insert(verb.clone(), shown);
                offered.insert(verb, one);
            }
            Err(why) => left_out.push(format!("the tool `{shown}` is left out: {why}")),
        }
    }
    (offered.into_values().collect(), left_out)
}

fn one(
    plugin: &PluginName,
    verb: &str,
    tool: &Tool,
    config: &ServerConfig,
    room: &mut usize,
) -> Result<Offered, String> {
    let name = format!("{plugin}.{verb}");
    let name = MethodName::new(&name).map_err(|error| error.to_string())?;
    let params = object(
        "input schema",
        Value::Object((*tool.input_schema).clone()),
        room,
    )?;
    let output = tool.output_schema.as_ref();
    let (result, output) = match output.map(|schema| Value::Object((**schema).clone())) {
        Some(schema) => {
            let (schema, validator) = object("output schema", schema, room)?;
            (schema, Some(Arc::new(validator)))
        }
        None => (plain_result(), None),
    };
    let (params, _) = params;
    let reads = tool
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.read_only_hint)
        .unwrap_or(false);
    let scope = format!("{plugin}:{}", if reads { "read" } else { "write" });
    Ok(Offered {
        tool: tool.name.to_string(),
        descriptor: MethodDescriptor {
            name,
            description: description(tool),
            kind: MethodKind::Unary,
            mutation: if reads {
                Mutation::Reads
            } else {
                Mutation::Mutates
            },
            scope: Some(scope.parse().map_err(|error| format!("{error}"))?),
            tool: Some(ToolMark {
                category: ToolCategory::External,
                agents: config.agents.clone(),
                approval: approval(&tool.name, reads, config),
            }),
            timeout: Some(config.timeout),
            schema_hash: schema_hash(&json!({ "params": params, "result": result })),
            params,
            result,
        },
        output,
    })
}

/// Whether a person must agree. What a tool says of itself only counts where it is cautious or the
/// user has not decided.
fn approval(tool: &str, reads: bool, config: &ServerConfig) -> Approval {
    match (config.approve.get(tool), config.approval) {
        (Some(Ask::Always), _) => Approval::Always,
        (Some(Ask::Agents), _) => Approval::Agents,
        (Some(Ask::Never), _) => Approval::Never,
        (None, Policy::Always) => Approval::Always,
        (None, Policy::Never) => Approval::Never,
        (None, Policy::Writes) if reads => Approval::Never,
        (None, Policy::Writes) => Approval::Agents,
    }
}

/// What a tool says about itself. It is data: nothing in it is rendered or run.
fn description(tool: &Tool) -> String {
    let said = tool.description.as_deref().or(tool.title.as_deref());
    text::clean(said.unwrap_or_default().trim(), DESCRIPTION)
}

/// The schema of a result that the server does not describe.
pub(crate) fn plain_result() -> Value {
    json!({
        "title": "ToolResult",
        "type": "object",
        "properties": {
            "text": { "type": "string", "description": "What the tool says." },
            "blocks": {
                "type": "array",
                "description": "What it gives besides: images, sounds, links, resources.",
                "items": { "type": "object" },
            },
            "structured": { "description": "The same as data, where the tool gives that." },
        },
        "required": ["text"],
    })
}

/// A schema of an object that is not too large, does not nest too deep and can be checked against.
fn object(what: &str, mut schema: Value, room: &mut usize) -> Result<(Value, Validator), String> {
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("type").or_insert_with(|| json!("object"));
    }
    if schema["type"] != "object" {
        return Err(format!("its {what} is not that of an object"));
    }
    if depth(&schema, DEPTH).is_none() {
        return Err(format!("its {what} nests deeper than {DEPTH}"));
    }
    let size = schema.to_string().len();
    if size > SCHEMA {
        return Err(format!("its {what} has more than {SCHEMA} bytes"));
    }
    *room = room
        .checked_sub(size)
        .ok_or_else(|| format!("the server's schemas have more than {SCHEMAS} bytes together"))?;
    let validator = Validator::new(&schema).map_err(|error| {
        format!(
            "its {what} is not one: {}",
            text::line(&error.to_string(), 200)
        )
    })?;
    Ok((schema, validator))
}

/// How much is left of a depth below a value, if it is not deeper.
fn depth(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match value {
        Value::Object(fields) => fields
            .values()
            .try_fold(left, |_, value| depth(value, left)),
        Value::Array(values) => values.iter().try_fold(left, |_, value| depth(value, left)),
        _ => Some(left),
    }
}

/// A tool's name as a verb: `getTinyImage` is `get_tiny_image`, `a.b/c` is `a_b_c`.
fn verb(plugin: &PluginName, tool: &str) -> String {
    let mut verb = String::new();
    let mut before = None;
    for c in tool.chars().take(4 * NAME) {
        let next = match c {
            'a'..='z' | '0'..='9' | '-' => c,
            'A'..='Z' => {
                if before.is_some_and(|b: char| b.is_ascii_lowercase() || b.is_ascii_digit()) {
                    verb.push('_');
                }
                c.to_ascii_lowercase()
            }
            _ => '_',
        };
        verb.push(next);
        before = Some(c);
    }
    if !verb.starts_with(|c: char| c.is_ascii_lowercase()) || OURS.contains(&verb.as_str()) {
        verb.insert_str(0, "tool_");
    }
    let most = NAME.saturating_sub(plugin.as_str().len() + 1).max(8);
    verb.truncate(most);
    verb
}

/// What changed between two lists, for the log.
pub(crate) fn difference(before: &[Offered], after: &[Offered]) -> Option<String> {
    let names = |list: &[Offered]| -> BTreeSet<String> {
        list.iter()
            .map(|one| one.descriptor.name.verb().to_owned())
            .collect()
    };
    let same = before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(a, b)| a.descriptor == b.descriptor && a.tool == b.tool);
    if same {
        return None;
    }
    let (old, new) = (names(before), names(after));
    let listed = |sign: &str, names: Vec<&String>| {
        names
            .iter()
            .take(20)
            .map(|name| format!("{sign}{name}"))
            .collect::<Vec<_>>()
    };
    let mut told = listed("+", new.difference(&old).collect());
    told.extend(listed("-", old.difference(&new).collect()));
    Some(match told.is_empty() {
        true => "tools are described otherwise".to_owned(),
        false => format!("other tools: {}", told.join(" ")),
    })
}
