//! A handle to one database.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::error::{Cause, DbError};
use crate::job::{self, Job};
use crate::migrate::{MigrateError, Migration};
use crate::readers::{self, ReadRequest};
use crate::target::Target;
use crate::tx::Tx;
use crate::worker::{NoQueue, Worker};
use crate::writer::{self, Request};

/// One database. Cheap to clone; opened by its first use.
///
/// The functions given to [`read`](Db::read) and [`write`](Db::write) run on a thread of the
/// store and may block it, so they should do nothing but talk to the database. They must not wait
/// for another read or write: the thread they would wait for may be their own.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    file: String,
    /// The open database, or why it can never be used.
    live: Result<Live, &'static str>,
}

struct Live {
    target: Arc<Target>,
    writer: Worker<Request>,
    readers: Arc<Worker<ReadRequest>>,
    /// Set once the writer has opened the file, which readers cannot create.
    readable: OnceCell<()>,
}

impl Db {
    pub(crate) fn new(target: Target, readers: &Arc<Worker<ReadRequest>>) -> Self {
        let file = target.file.clone();
        let live = Live {
            target: Arc::new(target),
            writer: Worker::new(),
            readers: Arc::clone(readers),
            readable: OnceCell::new(),
        };
        Db {
            inner: Arc::new(Inner {
                file,
                live: Ok(live),
            }),
        }
    }

    /// A handle that always fails, with the given reason.
    pub(crate) fn refused(file: &str, reason: &'static str) -> Self {
        Db {
            inner: Arc::new(Inner {
                file: file.to_owned(),
                live: Err(reason),
            }),
        }
    }

    /// The name of the database, relative to the data directory.
    pub fn file(&self) -> &str {
        &self.inner.file
    }

    /// Applies all pending migrations in one transaction, after a backup of the database.
    ///
    /// The copy is `<file>.before-v<N>.bak`, where `N` is the version migrated to; the newest
    /// three are kept. On an error the schema and the data are as they were, and a database that
    /// a newer binary has migrated is not touched at all.
    pub async fn migrate(
        &self,
        migrations: impl Into<Cow<'static, [Migration]>>,
    ) -> Result<(), MigrateError> {
        let (reply, answer) = oneshot::channel();
        let handle = |source| MigrateError::Handle {
            file: self.file().to_owned(),
            source,
        };
        self.ask_writer(Request::Migrate(migrations.into(), reply))
            .await
            .map_err(handle)?;
        answer.await.unwrap_or_else(|_| Err(handle(self.closed())))
    }

    /// Runs `work` on a consistent snapshot of the database, at the same time as other reads and
    /// as the writer. It cannot change anything.
    ///
    /// Dropping the future skips the read if it has not begun.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let (job, answer) = job::pack(work);
        self.queue_read(job).await?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Not generic: this is most of the code of a read, and would be compiled for every caller.
    async fn queue_read(&self, job: Box<dyn Job>) -> Result<(), DbError> {
        let live = self.live()?;
        live.readable.get_or_try_init(|| self.open()).await?;
        let options = &live.target.options;
        let queue = live
            .readers
            .queue(options.queue_length, |requests| {
                readers::start(options, requests)
            })
            .map_err(|error| self.no_queue(error))?;
        let request = ReadRequest {
            target: Arc::clone(&live.target),
            job,
        };
        self.send(queue, request).await
    }

    /// Runs `work` in a transaction and returns when it is committed with the durability of the database. If `work`
    /// fails or panics, it is rolled back.
    ///
    /// Writes run one after the other, in the order in which they were queued. Those that are
    /// queued together share one commit, which costs far more than a typical write; a failing one
    /// does not disturb the others. Only if the commit itself fails do all of them fail.
    ///
    /// Dropping the future while it waits for room in the queue withdraws the write; once queued
    /// it runs whether or not anybody waits for the answer.
    pub async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
    ) -> Result<R, DbError> {
        let (job, answer) = job::pack(work);
        self.ask_writer(Request::Run(job)).await?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// As [`write`](Db::write), and answers as soon as `work` has run: with what it found, and with
    /// the commit, which is still to come. Later writes see what it wrote, reads do not before it is
    /// committed, and should that fail, none of it has happened.
    pub async fn write_ahead<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
    ) -> Result<(R, Commit), DbError> {
        let (early, found) = oneshot::channel();
        let (job, answer) = job::pack(move |tx: &Tx<'_>| {
            // The caller may have stopped waiting.
            let _ = early.send(work(tx)?);
            Ok(())
        });
        self.ask_writer(Request::Run(job)).await?;
        let commit = Commit {
            answer,
            file: self.file().to_owned(),
        };
        match found.await {
            Ok(found) => Ok((found, commit)),
            Err(_) => match commit.done().await {
                Err(error) => Err(error),
                Ok(()) => unreachable!("only work that was done is committed"),
            },
        }
    }

    /// Ends the writer thread after the queued requests.
    pub(crate) fn close(&self) -> Vec<std::thread::JoinHandle<()>> {
        self.inner
            .live
            .as_ref()
            .map_or_else(|_| Vec::new(), |live| live.writer.close())
    }

    /// Whether it was used, so that its file must exist.
    pub(crate) fn is_used(&self) -> bool {
        self.inner
            .live
            .as_ref()
            .is_ok_and(|live| live.writer.is_running())
    }

    /// What the handle was opened as.
    pub(crate) fn target(&self) -> Option<&Arc<Target>> {
        self.inner.live.as_ref().ok().map(|live| &live.target)
    }

    async fn open(&self) -> Result<(), DbError> {
        let (reply, answer) = oneshot::channel();
        self.ask_writer(Request::Open(reply)).await?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    async fn ask_writer(&self, request: Request) -> Result<(), DbError> {
        let live = self.live()?;
        let target = &live.target;
        let queue = live
            .writer
            .queue(target.options.queue_length, |requests| {
                writer::start(target, requests)
            })
            .map_err(|error| self.no_queue(error))?;
        self.send(queue, request).await
    }

    async fn send<M>(&self, queue: mpsc::Sender<M>, request: M) -> Result<(), DbError> {
        queue.send(request).await.map_err(|_| self.closed())
    }

    fn live(&self) -> Result<&Live, DbError> {
        let refused = |reason: &&'static str| DbError::Refused {
            file: self.file().to_owned(),
            reason,
        };
        self.inner.live.as_ref().map_err(refused)
    }

    fn closed(&self) -> DbError {
        DbError::Closed {
            file: self.file().to_owned(),
        }
    }

    fn no_queue(&self, error: NoQueue) -> DbError {
        match error {
            NoQueue::Closed => self.closed(),
            NoQueue::Spawn(error) => DbError::Spawn {
                file: self.file().to_owned(),
                source: Cause::from(&error),
            },
        }
    }
}

/// A pending commit. It happens even if this is dropped.
pub struct Commit {
    answer: job::Answer<()>,
    file: String,
}

impl Commit {
    /// Waits until it is committed with the durability of the database.
    pub async fn done(self) -> Result<(), DbError> {
        let Self { answer, file } = self;
        answer.await.unwrap_or(Err(DbError::Closed { file }))
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("file", &self.file())
            .finish_non_exhaustive()
    }
}
