//! The roster, `plugins.toml`: which plugins are installed, and their capabilities.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dodona_plugin::Capability;
use dodona_plugin::manifest::stays_inside;
use dodona_plugin::reading::{Key, Problem, Reading};
use dodona_proto::PluginName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::dependency::Dependency;

/// The roster's file below the configuration directory.
pub(crate) const FILE: &str = "plugins.toml";

/// The parsed roster. A problem of one entry does not affect the others.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    pub(crate) entries: BTreeMap<PluginName, Result<Entry, Problem>>,
    /// All problems, including those of entries.
    pub(crate) problems: Vec<Problem>,
    /// The file could not be parsed at all.
    pub(crate) unreadable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) enabled: bool,
    pub(crate) module: ModuleRef,
    pub(crate) class: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// `None` if the key is missing.
    pub(crate) capabilities: Option<BTreeSet<Capability>>,
    pub(crate) config_file: Option<String>,
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModuleRef {
    /// `builtin:NAME`: a module of the program.
    Builtin(String),
    /// `dir:PATH`: a directory with a manifest.
    Dir(String),
    /// `mcp:…`: an MCP server.
    Mcp(String),
}

impl std::fmt::Display for ModuleRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Builtin(name) => write!(f, "builtin:{name}"),
            Self::Dir(path) => write!(f, "dir:{path}"),
            Self::Mcp(server) => write!(f, "mcp:{server}"),
        }
    }
}

const KEYS: [&str; 6] = [
    "enabled",
    "module",
    "class",
    "dependencies",
    "capabilities",
    "config_file",
];

impl Roster {
    /// Parses a roster. Invalid TOML results in an empty roster with a problem.
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut reading = Reading::new(path, text);
        let mut roster = Self::default();
        match reading.parse_with_repeats() {
            Some((whole, repeats)) => {
                roster.whole(&mut reading, &whole);
                roster.repeats(&mut reading, text, repeats);
            }
            None => roster.unreadable = true,
        }
        roster.problems = reading.into_problems();
        roster
    }

    /// A roster that exists and cannot be read.
    pub(crate) fn unreadable(path: &str, why: String) -> Self {
        Self {
            problems: vec![Problem::of_file(path, why)],
            unreadable: true,
            ..Self::default()
        }
    }

    fn whole<'t>(&mut self, reading: &mut Reading<'t>, whole: &DeTable<'t>) {
        for (key, value) in whole {
            if key.get_ref() != "plugin" {
                reading.unknown(key, &["plugin"]);
                continue;
            }
            let Some(plugins) = reading.table("plugin", value) else {
                continue;
            };
            for (name, value) in plugins {
                self.entry(reading, name, value);
            }
        }
    }

    /// A duplicate entry is an error: it is unclear which of the two applies.
    fn repeats(&mut self, reading: &mut Reading<'_>, text: &str, repeats: Vec<Range<usize>>) {
        let mut told = BTreeSet::new();
        for span in repeats {
            let name = entry_at(text, span.start);
            if name.as_ref().is_some_and(|name| !told.insert(name.clone())) {
                continue;
            }
            let before = reading.count();
            let word = text.get(span.clone()).unwrap_or_default();
            let hint = "remove one of the two";
            reading.fault_with(span, format!("`{word}` stands twice"), hint);
            if let (Some(name), Some(problem)) = (name, reading.since(before).first()) {
                self.entries.insert(name, Err(problem.clone()));
            }
        }
    }

    fn entry<'t>(
        &mut self,
        reading: &mut Reading<'t>,
        key: &Key<'t>,
        value: &Spanned<DeValue<'t>>,
    ) {
        let name = match PluginName::new(key.get_ref()) {
            Ok(name) => name,
            Err(error) => return reading.fault(key.span(), error.to_string()),
        };
        let before = reading.count();
        let table = reading.table(&format!("plugin.{name}"), value);
        let entry = table.and_then(|table| fields(reading, &name, table, key));
        let first = reading.since(before).first().cloned();
        let outcome = match (entry, first) {
            (Some(entry), None) => Ok(entry),
            (_, Some(problem)) => Err(problem),
            (None, None) => return,
        };
        self.entries.insert(name, outcome);
    }
}

/// The plugin entry that contains a position.
fn entry_at(text: &str, place: usize) -> Option<PluginName> {
    let end = text[place..].find('\n').map_or(text.len(), |at| place + at);
    let headers = text[..end].lines().rev();
    let header = headers
        .map(str::trim_start)
        .find(|line| line.starts_with('['))?;
    let table = DeTable::parse(header).ok()?.into_inner();
    let (_, plugins) = table.iter().find(|(key, _)| key.get_ref() == "plugin")?;
    let (name, _) = plugins.get_ref().as_table()?.iter().next()?;
    PluginName::new(name.get_ref()).ok()
}

fn fields<'t>(
    reading: &mut Reading<'t>,
    name: &PluginName,
    table: &DeTable<'t>,
    header: &Key<'t>,
) -> Option<Entry> {
    let (mut enabled, mut module) = (None, None);
    let (mut class, mut config_file) = (None, None);
    let (mut dependencies, mut capabilities) = (Vec::new(), None);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "enabled" => enabled = reading.boolean("enabled", value),
            "module" => module = module_ref(reading, value),
            "class" => class = reading.text("class", value),
            "dependencies" => dependencies = needs(reading, name, value),
            "capabilities" => capabilities = Some(granted(reading, value)),
            "config_file" => config_file = inside(reading, value),
            _ => reading.unknown(key, &KEYS),
        }
    }
    for missing in ["enabled", "module"] {
        if !table.iter().any(|(key, _)| key.get_ref() == missing) {
            reading.fault(
                header.span(),
                format!("`[plugin.{name}]` has no `{missing}`"),
            );
        }
    }
    Some(Entry {
        enabled: enabled?,
        module: module?,
        class,
        dependencies,
        capabilities,
        config_file,
    })
}

fn module_ref(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<ModuleRef> {
    let text = reading.text("module", value)?;
    match text.split_once(':') {
        Some(("builtin", name)) if !name.is_empty() => Some(ModuleRef::Builtin(name.to_owned())),
        Some(("dir", path)) if !path.is_empty() => Some(ModuleRef::Dir(path.to_owned())),
        Some(("mcp", server)) if !server.is_empty() => Some(ModuleRef::Mcp(server.to_owned())),
        _ => {
            reading.fault_with(
                value.span(),
                format!("`{text}` is not a valid module"),
                "write `builtin:NAME`, `dir:PATH` or `mcp:SERVER`",
            );
            None
        }
    }
}

fn needs(
    reading: &mut Reading<'_>,
    name: &PluginName,
    value: &Spanned<DeValue<'_>>,
) -> Vec<Dependency> {
    let mut dependencies: Vec<Dependency> = Vec::new();
    for text in reading.texts("dependencies", value) {
        match text.get_ref().parse::<Dependency>() {
            Ok(dependency) if dependency.plugin == *name => {
                reading.fault(text.span(), format!("`{name}` cannot depend on itself"));
            }
            Ok(dependency) => match dependencies
                .iter_mut()
                .find(|known| known.plugin == dependency.plugin)
            {
                Some(known) => known.merge(dependency),
                None => dependencies.push(dependency),
            },
            Err(why) => reading.fault(text.span(), why),
        }
    }
    dependencies
}

fn granted(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> BTreeSet<Capability> {
    let mut capabilities = BTreeSet::new();
    for text in reading.texts("capabilities", value) {
        match text.get_ref().parse() {
            Ok(capability) => {
                capabilities.insert(capability);
            }
            Err(error) => reading.fault(text.span(), format!("{error}")),
        }
    }
    capabilities
}

fn inside(reading: &mut Reading<'_>, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let path = reading.text("config_file", value)?;
    if stays_inside(&path) {
        return Some(path);
    }
    reading.fault_with(
        value.span(),
        "`config_file` is outside the configuration directory",
        "use a path below it, without `..`",
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let roster = Roster::parse("plugins.toml", text);
        roster.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_seeds_roster_is_read() {
        let text = r#"
            [plugin.manual_persona_creator]
            enabled = true
            module = "dir:plugins/persona"
            class = "ManualPersonaCreatorPlugin"
            dependencies = ["vault >= 1.2"]
            capabilities = ["tool_registry", "prompt", "preload"]
            config_file = "plugins/manual_persona_creator.toml"

            [plugin.gui_server]
            enabled = false
            module = "builtin:gui"
            dependencies = []
            capabilities = ["daemon_server"]
        "#;
        let roster = Roster::parse("plugins.toml", text);
        assert_eq!(roster.problems, []);
        let persona = roster.entries["manual_persona_creator"].as_ref().unwrap();
        assert_eq!(persona.module.to_string(), "dir:plugins/persona");
        assert_eq!(persona.dependencies[0].to_string(), "vault >=1.2");
        assert_eq!(persona.capabilities.as_ref().unwrap().len(), 3);
        assert!(!roster.entries["gui_server"].as_ref().unwrap().enabled);
    }

    #[test]
    fn one_bad_entry_fails_alone_and_every_fault_has_its_place() {
        let text = r#"colour = "red"
[plugin.good]
enabled = true
module = "builtin:good"

[plugin.text]
enabled = "false"
module = "builtin:x"

[plugin.typo]
enabeld = true
module = "builtin:x"

[plugin.self]
enabled = true
module = "builtin:x"
dependencies = ["self >= 1", "a", "a", "b sometime"]

[plugin.out]
enabled = true
module = "file:/x"
config_file = "../../etc/passwd"
capabilities = ["promt"]

[plugin."../../up"]
enabled = true
[plugin."a/b"]
enabled = true
[plugin]
flat = true
"#;
        let roster = Roster::parse("plugins.toml", text);
        assert!(roster.entries["good"].is_ok());
        for bad in ["text", "typo", "self", "out", "flat"] {
            assert!(roster.entries[bad].is_err(), "{bad}");
        }
        assert_eq!(
            told(text),
            [
                "plugins.toml:1:1: unknown key `colour` (there is plugin)",
                "plugins.toml:7:11: `enabled` must be true or false, not a string (write `enabled = false` without quotes)",
                "plugins.toml:11:1: unknown key `enabeld` (did you mean `enabled`?)",
                "plugins.toml:10:9: `[plugin.typo]` has no `enabled`",
                "plugins.toml:17:17: `self` cannot depend on itself",
                "plugins.toml:17:40: `sometime` is not a version requirement such as `>= 1.2`: unexpected character 's' while parsing major version number",
                "plugins.toml:21:10: `file:/x` is not a valid module (write `builtin:NAME`, `dir:PATH` or `mcp:SERVER`)",
                "plugins.toml:22:15: `config_file` is outside the configuration directory (use a path below it, without `..`)",
                "plugins.toml:23:17: unknown capability `promt`; did you mean `prompt`?",
                "plugins.toml:25:9: `../../up` has `.`: names are lower-case letters, digits, `_` and `-`, and begin with a letter",
                "plugins.toml:27:9: `a/b` has `/`: names are lower-case letters, digits, `_` and `-`, and begin with a letter",
                "plugins.toml:30:8: `plugin.flat` is a table, not a boolean (write `[plugin.flat]` and its keys below)",
            ]
        );
    }

    #[test]
    fn a_dependency_named_twice_counts_once_with_both_versions() {
        let text = r#"
            [plugin.gamma]
            enabled = true
            module = "builtin:gamma"
            dependencies = ["beta", "beta", "vault >= 1.2", "beta", "vault", "vault < 2"]
        "#;
        let roster = Roster::parse("plugins.toml", text);
        assert_eq!(roster.problems, []);
        let gamma = roster.entries["gamma"].as_ref().unwrap();
        let shown: Vec<String> = gamma.dependencies.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["beta", "vault >=1.2, <2"]);
    }

    #[test]
    fn what_is_no_toml_is_a_roster_that_says_nothing() {
        let twice_and_worse = "[plugin.a]\nenabled = true\nenabled = flase\n";
        for text in ["[plugin.a\n", twice_and_worse, "plugin = ["] {
            let roster = Roster::parse("plugins.toml", text);
            assert!(roster.unreadable && roster.entries.is_empty(), "{text}");
            assert_eq!(roster.problems.len(), 1);
            assert!(roster.problems[0].place.is_some(), "{text}");
        }
    }
}
