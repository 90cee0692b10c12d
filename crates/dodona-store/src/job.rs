//! A caller's function on its way to a thread, and its answer on the way back.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use tokio::sync::oneshot;

use crate::error::DbError;
use crate::tx::Tx;

/// A piece of work without its types, so that many kinds fit one queue.
pub(crate) trait Job: Send {
    /// Whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;

    /// Does the work and keeps its result. An error is also told to whoever runs the job; a panic
    /// is one of them.
    fn run(&mut self, tx: &Tx<'_>) -> Result<(), DbError>;

    /// Answers the caller: with the kept result if the surroundings went well or the work failed
    /// by itself, else with what went wrong around it.
    fn settle(self: Box<Self>, surroundings: Result<(), DbError>);
}

/// Where the caller waits.
pub(crate) type Answer<R> = oneshot::Receiver<Result<R, DbError>>;

/// Packs a function for a queue.
pub(crate) fn pack<R, F>(work: F) -> (Box<dyn Job>, Answer<R>)
where
    R: Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (
        Box::new(Packed {
            stage: Stage::Waiting(work),
            reply,
        }),
        answer,
    )
}

struct Packed<F, R> {
    stage: Stage<F, R>,
    reply: oneshot::Sender<Result<R, DbError>>,
}

enum Stage<F, R> {
    Waiting(F),
    Running,
    Finished(Result<R, DbError>),
}

impl<F, R> Job for Packed<F, R>
where
    R: Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<R, DbError> + Send + 'static,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, tx: &Tx<'_>) -> Result<(), DbError> {
        let Stage::Waiting(work) = std::mem::replace(&mut self.stage, Stage::Running) else {
            unreachable!("a job is taken from its queue once, and run once");
        };
        // Nothing the function could leave half done outlives its transaction.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|payload| {
            Err(DbError::Panicked {
                message: message(&*payload),
            })
        });
        let told = result.as_ref().map(|_| ()).map_err(DbError::clone);
        self.stage = Stage::Finished(result);
        told
    }

    fn settle(self: Box<Self>, surroundings: Result<(), DbError>) {
        let result = match (self.stage, surroundings) {
            (Stage::Finished(result @ Err(_)), _) | (Stage::Finished(result), Ok(())) => result,
            (_, Err(error)) => Err(error),
            (Stage::Waiting(_) | Stage::Running, Ok(())) => {
                unreachable!("surroundings go well only around a job that ran")
            }
        };
        // A caller that stopped waiting is no fault.
        let _ = self.reply.send(result);
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}
