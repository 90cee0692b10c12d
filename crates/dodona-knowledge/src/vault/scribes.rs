//! One scribe for each project.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_plugin::store::Db;
use dodona_plugin::{BoxFuture, CallError};
use dodona_proto::{ProjectId, SourceKind};
use tokio::sync::Mutex;

use super::ledger::Ledger;
use super::scribe::Scribe;
use crate::library::{NoteKeeper, Shelf};

/// The scribes of the projects whose notes were asked for.
pub(super) struct Scribes {
    db: Db,
    scribes: Mutex<HashMap<ProjectId, Arc<Scribe>>>,
}

impl Scribes {
    pub(super) fn new(db: Db) -> Self {
        Self {
            db,
            scribes: Mutex::default(),
        }
    }

    /// Who changes the notes of a project.
    pub(super) async fn of(&self, shelf: &Shelf) -> Arc<Scribe> {
        let mut scribes = self.scribes.lock().await;
        let scribe = scribes.entry(shelf.project.clone()).or_insert_with(|| {
            let ledger = Ledger::new(self.db.clone(), &shelf.project);
            let (root, access) = (shelf.root().to_owned(), shelf.access().clone());
            Arc::new(Scribe::new(root, access, ledger))
        });
        Arc::clone(scribe)
    }
}

impl NoteKeeper for Scribes {
    fn looked<'a>(&'a self, shelf: &'a Shelf) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let files = shelf.catalogue.files().await?;
            // What is too large, or not written by people, has no hash and no history.
            let notes = files
                .into_iter()
                .filter(|file| file.kind == SourceKind::Note && !file.hash.is_empty())
                .map(|file| (file.path, file.hash));
            Ok(self.of(shelf).await.notice(notes.collect()).await?)
        })
    }
}
