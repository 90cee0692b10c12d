//! Every key there is.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Range, RangeInclusive};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use dodona_hub::{CapabilityMode, Limit};
use dodona_plugin::reading::to_json;
use dodona_proto::{MethodName, PluginName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::{Layer, Settings, article};
use crate::quantity;

/// One key: adding a setting is adding a row to [`KEYS`] and to the reference.
pub(super) struct Key {
    /// Its dotted name; a part `*` stands for a name that the user chooses.
    pub(super) name: &'static str,
    /// Who may set it.
    pub(super) scope: Scope,
    kind: Kind,
    /// What it means, as the reference and a new file tell it.
    pub(super) about: &'static str,
}

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The user alone: it concerns the whole process, or where secrets go.
    User,
    /// The user, and a project for itself.
    Project,
}

/// What a key takes, and where it goes.
enum Kind {
    Time(fn(&mut Settings) -> &mut Duration),
    Size(fn(&mut Settings) -> &mut u64),
    MemorySize(fn(&mut Settings) -> &mut usize),
    Count(fn(&mut Settings) -> &mut u32),
    Within(RangeInclusive<u32>, fn(&mut Settings) -> &mut u32),
    OptionalWithin(RangeInclusive<u32>, fn(&mut Settings) -> &mut Option<u32>),
    Depth(fn(&mut Settings) -> &mut usize),
    PluginLimit(Limits, fn(&mut Limit) -> &mut u32),
    Folder(fn(&mut Settings) -> &mut Option<String>),
    Text(fn(&mut Settings) -> &mut Option<String>),
    Methods(fn(&mut Settings) -> &mut BTreeSet<MethodName>),
    Hosts(fn(&mut Settings) -> &mut Vec<String>),
    Directories(fn(&mut Settings) -> &mut Vec<PathBuf>),
    Files(fn(&mut Settings) -> &mut Vec<String>),
    Mode(fn(&mut Settings) -> &mut CapabilityMode),
    AgentModel,
    Model,
    Embeddings,
    RuleSetting,
}

type Limits = fn(&mut Settings) -> &mut HashMap<PluginName, Limit>;

const fn user(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        scope: Scope::User,
        kind,
        about,
    }
}

const fn project(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        scope: Scope::Project,
        kind,
        about,
    }
}

/// The keys, in the order of the reference.
pub(super) const KEYS: &[Key] = {
    use Kind::{
        AgentModel, Count, Depth, Directories, Embeddings, Files, Folder, Hosts, MemorySize,
        Methods, Mode, Model, OptionalWithin, PluginLimit, RuleSetting, Size, Text, Time, Within,
    };
    const PLUGIN: Limits = |s| &mut s.hub.limits.plugin;
    const USER_AND_PLUGIN: Limits = |s| &mut s.hub.limits.user_and_plugin;
    &[
        user(
            "capability_mode",
            Mode(|s| &mut s.hub.capability_mode),
            "what becomes of a built-in plugin with a hook outside its [capabilities](plugins.md#capabilities): `warn` logs it, `enforce` refuses the plugin",
        ),
        user(
            "calls.unary_timeout",
            Time(|s| &mut s.hub.unary_timeout),
            "time limit of a call with one result, unless the method or the caller sets another",
        ),
        user(
            "calls.stream_timeout",
            Time(|s| &mut s.hub.stream_timeout),
            "the same for a streaming call",
        ),
        user(
            "calls.stream_grace",
            Time(|s| &mut s.hub.stream_grace),
            "how long a stream continues without a reader",
        ),
        user(
            "calls.activation_timeout",
            Time(|s| &mut s.hub.activation_timeout),
            "how long a plugin may take to activate",
        ),
        user(
            "approvals.timeout",
            Time(|s| &mut s.hub.approvals.timeout),
            "how long a call waits for a person's answer; then it is refused",
        ),
        user(
            "approvals.methods",
            Methods(|s| &mut s.hub.approvals.methods),
            "tools that run only after a person has agreed, see [approvals](approvals.md)",
        ),
        user(
            "approvals.unattended",
            Methods(|s| &mut s.hub.approvals.unattended),
            "tools that agents may use without asking, of those that ask when an agent uses them",
        ),
        user(
            "server.max_connections",
            Within(1..=1_000_000, |s| &mut s.server.max_connections),
            "connections that a server holds at once; further ones are answered with 503. Never more than the limit of open files allows",
        ),
        user(
            "limits.nested",
            Count(|s| &mut s.hub.limits.nested),
            "how many calls below one root call may run at once",
        ),
        user(
            "limits.params_size",
            MemorySize(|s| &mut s.hub.limits.params_bytes),
            "the largest parameters that are accepted from outside",
        ),
        user(
            "limits.params_depth",
            Depth(|s| &mut s.hub.limits.params_depth),
            "the deepest that such parameters may nest",
        ),
        user(
            "limits.user.per_second",
            Count(|s| &mut s.hub.limits.user.per_second),
            "calls per second and user, averaged; `0` means unlimited, here and below",
        ),
        user(
            "limits.user.burst",
            Count(|s| &mut s.hub.limits.user.burst),
            "each user's calls at once after a pause",
        ),
        user(
            "limits.user.concurrent",
            Count(|s| &mut s.hub.limits.user.concurrent),
            "each user's calls that run at the same time",
        ),
        user(
            "limits.plugin.*.per_second",
            PluginLimit(PLUGIN, |limit| &mut limit.per_second),
            "all calls of one plugin's methods, a second in the long run",
        ),
        user(
            "limits.plugin.*.burst",
            PluginLimit(PLUGIN, |limit| &mut limit.burst),
            "the same, at once after a pause; `0` is as many as in a second",
        ),
        user(
            "limits.plugin.*.concurrent",
            PluginLimit(PLUGIN, |limit| &mut limit.concurrent),
            "the same, at the same time",
        ),
        user(
            "limits.user_and_plugin.*.per_second",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.per_second),
            "each user's calls of one plugin's methods, a second in the long run",
        ),
        user(
            "limits.user_and_plugin.*.burst",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.burst),
            "the same, at once after a pause; `0` is as many as in a second",
        ),
        user(
            "limits.user_and_plugin.*.concurrent",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.concurrent),
            "the same, at the same time",
        ),
        user(
            "journal.max_age",
            Time(|s| &mut s.hub.retention.max_age),
            "older entries are deleted, see [what the journal keeps](storage.md#what-the-journal-keeps)",
        ),
        user(
            "journal.max_size",
            Size(|s| &mut s.hub.retention.max_bytes),
            "when the journal is larger, the oldest entries are deleted until it fits",
        ),
        user(
            "projects.roots",
            Directories(|s| &mut s.hub.project_roots),
            "directories below which users without `hub:admin` may register projects, as absolute paths or with `~/`. See [projects](../security.md#projects)",
        ),
        user(
            "files.allow",
            Files(|s| &mut s.files_allow),
            "files and directories of projects that may be read although they are ignored or look like secrets, as paths from the project's root such as `.env.test`. `.git` and `.dodona` stay closed",
        ),
        project(
            "vault.root",
            Folder(|s| &mut s.project.vault_root),
            "the folder of the project that holds its notes; Markdown elsewhere is plain text then. Without it every Markdown file is a note",
        ),
        user(
            "web.search_url",
            Text(|s| &mut s.web.search_url),
            "search address of a SearXNG server for `web.search`, such as `http://127.0.0.1:8888/search`. Without it `web.search` is unavailable",
        ),
        user(
            "web.allow_hosts",
            Hosts(|s| &mut s.allow_hosts),
            "hosts that `web.fetch` and plugins may reach although they are not on the public network, as `host` or `host:port`. A plugin also needs the capability `net:HOST`",
        ),
        user(
            "agent.model",
            Text(|s| &mut s.agent.model),
            "the model that answers: the name of a table below `models`, or `offline`. Without it the only such table is meant",
        ),
        user(
            "agent.max_turns",
            Within(1..=1000, |s| &mut s.agent.max_turns),
            "maximum number of model requests per query",
        ),
        user(
            "agent.token_budget",
            OptionalWithin(4000..=128_000, |s| &mut s.agent.token_budget),
            "how many tokens of a new conversation a model is shown, from 4000 to 128000. Default: half of the model's context window, or 16000 where that is not known",
        ),
        user(
            "agent.tool_timeout",
            Time(|s| &mut s.agent.tool_timeout),
            "time limit of a tool that sets none",
        ),
        user(
            "agent.tools_limit",
            Within(1..=10_000, |s| &mut s.agent.tools_limit),
            "the number of tools above which a model is offered the most used ones only, and finds the others with `tools_search`, see [agents](agents.md#many-tools)",
        ),
        user(
            "agent.preload",
            Within(0..=20, |s| &mut s.agent.preload),
            "number of passages to retrieve before the first model request; the offline model searches itself",
        ),
        user(
            "agent.keep_turns",
            Within(1..=50, |s| &mut s.agent.keep_turns),
            "how many turns stay as they are when a conversation is shortened, see [compaction](compaction.md)",
        ),
        user(
            "agent.summarizer",
            Text(|s| &mut s.agent.summarizer),
            "the model that summarizes what is folded when a conversation is shortened. Without it, or where it does not answer, the summary is put together from what was said",
        ),
        user(
            "agent.session_idle",
            Time(|s| &mut s.agent.session_idle),
            "after how long without a word a session has ended",
        ),
        user(
            "agents.*.model_override",
            AgentModel,
            "the model of one agent, in place of the `model_override` in its definition, see [agents](agents.md)",
        ),
        user(
            "models.*",
            Model,
            "a table that describes a model, see [models](models.md)",
        ),
        user(
            "embeddings",
            Embeddings,
            "a table that names an embedding model, see [search](search.md). Search then fuses nearness of meaning with its own ranking; without it nothing leaves the machine",
        ),
        project(
            "settings.*",
            RuleSetting,
            "a value that rules can read: a boolean, a number, a string, or a list of these. Yours is `context.user.settings.NAME`, a project's is `context.project.settings.NAME`, see [settings for rules](rules.md#settings)",
        ),
    ]
};

impl Key {
    /// Whether this is the key at a path.
    pub(super) fn matches(&self, path: &[&str]) -> bool {
        self.name.split('.').count() == path.len() && self.begins(path)
    }

    /// Whether the key lies below a path.
    pub(super) fn is_below(&self, path: &[&str]) -> bool {
        self.name.split('.').count() > path.len() && self.begins(path)
    }

    fn begins(&self, path: &[&str]) -> bool {
        let mut parts = path.iter().zip(self.name.split('.'));
        parts.all(|(asked, known)| known == *asked || known == "*")
    }

    /// The part of its name that comes next after a path.
    pub(super) fn child_of(&self, path: &[&str]) -> Option<&'static str> {
        let next = self.name.split('.').nth(path.len());
        next.filter(|_| self.begins(path))
    }

    /// The last part of its name.
    pub(super) fn last(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Takes a value over, or tells where it is wrong and what would have been right.
    pub(super) fn set(
        &self,
        settings: &mut Settings,
        layer: Layer,
        path: &[&str],
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), (Range<usize>, String)> {
        match &self.kind {
            Kind::RuleSetting => {
                let name = path.last().copied().unwrap_or_default();
                let setting = rule_setting(name, value.get_ref());
                let setting = setting.map_err(|expected| (value.span(), expected))?;
                let settings = settings.rule_settings_mut(layer);
                settings.insert(name.to_owned(), setting);
                Ok(())
            }
            Kind::Model => {
                let name = path.last().copied().unwrap_or_default();
                settings.models.insert(name.to_owned(), table(value)?);
                Ok(())
            }
            Kind::Embeddings => {
                settings.embeddings = Some(table(value)?);
                Ok(())
            }
            _ => self
                .set_plain(settings, path, value.get_ref())
                .map_err(|expected| (value.span(), expected)),
        }
    }

    fn set_plain(
        &self,
        settings: &mut Settings,
        path: &[&str],
        value: &DeValue<'_>,
    ) -> Result<(), String> {
        match &self.kind {
            Kind::Model | Kind::Embeddings | Kind::RuleSetting => {
                return Err("is a table".to_owned());
            }
            Kind::AgentModel => {
                let name = path.get(1).copied().unwrap_or_default();
                let agents = &mut settings.agent.models;
                agents.insert(name.to_owned(), text(value)?);
            }
            Kind::Time(field) => *field(settings) = time(value)?,
            Kind::Size(field) => *field(settings) = size(value)?,
            Kind::MemorySize(field) => {
                *field(settings) = usize::try_from(size(value)?)
                    .map_err(|_| "more than this machine can hold".to_owned())?;
            }
            Kind::Count(field) => *field(settings) = count(value)?,
            Kind::Within(range, field) => *field(settings) = within(range, value)?,
            Kind::OptionalWithin(range, field) => *field(settings) = Some(within(range, value)?),
            Kind::Depth(field) => *field(settings) = count(value)? as usize,
            Kind::PluginLimit(limits, field) => {
                let name = path.get(2).copied().unwrap_or_default();
                let plugin = PluginName::new(name).map_err(|error| error.to_string())?;
                let unbounded = Limit {
                    per_second: 0,
                    burst: 0,
                    concurrent: 0,
                };
                *field(limits(settings).entry(plugin).or_insert(unbounded)) = count(value)?;
            }
            Kind::Folder(field) => *field(settings) = Some(folder(value)?),
            Kind::Text(field) => *field(settings) = Some(text(value)?),
            Kind::Methods(field) => *field(settings) = methods(value)?,
            Kind::Hosts(field) => *field(settings) = hosts(value)?,
            Kind::Directories(field) => *field(settings) = directories(value)?,
            Kind::Files(field) => *field(settings) = files(value)?,
            Kind::Mode(field) => *field(settings) = mode(value)?,
        }
        Ok(())
    }

    /// The value that is in force, as it would be written; `None` where there is none. What
    /// stands for `*` is `name`.
    pub(super) fn show(&self, settings: &mut Settings, name: &str) -> Option<String> {
        let quoted = |text: String| format!("{text:?}");
        Some(match &self.kind {
            Kind::Time(field) => quoted(quantity::show_duration(*field(settings))),
            Kind::Size(field) => quoted(quantity::show_size(*field(settings))),
            Kind::MemorySize(field) => quoted(quantity::show_size(*field(settings) as u64)),
            Kind::Count(field) | Kind::Within(_, field) => field(settings).to_string(),
            Kind::OptionalWithin(_, field) => (*field(settings))?.to_string(),
            Kind::Depth(field) => field(settings).to_string(),
            Kind::PluginLimit(limits, field) => {
                let plugin = PluginName::new(name).ok()?;
                field(limits(settings).get_mut(&plugin)?).to_string()
            }
            Kind::Folder(field) | Kind::Text(field) => quoted(field(settings).clone()?),
            Kind::Methods(field) => inline(field(settings))?,
            Kind::Hosts(field) | Kind::Files(field) => inline(field(settings))?,
            Kind::Directories(field) => inline(field(settings))?,
            Kind::Mode(field) => quoted(match field(settings) {
                CapabilityMode::Warn => "warn".to_owned(),
                CapabilityMode::Enforce => "enforce".to_owned(),
            }),
            Kind::AgentModel => quoted(settings.agent.models.get(name)?.clone()),
            Kind::RuleSetting => inline(settings.rule_settings.get(name)?)?,
            Kind::Model => inline(settings.models.get(name)?)?,
            Kind::Embeddings => inline(settings.embeddings.as_ref()?)?,
        })
    }

    /// The default, as it would be written; a bound that is not set is 0.
    pub(super) fn default(&self) -> Option<String> {
        match &self.kind {
            Kind::PluginLimit(..) => Some("0".to_owned()),
            _ => self.show(&mut Settings::default(), ""),
        }
    }

    /// A value to start from, where there is no default.
    pub(super) fn example(&self) -> &'static str {
        match self.kind {
            Kind::Folder(_) => "\"notes\"",
            Kind::OptionalWithin(..) => "16000",
            Kind::Text(_) if self.name == "web.search_url" => "\"http://127.0.0.1:8888/search\"",
            _ => "\"offline\"",
        }
    }

    /// For a key that is a table: its header, and keys to start from.
    pub(super) fn example_table(&self) -> Option<(&'static str, &'static [&'static str])> {
        match self.kind {
            Kind::Model => Some((
                "models.local",
                &["provider = \"ollama\"", "model = \"qwen3\""],
            )),
            Kind::Embeddings => Some((
                "embeddings",
                &["provider = \"ollama\"", "model = \"nomic-embed-text\""],
            )),
            Kind::RuleSetting => Some(("settings", &["strict = true"])),
            Kind::AgentModel => Some(("agents.librarian", &["model_override = \"offline\""])),
            _ => None,
        }
    }

    /// What stands for `*` in a name.
    pub(super) fn chosen<'n>(&self, name: &'n str) -> &'n str {
        let open = self.name.split('.').position(|part| part == "*");
        open.and_then(|at| name.split('.').nth(at))
            .unwrap_or_default()
    }

    /// Whether the user chooses a part of its name.
    pub(super) fn is_open(&self) -> bool {
        self.name.contains('*')
    }
}

/// A setting of rules. Times are refused: JSON has none.
fn rule_setting(name: &str, value: &DeValue<'_>) -> Result<serde_json::Value, String> {
    if let DeValue::Datetime(_) = value {
        return Err("expected a string: put the date in quotes".to_owned());
    }
    let value = to_json(value)?;
    dodona_rules::settings::check(name, &value)?;
    Ok(value)
}

/// The value of a setting, as it would be written.
pub(super) fn shown_setting(value: &serde_json::Value) -> Option<String> {
    inline(value)
}

/// A table that says what it holds by itself.
fn table<T: DeserializeOwned>(value: &Spanned<DeValue<'_>>) -> Result<T, (Range<usize>, String)> {
    T::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
        let span = error.span().unwrap_or_else(|| value.span());
        (span, error.message().to_owned())
    })
}

/// A table on one line.
fn inline(table: &impl Serialize) -> Option<String> {
    let mut text = String::new();
    table
        .serialize(toml::ser::ValueSerializer::new(&mut text))
        .ok()?;
    Some(text)
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Some(_) => Err("is empty; leave the key out instead".to_owned()),
        None => Err(format!("expected a text, not {}", article(value))),
    }
}

/// Names of methods in a list.
fn methods(value: &DeValue<'_>) -> Result<BTreeSet<MethodName>, String> {
    let expected = || {
        format!(
            "expected a list such as [\"vault.search\"], not {}",
            article(value)
        )
    };
    let listed = value.as_array().ok_or_else(expected)?;
    let method = |entry: &Spanned<DeValue<'_>>| {
        MethodName::new(&text(entry.get_ref())?).map_err(|error| error.to_string())
    };
    listed.iter().map(method).collect()
}

/// Hosts in a list, each as `host` or `host:port`.
fn hosts(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let expected = || {
        format!(
            "expected a list such as [\"wiki.intranet\"], not {}",
            article(value)
        )
    };
    let listed = value.as_array().ok_or_else(expected)?;
    let host = |entry: &Spanned<DeValue<'_>>| {
        let host = text(entry.get_ref())?;
        match host.contains(['/', '@', '*', ' ']) {
            true => Err(format!(
                "invalid host {host:?}: write `host` or `host:port`"
            )),
            false => Ok(host),
        }
    };
    listed.iter().map(host).collect()
}

/// Absolute directories in a list; `~/` is the user's home directory.
fn directories(value: &DeValue<'_>) -> Result<Vec<PathBuf>, String> {
    let directory = |entry: String| {
        let path = match entry.strip_prefix("~/") {
            Some(rest) => std::env::home_dir()
                .ok_or("could not find your home directory")?
                .join(rest),
            None => PathBuf::from(&entry),
        };
        match path.is_absolute() {
            true => Ok(path),
            false => Err(format!("expected an absolute path, not {entry:?}")),
        }
    };
    texts(value, "/srv/projects")?
        .into_iter()
        .map(directory)
        .collect()
}

/// Paths below a project in a list.
fn files(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let file = |entry: String| match below_project(&entry) {
        true => Ok(entry),
        false => Err(format!(
            "expected a path from the project's root, without `..`, not {entry:?}"
        )),
    };
    texts(value, ".env.test")?.into_iter().map(file).collect()
}

fn texts(value: &DeValue<'_>, example: &str) -> Result<Vec<String>, String> {
    let expected = || {
        let found = article(value);
        format!("expected a list such as [{example:?}], not {found}")
    };
    let listed = value.as_array().ok_or_else(expected)?;
    listed.iter().map(|entry| text(entry.get_ref())).collect()
}

fn below_project(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn mode(value: &DeValue<'_>) -> Result<CapabilityMode, String> {
    match text(value)?.as_str() {
        "warn" => Ok(CapabilityMode::Warn),
        "enforce" => Ok(CapabilityMode::Enforce),
        other => Err(format!("expected \"warn\" or \"enforce\", not {other:?}")),
    }
}

/// A folder below the project: nothing can point outside of it.
fn folder(value: &DeValue<'_>) -> Result<String, String> {
    let named = text(value)?;
    match below_project(&named) {
        true => Ok(named
            .trim_start_matches("./")
            .trim_end_matches('/')
            .to_owned()),
        false => Err("must be a folder below the project, without `..`".to_owned()),
    }
}

fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    match value.as_str() {
        Some(text) => quantity::duration(text),
        None => Err(format!(
            "expected a time such as \"5s\", not {}",
            article(value)
        )),
    }
}

fn size(value: &DeValue<'_>) -> Result<u64, String> {
    match value.as_str() {
        Some(text) => quantity::size(text),
        None => Err(format!(
            "expected a size such as \"64 MiB\", not {}",
            article(value)
        )),
    }
}

fn within(range: &RangeInclusive<u32>, value: &DeValue<'_>) -> Result<u32, String> {
    let number = count(value)?;
    match range.contains(&number) {
        true => Ok(number),
        false => {
            let (least, most) = (range.start(), range.end());
            Err(format!(
                "expected a number from {least} to {most}, not {number}"
            ))
        }
    }
}

fn count(value: &DeValue<'_>) -> Result<u32, String> {
    let Some(number) = value.as_integer() else {
        return Err(format!("expected a whole number, not {}", article(value)));
    };
    u32::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
        format!(
            "expected a whole number from 0 to {}, not {}",
            u32::MAX,
            number.as_str()
        )
    })
}
