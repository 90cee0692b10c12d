//! A store in a temporary folder, and ways to hold its threads at a known point.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use dodona_store::{Db, DbError, Durability, Migration, Store, StoreOptions, Tx};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::{self, JoinHandle};

/// One table without rules, for tests that are not about the schema.
pub(crate) const NOTES: &[Migration] = &[Migration::new(
    1,
    "notes",
    "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
)];

/// Two tables, where a child's parent is looked for only at the commit.
pub(crate) const FAMILY: &[Migration] = &[Migration::new(
    1,
    "family",
    "CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
     CREATE TABLE child (
         id INTEGER PRIMARY KEY,
         parent INTEGER NOT NULL REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED
     ) STRICT",
)];

/// A store that goes away with its folder.
pub(crate) struct Scratch {
    pub(crate) store: Store,
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch::with(options())
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), options).unwrap();
        Scratch { store, folder }
    }

    /// Closes the store and opens the folder again, as a restart would.
    pub(crate) async fn restart(self) -> Self {
        self.store.close().await;
        let store = Store::open(self.folder.path(), options()).unwrap();
        Scratch {
            store,
            folder: self.folder,
        }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn db(&self, file: &str) -> Db {
        self.store.database(file, Durability::Full)
    }

    pub(crate) async fn notes(&self) -> Db {
        let db = self.db("notes.db");
        db.migrate(NOTES).await.unwrap();
        db
    }
}

/// Options under which nothing depends on how fast the machine is: queued writes always share a
/// commit, and a locked database is reported at once.
pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        busy_timeout: Duration::ZERO,
        group_time: Duration::from_secs(3600),
        ..StoreOptions::default()
    }
}

pub(crate) fn add_note(tx: &Tx<'_>, body: &str) -> Result<i64, DbError> {
    tx.execute("INSERT INTO note (body) VALUES (?1)", (body,))?;
    Ok(tx.last_insert_id())
}

pub(crate) async fn write_note(db: &Db, body: &'static str) -> Result<i64, DbError> {
    db.write(move |tx| add_note(tx, body)).await
}

pub(crate) async fn note_bodies(db: &Db) -> Vec<String> {
    db.read(|tx| tx.query("SELECT body FROM note ORDER BY id", (), |row| row.get(0)))
        .await
        .unwrap()
}

/// Queues a write without waiting for its answer. The test's runtime has one thread and runs its
/// tasks in order, so once this returns the write is in the queue, or waits for room in it.
pub(crate) async fn queue<R: Send + 'static>(
    db: &Db,
    work: impl FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
) -> JoinHandle<Result<R, DbError>> {
    let db = db.clone();
    let queued = tokio::spawn(async move { db.write(work).await });
    task::yield_now().await;
    queued
}

/// Work that holds its thread until it is let go.
pub(crate) struct Plug {
    started: oneshot::Receiver<()>,
    release: mpsc::Sender<()>,
}

/// A plug, and the function that is to be run by the thread to hold.
pub(crate) fn plug() -> (Plug, impl FnOnce() + Send + 'static) {
    let (has_started, started) = oneshot::channel();
    let (release, released) = mpsc::channel();
    let hold = move || {
        has_started.send(()).unwrap();
        released.recv().unwrap();
    };
    (Plug { started, release }, hold)
}

impl Plug {
    /// Waits until the thread is held.
    pub(crate) async fn started(&mut self) {
        (&mut self.started).await.unwrap();
    }

    pub(crate) fn release(self) {
        self.release.send(()).unwrap();
    }
}

/// A database whose writer is held inside its first write, a note `first`.
pub(crate) async fn held_writer(db: &Db) -> (Plug, JoinHandle<Result<i64, DbError>>) {
    let (mut plug, hold) = plug();
    let first = queue(db, move |tx| {
        hold();
        add_note(tx, "first")
    })
    .await;
    plug.started().await;
    (plug, first)
}
