//! The thread that writes a database.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::error::DbError;
use crate::job::Job;
use crate::migrate::{self, MigrateError, Migration};
use crate::rebuild;
use crate::session::Session;
use crate::target::Target;

/// A request to the writer.
pub(crate) enum Request {
    /// Run this in a transaction.
    Run(Box<dyn Job>),
    /// Make sure that the file exists and is sound enough to be read.
    Open(oneshot::Sender<Result<(), DbError>>),
    /// Bring the schema up to date.
    Migrate(
        Cow<'static, [Migration]>,
        oneshot::Sender<Result<(), MigrateError>>,
    ),
}

/// Starts the thread; the database is opened by its first request.
pub(crate) fn start(
    target: &Arc<Target>,
    requests: mpsc::Receiver<Request>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let writer = Writer {
        target: Arc::clone(target),
        requests,
        next: None,
        session: None,
    };
    let name = format!("write {}", target.file);
    thread::Builder::new()
        .name(name)
        .spawn(|| writer.serve())
        .map(|thread| vec![thread])
}

struct Writer {
    target: Arc<Target>,
    requests: mpsc::Receiver<Request>,
    /// A request met while looking for writes that could share a commit.
    next: Option<Request>,
    session: Option<Session>,
}

impl Writer {
    fn serve(mut self) {
        while let Some(request) = self.next.take().or_else(|| self.requests.blocking_recv()) {
            // The caller may have stopped waiting.
            match request {
                Request::Run(job) => self.write(job),
                Request::Open(reply) => {
                    let opened = self.open().map(|session| self.session = Some(session));
                    let _ = reply.send(opened);
                }
                Request::Migrate(migrations, reply) => {
                    // A migration uses a connection with settings of its own.
                    self.session = None;
                    let _ = reply.send(migrate::run(&self.target, &migrations));
                }
            }
        }
        self.finish();
    }

    /// Runs a write, and those queued behind it, in one transaction, and answers them all.
    fn write(&mut self, first: Box<dyn Job>) {
        let session = match self.open() {
            Ok(session) => session,
            Err(error) => return first.settle(Err(error)),
        };
        let mut group = vec![first];
        let outcome = self.commit_group(&session, &mut group);
        // After a failed transaction only a new connection is known to see what is on disk.
        self.session = outcome.is_ok().then_some(session);
        if let Err(error) = &outcome {
            rebuild::mark_on(&self.target, error);
        }
        for job in group {
            job.settle(outcome.clone());
        }
    }

    /// Fills `group`, which holds the first write, with what is queued, and commits it.
    fn commit_group(
        &mut self,
        session: &Session,
        group: &mut Vec<Box<dyn Job>>,
    ) -> Result<(), DbError> {
        session.control("BEGIN IMMEDIATE")?;
        let begun = Instant::now();
        // The first write needs no savepoint: until the second, the transaction is all its own.
        let first = session.run(&mut *group[0]);
        self.check_alive(session, &first)?;
        if first.is_err() {
            return session.control("ROLLBACK");
        }
        let options = Arc::clone(&self.target.options);
        while group.len() < options.group_writes && begun.elapsed() < options.group_time {
            let Some(mut job) = self.next_write() else {
                break;
            };
            let done = self.run_in_savepoint(session, &mut *job);
            group.push(job);
            done?;
        }
        session
            .control("COMMIT")
            .map_err(|error| self.shared_fate(Some(error)))
    }

    /// Runs a write so that its failure undoes nothing but itself.
    fn run_in_savepoint(&self, session: &Session, job: &mut dyn Job) -> Result<(), DbError> {
        session.control("SAVEPOINT dodona_write")?;
        let done = session.run(job);
        self.check_alive(session, &done)?;
        if done.is_err() {
            session.control("ROLLBACK TO dodona_write")?;
        }
        session.control("RELEASE dodona_write")
    }

    /// Fails if the engine has undone the transaction on its own, as it does when the disk is
    /// full or fails. A write may have hidden that by ignoring the error.
    fn check_alive(&self, session: &Session, done: &Result<(), DbError>) -> Result<(), DbError> {
        if session.in_transaction() {
            return Ok(());
        }
        Err(self.shared_fate(done.as_ref().err().cloned()))
    }

    /// The error for every write of a transaction, given the one that ended it.
    fn shared_fate(&self, error: Option<DbError>) -> DbError {
        match error {
            Some(error) if error.is_environmental() => error,
            Some(error @ DbError::Commit { .. }) => error,
            other => DbError::Commit {
                file: self.target.file.clone(),
                source: other.map(Arc::new),
            },
        }
    }

    /// The next request if it is already queued and is a write.
    fn next_write(&mut self) -> Option<Box<dyn Job>> {
        match self.requests.try_recv().ok()? {
            Request::Run(job) => Some(job),
            other => {
                self.next = Some(other);
                None
            }
        }
    }

    fn open(&mut self) -> Result<Session, DbError> {
        match self.session.take() {
            Some(session) => Ok(session),
            None => {
                rebuild::remove_damaged(&self.target)?;
                Session::writer(&self.target)
            }
        }
    }

    /// Moves the log into the database, so that a file at rest is one file.
    fn finish(self) {
        let Some(session) = self.session else { return };
        if let Err(error) = session.control("PRAGMA wal_checkpoint(TRUNCATE)") {
            // The log stays and is read at the next start.
            tracing::warn!(file = self.target.file, %error, "could not empty a database's log");
        }
    }
}
