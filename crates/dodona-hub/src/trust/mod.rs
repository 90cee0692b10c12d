//! Which projects may bring code: what was trusted, pinned by the hash of its contents.

mod contents;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use dodona_plugin::{TrustedFolder, TrustedTexts};
use dodona_proto::{CallError, ErrorCode, UserId};
use dodona_store::{Db, DbError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use contents::{Contents, TrustItem, folder, items};

/// What was trusted of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Pin {
    /// The project's directory.
    pub(crate) root: PathBuf,
    /// The hash of everything that was trusted.
    pub(crate) hash: String,
    /// Who trusts it.
    pub(crate) granted_by: String,
    /// Since when.
    pub(crate) granted_at: String,
    /// The files that were trusted, with their hashes.
    #[serde(skip)]
    files: BTreeMap<String, String>,
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrustState {
    /// There is nothing to trust.
    Nothing,
    /// Nobody has trusted it.
    Untrusted,
    /// It is as it was when somebody trusted it.
    Trusted,
    /// It is not as it was then; nothing of it runs until it is trusted again.
    Changed,
}

impl TrustState {
    /// Why nothing of the project counts.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Changed => "it has changed since it was trusted; run `dodona trust` in it",
            _ => "nobody trusts it yet; run `dodona trust` in it",
        }
    }
}

/// What happened to a file since it was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeKind {
    /// It is new.
    Added,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
}

/// A file that is not as it was when it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileChange {
    /// Below `.dodona/`.
    pub(crate) path: String,
    /// What happened to it.
    pub(crate) change: ChangeKind,
}

/// The table `trust`, held in memory because every look for plugins asks.
pub(crate) struct Trust {
    db: Db,
    pins: RwLock<BTreeMap<PathBuf, Pin>>,
}

impl Trust {
    pub(crate) async fn load(db: Db) -> Result<Self, DbError> {
        let rows = db.read(|tx| {
            let query = "select root, hash, granted_by, granted_at, files_json from trust";
            tx.query(query, (), |row| {
                let files: String = row.get(4)?;
                let root: String = row.get(0)?;
                Ok(Pin {
                    root: PathBuf::from(root),
                    hash: row.get(1)?,
                    granted_by: row.get(2)?,
                    granted_at: row.get(3)?,
                    // A list that cannot be read is none: what changed is then told as new.
                    files: serde_json::from_str(&files).unwrap_or_default(),
                })
            })
        });
        let pins = rows.await?.into_iter();
        Ok(Self {
            db,
            pins: RwLock::new(pins.map(|pin| (pin.root.clone(), pin)).collect()),
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
            Some(pin) if pin.hash == contents.hash() => TrustState::Trusted,
            Some(_) => TrustState::Changed,
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
            read.unwrap_or_else(|_| Err("looking at the project failed".to_owned()))?;
        match self.state(root, &contents) {
            TrustState::Trusted => Ok(texts),
            other => Err(other.why().to_owned()),
        }
    }

    /// Trusts what is there now. It holds once this has answered, and for good.
    pub(crate) async fn accept(
        &self,
        root: &Path,
        contents: &Contents,
        user: &UserId,
    ) -> Result<(), CallError> {
        let pin = Pin {
            root: root.to_owned(),
            hash: contents.hash(),
            granted_by: user.to_string(),
            granted_at: Timestamp::now().to_string(),
            files: contents.files.clone(),
        };
        let files = serde_json::json!(pin.files).to_string();
        let row = (
            text(root)?,
            pin.hash.clone(),
            pin.granted_by.clone(),
            pin.granted_at.clone(),
            files,
        );
        let stored = self.db.write(move |tx| {
            tx.execute(
                "insert or replace into trust (root, hash, granted_by, granted_at, files_json)
                 values (?1, ?2, ?3, ?4, ?5)",
                row.clone(),
            )
        });
        stored.await?;
        let mut pins = self.pins.write().unwrap_or_else(PoisonError::into_inner);
        pins.insert(root.to_owned(), pin);
        Ok(())
    }

    /// Trusts it no longer, and tells whether it was trusted.
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
    /// What is not as it was.
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
