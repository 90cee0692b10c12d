//! Files that change while rules are in use.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use dodona_plugin::{RuleSource, RuleTrust, content_hash, reading};
use dodona_proto::ProjectId;
use dodona_script::Engine;
use serde_json::{Map, Value};

use super::file::{
    Inactive, LoadedFile, SourceText, load_file, load_texts, read_inside, read_text, script_path,
};
use super::versions::VersionStore;
use super::{Layers, LoadedRules, bundled, rule_files};
use crate::Problem;
use crate::compile::CompiledRule;
use crate::identity::Scope;
use crate::settings::{self, Declared, SettingsState};
use crate::testing::run_tests;

/// How long after a change a file may change again without its time telling.
const RESOLUTION: Duration = Duration::from_secs(2);

/// The file with a project's settings, below `.dodona/`.
const CONFIG: &str = "config.toml";

#[derive(Debug, Default)]
pub(crate) struct RuleLocations {
    pub(crate) user: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) plugins: Vec<RuleSource>,
    /// The projects that are in use.
    pub(crate) projects: BTreeMap<ProjectId, ProjectLocation>,
}

/// Where a project is, and how far its rules are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectLocation {
    pub(crate) root: PathBuf,
    pub(crate) trust: RuleTrust,
}

impl ProjectLocation {
    /// The directory that trusted paths are relative to.
    fn base(&self) -> PathBuf {
        self.root.join(".dodona")
    }

    /// The file with its settings.
    fn config(&self) -> PathBuf {
        self.base().join(CONFIG)
    }
}

/// The rules of the server and of each project in use.
#[derive(Debug)]
pub(crate) struct RuleSets {
    /// Outside of a project.
    pub(crate) base: Arc<LoadedRules>,
    /// `[settings]` in the user's `config.toml`.
    pub(crate) user_settings: Arc<Value>,
    pub(crate) projects: HashMap<ProjectId, ProjectRules>,
}

/// What a project has.
#[derive(Debug, Clone)]
pub(crate) struct ProjectRules {
    pub(crate) loaded: Arc<LoadedRules>,
    /// `[settings]` in the user's `config.toml`.
    pub(crate) user_settings: Arc<Value>,
    /// `[settings]` in the project's `config.toml`, as far as they are trusted.
    pub(crate) settings: Arc<Value>,
    pub(crate) settings_state: SettingsState,
}

/// Remembers what files came to, and looks again only at those that changed.
#[derive(Default)]
pub(crate) struct Scanner {
    bundled: Option<Vec<LoadedFile>>,
    files: HashMap<(PathBuf, Scope), Known>,
    /// The settings of each `config.toml` by its path.
    settings: HashMap<PathBuf, KnownSettings>,
    layout: Option<Layout>,
    /// Where valid versions are stored; nowhere in tests without a data directory.
    versions: Option<VersionStore>,
}

/// Which files there are, in order.
#[derive(Debug, Default, PartialEq)]
struct Layout {
    config: Option<PathBuf>,
    user: Vec<PathBuf>,
    plugins: Vec<PluginFile>,
    projects: BTreeMap<ProjectId, ProjectFiles>,
    problems: Vec<Problem>,
    /// Why the user's directory cannot be read.
    unreadable: Option<String>,
}

/// The rule files of a project.
#[derive(Debug, PartialEq)]
struct ProjectFiles {
    place: ProjectLocation,
    files: Vec<PathBuf>,
    /// Why its directory cannot be read.
    unreadable: Option<String>,
}

/// A rule file, and which of its contents are trusted.
struct RuleFile<'l> {
    path: &'l Path,
    scope: Scope,
    base: PathBuf,
    trust: &'l RuleTrust,
}

/// A file of a plugin, and the project that it counts in if that is one alone.
#[derive(Debug, PartialEq)]
struct PluginFile {
    path: PathBuf,
    scope: Scope,
    project: Option<ProjectId>,
    base: PathBuf,
    trust: RuleTrust,
}

impl PluginFile {
    fn counts_in(&self, project: Option<&ProjectId>) -> bool {
        self.project.is_none() || self.project.as_ref() == project
    }
}

/// The content of a file that was read.
struct Known {
    stamp: Stamp,
    /// The script that it names, and how that was.
    script: Option<(PathBuf, Stamp)>,
    text: u64,
    loaded: LoadedFile,
    /// The last valid version.
    good: Option<ValidVersion>,
    /// Whether the rule's tests were run, which waits until it is trusted.
    is_tested: bool,
}

/// `[settings]` of a file as they were read.
#[derive(Debug, Clone, PartialEq)]
struct KnownSettings {
    stamp: Option<Stamp>,
    /// The hash of the file, by which it is trusted.
    hash: String,
    values: Arc<Value>,
    problems: Vec<Problem>,
}

impl Default for KnownSettings {
    fn default() -> Self {
        Self {
            stamp: None,
            hash: String::new(),
            values: crate::context::empty(),
            problems: Vec::new(),
        }
    }
}

impl KnownSettings {
    fn is_empty(&self) -> bool {
        self.map().is_empty()
    }

    fn map(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.values.as_object().unwrap_or(&NONE)
    }
}

/// Where settings are read from. A project is foreign work: a link in it could lead to any file,
/// whose values rules could then pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingsFile {
    User,
    Project,
}

/// A version of a rule that can be evaluated, and what it was read from.
#[derive(Clone)]
struct ValidVersion {
    rule: Arc<CompiledRule>,
    texts: Arc<Vec<SourceText>>,
}

impl ValidVersion {
    fn of(loaded: &LoadedFile) -> Option<Self> {
        Some(Self {
            rule: loaded.rule.clone()?,
            texts: Arc::clone(&loaded.texts),
        })
    }
}

/// What tells that a file is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let metadata = path.metadata().ok();
        Self {
            modified: metadata.as_ref().and_then(|found| found.modified().ok()),
            bytes: metadata.map_or(0, |found| found.len()),
        }
    }

    /// Whether the file may have changed since without its stamp telling.
    fn is_fresh(&self) -> bool {
        let age = self.modified.and_then(|time| time.elapsed().ok());
        age.is_none_or(|age| age < RESOLUTION)
    }
}

impl Scanner {
    /// A scanner that stores valid versions in a directory.
    pub(crate) fn storing_in(versions: PathBuf) -> Self {
        Self {
            versions: Some(VersionStore::new(versions)),
            ..Self::default()
        }
    }

    /// Looks at everything. Nothing if nothing changed since the last time.
    pub(crate) fn scan(&mut self, places: &RuleLocations) -> Option<RuleSets> {
        let layout = Layout::of(places);
        let mut changed = self.layout.as_ref() != Some(&layout);
        self.forget(&layout);
        for file in layout.files() {
            changed |= self.look(&file);
        }
        if let Some(config) = &layout.config {
            changed |= self.look_at_settings(config, SettingsFile::User);
        }
        for project in layout.projects.values() {
            changed |= self.look_at_settings(&project.place.config(), SettingsFile::Project);
        }
        let sets = changed.then(|| self.sets(&layout));
        self.layout = Some(layout);
        sets
    }

    /// Forgets files that are gone. A directory that cannot be read says nothing about its files.
    fn forget(&mut self, layout: &Layout) {
        let projects = layout.projects.values();
        let mut unreadable = projects.filter_map(|project| project.unreadable.as_ref());
        if layout.unreadable.is_some() || unreadable.next().is_some() {
            return;
        }
        let files: std::collections::HashSet<_> = layout
            .files()
            .map(|file| (file.path.to_owned(), file.scope))
            .collect();
        let versions = self.versions.as_ref();
        self.files.retain(|key, _| {
            let is_there = files.contains(key);
            if let Some(versions) = versions.filter(|_| !is_there && !key.0.exists()) {
                versions.remove(&key.0, &key.1);
            }
            is_there
        });
    }

    /// Reads a file again if it changed. Whether it did.
    fn look(&mut self, file: &RuleFile<'_>) -> bool {
        let key = (file.path.to_owned(), file.scope.clone());
        let stamp = Stamp::of(file.path);
        let known = self.files.get_mut(&key);
        if let Some(known) = known
            && known.is_current(stamp)
        {
            return known.test_if_trusted(file);
        }
        let known = self.files.get_mut(&key);
        let script = known.as_ref().and_then(|known| known.script.as_ref());
        let text = fingerprint(file.path, script);
        if let Some(known) = known
            && known.text == text
        {
            known.stamp = stamp;
            known.restamp();
            return known.test_if_trusted(file);
        }
        let before = self.files.remove(&key);
        let mut loaded = load_file(file.path, file.scope.clone());
        let script = loaded.script.as_deref().and_then(|script| {
            let directory = file.path.parent().unwrap_or(Path::new("."));
            let script = script_path(directory, script).ok()?;
            let stamp = Stamp::of(&script);
            Some((script, stamp))
        });
        let good = match ValidVersion::of(&loaded) {
            Some(valid) => {
                if let Some(versions) = &self.versions {
                    versions.save(file.path, &file.scope, &valid.texts);
                }
                Some(valid)
            }
            None => before
                .and_then(|before| before.good)
                .or_else(|| self.stored(file)),
        };
        if loaded.rule.is_none() && good.is_some() {
            loaded.problems.push(kept(file.path));
        }
        let mut known = Known {
            stamp,
            text: fingerprint(file.path, script.as_ref()),
            script,
            loaded,
            good,
            is_tested: false,
        };
        known.test_if_trusted(file);
        for problem in &known.loaded.problems {
            tracing::warn!(%problem, "something is wrong in a rule's file");
        }
        self.files.insert(key, known);
        true
    }

    /// The last valid version that an earlier process stored.
    fn stored(&self, file: &RuleFile<'_>) -> Option<ValidVersion> {
        let texts = self.versions.as_ref()?.load(file.path, &file.scope)?;
        ValidVersion::of(&load_texts(file.path, file.scope.clone(), texts))
    }

    /// Reads the settings of a file again if it changed. Whether they did.
    fn look_at_settings(&mut self, path: &Path, owner: SettingsFile) -> bool {
        let stamp = path.is_file().then(|| Stamp::of(path));
        let known = self.settings.get(path);
        if let Some(known) = known
            && known.stamp == stamp
            && !stamp.is_some_and(|stamp| stamp.is_fresh())
        {
            return false;
        }
        let mut read = read_settings(path, owner, known);
        read.stamp = stamp;
        let before = self.settings.insert(path.to_owned(), read.clone());
        // A file that was only touched, or changed elsewhere, changes no rule. Trust compares the
        // whole file.
        before.is_none_or(|before| {
            (before.values, before.problems, before.hash) != (read.values, read.problems, read.hash)
        })
    }

    fn sets(&mut self, layout: &Layout) -> RuleSets {
        let bundled = self.bundled.get_or_insert_with(bundled).clone();
        let of_plugins = |id: Option<&ProjectId>, is_of_project: bool| -> Vec<LoadedFile> {
            let files = layout.plugins.iter();
            let files = files.filter(|file| file.project.is_some() == is_of_project);
            files
                .filter(|file| file.counts_in(id))
                .filter_map(|file| self.loaded(&file.rule_file()))
                .collect()
        };
        let user: Vec<LoadedFile> = (layout.user_files())
            .filter_map(|file| self.loaded(&file))
            .collect();
        let user_settings = layout.config.as_ref();
        let user_settings = user_settings.and_then(|config| self.settings.get(config));
        let user_settings = user_settings.cloned().unwrap_or_default();
        let merge_layers = |id: Option<&ProjectId>, project: Vec<LoadedFile>| {
            let mut loaded = LoadedRules::of(Layers {
                bundled: bundled.clone(),
                user: user.clone(),
                plugins: of_plugins(id, false),
                project_plugins: of_plugins(id, true),
                project,
            });
            loaded.problems.extend(layout.problems.iter().cloned());
            loaded.problems.extend(user_settings.problems.clone());
            loaded.unreadable.clone_from(&layout.unreadable);
            loaded
        };
        let projects = layout.projects.iter().map(|(id, project)| {
            let files = project.rule_files().filter_map(|file| self.loaded(&file));
            let mut loaded = merge_layers(Some(id), files.collect());
            if project.place.trust != RuleTrust::Untrusted && loaded.unreadable.is_none() {
                loaded.unreadable.clone_from(&project.unreadable);
            }
            let (settings, state) = self.trusted_settings(&project.place);
            loaded.problems.extend(settings.problems.clone());
            let declared = Declared::of(user_settings.map(), settings.map());
            report_undeclared(&mut loaded, declared);
            let rules = ProjectRules {
                loaded: Arc::new(loaded),
                user_settings: Arc::clone(&user_settings.values),
                settings: settings.values,
                settings_state: state,
            };
            (id.clone(), rules)
        });
        let projects = projects.collect();
        let mut base = merge_layers(None, Vec::new());
        let none = Map::new();
        report_undeclared(&mut base, Declared::of(user_settings.map(), &none));
        RuleSets {
            projects,
            base: Arc::new(base),
            user_settings: Arc::clone(&user_settings.values),
        }
    }

    /// The settings of a project, which are empty while they are not trusted.
    fn trusted_settings(&self, place: &ProjectLocation) -> (KnownSettings, SettingsState) {
        let known = self.settings.get(&place.config());
        let known = known.cloned().unwrap_or_default();
        if known.is_empty() {
            return (known, SettingsState::Absent);
        }
        if place.trust.covers(CONFIG, &known.hash) {
            return (known, SettingsState::Trusted);
        }
        let message = "the settings of the project are inactive: it is not trusted as it is now";
        let path = place.config().display().to_string();
        let problem =
            reading::Problem::of_file(path, message).hint("review it with `dodona trust`");
        let untrusted = KnownSettings {
            values: crate::context::empty(),
            problems: vec![Problem::warning(problem)],
            ..known
        };
        (untrusted, SettingsState::Untrusted)
    }

    /// What a file came to: the last valid version where the newest is broken.
    fn loaded(&self, file: &RuleFile<'_>) -> Option<LoadedFile> {
        let known = self
            .files
            .get(&(file.path.to_owned(), file.scope.clone()))?;
        let good = known.good.clone();
        let mut loaded = LoadedFile {
            texts: good
                .as_ref()
                .map(|good| Arc::clone(&good.texts))
                .unwrap_or_default(),
            rule: good.map(|good| good.rule),
            ..known.loaded.clone()
        };
        if !loaded.is_trusted(&file.base, file.trust) {
            loaded.inactive = Some(Inactive::under(file.trust));
        }
        Some(loaded)
    }
}

impl Known {
    fn is_current(&self, stamp: Stamp) -> bool {
        let script = self.script.as_ref();
        let same_script =
            script.is_none_or(|(path, known)| Stamp::of(path) == *known && !known.is_fresh());
        self.stamp == stamp && !stamp.is_fresh() && same_script
    }

    /// Runs the rule's tests if that was not done yet and the rule is trusted: a script that the
    /// user has not reviewed is not run, not even in a test. Returns whether a test failed.
    fn test_if_trusted(&mut self, file: &RuleFile<'_>) -> bool {
        if self.is_tested || !self.loaded.is_trusted(&file.base, file.trust) {
            return false;
        }
        self.is_tested = true;
        let failed = self.loaded.rule.as_deref().map(failed_tests);
        let failed = failed.unwrap_or_default();
        let changed = !failed.is_empty();
        self.loaded.problems.extend(failed);
        changed
    }

    fn restamp(&mut self) {
        if let Some((path, stamp)) = &mut self.script {
            *stamp = Stamp::of(path);
        }
    }
}

/// What a file and its script say, in short.
fn fingerprint(path: &Path, script: Option<&(PathBuf, Stamp)>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in [Some(path), script.map(|(path, _)| path.as_path())]
        .into_iter()
        .flatten()
    {
        // What is no file or too large is refused without being read, and so it is here.
        match path.metadata() {
            Ok(found) if found.is_file() && found.len() <= super::LARGEST as u64 => {
                std::fs::read(path).ok().hash(&mut hasher);
            }
            found => found.map_or(0, |found| found.len()).hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The tests of a rule that do not pass: it runs all the same. Those of a plugin's rules need the
/// plugin's settings, which are not known here.
fn failed_tests(rule: &CompiledRule) -> Vec<Problem> {
    if rule.rule.tests.is_empty() || matches!(rule.origin.scope, Scope::Plugin(_)) {
        return Vec::new();
    }
    let tested = run_tests(rule, &Map::new(), &Engine::new(1));
    let places = rule.rule.tests.iter().map(|test| &test.at);
    let failed = tested.into_iter().zip(places).filter_map(|(test, spot)| {
        Some(Problem::warning(reading::Problem {
            path: rule.origin.path.clone(),
            place: Some(reading::Place {
                line: spot.line,
                column: spot.column,
                width: spot.span.len(),
                text: spot.text.clone(),
            }),
            message: format!(
                "its test \"{}\" does not pass: {}",
                test.name, test.failure?
            ),
            hint: test.explained,
        }))
    });
    failed.collect()
}

/// Reports that an older version is in force.
fn kept(path: &Path) -> Problem {
    let message = "the last valid version stays in force until the file is corrected";
    Problem::warning(reading::Problem::of_file(
        path.display().to_string(),
        message,
    ))
}

/// Reports settings that rules read and no file declares. Rules that are not evaluated are
/// skipped.
fn report_undeclared(loaded: &mut LoadedRules, declared: Declared<'_>) {
    let rules = loaded.rules.active();
    let problems: Vec<Problem> = rules.flat_map(|rule| declared.problems(rule)).collect();
    loaded.problems.extend(problems);
}

/// Reads `[settings]` of a file. Where the text is not valid TOML, the last valid settings stay in
/// force: without them a rule could decide by its defaults.
fn read_settings(
    path: &Path,
    owner: SettingsFile,
    before: Option<&KnownSettings>,
) -> KnownSettings {
    let directory = path.parent().unwrap_or(Path::new("."));
    let text = match owner {
        SettingsFile::User => read_text(path, super::LARGEST),
        SettingsFile::Project => read_inside(path, directory, super::LARGEST),
    };
    let Ok(text) = text else {
        return KnownSettings::default();
    };
    let shown = path.display().to_string();
    let hash = content_hash(text.as_bytes());
    match settings::parse(&shown, &text) {
        Some((values, problems)) => KnownSettings {
            stamp: None,
            hash,
            values: Arc::new(Value::Object(values)),
            problems: problems.into_iter().map(Problem::warning).collect(),
        },
        None => {
            let message = "invalid TOML; the last valid settings stay in force";
            let problem = reading::Problem::of_file(shown, message)
                .hint("`dodona config show` reports the line");
            KnownSettings {
                problems: vec![Problem::warning(problem)],
                ..before.cloned().unwrap_or_default()
            }
        }
    }
}

impl PluginFile {
    fn rule_file(&self) -> RuleFile<'_> {
        RuleFile {
            path: &self.path,
            scope: self.scope.clone(),
            base: self.base.clone(),
            trust: &self.trust,
        }
    }
}

impl ProjectFiles {
    fn rule_files(&self) -> impl Iterator<Item = RuleFile<'_>> {
        self.files.iter().map(|path| RuleFile {
            path,
            scope: Scope::Project,
            base: self.place.base(),
            trust: &self.place.trust,
        })
    }
}

impl Layout {
    fn of(places: &RuleLocations) -> Self {
        let mut layout = Self {
            config: places.config.clone(),
            ..Self::default()
        };
        if let Some(directory) = &places.user {
            (layout.user, layout.unreadable) = layout.list(directory);
        }
        for source in &places.plugins {
            let scope = Scope::Plugin(source.plugin.clone());
            let files = source.files.iter().map(|path| PluginFile {
                path: path.clone(),
                scope: scope.clone(),
                project: source.project.clone(),
                base: source.base.clone(),
                trust: source.trust.clone(),
            });
            layout.plugins.extend(files);
        }
        for (id, place) in &places.projects {
            let (files, unreadable) = match linked(place) {
                None => layout.list(&place.base().join("rules")),
                Some(problem) => {
                    let why = problem.to_string();
                    layout.problems.push(problem);
                    (Vec::new(), Some(why))
                }
            };
            let project = ProjectFiles {
                place: place.clone(),
                files,
                unreadable,
            };
            layout.projects.insert(id.clone(), project);
        }
        layout
    }

    /// The rule files of a directory, or none and why it cannot be read.
    fn list(&mut self, directory: &Path) -> (Vec<PathBuf>, Option<String>) {
        match rule_files(directory) {
            Ok(files) => (files, None),
            Err(problem) => {
                let why = problem.to_string();
                self.problems.push(*problem);
                (Vec::new(), Some(why))
            }
        }
    }

    fn user_files(&self) -> impl Iterator<Item = RuleFile<'_>> {
        self.user.iter().map(|path| RuleFile {
            path,
            scope: Scope::User,
            base: PathBuf::new(),
            trust: &RuleTrust::Followed,
        })
    }

    fn files(&self) -> impl Iterator<Item = RuleFile<'_>> {
        let projects = self.projects.values().flat_map(ProjectFiles::rule_files);
        let plugins = self.plugins.iter().map(PluginFile::rule_file);
        self.user_files().chain(plugins).chain(projects)
    }
}

/// A project's rules are not looked for behind a link: it could lead to any directory.
fn linked(place: &ProjectLocation) -> Option<Problem> {
    let is_link = |path: &PathBuf| {
        path.symlink_metadata()
            .is_ok_and(|found| found.is_symlink())
    };
    let places = [place.base(), place.base().join("rules")];
    let link = places.into_iter().find(is_link)?;
    let message = "it is a symbolic link; a project's rules must be files in `.dodona/rules`";
    let fault = reading::Problem::of_file(link.display().to_string(), message);
    Some(Problem::error(fault))
}
