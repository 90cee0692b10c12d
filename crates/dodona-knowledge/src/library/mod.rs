//! The projects that are searched, each with its index and its catalogue.

mod access;
mod catalogue;
mod fresh;
mod git;
mod history;
mod meaning;
mod part;
mod paths;
mod scan;
mod shelf;
mod sync;
mod threads;
mod vectors;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use dodona_plugin::store::{Db, Migration};
use dodona_plugin::{BoxFuture, CallCtx, CallError, ErrorCode};
use dodona_proto::{Project, ProjectId};
use tokio::sync::Mutex;

use crate::Options;
use crate::search::FileChunks;
pub(crate) use access::Closed;
pub use access::FileAccess;
pub(crate) use catalogue::{Definition, FileRow, LinkRow, Place};
pub(crate) use git::{Blamed, Commit, Git};
pub(crate) use shelf::{COMMIT, Shelf, THREAD, blocking, hash_of};
pub(crate) use sync::Synced;

/// The schema of the catalogue.
pub(crate) const MIGRATIONS: &[Migration] = catalogue::MIGRATIONS;

/// Told of every look at the disk, so that what notes were is kept.
pub(crate) trait NoteKeeper: Send + Sync {
    /// A look is over, and the catalogue is in step with the disk.
    fn looked<'a>(&'a self, shelf: &'a Shelf) -> BoxFuture<'a, Result<(), CallError>>;
}

/// Where the vault says who keeps what notes were.
pub(crate) type Keeper = Arc<OnceLock<Arc<dyn NoteKeeper>>>;

/// What the entries of threads are, so that they are found with everything else.
pub(crate) trait ThreadSource: Send + Sync {
    /// The passages of the entries of a project that came after one, each with its number, in
    /// order.
    fn since<'a>(
        &'a self,
        shelf: &'a Shelf,
        entry: i64,
    ) -> BoxFuture<'a, Result<Vec<(i64, FileChunks)>, CallError>>;
}

/// Where the plugin `thread` says what entries there are.
pub(crate) type Threads = Arc<OnceLock<Arc<dyn ThreadSource>>>;

/// What plugins have told the library.
pub(crate) struct Told {
    keeper: Keeper,
    threads: Threads,
}

/// What the knowledge plugins share: one index for each project, so that scores compare.
pub(crate) struct Library {
    options: Arc<Options>,
    place: OnceLock<(Db, PathBuf)>,
    keeper: Keeper,
    threads: Threads,
    shelves: Mutex<HashMap<ProjectId, Arc<Shelf>>>,
}

impl Library {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            place: OnceLock::new(),
            keeper: Keeper::default(),
            threads: Threads::default(),
            shelves: Mutex::default(),
        }
    }

    /// Gives the library its database and its directory. The plugin `search` does so when it is
    /// activated.
    pub(crate) fn settle(&self, db: Db, dir: PathBuf) {
        // A second activation brings the same ones.
        let _ = self.place.set((db, dir));
    }

    /// Says who keeps what notes were. The plugin `vault` does so when it is activated.
    pub(crate) fn keep_notes(&self, keeper: Arc<dyn NoteKeeper>) {
        // A second activation brings the same one.
        let _ = self.keeper.set(keeper);
    }

    /// Says what entries of threads there are. The plugin `thread` does so when it is activated.
    pub(crate) fn find_threads(&self, threads: Arc<dyn ThreadSource>) {
        // A second activation brings the same ones.
        let _ = self.threads.set(threads);
    }

    /// The shelf of the project a call is about.
    pub(crate) async fn shelf(&self, ctx: &CallCtx) -> Result<Arc<Shelf>, CallError> {
        let project = project(ctx)?;
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
        let (dir, options) = (dir.join(project.id.as_str()), Arc::clone(&self.options));
        let told = Told {
            keeper: Arc::clone(&self.keeper),
            threads: Arc::clone(&self.threads),
        };
        let shelf = Shelf::open(project, db.clone(), &dir, options, told).await?;
        let shelf = Arc::new(shelf);
        shelves.insert(project.id.clone(), Arc::clone(&shelf));
        Ok(shelf)
    }
}

/// The project a call is about.
pub(crate) fn project(ctx: &CallCtx) -> Result<&Arc<Project>, CallError> {
    ctx.require_project()
}
