//! Which projects may bring code: what was trusted, pinned by the hash of its contents.

mod contents;
mod instructions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dodona_plugin::{ProjectInstructions, RuleTrust, TrustedFolder, TrustedTexts, WrittenFiles};
use dodona_proto::{CallError, ErrorCode, UserId};
use dodona_store::{Db, DbError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use contents::{Contents, TrustItem, folder, items};

/// What was trusted of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Pin {
    /// Path of the project's directory.
    pub(crate) root: PathBuf,
    /// The hash of everything that was trusted.
    pub(crate) hash: String,
    /// The user who granted trust.
    pub(crate) granted_by: String,
    /// When trust was granted.
    pub(crate) granted_at: String,
    /// Which later changes are trusted too.
    pub(crate) follow: Follow,
    /// The files that were trusted, with their hashes.
    #[serde(skip)]
    files: Arc<BTreeMap<String, String>>,
}

/// Which later changes of a project are trusted without another review.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Follow {
    /// Every change needs another `hub.trust_accept`.
    #[default]
    Nothing,
    /// Rules and their scripts.
    Rules,
    /// Rules, plugins, prompts and agents.
    Everything,
}

impl Follow {
    fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Rules => "rules",
            Self::Everything => "everything",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "rules" => Self::Rules,
            "everything" => Self::Everything,
            _ => Self::Nothing,
        }
    }
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrustState {
    /// There is nothing to trust.
    Nothing,
    /// Nobody has trusted it.
    Untrusted,
    /// Unchanged since a user trusted it.
    Trusted,
    /// Changed since then. Nothing of it runs until it is trusted again.
    Changed,
}

impl TrustState {
    /// Why nothing of the project counts.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Changed => {
                "changed since it was trusted; review and trust it again with `dodona trust`"
            }
            _ => "not trusted; review and trust it with `dodona trust`",
        }
    }
}

/// What happened to a file since it was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeKind {
    /// The file was added.
    Added,
    /// The file was changed.
    Changed,
    /// The file was deleted.
    Removed,
}

/// A file that changed since it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileChange {
    /// Path below the `.dodona/` directory.
    pub(crate) path: String,
    /// What happened to it.
    pub(crate) change: ChangeKind,
}

/// The table `trust`, held in memory because every look for plugins asks.
pub(crate) struct Trust {
    db: Db,
    pins: RwLock<BTreeMap<PathBuf, Pin>>,
    /// Held while a pin is read, changed and stored.
    changing: tokio::sync::Mutex<()>,
}

impl Trust {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
        let rows = db.read(|tx| {
            let query = "select root, hash, granted_by, granted_at, files_json, follow from trust";
            tx.query(query, (), |row| {
                let files: String = row.get(4)?;
                let root: String = row.get(0)?;
                let follow: String = row.get(5)?;
                Ok(Pin {
                    root: PathBuf::from(root),
                    hash: row.get(1)?,
                    granted_by: row.get(2)?,
                    granted_at: row.get(3)?,
                    // A list that cannot be parsed counts as empty; all files are then reported as new.
                    files: Arc::new(serde_json::from_str(&files).unwrap_or_default()),
                    follow: Follow::parse(&follow),
                })
            })
        });
        let pins = rows.await?.into_iter();
        Ok(Self {
            db,
            pins: RwLock::new(pins.map(|pin| (pin.root.clone(), pin)).collect()),
            changing: tokio::sync::Mutex::default(),
        })
    }

    /// What was trusted of a project.
    pub(crate) fn pin(&self, root: &Path) -> Option<Pin> {
        let pins = self.pins.read().unwrap_or_else(PoisonError::into_inner);
        pins.get(root).cloned()
    }

    /// Everything that was trusted.
    pub(crate) fn all(&self) -> Vec<Pin> {
        let pins = self.pins.read().unwrap_or_else(PoisonError::into_inner);
        pins.values().cloned().collect()
    }

    /// Whether what is there now is what was trusted.
    pub(crate) fn state(&self, root: &Path, contents: &Contents) -> TrustState {
        match self.pin(root) {
            _ if contents.is_empty() => TrustState::Nothing,
            None => TrustState::Untrusted,
            Some(pin) if pin.covers(contents) => TrustState::Trusted,
            Some(_) => TrustState::Changed,
        }
    }

    /// How far the rules of a project are trusted. Unlike the rest, rules are compared file by
    /// file: a change elsewhere in the project must not switch off a `deny` that was reviewed.
    pub(crate) fn of_rules(&self, root: &Path) -> RuleTrust {
        match self.pin(root) {
            None => RuleTrust::Untrusted,
            Some(pin) if pin.follow >= Follow::Rules => RuleTrust::Followed,
            Some(pin) => RuleTrust::Pinned(pin.files),
        }
    }

    /// The same for files outside of the rules' folder.
    pub(crate) fn of_files(&self, root: &Path) -> RuleTrust {
        match self.pin(root) {
            None => RuleTrust::Untrusted,
            Some(pin) if pin.follow == Follow::Everything => RuleTrust::Followed,
            Some(pin) => RuleTrust::Pinned(pin.files),
        }
    }

    /// The texts in a folder of a project, if it is as somebody trusted it. Nothing is read of one
    /// that nobody trusts.
    pub(crate) async fn texts(
        &self,
        root: &Path,
        wanted: TrustedFolder,
    ) -> Result<TrustedTexts, String> {
        if !folder(root).join(wanted.as_str()).is_dir() {
            return Ok(TrustedTexts::new());
        }
        if self.pin(root).is_none() {
            return Err(TrustState::Untrusted.why().to_owned());
        }
        let here = root.to_owned();
        let reading = move || Contents::keeping(&here, Some(wanted));
        let read = tokio::task::spawn_blocking(reading).await;
        let (contents, texts) =
            read.unwrap_or_else(|_| Err("failed to read the project".to_owned()))?;
        match self.state(root, &contents) {
            TrustState::Trusted => Ok(texts),
            other => Err(other.why().to_owned()),
        }
    }

    /// The instructions for agents in the root of a project that somebody trusts.
    pub(crate) async fn instructions(&self, root: &Path) -> Option<ProjectInstructions> {
        self.pin(root)?;
        let root = root.to_owned();
        let read = tokio::task::spawn_blocking(move || instructions::read(&root)).await;
        read.ok().flatten()
    }

    /// Trusts the present contents. It is stored when this returns.
    pub(crate) async fn accept(
        &self,
        root: &Path,
        contents: &Contents,
        user: &UserId,
        follow: Follow,
    ) -> Result<(), CallError> {
        let _changing = self.changing.lock().await;
        self.store(root, contents.files.clone(), user, follow).await
    }

    /// Trusts single files that `user` wrote through Dodona; all others keep the trust they have.
    pub(crate) async fn accept_written(
        &self,
        root: &Path,
        user: &UserId,
        written: WrittenFiles,
    ) -> Result<(), CallError> {
        let _changing = self.changing.lock().await;
        let pin = self.pin(root);
        let follow = pin.as_ref().map(|pin| pin.follow).unwrap_or_default();
        let mut files = pin
            .map(|pin| BTreeMap::clone(&pin.files))
            .unwrap_or_default();
        for (path, hash) in written {
            match hash {
                Some(hash) => files.insert(path, hash),
                None => files.remove(&path),
            };
        }
        self.store(root, files, user, follow).await
    }

    async fn store(
        &self,
        root: &Path,
        files: BTreeMap<String, String>,
        user: &UserId,
        follow: Follow,
    ) -> Result<(), CallError> {
        let contents = Contents { files };
        let pin = Pin {
            root: root.to_owned(),
            hash: contents.hash(),
            granted_by: user.to_string(),
            granted_at: Timestamp::now().to_string(),
            follow,
            files: Arc::new(contents.files),
        };
        let files = serde_json::json!(pin.files).to_string();
        let row = (
            text(root)?,
            pin.hash.clone(),
            pin.granted_by.clone(),
            pin.granted_at.clone(),
            files,
            follow.as_str(),
        );
        let stored = self.db.write(move |tx| {
            tx.execute(
                "insert or replace into trust
                     (root, hash, granted_by, granted_at, files_json, follow)
                 values (?1, ?2, ?3, ?4, ?5, ?6)",
                row.clone(),
            )
        });
        stored.await?;
        let mut pins = self.pins.write().unwrap_or_else(PoisonError::into_inner);
        pins.insert(root.to_owned(), pin);
        Ok(())
    }

    /// Withdraws trust and returns whether the project was trusted.
    pub(crate) async fn revoke(&self, root: &Path) -> Result<bool, CallError> {
        let shown = text(root)?;
        let gone = self
            .db
            .write(move |tx| tx.execute("delete from trust where root = ?1", (shown.clone(),)));
        gone.await?;
        let mut pins = self.pins.write().unwrap_or_else(PoisonError::into_inner);
        Ok(pins.remove(root).is_some())
    }
}

impl Pin {
    /// Whether all of the contents is trusted.
    fn covers(&self, contents: &Contents) -> bool {
        match self.follow {
            Follow::Nothing => self.hash == contents.hash(),
            Follow::Rules => {
                let pinned = Contents {
                    files: BTreeMap::clone(&self.files),
                };
                pinned.without_rules() == contents.without_rules()
            }
            Follow::Everything => true,
        }
    }

    /// Lists the files that changed since.
    pub(crate) fn changes(&self, now: &Contents) -> Vec<FileChange> {
        let all: std::collections::BTreeSet<&String> =
            self.files.keys().chain(now.files.keys()).collect();
        let change = |path: &String| match (self.files.get(path), now.files.get(path)) {
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Removed),
            (Some(was), Some(is)) if was != is => Some(ChangeKind::Changed),
            _ => None,
        };
        let told = all.into_iter().filter_map(|path| {
            let change = change(path)?;
            let path = path.clone();
            Some(FileChange { path, change })
        });
        told.collect()
    }
}

fn text(root: &Path) -> Result<String, CallError> {
    let shown = root.to_str().map(str::to_owned);
    shown.ok_or_else(|| {
        let message = "the project's path is not valid UTF-8";
        CallError::new(ErrorCode::InvalidRequest, message)
    })
}
