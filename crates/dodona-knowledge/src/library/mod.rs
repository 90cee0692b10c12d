//! The projects that are searched, each with its index and its catalogue.

mod catalogue;
mod paths;
mod scan;
mod shelf;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use dodona_plugin::store::{Db, Migration};
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::ProjectId;
use tokio::sync::Mutex;

pub(crate) use catalogue::{Definition, FileRow, LinkRow, Place};
pub(crate) use shelf::{Shelf, Synced};

/// The schema of the catalogue.
pub(crate) const MIGRATIONS: &[Migration] = catalogue::MIGRATIONS;

/// What the knowledge plugins share: one index for each project, so that scores compare.
#[derive(Default)]
pub(crate) struct Library {
    place: OnceLock<(Db, PathBuf)>,
    shelves: Mutex<HashMap<ProjectId, Arc<Shelf>>>,
}

impl Library {
    /// Gives the library its database and its directory. The plugin `search` does so when it is
    /// activated.
    pub(crate) fn settle(&self, db: Db, dir: PathBuf) {
        // A second activation brings the same ones.
        let _ = self.place.set((db, dir));
    }

    /// The shelf of the project a call is about.
    pub(crate) async fn shelf(&self, ctx: &CallCtx) -> Result<Arc<Shelf>, CallError> {
        let project = ctx.project.as_ref().ok_or_else(|| {
            CallError::new(ErrorCode::InvalidRequest, "the call is about no project")
                .hint("run it inside a registered project, or name one; `dodona index` registers the current one")
        })?;
        let (db, dir) = self.place.get().ok_or_else(|| {
            CallError::new(
                ErrorCode::PluginNotActive,
                "the plugin `search` is not active",
            )
            .hint("run `dodona doctor`")
        })?;
        let mut shelves = self.shelves.lock().await;
        if let Some(shelf) = shelves.get(&project.id) {
            return Ok(Arc::clone(shelf));
        }
        let shelf = Shelf::open(project, db.clone(), &dir.join(project.id.as_str())).await?;
        let shelf = Arc::new(shelf);
        shelves.insert(project.id.clone(), Arc::clone(&shelf));
        Ok(shelf)
    }
}
