//! The rules in use, and keeping them in step with their files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use dodona_plugin::RuleHost;
use dodona_proto::ProjectId;

use crate::context::empty;
use crate::load::{Library, Places, ProjectPlace, ProjectRules, Scanner, Sets};
use crate::settings::SettingsState;

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// The rules in use. An event takes one set and keeps it to its end; a change makes another.
pub(crate) struct Rulebook {
    user: Option<PathBuf>,
    /// The user's `config.toml`.
    config: Option<PathBuf>,
    host: Arc<dyn RuleHost>,
    sets: ArcSwapOption<Sets>,
    /// Held while files are read.
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    scanner: Scanner,
    projects: BTreeMap<ProjectId, PathBuf>,
}

impl Rulebook {
    /// Rules of the program, of plugins, of projects and, with a directory, of the user. The last
    /// valid version of each file is stored in `versions`.
    pub(crate) fn new(
        (user, config): (Option<PathBuf>, Option<PathBuf>),
        versions: PathBuf,
        host: Arc<dyn RuleHost>,
    ) -> Arc<Self> {
        let shelf = Shelf {
            scanner: Scanner::storing_in(versions),
            projects: BTreeMap::new(),
        };
        Arc::new(Self {
            user,
            config,
            host,
            sets: ArcSwapOption::empty(),
            shelf: Arc::new(Mutex::new(shelf)),
        })
    }

    /// The rules of a project, or those outside of any.
    pub(crate) async fn of(self: &Arc<Self>, project: Option<&ProjectId>) -> ProjectRules {
        if let Some(rules) = self.known(project) {
            return rules;
        }
        self.look(project.cloned()).await;
        // One that is not registered has no directory to look into.
        let known = self.known(project).or_else(|| self.known(None));
        known.unwrap_or_else(|| ProjectRules {
            library: Arc::new(Library {
                unreadable: Some("reading the rules failed; see the server's log".to_owned()),
                ..Library::default()
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
                library: Arc::clone(&sets.base),
                user_settings: Arc::clone(&sets.user_settings),
                settings: empty(),
                settings_state: SettingsState::Absent,
            }),
        }
    }

    /// Looks at all files, and at a project's for the first time. Returns once what was found is
    /// in use.
    pub(crate) async fn look(self: &Arc<Self>, project: Option<ProjectId>) {
        let book = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || book.look_now(project)).await;
        if looked.is_err() {
            tracing::error!("looking for rules panicked; those that are in use stay so");
        }
    }

    fn look_now(&self, project: Option<ProjectId>) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = &mut *shelf;
        if let Some(project) = project
            && let Some(root) = self.host.project_root(&project)
        {
            shelf.projects.insert(project, root);
        }
        let projects = shelf.projects.iter().map(|(id, root)| {
            let place = ProjectPlace {
                root: root.clone(),
                trust: self.host.rule_trust(root),
            };
            (id.clone(), place)
        });
        let places = Places {
            user: self.user.clone(),
            config: self.config.clone(),
            plugins: self.host.sources(),
            projects: projects.collect(),
        };
        if let Some(sets) = shelf.scanner.scan(&places) {
            self.sets.store(Some(Arc::new(sets)));
        }
    }

    /// Looks again if any rules are in use. Waits for a look that has begun: that one may have read
    /// what is no longer true.
    pub(super) fn look_if_used(&self) {
        drop(self.shelf.lock().unwrap_or_else(PoisonError::into_inner));
        if self.sets.load().is_some() {
            self.look_now(None);
        }
    }

    /// Looks again and again, for as long as somebody else has use for the rules.
    pub(crate) fn watch(self: &Arc<Self>) {
        let book: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(book) = book.upgrade() else { return };
                // Without a set nobody has asked yet; the first to ask looks.
                if book.sets.load().is_some() {
                    book.look(None).await;
                }
            }
        });
    }
}
