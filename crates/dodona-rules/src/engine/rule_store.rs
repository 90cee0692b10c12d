//! The current rules, kept up to date with their files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use dodona_plugin::RuleHost;
use dodona_proto::ProjectId;

use crate::context::empty;
use crate::load::{LoadedRules, ProjectLocation, ProjectRules, RuleLocations, RuleSets, Scanner};
use crate::settings::SettingsState;

/// Interval at which rule files are checked for changes.
const SCAN_INTERVAL: Duration = Duration::from_millis(300);

/// Holds the current rules. An event uses one immutable set to its end; a changed file produces a new set.
pub(crate) struct RuleStore {
    user: Option<PathBuf>,
    config: Option<PathBuf>,
    host: Arc<dyn RuleHost>,
    sets: ArcSwapOption<RuleSets>,
    /// Locked while files are read.
    scan_state: Arc<Mutex<ScanState>>,
}

#[derive(Default)]
struct ScanState {
    scanner: Scanner,
    projects: BTreeMap<ProjectId, PathBuf>,
}

impl RuleStore {
    /// A store for bundled rules, rules of plugins and projects, and the user's rules if `user` is set.
    /// The last valid version of each file is stored in `versions`.
    pub(crate) fn new(
        (user, config): (Option<PathBuf>, Option<PathBuf>),
        versions: PathBuf,
        host: Arc<dyn RuleHost>,
    ) -> Arc<Self> {
        let scan_state = ScanState {
            scanner: Scanner::storing_in(versions),
            projects: BTreeMap::new(),
        };
        Arc::new(Self {
            user,
            config,
            host,
            sets: ArcSwapOption::empty(),
            scan_state: Arc::new(Mutex::new(scan_state)),
        })
    }

    /// The rules of a project, or those that apply outside projects. Reads the files at the first call.
    pub(crate) async fn rules_of(self: &Arc<Self>, project: Option<&ProjectId>) -> ProjectRules {
        if let Some(rules) = self.known(project) {
            return rules;
        }
        self.scan(project.cloned()).await;
        // A project that is not registered has no directory; the rules outside projects apply.
        let known = self.known(project).or_else(|| self.known(None));
        known.unwrap_or_else(|| ProjectRules {
            loaded: Arc::new(LoadedRules {
                unreadable: Some("reading the rules failed; see the server log".to_owned()),
                ..LoadedRules::default()
            }),
            user_settings: empty(),
            settings: empty(),
            settings_state: SettingsState::Absent,
        })
    }

    fn known(&self, project: Option<&ProjectId>) -> Option<ProjectRules> {
        let sets = self.sets.load();
        let sets = sets.as_ref()?;
        match project {
            Some(project) => sets.projects.get(project).cloned(),
            None => Some(ProjectRules {
                loaded: Arc::clone(&sets.base),
                user_settings: Arc::clone(&sets.user_settings),
                settings: empty(),
                settings_state: SettingsState::Absent,
            }),
        }
    }

    /// Reads all changed files, and those of `project` if they were not read before. When it returns,
    /// the new rules are in force.
    pub(crate) async fn scan(self: &Arc<Self>, project: Option<ProjectId>) {
        let store = Arc::clone(self);
        let scanned = tokio::task::spawn_blocking(move || store.scan_now(project)).await;
        if scanned.is_err() {
            tracing::error!("reading the rules panicked; the previous ones stay in force");
        }
    }

    fn scan_now(&self, project: Option<ProjectId>) {
        let mut scan_state = self
            .scan_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let scan_state = &mut *scan_state;
        if let Some(project) = project
            && let Some(root) = self.host.project_root(&project)
        {
            scan_state.projects.insert(project, root);
        }
        let projects = scan_state.projects.iter().map(|(id, root)| {
            let place = ProjectLocation {
                root: root.clone(),
                trust: self.host.rule_trust(root),
            };
            (id.clone(), place)
        });
        let places = RuleLocations {
            user: self.user.clone(),
            config: self.config.clone(),
            plugins: self.host.sources(),
            projects: projects.collect(),
        };
        if let Some(sets) = scan_state.scanner.scan(&places) {
            self.sets.store(Some(Arc::new(sets)));
        }
    }

    /// Scans again if rules were loaded before. Waits for a running scan first, because it may have read
    /// a file before it changed.
    pub(super) fn scan_if_loaded(&self) {
        drop(
            self.scan_state
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if self.sets.load().is_some() {
            self.scan_now(None);
        }
    }

    /// Starts a task that scans every 300 ms. It ends when the store is dropped.
    pub(crate) fn spawn_watch(self: &Arc<Self>) {
        let store: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SCAN_INTERVAL).await;
                let Some(store) = store.upgrade() else { return };
                // Before the first event there is nothing to update; that event loads the rules.
                if store.sets.load().is_some() {
                    store.scan(None).await;
                }
            }
        });
    }
}
