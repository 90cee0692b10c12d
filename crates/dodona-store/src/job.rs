//! A caller's function in a queue, and its result.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use tokio::sync::oneshot;

use crate::error::DbError;
use crate::tx::Tx;

/// Type-erased work, so that one queue holds all kinds.
pub(crate) trait Job: Send {
    /// Whether the caller has stopped waiting.
    fn is_abandoned(&self) -> bool;

    /// Runs the work and stores its result. Also returns the error, or the panic, to the runner.
    fn run(&mut self, tx: &Tx<'_>) -> Result<(), DbError>;

    /// Sends the result to the caller: the stored one if the transaction succeeded or the work failed itself,
    /// otherwise the error of the transaction.
    fn settle(self: Box<Self>, surroundings: Result<(), DbError>);
}

/// The channel to the caller.
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
        // The caller may have stopped waiting.
        let _ = self.reply.send(result);
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
        .to_owned()
}
