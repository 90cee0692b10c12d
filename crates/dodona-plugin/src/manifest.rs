//! What a plugin says about itself: `manifest.toml`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use dodona_proto::PluginName;
use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::capability::Capability;
use crate::reading::{Place, Problem, Reading, to_json};
use crate::settings::{Setting, SettingKind, Settings};

/// A manifest. For a built-in plugin the hub makes one of what the plugin says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    /// The plugin's name, which is also its directory's.
    pub id: PluginName,
    /// What people call it.
    pub name: String,
    /// Semantic version of the plugin.
    pub version: Version,
    /// What it is for.
    pub description: String,
    /// Tools that active plugins must provide, as `vault_search` or `vault.search`.
    pub requires: Vec<String>,
    /// What it may touch, if that is granted.
    pub uses: Vec<Used>,
    /// Which files hold its rules, as patterns below its directory.
    pub rules: Vec<String>,
    /// What a user may set.
    pub settings: Settings,
    /// The script or process of the plugin.
    pub code: Option<Code>,
}

/// A capability that a manifest asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Used {
    /// The capability that the manifest requests.
    pub capability: Capability,
    /// In which line of the manifest.
    pub line: usize,
}

/// Code that a plugin outside the binary brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A script in Luau: its file.
    Script {
        /// The file, below the plugin's directory.
        main: String,
    },
    /// A process of its own.
    Process {
        /// Path or name of the program.
        command: String,
        /// What it is started with.
        args: Vec<String>,
        /// Variables that it gets beside the usual ones, as they are written.
        env: BTreeMap<String, String>,
        /// Where it starts, below the plugin's directory.
        cwd: Option<String>,
        /// What it speaks over its standard input and output.
        protocol: ProcessProtocol,
    },
}

/// What a process speaks over its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessProtocol {
    /// MCP: the server says what it brings.
    Mcp,
    /// JSON-RPC of Dodona's own: the manifest declares what it brings.
    Dodona(Declarations),
}

/// What a manifest declares for a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Declarations {
    /// The methods, from `[[process.methods]]`.
    pub methods: Vec<Declaration>,
    /// The hooks, from `[[process.hooks]]`.
    pub hooks: Vec<Declaration>,
    /// Prefixes of event types, from `events` in `[process]`.
    pub events: Vec<Declaration>,
    /// How many requests the process is sent before it has answered the first; 1 if it does not say.
    pub concurrency: Option<u32>,
}

/// Something that a manifest declares. Its loader knows what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Declaration {
    /// As it is written.
    pub spec: serde_json::Value,
    /// Position in the manifest.
    pub place: Place,
}

/// The most requests that a process may be sent at the same time.
const MAX_CONCURRENCY: i64 = 64;

const TABLES: [&str; 6] = [
    "plugin",
    "capabilities",
    "rules",
    "settings",
    "script",
    "process",
];

impl Manifest {
    /// A manifest that says no more than who the plugin is.
    pub fn bare(id: PluginName, version: Version) -> Self {
        Self {
            name: id.to_string(),
            id,
            version,
            description: String::new(),
            requires: Vec::new(),
            uses: Vec::new(),
            rules: Vec::new(),
            settings: BTreeMap::new(),
            code: None,
        }
    }

    /// Parses a manifest. Returns all problems, and the manifest if there are no problems.
    pub fn parse(path: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let mut reading = Reading::new(path, text);
        let manifest = reading
            .parse()
            .and_then(|table| read(&mut reading, &table, path));
        match (manifest, reading.count()) {
            (Some(manifest), 0) => Ok(manifest),
            _ => Err(reading.into_problems()),
        }
    }
}

fn read<'t>(reading: &mut Reading<'t>, whole: &DeTable<'t>, path: &str) -> Option<Manifest> {
    let mut manifest = None;
    let mut more = More::default();
    for (key, value) in whole {
        let name = key.get_ref().as_ref();
        if !TABLES.contains(&name) {
            reading.unknown(key, &TABLES);
            continue;
        }
        let Some(table) = reading.table(name, value) else {
            continue;
        };
        match name {
            "plugin" => manifest = identity(reading, table, value),
            "capabilities" => more.capabilities(reading, table),
            "rules" => more.rules(reading, table),
            "settings" => more.settings(reading, table),
            _ => more.code(reading, name, table, value),
        }
    }
    if manifest.is_none() && reading.count() == 0 {
        reading.fault_with(
            0..0,
            "there is no table `[plugin]`",
            format!("write `[plugin]` with `id` and `version` into `{path}`"),
        );
    }
    let manifest = manifest?;
    Some(Manifest {
        requires: more.requires,
        uses: more.uses,
        rules: more.rules,
        settings: more.settings,
        code: more.code,
        ..manifest
    })
}

fn identity<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    whole: &Spanned<DeValue<'t>>,
) -> Option<Manifest> {
    let (mut id, mut name, mut version, mut description) = (None, None, None, None);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "id" => id = plugin_name(reading, value),
            "name" => name = reading.text("name", value),
            "version" => version = semantic(reading, value),
            "description" => description = reading.text("description", value),
            _ => reading.unknown(key, &["id", "name", "version", "description"]),
        }
    }
    for missing in ["id", "version"] {
        if !table
            .iter()
            .any(|(key, _)| key.get_ref().as_ref() == missing)
        {
            reading.fault(whole.span(), format!("`[plugin]` has no `{missing}`"));
        }
    }
    let bare = Manifest::bare(id?, version?);
    Some(Manifest {
        name: name.unwrap_or(bare.name),
        description: description.unwrap_or_default(),
        ..bare
    })
}

fn plugin_name(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<PluginName> {
    let text = reading.text("id", value)?;
    let checked = PluginName::new(&text);
    checked
        .map_err(|error| reading.fault(value.span(), error.to_string()))
        .ok()
}

fn semantic(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<Version> {
    let text = reading.text("version", value)?;
    let parsed = Version::parse(&text);
    parsed
        .map_err(|error| {
            let message = format!("`{text}` is not a version: {error}");
            reading.fault_with(value.span(), message, "write three numbers, such as 1.0.0");
        })
        .ok()
}

/// Everything but who the plugin is.
#[derive(Default)]
struct More {
    requires: Vec<String>,
    uses: Vec<Used>,
    rules: Vec<String>,
    settings: Settings,
    code: Option<Code>,
}

impl More {
    fn capabilities<'t>(&mut self, reading: &mut Reading<'t>, table: &DeTable<'t>) {
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "requires" => {
                    let tools = reading.texts("requires", value);
                    self.requires = tools.into_iter().map(Spanned::into_inner).collect();
                }
                "uses" => {
                    for text in reading.texts("uses", value) {
                        match text.get_ref().parse::<Capability>() {
                            Ok(capability) => self.uses.push(Used {
                                capability,
                                line: reading.place(text.span()).line,
                            }),
                            Err(error) => reading.fault(text.span(), error.to_string()),
                        }
                    }
                }
                _ => reading.unknown(key, &["requires", "uses"]),
            }
        }
    }

    fn rules<'t>(&mut self, reading: &mut Reading<'t>, table: &DeTable<'t>) {
        for (key, value) in table {
            if key.get_ref() != "include" {
                reading.unknown(key, &["include"]);
                continue;
            }
            for pattern in reading.texts("include", value) {
                if stays_inside(pattern.get_ref()) {
                    self.rules.push(pattern.into_inner())
                } else {
                    reading.fault(
                        pattern.span(),
                        "a pattern must stay below the plugin's directory, without `..`",
                    )
                }
            }
        }
    }

    fn settings<'t>(&mut self, reading: &mut Reading<'t>, table: &DeTable<'t>) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if !is_identifier(name) {
                let message = format!("`{name}` is no name for a setting");
                let hint = "use lower-case letters, digits and `_`";
                reading.fault_with(key.span(), message, hint);
                continue;
            }
            let Some(table) = reading.table(&format!("settings.{name}"), value) else {
                continue;
            };
            if let Some(setting) = setting(reading, name, table, value) {
                self.settings.insert(name.to_owned(), setting);
            }
        }
    }

    fn code<'t>(
        &mut self,
        reading: &mut Reading<'t>,
        kind: &str,
        table: &DeTable<'t>,
        whole: &Spanned<DeValue<'t>>,
    ) {
        if self.code.is_some() {
            let message = "a plugin has a `[script]` or a `[process]`, not both";
            reading.fault(whole.span(), message);
        }
        self.code = match kind {
            "script" => script(reading, table, whole),
            _ => process(reading, table, whole),
        };
    }
}

fn script<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    whole: &Spanned<DeValue<'t>>,
) -> Option<Code> {
    let mut main = None;
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "main" => main = reading.text("main", value).map(|text| (text, value.span())),
            _ => reading.unknown(key, &["main"]),
        }
    }
    match main {
        Some((main, _)) if stays_inside(&main) => Some(Code::Script { main }),
        Some((_, span)) => {
            let message = "`main` must be a file below the plugin's directory, without `..`";
            reading.fault(span, message);
            None
        }
        None => {
            reading.fault(whole.span(), "`[script]` has no `main`");
            None
        }
    }
}

fn process<'t>(
    reading: &mut Reading<'t>,
    table: &DeTable<'t>,
    whole: &Spanned<DeValue<'t>>,
) -> Option<Code> {
    let (mut command, mut args) = (None, Vec::new());
    let (mut env, mut cwd) = (BTreeMap::new(), None);
    let (mut is_ours, mut declared) = (false, Declarations::default());
    let mut first = None;
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if DECLARING.contains(&name) {
            first.get_or_insert(key);
        }
        match name {
            "command" => command = reading.text("command", value),
            "args" => args = reading.texts("args", value),
            "env" => env = variables(reading, value),
            "cwd" => cwd = below(reading, value),
            "protocol" => is_ours = protocol(reading, value),
            "methods" => declared.methods = declarations(reading, name, value),
            "hooks" => declared.hooks = declarations(reading, name, value),
            "events" => declared.events = declarations(reading, name, value),
            "concurrency" => declared.concurrency = concurrency(reading, value),
            _ => reading.unknown(key, &PROCESS_KEYS),
        }
    }
    if command.is_none() {
        reading.fault(whole.span(), "`[process]` has no `command`");
    }
    if let Some(key) = first.filter(|_| !is_ours) {
        let message = format!("`{}` needs `protocol = \"dodona\"`", key.get_ref());
        let hint = "an MCP server says itself what it brings";
        reading.fault_with(key.span(), message, hint);
    }
    let args = args.into_iter().map(Spanned::into_inner).collect();
    Some(Code::Process {
        command: command?,
        args,
        env,
        cwd,
        protocol: if is_ours {
            ProcessProtocol::Dodona(declared)
        } else {
            ProcessProtocol::Mcp
        },
    })
}

const PROCESS_KEYS: [&str; 9] = [
    "command",
    "args",
    "env",
    "cwd",
    "protocol",
    "methods",
    "hooks",
    "events",
    "concurrency",
];

/// Those of them that belong to our own protocol.
const DECLARING: [&str; 4] = ["methods", "hooks", "events", "concurrency"];

/// Reads `protocol`: whether it is our own.
fn protocol(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> bool {
    match reading.text("protocol", value).as_deref() {
        Some("dodona") => true,
        Some("mcp") | None => false,
        Some(other) => {
            let message = format!("unknown protocol `{other}`");
            reading.fault_with(value.span(), message, "write `dodona` or `mcp`");
            false
        }
    }
}

/// Reads a list of tables. A text among them is the prefix of events.
fn declarations(
    reading: &mut Reading<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
) -> Vec<Declaration> {
    let Some(array) = value.get_ref().as_array() else {
        reading.expected(key, "a list of tables", value);
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in array.iter() {
        let spec = match to_json(item.get_ref()) {
            Ok(serde_json::Value::String(prefix)) if key == "events" => {
                serde_json::json!({ "prefix": prefix })
            }
            Ok(spec) if spec.is_object() => spec,
            Ok(_) => {
                reading.expected(key, "a table", item);
                continue;
            }
            Err(why) => {
                reading.fault(item.span(), why);
                continue;
            }
        };
        let place = reading.place(item.span());
        found.push(Declaration { spec, place });
    }
    found
}

fn concurrency(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<u32> {
    let number = to_json(value.get_ref()).ok().and_then(|json| json.as_i64());
    let number = number.filter(|number| (1..=MAX_CONCURRENCY).contains(number));
    if number.is_none() {
        let message = format!("`concurrency` must be a whole number from 1 to {MAX_CONCURRENCY}");
        reading.fault(value.span(), message);
    }
    number.and_then(|number| u32::try_from(number).ok())
}

/// Reads `env`. Its values are plain: what a manifest may name is no secret.
fn variables<'t>(
    reading: &mut Reading<'t>,
    value: &Spanned<DeValue<'t>>,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let Some(table) = reading.table("process.env", value) else {
        return variables;
    };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if name.is_empty() || name.contains(['=', '\0']) {
            reading.fault(key.span(), format!("`{name}` is no name of a variable"));
            continue;
        }
        if let Some(text) = reading.text(&format!("env.{name}"), value) {
            variables.insert(name.to_owned(), text);
        }
    }
    variables
}

fn below(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let path = reading.text("cwd", value)?;
    if stays_inside(&path) {
        return Some(path);
    }
    let message = "`cwd` must be a directory below the plugin's, without `..`";
    reading.fault(value.span(), message);
    None
}

const SETTING_KEYS: [&str; 6] = ["type", "default", "min", "max", "options", "description"];

fn setting<'t>(
    reading: &mut Reading<'t>,
    name: &str,
    table: &DeTable<'t>,
    whole: &Spanned<DeValue<'t>>,
) -> Option<Setting> {
    let before = reading.count();
    let mut setting = Setting::new(SettingKind::String, serde_json::Value::Null, "");
    let (mut kind, mut default) = (None, None);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "type" => kind = setting_kind(reading, value),
            "default" => default = Some(value),
            "min" => setting.min = number(reading, "min", value),
            "max" => setting.max = number(reading, "max", value),
            "options" => {
                let texts = reading.texts("options", value);
                setting.options = texts.into_iter().map(Spanned::into_inner).collect();
            }
            "description" => {
                setting.description = reading.text("description", value).unwrap_or_default();
            }
            _ => reading.unknown(key, &SETTING_KEYS),
        }
    }
    for missing in ["type", "default"] {
        if !table
            .iter()
            .any(|(key, _)| key.get_ref().as_ref() == missing)
        {
            let message = format!("`[settings.{name}]` has no `{missing}`");
            reading.fault(whole.span(), message);
        }
    }
    setting.kind = kind?;
    consistent(reading, &setting, whole);
    let default = default?;
    let given = to_json(default.get_ref()).and_then(|json| setting.check(&json));
    match given {
        Ok(value) => setting.default = value,
        Err(why) => reading.fault(default.span(), format!("`default` {why}")),
    }
    (reading.count() == before).then_some(setting)
}

fn setting_kind(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<SettingKind> {
    let text = reading.text("type", value)?;
    let found = SettingKind::ALL.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<&str> = SettingKind::ALL.iter().map(|(name, _)| *name).collect();
        let hint = match crate::reading::nearest(&text, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", names.join(", ")),
        };
        reading.fault_with(value.span(), format!("there is no type `{text}`"), hint);
    }
    found.map(|(_, kind)| *kind)
}

fn number(reading: &mut Reading<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Option<f64> {
    let number = to_json(value.get_ref()).ok().and_then(|json| json.as_f64());
    if number.is_none() {
        reading.expected(key, "a number", value);
    }
    number
}

/// Bounds belong to numbers, choices to texts.
fn consistent(reading: &mut Reading<'_>, setting: &Setting, whole: &Spanned<DeValue<'_>>) {
    let numeric = matches!(setting.kind, SettingKind::Integer | SettingKind::Float);
    if !numeric && (setting.min.is_some() || setting.max.is_some()) {
        reading.fault(whole.span(), "only a number has `min` and `max`");
    }
    if let (Some(min), Some(max)) = (setting.min, setting.max)
        && min > max
    {
        reading.fault(whole.span(), format!("`min` {min} is above `max` {max}"));
    }
    if setting.kind != SettingKind::String && !setting.options.is_empty() {
        reading.fault(whole.span(), "only a string has `options`");
    }
}

/// Conditions say `settings.<name>`, so a name is one of theirs.
fn is_identifier(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(fits)
}

/// Whether a relative path names something below where it starts.
pub fn stays_inside(path: &str) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.contains('\\') && Path::new(path).components().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(text: &str) -> Vec<String> {
        let problems = Manifest::parse("p/manifest.toml", text).unwrap_err();
        problems.iter().map(Problem::brief).collect()
    }

    const SEED: &str = r#"
[plugin]
id = "research-assistant"
name = "Research Assistant"
version = "1.0.0"
description = "Enhanced research workflow with multi-step guidance"

[capabilities]
requires = ["vault_search", "web_search"]
uses = ["prompt", "call:vault"]

[rules]
include = ["rules/*.toml"]

[settings]

[settings.max_sources]
type = "integer"
default = 10
min = 1
max = 50
description = "Maximum sources to gather before synthesizing"

[settings.auto_summarize]
type = "boolean"
default = true
description = "Automatically summarize large result sets"
"#;

    #[test]
    fn a_manifest_is_read_whole() {
        let manifest = Manifest::parse("manifest.toml", SEED).unwrap();
        assert_eq!(manifest.id.as_str(), "research-assistant");
        assert_eq!(manifest.version.to_string(), "1.0.0");
        assert_eq!(manifest.requires, ["vault_search", "web_search"]);
        assert_eq!(manifest.uses[1].capability.to_string(), "call:vault");
        assert_eq!(manifest.uses[1].line, 10);
        assert_eq!(manifest.rules, ["rules/*.toml"]);
        let most = &manifest.settings["max_sources"];
        assert_eq!((most.default.clone(), most.max), (json!(10), Some(50.0)));
        assert_eq!(manifest.code, None);
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        let text = r#"
[plugin]
id = "../escape"
version = "1"
nam = "x"

[capabilities]
uses = ["promt", 7]

[rules]
include = ["../*.toml"]

[settings.a]
type = "int"
default = 1
[settings.b]
type = "integer"
default = 70
max = 50
[settings.c]
type = "boolean"
min = 1
[settings.Big]
type = "string"

[script]
main = "/bin/sh"
[proces]
"#;
        let told = problems(text).join("\n");
        for expected in [
            "manifest.toml:3: `../escape` has `.`",
            "manifest.toml:4: `1` is not a version",
            "manifest.toml:5: unknown key `nam`; did you mean `name`?",
            "manifest.toml:8: unknown capability `promt`; did you mean `prompt`?",
            "manifest.toml:8: `uses` must be a text, not an integer",
            "manifest.toml:11: a pattern must stay below",
            "manifest.toml:14: there is no type `int`",
            "manifest.toml:18: `default` must be at most 50, not 70",
            "`[settings.c]` has no `default`",
            "only a number has `min`",
            "`Big` is no name for a setting",
            "manifest.toml:27: `main` must be a file below",
            "unknown key `proces`; did you mean `process`?",
        ] {
            assert!(told.contains(expected), "{expected}\n---\n{told}");
        }
    }

    #[test]
    fn a_process_declares_what_it_brings() {
        let text = r#"
[plugin]
id = "gate"
version = "0.1.0"
[process]
command = "python3"
args = ["main.py"]
protocol = "dodona"
events = ["custom.release", { prefix = "tool", timeout = 3 }]
concurrency = 4
[[process.methods]]
name = "count"
doc = "Counts."
[[process.hooks]]
point = "PRE_TOOL_EXECUTE"
"#;
        let manifest = Manifest::parse("manifest.toml", text).unwrap();
        let Some(Code::Process {
            protocol: ProcessProtocol::Dodona(declared),
            ..
        }) = manifest.code
        else {
            panic!("{:?}", manifest.code);
        };
        assert_eq!(declared.methods[0].spec["name"], "count");
        assert_eq!(declared.hooks[0].place.line, 14);
        assert_eq!(declared.events[0].spec, json!({"prefix": "custom.release"}));
        assert_eq!(declared.concurrency, Some(4));
        for (was, is, why) in [
            ("\"dodona\"", "\"grpc\"", "unknown protocol `grpc`"),
            (
                "\"dodona\"",
                "\"mcp\"",
                "`events` needs `protocol = \"dodona\"`",
            ),
            ("concurrency = 4", "concurrency = 0", "from 1 to 64"),
            (
                "[[process.methods]]\nname",
                "[process.methods]\nname",
                "must be a list of tables",
            ),
            ("concurrency", "concurency", "did you mean `concurrency`?"),
        ] {
            let told = problems(&text.replace(was, is)).join("\n");
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_manifest_without_a_plugin_says_so() {
        assert!(problems("")[0].contains("there is no table `[plugin]`"));
        assert!(problems("plugin = 3")[0].contains("`plugin` is a table, not an integer"));
    }
}
