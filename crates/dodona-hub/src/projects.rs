//! Registered projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dodona_proto::{CallError, ErrorCode, Principal, Project, ProjectId, UserId};
use dodona_store::{Db, DbError};
use jiff::Timestamp;

/// The projects of `hub.db`, held in memory because every call asks.
pub(crate) struct Projects {
    db: Db,
    known: RwLock<BTreeMap<ProjectId, Arc<Project>>>,
}

impl Projects {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
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
        })
    }

    /// The project a call names. One the user is no member of is not found.
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
                format!("there is no project `{id}`"),
            )),
        }
    }

    /// Where a project is, whoever asks: for the hub's own use.
    pub(crate) fn root(&self, id: &ProjectId) -> Option<PathBuf> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(id).map(|project| project.root.clone())
    }

    /// All of them, by id.
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
    /// nothing and answers the same; somebody else's is not joined by naming its path.
    pub(crate) async fn register(
        &self,
        user: &UserId,
        root: &Path,
    ) -> Result<Arc<Project>, CallError> {
        let root = directory(root)?;
        let shown = root
            .to_str()
            .ok_or_else(|| bad_root(&root, "its path is not valid UTF-8"))?
            .to_owned();
        if let Some(known) = self.at(&root) {
            return match known.members.contains(user) {
                true => Ok(known),
                false => Err(CallError::new(
                    ErrorCode::Forbidden,
                    "this directory belongs to another user's project",
                )),
            };
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

    fn at(&self, root: &Path) -> Option<Arc<Project>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().find(|project| project.root == root).cloned()
    }

    /// An id made from the directory's name, with a number where that is taken.
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

fn bad_root(root: &Path, why: &str) -> CallError {
    CallError::new(
        ErrorCode::InvalidParams,
        format!("`{}` cannot be a project: {why}", root.display()),
    )
}
