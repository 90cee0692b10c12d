//! Discovering plugins: built-in ones, those in the roster, and directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dodona_plugin::manifest::Code;
use dodona_plugin::reading::{Problem, nearest};
use dodona_plugin::{
    Capabilities, Capability, Loaders, Manifest, Outside, OutsideSource, PROJECT_RULES, Plugin,
};
use dodona_proto::{PluginName, PluginState, ProjectId};
use semver::Version;
use serde_json::json;

use super::dependency::Dependency;
use super::directory::{self, Directory, DirectoryPlugin};
use super::files;
use super::module::Module;
use super::roster::{self, Entry, ModuleRef, Roster};
use super::settings_file::{self, SettingsFile};
use crate::projects::Projects;
use crate::trust::Trust;

/// Where plugins come from.
pub(crate) struct Sources {
    pub(crate) modules: Vec<Module>,
    /// The hub's own plugins. The roster cannot change them.
    pub(crate) own: Vec<Arc<dyn Plugin>>,
    /// Create plugins from scripts and servers.
    pub(crate) loaders: Loaders,
    /// The registered projects, and which of them are trusted.
    pub(crate) projects: Arc<Projects>,
    pub(crate) trust: Arc<Trust>,
    /// The user's configuration directory, if there is one.
    pub(crate) config_dir: Option<PathBuf>,
}

/// All plugins found, before activation.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) candidates: BTreeMap<PluginName, Candidate>,
    pub(crate) problems: Vec<Problem>,
    /// The roster exists but cannot be read.
    pub(crate) unreadable: bool,
}

/// The kind of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Part of the hub.
    Own,
    /// Part of the program.
    Builtin,
    /// External. Its capabilities are enforced.
    External,
}

/// A plugin that may be activated.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) name: PluginName,
    pub(crate) kind: Kind,
    /// Its module, in the form of the roster.
    pub(crate) module: String,
    pub(crate) class: Option<String>,
    pub(crate) plugin: Option<Arc<dyn Plugin>>,
    pub(crate) manifest: Option<Arc<Manifest>>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) capabilities: Capabilities,
    /// Capabilities granted in the roster, if it lists any.
    pub(crate) granted: Option<BTreeSet<Capability>>,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) configured: SettingsFile,
    pub(crate) directory: Option<PathBuf>,
    /// The project that provides it; `None` for the user's plugins.
    pub(crate) project: Option<ProjectId>,
    pub(crate) rules: Vec<PathBuf>,
    /// Changes exactly when the plugin must be activated again.
    pub(crate) fingerprint: String,
    /// The loader's part of the fingerprint.
    loaded: Option<String>,
    /// The plugin is not activated because of errors in its files.
    pub(crate) broken: bool,
    /// Why the plugin is not activated.
    pub(crate) refused: Option<(PluginState, String)>,
    /// All problems in its files.
    pub(crate) problems: Vec<Problem>,
}

impl Candidate {
    pub(super) fn new(name: PluginName, kind: Kind, module: String) -> Self {
        Self {
            name,
            kind,
            module,
            class: None,
            plugin: None,
            manifest: None,
            dependencies: Vec::new(),
            capabilities: Capabilities::All,
            granted: None,
            config_file: None,
            configured: SettingsFile::default(),
            directory: None,
            project: None,
            rules: Vec::new(),
            fingerprint: String::new(),
            loaded: None,
            broken: false,
            refused: None,
            problems: Vec::new(),
        }
    }

    /// Its version, once known.
    pub(crate) fn version(&self) -> Option<String> {
        let manifest = self.manifest.as_ref();
        manifest.map(|manifest| manifest.version.to_string())
    }

    /// Sets the reason unless there is one already.
    pub(super) fn refuse(&mut self, state: PluginState, reason: impl Into<String>) {
        self.refused.get_or_insert((state, reason.into()));
    }

    /// Whether the plugin is valid and only lacks granted capabilities.
    pub(crate) fn lacks_grant(&self) -> bool {
        let manifest = self.manifest.as_deref();
        let ungranted = manifest.is_some_and(|manifest| ungranted(self, manifest).is_some());
        !self.broken && ungranted
    }

    /// Marks it as not activatable because of errors in its files.
    fn faulty(&mut self, problems: Vec<Problem>) {
        self.broken |= self.refused.is_none();
        self.refuse(PluginState::Failed, briefly(&problems));
        self.problems.extend(problems);
    }
}

impl Sources {
    /// The `class` that selects a built-in plugin if its module has several.
    pub(crate) fn class_of(&self, name: &PluginName) -> Option<String> {
        let several = self
            .modules
            .iter()
            .filter(|module| module.exports.len() > 1);
        let mut exports = several.flat_map(|module| &module.exports);
        let found = exports.find(|export| export.plugin.name() == name.as_str());
        found.map(|export| export.class.clone())
    }

    /// Reads the roster. It is empty if there is no roster or no configuration directory.
    pub(crate) fn load_roster(&self) -> Roster {
        let Some(dir) = &self.config_dir else {
            return Roster::default();
        };
        let path = dir.join(roster::FILE);
        let shown = path.display().to_string();
        match files::read(&path) {
            Ok(Some(text)) => Roster::parse(&shown, &text),
            Ok(None) => Roster::default(),
            Err(why) => Roster::unreadable(&shown, why),
        }
    }

    /// Finds all plugins. A problem of one plugin does not affect the others.
    pub(crate) fn discover(&self, roster: Roster) -> Plan {
        let mut plan = Plan {
            problems: roster.problems,
            unreadable: roster.unreadable,
            ..Plan::default()
        };
        for plugin in &self.own {
            self.own(&mut plan, plugin);
        }
        for (name, entry) in roster.entries {
            self.entry(&mut plan, name, entry);
        }
        for module in &self.modules {
            for export in &module.exports {
                let name = export.plugin.name();
                if plan.candidates.contains_key(name) {
                    continue;
                }
                if let Ok(name) = PluginName::new(name) {
                    let entry = builtin_entry(&module.name, &export.class);
                    let candidate = self.load(name.clone(), entry, false);
                    plan.candidates.insert(name, candidate);
                }
            }
        }
        self.directories(&mut plan);
        self.find_project_plugins(&mut plan);
        if let Some(taken) = plan.candidates.remove(PROJECT_RULES) {
            let message = format!(
                "the name `{PROJECT_RULES}` is reserved; `{}` is not loaded",
                taken.module
            );
            plan.problems.push(self.of_roster(message));
        }
        plan
    }

    fn own(&self, plan: &mut Plan, plugin: &Arc<dyn Plugin>) {
        let Ok(name) = PluginName::new(plugin.name()) else {
            return;
        };
        let mut candidate = Candidate::new(name.clone(), Kind::Own, format!("builtin:{name}"));
        described(&mut candidate, plugin);
        candidate.plugin = Some(Arc::clone(plugin));
        plan.candidates.insert(name, candidate);
    }

    /// A problem of the roster as a whole.
    fn of_roster(&self, message: String) -> Problem {
        let path = self.config_dir.as_deref().unwrap_or(Path::new(""));
        Problem::of_file(path.join(roster::FILE).display().to_string(), message)
    }

    /// Why an entry is ignored: it would disable, restrict or replace a plugin that must always be active.
    fn touches_essential(
        &self,
        name: &PluginName,
        entry: &Result<Entry, Problem>,
    ) -> Option<String> {
        let exports = self.modules.iter().flat_map(|module| {
            let exports = module.exports.iter();
            exports.map(move |export| (module, export))
        });
        let mut essential = exports.filter(|(_, export)| export.plugin.is_essential());
        let (module, export) =
            essential.find(|(_, export)| export.plugin.name() == name.as_str())?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(problem) => return Some(format!("the entry is invalid ({})", problem.brief())),
        };
        let own = ModuleRef::Builtin(module.name.clone());
        let class = entry.class.as_deref();
        if entry.module != own {
            Some(format!("`module` must be `{own}`, not `{}`", entry.module))
        } else if let Some(class) = class.filter(|class| *class != export.class) {
            Some(format!("`class` must be `{}`, not `{class}`", export.class))
        } else if !entry.enabled {
            Some("`enabled = false` is not allowed".to_owned())
        } else if entry.capabilities.is_some() {
            Some("`capabilities` cannot be restricted".to_owned())
        } else if !entry.dependencies.is_empty() {
            Some("`dependencies` cannot be added".to_owned())
        } else {
            None
        }
    }

    /// Whether a built-in plugin is always active, regardless of the roster.
    pub(crate) fn is_essential(&self, name: &PluginName) -> bool {
        let mut exports = self.modules.iter().flat_map(|module| &module.exports);
        exports.any(|export| export.plugin.name() == name.as_str() && export.plugin.is_essential())
    }

    fn entry(&self, plan: &mut Plan, name: PluginName, entry: Result<Entry, Problem>) {
        if plan.candidates.contains_key(&name) {
            let message = format!("`{name}` is part of the hub; its entry is passed over");
            plan.problems.push(self.of_roster(message));
            return;
        }
        if let Some(why) = self.touches_essential(&name, &entry) {
            let message = format!("`{name}` is always active: {why}, so its entry is ignored");
            let problem = self.of_roster(message);
            let hint = format!("remove `[plugin.{name}]` from the roster");
            plan.problems.push(problem.hint(hint));
            return;
        }
        let candidate = match entry {
            Ok(entry) => self.load(name.clone(), entry, true),
            Err(problem) => {
                let mut bad = Candidate::new(name.clone(), Kind::External, String::new());
                bad.refuse(PluginState::Failed, problem.brief());
                bad
            }
        };
        plan.candidates.insert(name, candidate);
    }

    /// Directories below the user's `plugins` need no entry.
    fn directories(&self, plan: &mut Plan) {
        let Some(dir) = &self.config_dir else { return };
        let (found, problems) = directory::find(&dir.join("plugins"));
        plan.problems.extend(problems);
        for (name, path) in found {
            match plan.candidates.get(&name) {
                Some(known) if known.directory.as_deref().is_some_and(|d| same(d, &path)) => {}
                // An invalid entry is already reported.
                Some(known) if known.module.is_empty() => {}
                Some(known) => plan.problems.push(
                    Problem::of_file(
                        path.display().to_string(),
                        format!("`{name}` is `{}` already; this is not loaded", known.module),
                    )
                    .hint("give it another name, in its manifest too"),
                ),
                None => {
                    let entry = Entry {
                        enabled: true,
                        module: ModuleRef::Dir(format!("plugins/{name}")),
                        class: None,
                        dependencies: Vec::new(),
                        capabilities: None,
                        config_file: None,
                    };
                    let mut candidate = self.load(name.clone(), entry, false);
                    if plan.unreadable {
                        candidate.refused = None;
                        candidate.refuse(
                            PluginState::Failed,
                            "`plugins.toml` cannot be read, so nothing says what it may do; \
                             run `dodona plugins check`",
                        );
                    }
                    plan.candidates.insert(name, candidate);
                }
            }
        }
    }

    /// The plugin of a roster entry.
    fn load(&self, name: PluginName, entry: Entry, written: bool) -> Candidate {
        let kind = match entry.module {
            ModuleRef::Builtin(_) => Kind::Builtin,
            _ => Kind::External,
        };
        let mut candidate = Candidate::new(name, kind, entry.module.to_string());
        candidate.class = entry.class.clone().filter(|_| written);
        candidate.granted = entry.capabilities.clone();
        match &entry.module {
            ModuleRef::Builtin(module) => self.builtin(&mut candidate, module, &entry),
            ModuleRef::Dir(path) => self.directory(&mut candidate, path),
            ModuleRef::Mcp(server) => self.server(&mut candidate, server),
        }
        for dependency in &entry.dependencies {
            candidate
                .dependencies
                .retain(|known| known.plugin != dependency.plugin);
            candidate.dependencies.push(dependency.clone());
        }
        self.configure(&mut candidate, entry.config_file.as_deref());
        if !entry.enabled {
            let name = &candidate.name;
            let reason = format!("disabled in plugins.toml; run `dodona plugins enable {name}`");
            candidate.refused = Some((PluginState::Disabled, reason));
            candidate.broken = false;
        }
        candidate.fingerprint = fingerprint(&candidate);
        candidate
    }

    fn builtin(&self, candidate: &mut Candidate, module: &str, entry: &Entry) {
        let Some(found) = self.modules.iter().find(|known| known.name == module) else {
            let names = self.modules.iter().map(|known| known.name.as_str());
            let hint = match nearest(module, names) {
                Some(near) => format!("; did you mean `builtin:{near}`?"),
                None => String::new(),
            };
            let reason = format!("unknown module `builtin:{module}`{hint}");
            return candidate.refuse(PluginState::Failed, reason);
        };
        let export = match found.resolve(entry.class.as_deref()) {
            Ok(export) => export,
            Err(reason) => return candidate.refuse(PluginState::Failed, reason),
        };
        if export.plugin.name() != candidate.name.as_str() {
            let reason = format!(
                "`{}` is the plugin `{}`; name the entry `[plugin.{}]`",
                candidate.module,
                export.plugin.name(),
                export.plugin.name()
            );
            return candidate.refuse(PluginState::Failed, reason);
        }
        described(candidate, &export.plugin);
        candidate.capabilities = match &entry.capabilities {
            Some(these) => Capabilities::Only(these.clone()),
            None => Capabilities::All,
        };
        candidate.plugin = Some(Arc::clone(&export.plugin));
    }

    pub(super) fn directory(&self, candidate: &mut Candidate, path: &str) {
        let path = match (Path::new(path).is_absolute(), &self.config_dir) {
            // The roster belongs to the user, so it may contain any absolute path.
            (true, _) => PathBuf::from(path),
            (false, Some(config)) => match files::below(config, path) {
                Ok(path) => path,
                Err(reason) => return candidate.refuse(PluginState::Failed, reason),
            },
            (false, None) => return,
        };
        candidate.directory = Some(path.clone());
        let directory = match Directory::read(&path) {
            Ok(directory) => directory,
            Err(problems) => return candidate.faulty(problems),
        };
        let manifest = &directory.manifest;
        candidate.manifest = Some(Arc::clone(manifest));
        candidate.rules = directory.rules.clone();
        if candidate.project.is_some() {
            // The user who trusts a project has reviewed the capabilities of its plugins.
            let uses = manifest.uses.iter().map(|used| used.capability.clone());
            candidate.granted = Some(uses.collect());
        }
        candidate.capabilities = Capabilities::Only(effective(candidate, manifest));
        if manifest.id != candidate.name {
            let reason = format!(
                "manifest.toml says `id = \"{}\"`, and the plugin is named `{}`; make them the same",
                manifest.id, candidate.name
            );
            candidate.refuse(PluginState::Failed, reason);
        }
        if let Some(reason) = ungranted(candidate, manifest) {
            candidate.refuse(PluginState::Failed, reason);
        }
        match &manifest.code {
            None => {
                candidate.plugin = Some(Arc::new(DirectoryPlugin::new(Arc::clone(manifest))));
            }
            Some(code) => {
                let code = code.clone();
                self.outside(candidate, manifest, OutsideSource::Directory { path, code });
            }
        }
    }

    /// `mcp:SERVER` in the roster. Beyond its own methods it has only the granted capabilities.
    fn server(&self, candidate: &mut Candidate, server: &str) {
        let bare = Manifest::bare(candidate.name.clone(), Version::new(0, 0, 0));
        let manifest = Arc::new(bare);
        candidate.manifest = Some(Arc::clone(&manifest));
        candidate.capabilities = Capabilities::Only(candidate.granted.clone().unwrap_or_default());
        self.outside(candidate, &manifest, OutsideSource::Mcp(server.to_owned()));
    }

    /// Lets a loader create the plugin. Nothing of the plugin runs yet.
    fn outside(&self, candidate: &mut Candidate, manifest: &Arc<Manifest>, source: OutsideSource) {
        let kind = match &source {
            OutsideSource::Directory { code, .. } => match code {
                Code::Script { .. } => "`[script]` of a manifest",
                Code::Process { .. } => "`[process]` of a manifest",
            },
            OutsideSource::Mcp(_) => "module `mcp:`",
        };
        let outside = Outside {
            name: candidate.name.clone(),
            manifest: Arc::clone(manifest),
            source,
        };
        match self.loaders.load(&outside) {
            Some(Ok(loaded)) => {
                candidate.plugin = Some(loaded.plugin);
                candidate.loaded = Some(loaded.fingerprint);
            }
            Some(Err(problems)) => candidate.faulty(problems),
            None => {
                let reason = format!("nothing in this program runs the {kind}");
                candidate.refuse(PluginState::Failed, reason);
            }
        }
    }

    /// Reads the user's settings of the plugin, from the file in the roster or from the default file.
    pub(super) fn configure(&self, candidate: &mut Candidate, config_file: Option<&str>) {
        let (Some(dir), Some(manifest)) = (&self.config_dir, &candidate.manifest) else {
            return;
        };
        let usual = format!("plugins/{}.toml", candidate.name);
        let relative = config_file.unwrap_or(&usual);
        // A plugin that is always active starts even if its settings file is invalid, with default settings.
        let is_essential = self.is_essential(&candidate.name);
        let path = match files::below(dir, relative) {
            Ok(path) => path,
            Err(reason) if is_essential => {
                candidate.problems.push(self.of_roster(reason));
                return;
            }
            Err(reason) => return candidate.refuse(PluginState::Failed, reason),
        };
        match settings_file::read(&path, manifest) {
            Ok(configured) => candidate.configured = configured,
            Err(problems) if is_essential => candidate.problems.extend(problems),
            Err(problems) => candidate.faulty(problems),
        }
        candidate.config_file = Some(path);
    }
}

/// The manifest of a built-in plugin.
fn described(candidate: &mut Candidate, plugin: &Arc<dyn Plugin>) {
    let version = match Version::parse(plugin.version()) {
        Ok(version) => version,
        Err(error) => {
            let reason = format!("invalid version `{}`: {error}", plugin.version());
            return candidate.refuse(PluginState::Failed, reason);
        }
    };
    for text in plugin.dependencies() {
        match text.parse() {
            Ok(dependency) => candidate.dependencies.push(dependency),
            Err(why) => candidate.refuse(PluginState::Failed, why),
        }
    }
    candidate.manifest = Some(Arc::new(Manifest {
        description: plugin.description().to_owned(),
        settings: plugin.settings(),
        ..Manifest::bare(candidate.name.clone(), version)
    }));
}

fn builtin_entry(module: &str, class: &str) -> Entry {
    Entry {
        enabled: true,
        module: ModuleRef::Builtin(module.to_owned()),
        class: Some(class.to_owned()),
        dependencies: Vec::new(),
        capabilities: None,
        config_file: None,
    }
}

/// The capabilities that the manifest uses and the roster grants.
fn effective(candidate: &Candidate, manifest: &Manifest) -> BTreeSet<Capability> {
    let uses = manifest.uses.iter().map(|used| used.capability.clone());
    let granted = candidate.granted.as_ref();
    uses.filter(|used| granted.is_some_and(|granted| granted.contains(used)))
        .collect()
}

/// The capabilities that the manifest uses and the roster does not grant.
fn ungranted(candidate: &Candidate, manifest: &Manifest) -> Option<String> {
    let missing: Vec<_> = manifest
        .uses
        .iter()
        .filter(|used| !candidate.capabilities.allow(&used.capability))
        .collect();
    let first = missing.first()?;
    let names: Vec<String> = missing
        .iter()
        .map(|used| used.capability.to_string())
        .collect();
    let what = match names.as_slice() {
        [one] => format!("capability `{one}` not granted"),
        many => format!("capabilities `{}` not granted", many.join("`, `")),
    };
    Some(format!(
        "manifest.toml:{}: {what}; run `dodona plugins grant {} {}`",
        first.line,
        candidate.name,
        names.join(" ")
    ))
}

/// The first problem, and how many more there are.
fn briefly(problems: &[Problem]) -> String {
    let first = problems.first().map(Problem::brief).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        count => format!(
            "{first} (and {} more; run `dodona plugins check`)",
            count - 1
        ),
    }
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

pub(super) fn fingerprint(candidate: &Candidate) -> String {
    let rules = candidate.rules.iter().map(|path| {
        let text = files::read(path).ok().flatten();
        json!([path, text])
    });
    dodona_plugin::schema_hash(&json!({
        "module": candidate.module,
        "project": candidate.project,
        "class": candidate.class,
        "manifest": candidate.manifest.as_deref(),
        "dependencies": candidate.dependencies.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "capabilities": format!("{:?}", candidate.capabilities),
        "config": candidate.configured.raw,
        "rules": rules.collect::<Vec<_>>(),
        "loaded": candidate.loaded,
    }))
}
