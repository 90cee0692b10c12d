//! Files that change while rules are in use.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dodona_plugin::{RuleSource, reading};
use dodona_proto::ProjectId;
use dodona_script::Engine;
use serde_json::{Map, Value};

use super::file::{Loaded, load_file, relative};
use super::{Layers, Library, bundled, rule_files};
use crate::Problem;
use crate::compile::CompiledRule;
use crate::identity::Scope;
use crate::testing::run_tests;

/// How long after a change a file may change again without its time telling.
const RESOLUTION: Duration = Duration::from_secs(2);

/// Where rules are.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The user's directory.
    pub(crate) user: Option<PathBuf>,
    /// Plugins' files.
    pub(crate) plugins: Vec<RuleSource>,
    /// Roots of the projects that are in use.
    pub(crate) projects: BTreeMap<ProjectId, PathBuf>,
}

/// The rules of the server and of each project in use.
#[derive(Debug)]
pub(crate) struct Sets {
    /// Outside of a project.
    pub(crate) base: Arc<Library>,
    pub(crate) projects: HashMap<ProjectId, ProjectRules>,
}

/// What a project has.
#[derive(Debug, Clone)]
pub(crate) struct ProjectRules {
    pub(crate) library: Arc<Library>,
    /// What the project's own configuration says.
    pub(crate) settings: Arc<Value>,
}

/// Remembers what files came to, and looks again only at those that changed.
#[derive(Default)]
pub(crate) struct Scanner {
    bundled: Option<Vec<Loaded>>,
    files: HashMap<(PathBuf, Scope), Known>,
    settings: HashMap<PathBuf, (Option<Stamp>, Arc<Value>)>,
    layout: Option<Layout>,
}

/// Which files there are, in order.
#[derive(Debug, Default, PartialEq)]
struct Layout {
    user: Vec<PathBuf>,
    plugins: Vec<PluginFile>,
    projects: BTreeMap<ProjectId, (PathBuf, Vec<PathBuf>)>,
    problems: Vec<Problem>,
}

/// A file of a plugin, and the project that it counts in if that is one alone.
#[derive(Debug, PartialEq)]
struct PluginFile {
    path: PathBuf,
    scope: Scope,
    project: Option<ProjectId>,
}

impl PluginFile {
    fn counts_in(&self, project: Option<&ProjectId>) -> bool {
        self.project.is_none() || self.project.as_ref() == project
    }
}

/// A file as it was read.
struct Known {
    stamp: Stamp,
    /// The script that it names, and how that was.
    script: Option<(PathBuf, Stamp)>,
    text: u64,
    loaded: Loaded,
    /// The last version that could run.
    good: Option<Arc<CompiledRule>>,
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
    /// Looks at everything. Nothing if nothing changed since the last time.
    pub(crate) fn scan(&mut self, places: &Places) -> Option<Sets> {
        let layout = Layout::of(places);
        let mut changed = self.layout.as_ref() != Some(&layout);
        self.forget(&layout);
        for (path, scope) in layout.files() {
            changed |= self.look(path, scope);
        }
        for (root, _) in layout.projects.values() {
            changed |= self.look_at_settings(root);
        }
        let sets = changed.then(|| self.sets(&layout));
        self.layout = Some(layout);
        sets
    }

    fn forget(&mut self, layout: &Layout) {
        let files: std::collections::HashSet<_> = layout.files().collect();
        self.files
            .retain(|(path, scope), _| files.contains(&(path.clone(), scope.clone())));
    }

    /// Reads a file again if it changed. Whether it did.
    fn look(&mut self, path: PathBuf, scope: Scope) -> bool {
        let stamp = Stamp::of(&path);
        let known = self.files.get(&(path.clone(), scope.clone()));
        if known.is_some_and(|known| known.is_current(stamp)) {
            return false;
        }
        let text = fingerprint(&path, known.and_then(|known| known.script.as_ref()));
        if let Some(known) = self.files.get_mut(&(path.clone(), scope.clone()))
            && known.text == text
        {
            known.stamp = stamp;
            known.restamp();
            return false;
        }
        let before = self.files.remove(&(path.clone(), scope.clone()));
        let mut loaded = load_file(&path, scope.clone());
        let script = loaded.script.as_deref().and_then(|script| {
            let script = relative(script).ok()?;
            let script = path.parent().unwrap_or(Path::new(".")).join(script);
            let stamp = Stamp::of(&script);
            Some((script, stamp))
        });
        let good = loaded
            .rule
            .clone()
            .or_else(|| before.and_then(|before| before.good));
        if loaded.rule.is_none() && good.is_some() {
            loaded.problems.push(kept(&path));
        }
        if let Some(rule) = &loaded.rule {
            loaded.problems.extend(failed_tests(rule));
        }
        for problem in &loaded.problems {
            tracing::warn!(%problem, "something is wrong in a rule's file");
        }
        let known = Known {
            stamp,
            text: fingerprint(&path, script.as_ref()),
            script,
            loaded,
            good,
        };
        self.files.insert((path, scope), known);
        true
    }

    /// Reads a project's own configuration again if it changed. Whether it did.
    fn look_at_settings(&mut self, root: &Path) -> bool {
        let path = root.join(".dodona/config.toml");
        let stamp = path.is_file().then(|| Stamp::of(&path));
        let known = self.settings.get(root);
        if let Some((known, _)) = known
            && *known == stamp
            && !stamp.is_some_and(|stamp| stamp.is_fresh())
        {
            return false;
        }
        let settings = Arc::new(project_settings(&path));
        let before = self
            .settings
            .insert(root.to_owned(), (stamp, Arc::clone(&settings)));
        before.is_none_or(|(_, before)| before != settings)
    }

    fn sets(&mut self, layout: &Layout) -> Sets {
        let bundled = self.bundled.get_or_insert_with(bundled).clone();
        let layers = |id: Option<&ProjectId>, project: Vec<Loaded>| Layers {
            bundled: bundled.clone(),
            user: self.loaded(&layout.user, &Scope::User),
            plugins: (layout.plugins.iter())
                .filter(|file| file.counts_in(id))
                .flat_map(|file| self.loaded(std::slice::from_ref(&file.path), &file.scope))
                .collect(),
            project,
        };
        let mut base = Library::of(layers(None, Vec::new()));
        base.problems.extend(layout.problems.iter().cloned());
        let projects = layout.projects.iter().map(|(id, (root, files))| {
            let project = self.loaded(files, &Scope::Project);
            let mut library = Library::of(layers(Some(id), project));
            library.problems.extend(layout.problems.iter().cloned());
            let settings = self.settings.get(root).map(|(_, settings)| settings);
            let rules = ProjectRules {
                library: Arc::new(library),
                settings: settings.cloned().unwrap_or_else(crate::context::empty),
            };
            (id.clone(), rules)
        });
        Sets {
            projects: projects.collect(),
            base: Arc::new(base),
        }
    }

    /// What files came to: the last good version where the newest cannot run.
    fn loaded(&self, files: &[PathBuf], scope: &Scope) -> Vec<Loaded> {
        let known = files
            .iter()
            .filter_map(|path| self.files.get(&(path.clone(), scope.clone())));
        known
            .map(|known| Loaded {
                rule: known.good.clone(),
                ..known.loaded.clone()
            })
            .collect()
    }
}

impl Known {
    fn is_current(&self, stamp: Stamp) -> bool {
        let script = self.script.as_ref();
        let same_script =
            script.is_none_or(|(path, known)| Stamp::of(path) == *known && !known.is_fresh());
        self.stamp == stamp && !stamp.is_fresh() && same_script
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

/// Says that an older version runs.
fn kept(path: &Path) -> Problem {
    let message = "the version that was read before this one stays in use until it is mended";
    Problem::warning(reading::Problem::of_file(
        path.display().to_string(),
        message,
    ))
}

/// What a project's configuration says, as JSON. One that cannot be read says nothing: whoever
/// uses it for more tells.
fn project_settings(path: &Path) -> Value {
    let bounded = path
        .metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= super::LARGEST as u64);
    let text = bounded
        .then(|| std::fs::read_to_string(path).ok())
        .flatten()
        .unwrap_or_default();
    let table = reading::Reading::new("config.toml", &text).parse();
    let json = table.and_then(|table| reading::table_to_json(&table).ok());
    Value::Object(json.unwrap_or_default())
}

impl Layout {
    fn of(places: &Places) -> Self {
        let mut layout = Self::default();
        if let Some(directory) = &places.user {
            layout.user = layout.list(directory);
        }
        for source in &places.plugins {
            let scope = Scope::Plugin(source.plugin.clone());
            let files = source.files.iter().map(|path| PluginFile {
                path: path.clone(),
                scope: scope.clone(),
                project: source.project.clone(),
            });
            layout.plugins.extend(files);
        }
        for (id, root) in &places.projects {
            let files = layout.list(&root.join(".dodona/rules"));
            layout.projects.insert(id.clone(), (root.clone(), files));
        }
        layout
    }

    fn list(&mut self, directory: &Path) -> Vec<PathBuf> {
        rule_files(directory).unwrap_or_else(|problem| {
            self.problems.push(*problem);
            Vec::new()
        })
    }

    fn files(&self) -> impl Iterator<Item = (PathBuf, Scope)> {
        let user = self.user.iter().map(|path| (path.clone(), Scope::User));
        let projects = self.projects.values().flat_map(|(_, files)| files);
        let projects = projects.map(|path| (path.clone(), Scope::Project));
        let plugins = self.plugins.iter();
        let plugins = plugins.map(|file| (file.path.clone(), file.scope.clone()));
        user.chain(plugins).chain(projects)
    }
}
