//! The socket of one connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a peer that is still sending is listened to after the last word to it.
const LINGER: Duration = Duration::from_secs(1);

/// What a connection holds for as long as its socket is open, upgraded or not.
pub(crate) struct Place {
    pub(crate) among: OwnedSemaphorePermit,
    pub(crate) tracked: TaskTrackerToken,
}

/// A socket that does not wait for ever for a peer that takes nothing: a write fails when no
/// byte was taken for a while. A stalled reader holds no memory (streams are read from the
/// journal), but its socket and task are worth having back.
pub(crate) struct Socket {
    /// There until dropped.
    stream: Option<(TcpStream, Place)>,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, place: Place, patience: Duration) -> Self {
        Self {
            stream: Some((stream, place)),
            patience,
            waiting: None,
        }
    }

    fn stream(&mut self) -> Pin<&mut TcpStream> {
        let (stream, _) = self.stream.as_mut().expect("taken only when dropped");
        Pin::new(stream)
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let until = Instant::now() + self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the peer takes nothing",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Socket {
    /// What arrives at a closed socket makes the system reset the connection, and the peer may
    /// never see what was last said to it: why it was refused. So it is listened to for a while.
    fn drop(&mut self) {
        let Some((stream, place)) = self.stream.take() else {
            return;
        };
        let may_send = match stream.try_read(&mut [0; 1]) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if let (true, Ok(runtime)) = (may_send, Handle::try_current()) {
            let Place { among, tracked } = place;
            // A shutdown need not wait for this.
            drop(tracked);
            runtime.spawn(async move {
                let _ = tokio::time::timeout(LINGER, discard(stream)).await;
                drop(among);
            });
        }
    }
}

async fn discard(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut scratch = vec![0; 64 * 1024];
    while stream.read(&mut scratch).await? > 0 {}
    Ok(())
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buf)
    }
}

// Not vectored: for answers as short as ours, copying them into one buffer is cheaper than
// having the system gather them.
impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(cx, buf);
        self.watch(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Holds nothing back, and so says nothing about what the peer takes.
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
