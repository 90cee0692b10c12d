//! What a script or a manifest declares: methods, hooks and callbacks for events.

use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::hooks::Hook;
use dodona_plugin::reading::nearest;
use dodona_plugin::{Capabilities, Capability, EventHandler, Manifest, schema_hash};
use dodona_proto::{
    Approval, Event, HookPoint, MethodDescriptor, MethodKind, MethodName, Mutation, PluginName,
    ToolCategory, ToolMark,
};
use dodona_schema::Validator;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest that a method or hook may ask for.
const LONGEST: f64 = 3600.0;

/// A method: `dodona.method { … }` of a script without `run`, or `[[process.methods]]` of a manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MethodSpec {
    name: String,
    doc: String,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    tool: bool,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    streaming: bool,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    agents: Option<Vec<String>>,
    #[serde(default)]
    category: Option<ToolCategory>,
    #[serde(default)]
    approval: Option<Approval>,
}

/// A hook: `dodona.hook(point, { … }, …)` of a script, or `[[process.hooks]]` of a manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookSpec {
    point: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    priority: Option<i32>,
    #[serde(default)]
    on_error: Option<OnError>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    before: Vec<PluginName>,
    #[serde(default)]
    after: Vec<PluginName>,
}

/// A callback for events: `dodona.on_event(prefix, { … }, …)` of a script, or `[[process.events]]` of a
/// manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventSpec {
    prefix: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnError {
    Open,
    Closed,
}

/// What a script or a manifest declares.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Declared {
    /// Its methods.
    pub methods: Vec<MethodDescriptor>,
    /// The points at which it has hooks.
    pub hooks: Vec<HookPoint>,
    /// The prefixes of the events that it listens to.
    pub events: Vec<String>,
}

/// Reads a declaration, strictly.
pub(crate) fn read<T: DeserializeOwned>(spec: &Value) -> Result<T, String> {
    serde_json::from_value(spec.clone()).map_err(|error| error.to_string())
}

impl MethodSpec {
    /// The descriptor of a method of a plugin.
    pub(crate) fn descriptor(self, plugin: &PluginName) -> Result<MethodDescriptor, String> {
        let name = match self.name.contains('.') {
            true => self.name.clone(),
            false => format!("{plugin}.{}", self.name),
        };
        let name = MethodName::new(&name).map_err(|error| error.to_string())?;
        if self.doc.trim().is_empty() {
            return Err("`doc` is empty: say what the method does".to_owned());
        }
        let scope = self
            .scope
            .clone()
            .unwrap_or_else(|| format!("{plugin}:use"));
        let scope = scope.parse().map_err(|error| format!("`scope`: {error}"))?;
        let params = closed(object("params", self.params.as_ref())?);
        let result = object("result", self.result.as_ref())?;
        let schema_hash = schema_hash(&json!({ "params": params, "result": result }));
        Ok(MethodDescriptor {
            name,
            description: self.doc.trim().to_owned(),
            kind: match self.streaming {
                true => MethodKind::Streaming,
                false => MethodKind::Unary,
            },
            mutation: match self.read_only {
                true => Mutation::Reads,
                false => Mutation::Mutates,
            },
            scope: Some(scope),
            tool: self.mark()?,
            timeout: self.timeout.map(seconds).transpose()?,
            params,
            result,
            schema_hash,
        })
    }

    /// A tool that changes something asks before an agent uses it, unless the declaration says
    /// otherwise.
    fn mark(&self) -> Result<Option<ToolMark>, String> {
        if !self.tool {
            let only = [
                ("agents", self.agents.is_some()),
                ("category", self.category.is_some()),
                ("approval", self.approval.is_some()),
            ];
            return match only.iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(format!("`{name}` is for tools: set `tool = true`")),
                None => Ok(None),
            };
        }
        let usual = match self.read_only {
            true => Approval::Never,
            false => Approval::Agents,
        };
        Ok(Some(ToolMark {
            category: self.category.unwrap_or(ToolCategory::Meta),
            agents: self
                .agents
                .clone()
                .unwrap_or_else(|| vec!["oracle".to_owned()]),
            approval: self.approval.unwrap_or(usual),
        }))
    }
}

impl HookSpec {
    /// At which point.
    pub(crate) fn point(&self) -> Result<HookPoint, String> {
        self.point.parse().map_err(|error| {
            let names = HookPoint::ALL.map(HookPoint::as_str);
            match nearest(&self.point, names) {
                Some(near) => format!("{error}; did you mean `{near}`?"),
                None => format!("{error}; they are in docs/reference/hooks.md"),
            }
        })
    }

    /// Its name in logs.
    pub(crate) fn part(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.point.clone())
    }

    /// Gives a callback its terms.
    pub(crate) fn with_terms(self, mut hook: Hook) -> Result<Hook, String> {
        let is_gate = hook.point() == HookPoint::PreToolExecute;
        match self.on_error {
            Some(_) if !is_gate => return Err("`on_error` is for gates".to_owned()),
            Some(OnError::Closed) => hook = hook.fail_closed(),
            _ => {}
        }
        if let Some(name) = self.name {
            hook = hook.named(name);
        }
        if let Some(priority) = self.priority {
            hook = hook.priority(priority);
        }
        if let Some(timeout) = self.timeout {
            hook = hook.timeout(seconds(timeout)?);
        }
        for plugin in self.before {
            hook = hook.before(plugin);
        }
        for plugin in self.after {
            hook = hook.after(plugin);
        }
        Ok(hook)
    }
}

impl EventSpec {
    /// Which events.
    pub(crate) fn prefix(&self) -> Result<&str, String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        let is_word = |word: &str| !word.is_empty() && word.chars().all(fits);
        match self.prefix.is_empty() || self.prefix.split('.').all(is_word) {
            true => Ok(&self.prefix),
            false => Err(format!(
                "`{}` is not the start of an event type; write one such as `custom.release`",
                self.prefix.escape_debug()
            )),
        }
    }

    /// Its name in logs.
    pub(crate) fn part(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.prefix.clone())
    }

    /// The handler with a callback.
    pub(crate) fn handler<F>(
        &self,
        callback: impl Fn(Arc<Event>) -> F + Send + Sync + 'static,
    ) -> Result<EventHandler, String>
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let handler = EventHandler::new(self.prefix()?, callback).named(self.part());
        Ok(match self.timeout {
            Some(timeout) => handler.timeout(seconds(timeout)?),
            None => handler,
        })
    }
}

/// Whether a method's schemas can be checked against.
pub(crate) fn schemas(method: &MethodDescriptor) -> Result<(), String> {
    for (part, schema) in [("params", &method.params), ("result", &method.result)] {
        Validator::new(schema).map_err(|error| {
            format!(
                "`{part}` of `{}` is not a JSON Schema: {error}",
                method.name
            )
        })?;
    }
    Ok(())
}

/// A hook needs a capability, and the manifest has to ask for it.
pub(crate) fn covered(manifest: &Manifest, point: HookPoint) -> Result<(), String> {
    let uses = manifest.uses.iter().map(|used| used.capability.clone());
    let needed = Capability::for_hook(point);
    match Capabilities::Only(uses.collect()).allow(&needed) {
        true => Ok(()),
        false => Err(format!(
            "a hook at {point} needs the capability `{needed}`: write `uses = [\"{needed}\"]` \
             below `[capabilities]`"
        )),
    }
}

/// The same for a callback for events.
pub(crate) fn may_listen(manifest: &Manifest, prefix: &str) -> Result<(), String> {
    let uses = manifest.uses.iter().map(|used| used.capability.clone());
    if Capabilities::Only(uses.collect()).allow_events(prefix) {
        return Ok(());
    }
    let needed = match prefix {
        "" => "*",
        prefix => prefix,
    };
    Err(format!(
        "listening to `{prefix}` needs the capability `events:{needed}`: write \
         `uses = [\"events:{needed}\"]` below `[capabilities]`"
    ))
}

fn seconds(number: f64) -> Result<Duration, String> {
    match number > 0.0 && number <= LONGEST {
        true => Ok(Duration::from_secs_f64(number)),
        false => Err(format!(
            "`timeout` is seconds, above 0 and at most {LONGEST}"
        )),
    }
}

/// A schema whose root is an object; without one, an object of which nothing is known.
fn object(part: &str, schema: Option<&Value>) -> Result<Value, String> {
    match schema {
        None => Ok(json!({ "type": "object" })),
        Some(schema) if schema["type"] == "object" => Ok(schema.clone()),
        Some(_) => Err(format!(
            "`{part}` must be a JSON Schema with `type = \"object\"`"
        )),
    }
}

/// Parameters that the schema does not name are refused, unless it says otherwise.
fn closed(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("properties").or_insert_with(|| json!({}));
        fields
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
    schema
}
