//! The databases of a data directory and their threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::{fmt, fs, io};

use thiserror::Error;

use crate::check::{self, DatabaseReport, Depth};
use crate::db::Db;
use crate::files;
use crate::options::{DatabaseLimits, Durability, StoreOptions};
use crate::readers::ReadRequest;
use crate::registry::{DatabaseKind, Registry};
use crate::target::Target;
use crate::worker::Worker;

/// Older engines can damage a write-ahead log when several connections check-point it.
const OLDEST_ENGINE: (i32, &str) = (3_051_003, "3.51.3");

/// Why a store could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data directory could not be created. Tell the user.
    #[error("could not create the data directory `{}`", dir.display())]
    CreateDir {
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The engine this binary was linked with has known faults that damage data. Give up.
    #[error("this binary contains SQLite {found}; at least {needed} is needed to keep data safe")]
    EngineTooOld {
        found: &'static str,
        /// The oldest version that is safe.
        needed: &'static str,
    },
}

/// All databases below one data directory. Cheap to clone.
///
/// When the last clone and the last [`Db`] are gone the threads finish what is queued and end by
/// themselves; use [`close`](Store::close) to wait for that.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    data_dir: PathBuf,
    options: Arc<StoreOptions>,
    readers: Arc<Worker<ReadRequest>>,
    databases: Mutex<Databases>,
    registry: Arc<Registry>,
}

#[derive(Default)]
struct Databases {
    handles: BTreeMap<String, Db>,
    closed: bool,
}

impl Store {
    /// Creates the data directory, readable by its owner only, unless it exists. No database is
    /// opened.
    pub fn open(data_dir: &Path, options: StoreOptions) -> Result<Store, OpenError> {
        let (oldest, needed) = OLDEST_ENGINE;
        if rusqlite::version_number() < oldest {
            return Err(OpenError::EngineTooOld {
                found: rusqlite::version(),
                needed,
            });
        }
        let data_dir = files::create_dir(data_dir)
            .and_then(|()| fs::canonicalize(data_dir))
            .map_err(|source| OpenError::CreateDir {
                dir: data_dir.to_owned(),
                source,
            })?;
        let registry = Arc::new(Registry::load(&data_dir));
        Ok(Store {
            inner: Arc::new(Inner {
                registry,
                data_dir,
                options: Arc::new(options),
                readers: Arc::new(Worker::new()),
                databases: Mutex::default(),
            }),
        })
    }

    /// A handle to the database in `file`, for example `hub.db` or `plugins/echo/echo.db`, which
    /// its first use opens or creates. The same name gives the same handle.
    ///
    /// A name that leaves the data directory, or the same name with another durability, gives a
    /// handle whose every use fails with [`DbError::Refused`](crate::DbError::Refused): so a
    /// plugin with a bad name fails where it would notice a bad database, and alone.
    pub fn database(&self, file: &str, durability: Durability) -> Db {
        self.handle(file, durability, None)
    }

    /// As [`database`](Store::database), for SQL that a plugin from outside the program writes: size
    /// and time are bounded.
    pub fn bounded_database(
        &self,
        file: &str,
        durability: Durability,
        limits: DatabaseLimits,
    ) -> Db {
        self.handle(file, durability, Some(limits))
    }

    fn handle(&self, file: &str, durability: Durability, limits: Option<DatabaseLimits>) -> Db {
        let mut databases = self.databases();
        if let Some(db) = databases.handles.get(file) {
            let is_other =
                |target: &Arc<Target>| (target.durability, target.limits) != (durability, limits);
            if db.target().is_some_and(is_other) {
                return Db::refused(
                    file,
                    "it is already in use with another durability or limits",
                );
            }
            return db.clone();
        }
        let Inner {
            data_dir,
            options,
            readers,
            registry,
            ..
        } = &*self.inner;
        let db = match Target::new(data_dir, file, durability, options, registry) {
            Ok(target) => Db::new(Target { limits, ..target }, readers),
            // Not remembered: what asks for bad names may ask for any number of them.
            Err(reason) => return Db::refused(file, reason),
        };
        if databases.closed {
            db.close();
        }
        databases.handles.insert(file.to_owned(), db.clone());
        db
    }

    /// Examines every database: those in use and those found in the data directory. It reads all
    /// of each file, and changes none.
    pub async fn check(&self) -> Vec<DatabaseReport> {
        self.examine(Depth::Full).await
    }

    /// As [`check`](Store::check), without comparing indexes with their tables, which takes most of
    /// the time. Derived databases with damage are built again when they are opened the next time.
    pub async fn quick_check(&self) -> Vec<DatabaseReport> {
        self.examine(Depth::Quick).await
    }

    async fn examine(&self, depth: Depth) -> Vec<DatabaseReport> {
        let Inner {
            data_dir,
            options,
            registry,
            ..
        } = &*self.inner;
        let mut files = self.used();
        let known = registry.known();
        // A derived database that is gone is built again by itself.
        let original = known
            .iter()
            .filter(|(_, kind)| **kind == DatabaseKind::Original);
        files.extend(original.map(|(file, _)| file.clone()));
        check::all(data_dir, options, files, known, depth).await
    }

    /// The databases that should have a file by now.
    fn used(&self) -> BTreeSet<String> {
        let handles = &self.databases().handles;
        let used = handles.iter().filter(|(_, db)| db.is_used());
        used.map(|(file, _)| file.clone()).collect()
    }

    /// Deletes a database: its handles fail with [`DbError::Closed`](crate::DbError::Closed) from now
    /// on, and the next use of its name creates an empty one. Its backups stay.
    ///
    /// # Errors
    ///
    /// If the name is invalid or a file cannot be removed.
    pub async fn remove(&self, file: &str) -> io::Result<()> {
        Target::check_name(file).map_err(io::Error::other)?;
        let handle = self.databases().handles.remove(file);
        if let Some(handle) = handle {
            join(handle.close()).await;
        }
        // Forgotten first: a process that is killed in between leaves a file and not a lost database.
        self.inner.registry.remove(file)?;
        let path = self.inner.data_dir.join(file);
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            files::remove(Path::new(&name))?;
        }
        Ok(())
    }

    /// Serves what is queued, writes the logs into their databases and ends the threads. Later
    /// requests fail with [`DbError::Closed`](crate::DbError::Closed).
    pub async fn close(&self) {
        // Readers first: while one of them has a database open its log cannot be removed.
        join(self.inner.readers.close()).await;
        let handles: Vec<Db> = {
            let mut databases = self.databases();
            databases.closed = true;
            databases.handles.values().cloned().collect()
        };
        join(handles.iter().flat_map(Db::close).collect()).await;
    }

    fn databases(&self) -> MutexGuard<'_, Databases> {
        // The map and the flag do not depend on each other, so a panic cannot part them.
        self.inner
            .databases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for threads without holding up the runtime.
async fn join(threads: Vec<JoinHandle<()>>) {
    let joined = tokio::task::spawn_blocking(|| {
        for thread in threads {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(name, "a thread of the store had panicked");
            }
        }
    });
    if let Err(error) = joined.await {
        tracing::error!(%error, "could not wait for the threads of the store");
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("data_dir", &self.inner.data_dir)
            .finish_non_exhaustive()
    }
}
