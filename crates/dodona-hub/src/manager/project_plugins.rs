//! Plugins that a project brings: nothing of them is read before somebody trusts the project.

use std::path::{Path, PathBuf};

use dodona_plugin::reading::Problem;
use dodona_proto::{PluginName, PluginState, Project};

use super::PluginManager;
use super::directory;
use super::discover::{Candidate, Kind, Plan, Sources, fingerprint};
use crate::trust::{Contents, TrustState, folder};

impl PluginManager {
    /// Whether a directory has what could be a plugin of a project.
    pub(crate) fn may_bring_plugins(&self, root: &Path) -> bool {
        plugins(root).is_dir()
    }
}

fn plugins(root: &Path) -> PathBuf {
    folder(root).join("plugins")
}

impl Sources {
    /// The places of projects whose change could matter.
    pub(super) fn trustable(&self) -> Vec<PathBuf> {
        let projects = self.projects.all();
        projects
            .iter()
            .map(|project| folder(&project.root))
            .collect()
    }

    /// Finds what projects bring. A name that is taken stays with whom it belongs to.
    pub(super) fn find_project_plugins(&self, plan: &mut Plan) {
        for project in self.projects.all() {
            let (found, problems) = directory::find(&plugins(&project.root));
            if found.is_empty() && problems.is_empty() {
                continue;
            }
            plan.problems.extend(problems);
            let verdict = self.verdict(&project);
            for (name, path) in found {
                match plan.candidates.get(&name) {
                    Some(known) => plan.problems.push(taken(&name, &path, known)),
                    None => {
                        let candidate = self.of_project(name.clone(), &project, &path, &verdict);
                        plan.candidates.insert(name, candidate);
                    }
                }
            }
        }
    }

    /// Why nothing of a project may run, if so.
    fn verdict(&self, project: &Project) -> Result<(), String> {
        let id = &project.id;
        let contents = Contents::read(&project.root)
            .map_err(|why| format!("untrusted: the project `{id}` cannot be trusted: {why}"))?;
        match self.trust.state(&project.root, &contents) {
            TrustState::Trusted => Ok(()),
            other => Err(format!("untrusted: the project `{id}`: {}", other.why())),
        }
    }

    fn of_project(
        &self,
        name: PluginName,
        project: &Project,
        path: &Path,
        verdict: &Result<(), String>,
    ) -> Candidate {
        let module = format!("dir:{}", path.display());
        let mut candidate = Candidate::new(name, Kind::External, module);
        candidate.project = Some(project.id.clone());
        candidate.directory = Some(path.to_owned());
        if let Err(why) = verdict {
            candidate.refuse(PluginState::Discovered, why.clone());
            candidate.fingerprint = fingerprint(&candidate);
            return candidate;
        }
        self.directory(&mut candidate, &path.to_string_lossy());
        // What is set for it is the user's to say, as for any other: the project only has defaults.
        self.configure(&mut candidate, None);
        candidate.fingerprint = fingerprint(&candidate);
        // What was read must be what was trusted, also if it changed meanwhile.
        if let Err(why) = self.verdict(project) {
            candidate.plugin = None;
            candidate.rules.clear();
            candidate.broken = false;
            candidate.refused = Some((PluginState::Discovered, why));
        }
        candidate
    }
}

fn taken(name: &PluginName, path: &Path, known: &Candidate) -> Problem {
    let message = format!("`{name}` is `{}` already; this is not loaded", known.module);
    Problem::of_file(path.display().to_string(), message)
        .hint("give it another name, in its manifest too")
}
