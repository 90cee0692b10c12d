//! The plugin `tools`: finding and calling tools among many.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, ErrorCode, Plugin, PluginContext, ToolText, plugin,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::{InheritedByCall, Tool, Toolbox};
use crate::words;

/// The tools of the agents that are at work below calls.
pub(crate) type Toolboxes = InheritedByCall<Toolbox>;

/// The plugin.
pub(crate) struct ToolsPlugin {
    pub(crate) toolboxes: Toolboxes,
}

impl Plugin for ToolsPlugin {
    fn name(&self) -> &'static str {
        "tools"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn description(&self) -> &'static str {
        "Finds tools for agents that are not offered all of them."
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let finder = Arc::new(Finder {
            toolboxes: self.toolboxes.clone(),
        });
        Box::pin(async move {
            let methods = finder.plugin_methods()?.into_iter();
            let methods = methods.map(|method| match method.descriptor().name.as_str() {
                "tools.search" => method.rendered(render),
                _ => method,
            });
            Ok(Contribution::new().methods(methods))
        })
    }
}

struct Finder {
    toolboxes: Toolboxes,
}

#[derive(Deserialize, JsonSchema)]
struct SearchParams {
    /// What the tool should do, or a part of its name.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// How many at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    limit: usize,
}

fn five() -> usize {
    5
}

#[derive(Deserialize, JsonSchema)]
struct ToolCallParams {
    /// The name of the tool.
    name: String,
    /// The arguments of the tool, as `tools_search` describes them.
    #[serde(default)]
    #[expect(dead_code, reason = "read by the agent, which runs the tool itself")]
    arguments: Map<String, Value>,
}

/// Nothing: the result of the tool takes its place.
#[derive(Serialize, JsonSchema)]
struct NoResult {}

#[derive(Serialize, JsonSchema)]
struct SearchResult {
    /// Those that fit, best first.
    tools: Vec<FoundTool>,
    /// How many were looked through.
    known: usize,
}

#[derive(Serialize, JsonSchema)]
struct FoundTool {
    /// The name by which an agent calls it.
    name: String,
    /// The method that it is.
    method: String,
    /// What it does.
    description: String,
    /// JSON Schema of its parameters.
    parameters: Value,
}

#[plugin(name = "tools")]
impl Finder {
    /// Find more tools by what they do. Returns their names and parameters. Call what it finds with
    /// `tools_call`.
    #[method(scope = "tools:read", tool(category = "meta", agents = ["*"]))]
    async fn search(&self, ctx: &CallCtx, p: SearchParams) -> Result<SearchResult, CallError> {
        // An agent finds what it may use; whoever asks directly, what he may call.
        let toolbox = match self.toolboxes.above(&ctx.call_id).0 {
            Some(toolbox) => toolbox,
            None => Arc::new(Toolbox::of_user(ctx)),
        };
        Ok(find(toolbox.tools(), &p))
    }

    /// Call a tool that `tools_search` found.
    #[method(scope = "tools:read", tool(category = "meta", agents = ["*"]))]
    async fn call(&self, _ctx: &CallCtx, p: ToolCallParams) -> Result<NoResult, CallError> {
        // The agent runs the named tool in place of this one, so that it is validated, gated,
        // journaled and shown as itself. Other callers can call every method directly.
        let method = p.name.replacen('_', ".", 1);
        let message = "`tools.call` works only inside an agent's query";
        Err(CallError::new(ErrorCode::InvalidRequest, message)
            .hint(format!("call the method directly, such as `{method}`")))
    }
}

fn find(tools: &[Tool], p: &SearchParams) -> SearchResult {
    let wanted = words::of(&p.query);
    let entries: Vec<Entry<'_>> = tools.iter().map(Entry::of).collect();
    let rarity = rarity(&entries, &wanted);
    let mut scored: Vec<(f32, &Entry<'_>)> = entries
        .iter()
        .map(|entry| (entry.score(&wanted, &rarity, &p.query), entry))
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.tool.name.cmp(&other.tool.name)));
    let best = scored.into_iter().take(p.limit);
    SearchResult {
        tools: best.map(|(_, entry)| entry.tool.into()).collect(),
        known: tools.len(),
    }
}

/// The tools that were found as a model reads them: each with its parameters.
fn render(value: &Value) -> Option<ToolText> {
    let found = value["tools"].as_array()?;
    if found.is_empty() {
        let message = "No tool does this. Describe it in other words, or answer without it.";
        return Some(ToolText::plain(message));
    }
    let head = "Call one with tools_call {\"name\": \"...\", \"arguments\": {...}}.";
    let items: Option<Vec<String>> = found.iter().map(described).collect();
    Some(ToolText::list(head, items?))
}

fn described(tool: &Value) -> Option<String> {
    let (name, description) = (tool["name"].as_str()?, tool["description"].as_str()?);
    let mut item = format!("\n{name}: {description}");
    let schema = &tool["parameters"];
    let required = schema["required"].as_array().map(Vec::as_slice);
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let shown = [
            Some(kind(parameter)).filter(|kind| !kind.is_empty()),
            is_required.then(|| "required".to_owned()),
            default(parameter),
        ];
        let shown: Vec<String> = shown.into_iter().flatten().collect();
        let about = parameter["description"].as_str().unwrap_or_default();
        let _ = write!(item, "\n  {name} ({}): {about}", shown.join(", "));
    }
    Some(item)
}

/// The type of a parameter, or its values where there are few.
fn kind(parameter: &Value) -> String {
    if let Some(values) = parameter["enum"].as_array() {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        return values.join(" | ");
    }
    match &parameter["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds
                .filter(|kind| *kind != "null")
                .collect::<Vec<_>>()
                .join(" | ")
        }
        // A schema that takes more to say is shown as it is.
        _ => schema_text(parameter),
    }
}

fn schema_text(parameter: &Value) -> String {
    let mut schema = parameter.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|key, _| key != "description" && key != "default");
    }
    schema.to_string()
}

fn default(parameter: &Value) -> Option<String> {
    let default = parameter.get("default").filter(|value| !value.is_null())?;
    Some(format!("default {default}"))
}

/// A tool and its words.
struct Entry<'t> {
    tool: &'t Tool,
    name: Vec<String>,
    description: Vec<String>,
    parameters: Vec<String>,
}

/// What a word counts in a tool's name, in its description, and among its parameters.
const WEIGHTS: [f32; 3] = [3.0, 1.5, 0.7];

impl<'t> Entry<'t> {
    fn of(tool: &'t Tool) -> Self {
        let properties = tool.method.params["properties"].as_object();
        let parameters = properties.into_iter().flatten().map(|(name, schema)| {
            format!(
                "{name} {}",
                schema["description"].as_str().unwrap_or_default()
            )
        });
        Self {
            tool,
            name: words::of(tool.method.name.as_str()),
            description: words::of(tool.description()),
            parameters: words::of(&parameters.collect::<Vec<_>>().join(" ")),
        }
    }

    /// What a word counts here.
    fn weight(&self, word: &str) -> f32 {
        let lists = [&self.name, &self.description, &self.parameters];
        let has = lists.map(|list| list.iter().any(|own| own == word));
        let weights = WEIGHTS.into_iter().zip(has);
        weights
            .filter(|(_, has)| *has)
            .map(|(weight, _)| weight)
            .sum()
    }

    fn score(&self, wanted: &[String], rarity: &HashMap<&str, f32>, query: &str) -> f32 {
        let word = |word: &String| self.weight(word) * rarity.get(word.as_str()).unwrap_or(&0.0);
        let named = [self.tool.name.as_str(), self.tool.method.name.as_str()];
        let exact = if named.contains(&query.trim()) {
            100.0
        } else {
            0.0
        };
        // What has all that is wanted comes before what has one word of it often.
        #[expect(clippy::cast_precision_loss, reason = "a question has few words")]
        let share = {
            let has = wanted.iter().filter(|word| self.weight(word) > 0.0).count();
            has as f32 / wanted.len().max(1) as f32
        };
        exact + wanted.iter().map(word).sum::<f32>() * share * share
    }
}

/// What a word is worth: the fewer tools have it, the more.
fn rarity<'w>(entries: &[Entry<'_>], wanted: &'w [String]) -> HashMap<&'w str, f32> {
    #[expect(clippy::cast_precision_loss, reason = "there are not that many tools")]
    let worth = |word: &'w String| {
        let having = entries
            .iter()
            .filter(|entry| entry.weight(word) > 0.0)
            .count();
        let rare = (1.0 + entries.len() as f32 / (1.0 + having as f32)).ln();
        (word.as_str(), rare)
    };
    wanted.iter().map(worth).collect()
}

impl From<&Tool> for FoundTool {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            method: tool.method.name.to_string(),
            description: tool.description().to_owned(),
            parameters: tool.method.params.clone(),
        }
    }
}
