//! Ctrl-C, and being told to end.

use std::io;

use dodona_proto::ExitKind;
use tokio_util::sync::CancellationToken;

/// Whether the user wants the command to end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(CancellationToken);

impl Interrupt {
    /// From now on a first interrupt asks the command to end, and a second ends the process.
    pub(crate) fn watch() -> io::Result<Self> {
        let token = CancellationToken::new();
        let mut signals = Signals::listen()?;
        let first = token.clone();
        tokio::spawn(async move {
            signals.next().await;
            first.cancel();
            signals.next().await;
            std::process::exit(ExitKind::Cancelled as i32);
        });
        Ok(Self(token))
    }

    /// Completes when the command is to end.
    pub(crate) async fn requested(&self) {
        self.0.cancelled().await;
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

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
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

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
