//! The threads that read from all databases.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;

use crate::error::DbError;
use crate::job::Job;
use crate::options::StoreOptions;
use crate::rebuild;
use crate::session::Session;
use crate::target::Target;

/// A read and the database it is for.
pub(crate) struct ReadRequest {
    pub(crate) target: Arc<Target>,
    pub(crate) job: Box<dyn Job>,
}

type Requests = Arc<Mutex<mpsc::Receiver<ReadRequest>>>;

pub(crate) fn start(
    options: &StoreOptions,
    requests: mpsc::Receiver<ReadRequest>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let requests: Requests = Arc::new(Mutex::new(requests));
    let start_one = |number| {
        let reader = Reader {
            requests: Arc::clone(&requests),
            sessions: Vec::new(),
            kept: options.reader_connections.max(1),
        };
        thread::Builder::new()
            .name(format!("read {number}"))
            .spawn(|| reader.serve())
    };
    (1..=options.reader_threads.max(1)).map(start_one).collect()
}

struct Reader {
    requests: Requests,
    /// Open connections, the most recently used last.
    sessions: Vec<(Arc<Target>, Session)>,
    kept: usize,
}

impl Reader {
    fn serve(mut self) {
        while let Some(request) = self.next() {
            if !request.job.is_abandoned() {
                self.read(request);
            }
        }
    }

    /// One thread waits at the queue, holding the lock; the others wait for the lock.
    fn next(&self) -> Option<ReadRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv()
    }

    fn read(&mut self, request: ReadRequest) {
        let ReadRequest { target, mut job } = request;
        let session = match self.take(&target) {
            Ok(session) => session,
            Err(error) => return job.settle(Err(error)),
        };
        if let Err(error) = session.control("BEGIN") {
            return job.settle(Err(error));
        }
        let done = session.run(&mut *job);
        if let Err(error) = &done {
            rebuild::mark_on(&target, error);
        }
        let ended = session.control("COMMIT");
        // A connection that met a failing disk or a damaged page may remember what it saw.
        let sound = ended.is_ok() && !done.is_err_and(|error| error.is_environmental());
        if sound {
            self.keep(target, session);
        }
        job.settle(Ok(()));
    }

    fn take(&mut self, target: &Arc<Target>) -> Result<Session, DbError> {
        match self
            .sessions
            .iter()
            .position(|(held, _)| Arc::ptr_eq(held, target))
        {
            Some(place) => Ok(self.sessions.remove(place).1),
            None => Session::reader(target),
        }
    }

    fn keep(&mut self, target: Arc<Target>, session: Session) {
        if self.sessions.len() == self.kept {
            self.sessions.remove(0);
        }
        self.sessions.push((target, session));
    }
}
