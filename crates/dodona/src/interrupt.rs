//! Ctrl-C, and being told to end.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_proto::ExitKind;
use tokio_util::sync::CancellationToken;

/// Whether the user wants the command to end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<Wishes>);

#[derive(Debug, Default)]
struct Wishes {
    /// That what is being done stops. The next one is another token.
    stop: Mutex<CancellationToken>,
    /// That the process ends.
    end: CancellationToken,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Ctrl-C.
    Stop,
    /// `kill`.
    End,
}

impl Interrupt {
    /// From now on a first interrupt asks the command to end, and a second ends the process.
    pub(crate) fn watch() -> io::Result<Self> {
        let wishes = Arc::new(Wishes::default());
        let mut signals = Signals::listen()?;
        let noted = Arc::clone(&wishes);
        tokio::spawn(async move {
            while noted.note(signals.next().await) {}
            std::process::exit(ExitKind::Cancelled as i32);
        });
        Ok(Self(wishes))
    }

    /// Completes when the command is to stop what it does.
    pub(crate) async fn requested(&self) {
        let stop = self.0.stop().clone();
        stop.cancelled().await;
    }

    /// Completes when the process is to end, which Ctrl-C does not ask for.
    pub(crate) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// Whether the process is to end.
    pub(crate) fn is_ended(&self) -> bool {
        self.0.end.is_cancelled()
    }

    /// What was to stop has stopped: the next interrupt is a first one again.
    pub(crate) fn again(&self) {
        if !self.is_ended() {
            *self.0.stop() = CancellationToken::new();
        }
    }
}

impl Wishes {
    fn stop(&self) -> MutexGuard<'_, CancellationToken> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a wish; false if it is a second one.
    fn note(&self, wish: Wish) -> bool {
        if wish == Wish::End {
            self.end.cancel();
        }
        let stop = self.stop();
        let first = !stop.is_cancelled();
        stop.cancel();
        first
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.terminate.recv() => Wish::End,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Wish {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Wish::Stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_is_a_first_one_after_what_it_stopped() {
        let interrupt = Interrupt(Arc::default());
        assert!(interrupt.0.note(Wish::Stop));
        assert!(!interrupt.0.note(Wish::Stop));
        interrupt.again();
        assert!(interrupt.0.note(Wish::Stop));
        assert!(!interrupt.is_ended());
    }

    #[test]
    fn a_wish_to_end_stays() {
        let interrupt = Interrupt(Arc::default());
        assert!(interrupt.0.note(Wish::End));
        interrupt.again();
        assert!(interrupt.is_ended() && !interrupt.0.note(Wish::Stop));
    }
}
