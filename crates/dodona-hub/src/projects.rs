//! Registered projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dodona_proto::{CallError, ErrorCode, Principal, Project, ProjectId, UserId};
use dodona_store::{Db, DbError};
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::config::{HubConfig, HubPaths};

/// Directories that show the machine and its processes instead of files: `/proc/self/environ`
/// holds the API keys of the server.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Whether a caller may register directories outside the allowed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The caller has `hub:admin`.
    Admin,
    Member,
}

/// Where projects may be registered.
pub(crate) struct AllowedRoots {
    /// Directories below which users without `hub:admin` may register projects.
    shared: Vec<PathBuf>,
    /// Paths in which no user may, with the system's directories.
    refused: Vec<PathBuf>,
}

impl AllowedRoots {
    pub(crate) fn new(config: &HubConfig, paths: &HubPaths) -> Self {
        let home = std::iter::once(&paths.data).chain(&paths.config);
        let refused = home.chain(&config.private).map(|path| canonical(path));
        Self {
            shared: config.project_roots.clone(),
            refused: refused.chain(SYSTEM.map(PathBuf::from)).collect(),
        }
    }

    /// Whether a directory is one that no user may register. `/` is: it contains all the others.
    fn is_refused(&self, root: &Path) -> bool {
        root.parent().is_none() || self.refused.iter().any(|path| root.starts_with(path))
    }

    /// Whether a directory is below one of the setting `projects.roots`. Links are resolved at
    /// each check, because a directory may be replaced by a link while the server runs.
    fn is_shared(&self, root: &Path) -> bool {
        self.shared
            .iter()
            .any(|shared| root.starts_with(canonical(shared)))
    }
}

/// A path without links, or the path itself where it does not exist.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The projects of `hub.db`, held in memory because every call asks.
pub(crate) struct Projects {
    db: Db,
    known: RwLock<BTreeMap<ProjectId, Arc<Project>>>,
    allowed: AllowedRoots,
    /// Held while a project is checked and stored, so that two users cannot register overlapping
    /// directories at the same time.
    registering: Mutex<()>,
}

impl Projects {
    /// Projects that may not be registered today, because an earlier version allowed it, are left
    /// out.
    pub(crate) async fn load(db: Db, allowed: AllowedRoots) -> Result<Self, DbError> {
        let rows = db
            .read(|tx| {
                tx.query("select id, root, vault from projects", (), |row| {
                    Ok((
                        row.get::<String>(0)?,
                        row.get::<String>(1)?,
                        row.get::<Option<String>>(2)?,
                    ))
                })
            })
            .await?;
        let members = db
            .read(|tx| {
                tx.query(
                    "select project_id, user_id from project_members order by user_id",
                    (),
                    |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)),
                )
            })
            .await?;
        let mut known = BTreeMap::new();
        for (id, root, vault) in rows {
            let Ok(project_id) = ProjectId::new(&id) else {
                continue;
            };
            if allowed.is_refused(&canonical(Path::new(&root))) {
                tracing::warn!(
                    project = id,
                    root,
                    "ignored a project in a directory that may not be registered"
                );
                continue;
            }
            let members = members
                .iter()
                .filter(|(of, _)| *of == id)
                .filter_map(|(_, user)| UserId::new(user).ok());
            let project = Project {
                id: project_id.clone(),
                root: PathBuf::from(root),
                vault: vault.map(PathBuf::from),
                members: members.collect(),
            };
            known.insert(project_id, Arc::new(project));
        }
        Ok(Self {
            db,
            known: RwLock::new(known),
            allowed,
            registering: Mutex::new(()),
        })
    }

    /// The project of a call. A project that the user is not a member of is reported as not found.
    pub(crate) fn get(
        &self,
        who: &Principal,
        id: Option<&ProjectId>,
    ) -> Result<Option<Arc<Project>>, CallError> {
        let Some(id) = id else { return Ok(None) };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known
            .get(id)
            .filter(|project| project.members.contains(&who.user))
        {
            Some(project) => Ok(Some(Arc::clone(project))),
            None => Err(CallError::new(
                ErrorCode::NotFound,
                format!("project `{id}` not found"),
            )),
        }
    }

    /// The directory of a project, without a membership check. For the hub's own use.
    pub(crate) fn root(&self, id: &ProjectId) -> Option<PathBuf> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(id).map(|project| project.root.clone())
    }

    pub(crate) fn all(&self) -> Vec<Arc<Project>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().cloned().collect()
    }

    /// The projects a user is a member of.
    pub(crate) fn of(&self, user: &UserId) -> Vec<Arc<Project>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .values()
            .filter(|project| project.members.contains(user))
            .cloned()
            .collect()
    }

    /// Registers a directory, with the user as its first member. Registering it again changes
    /// nothing and returns the same project.
    pub(crate) async fn register(
        &self,
        user: &UserId,
        rights: Rights,
        root: &Path,
    ) -> Result<Arc<Project>, CallError> {
        let root = directory(root)?;
        let shown = root
            .to_str()
            .ok_or_else(|| bad_root(&root, "its path is not valid UTF-8"))?
            .to_owned();
        let _registering = self.registering.lock().await;
        if let Some(known) = self.check(user, rights, &root)? {
            return Ok(known);
        }
        let id = self.free_id(&root);
        let (row_id, row_user, now) = (
            id.to_string(),
            user.to_string(),
            Timestamp::now().to_string(),
        );
        self.db
            .write(move |tx| {
                tx.execute(
                    "insert into projects (id, root, created_at) values (?1, ?2, ?3)",
                    (row_id.as_str(), shown.as_str(), now.as_str()),
                )?;
                tx.execute(
                    "insert into project_members (project_id, user_id) values (?1, ?2)",
                    (row_id.as_str(), row_user.as_str()),
                )
            })
            .await?;
        let project = Arc::new(Project {
            id: id.clone(),
            root,
            vault: None,
            members: vec![user.clone()],
        });
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, Arc::clone(&project));
        Ok(project)
    }

    /// Whether a user may register a directory; the project, where it is registered already.
    fn check(
        &self,
        user: &UserId,
        rights: Rights,
        root: &Path,
    ) -> Result<Option<Arc<Project>>, CallError> {
        if self.allowed.is_refused(root) {
            return Err(forbidden(
                root,
                "it contains Dodona's own files or system files",
            ));
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let overlaps = |project: &&Arc<Project>| {
            project.root.starts_with(root) || root.starts_with(&project.root)
        };
        // A parent would show the files of another user's project, a child a part of them.
        if known
            .values()
            .filter(overlaps)
            .any(|project| !project.members.contains(user))
        {
            return Err(forbidden(root, "it overlaps a project of another user"));
        }
        if let Some(project) = known.values().find(|project| project.root == root) {
            return Ok(Some(Arc::clone(project)));
        }
        match rights {
            Rights::Admin => Ok(None),
            Rights::Member if self.allowed.is_shared(root) => Ok(None),
            Rights::Member => Err(forbidden(root, "it is outside the allowed directories").hint(
                "ask the administrator to register it, or to add a parent directory to `projects.roots`",
            )),
        }
    }

    /// An unused id derived from the directory's name, with a number if necessary.
    fn free_id(&self, root: &Path) -> ProjectId {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let name = root
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let slug: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_lowercase() || c.is_ascii_digit() {
                    c
                } else {
                    '-'
                }
            })
            .take(48)
            .collect();
        let slug = slug.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
        let base = if slug.is_empty() { "project" } else { slug };
        let candidates =
            std::iter::once(base.to_owned()).chain((2..).map(|n| format!("{base}-{n}")));
        let mut ids = candidates.filter_map(|text| ProjectId::new(&text).ok());
        ids.find(|id| !known.contains_key(id))
            .expect("there is always a next number")
    }
}

fn directory(root: &Path) -> Result<PathBuf, CallError> {
    if !root.is_absolute() {
        return Err(bad_root(root, "its path is not absolute"));
    }
    match root.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(bad_root(root, "it is not a directory")),
        Err(error) => Err(bad_root(root, "it cannot be opened").log(error)),
    }
}

fn forbidden(root: &Path, why: &str) -> CallError {
    CallError::new(
        ErrorCode::Forbidden,
        format!("`{}` cannot be a project: {why}", root.display()),
    )
}

fn bad_root(root: &Path, why: &str) -> CallError {
    CallError::new(
        ErrorCode::InvalidParams,
        format!("`{}` cannot be a project: {why}", root.display()),
    )
}
