//! Lines through the pipes of a process: whole ones, and none without end.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

/// How many lines may wait to be written to a process that does not read.
const WAITING: usize = 64;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// Why there is no further line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("sent a message of more than {0} bytes")]
    TooLong(usize),
    #[error("has an output that cannot be read: {0}")]
    Read(#[from] io::Error),
}

/// Reads a process's output line by line.
pub(crate) struct LineReader {
    stdout: ChildStdout,
    read: BytesMut,
    /// How much of what was read is known to hold no end of a line.
    searched: usize,
    most: usize,
}

impl LineReader {
    /// A reader of lines with at most so many bytes.
    pub(crate) fn new(stdout: ChildStdout, most: usize) -> Self {
        Self {
            stdout,
            read: BytesMut::new(),
            searched: 0,
            most,
        }
    }

    /// The next line with its end; `None` when the output is closed. What was read stays if this is
    /// dropped halfway.
    pub(crate) async fn next(&mut self) -> Result<Option<BytesMut>, LineError> {
        loop {
            if let Some(line) = self.line() {
                return Ok(Some(line));
            }
            if self.read.len() > self.most {
                return Err(LineError::TooLong(self.most));
            }
            self.read.reserve(CHUNK);
            if self.stdout.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next line, if all of it was read.
    fn line(&mut self) -> Option<BytesMut> {
        match self.read[self.searched..].iter().position(|b| *b == b'\n') {
            Some(at) => {
                let line = self.read.split_to(self.searched + at + 1);
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.read.len();
                None
            }
        }
    }
}

/// A line on its way, and the sender that waits for it to be written.
type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// Writes lines to a process's input, one after the other and whole, whatever becomes of those who
/// wait. The input is closed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct LineWriter(mpsc::Sender<Outgoing>);

impl LineWriter {
    pub(crate) fn start(stdin: ChildStdin) -> Self {
        let (out, outgoing) = mpsc::channel(WAITING);
        tokio::spawn(write(stdin, outgoing));
        Self(out)
    }

    /// Writes a line, to which the end is added. Waits while the process does not read.
    pub(crate) async fn send(&self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (written, wait) = oneshot::channel();
        self.0.send((line, written)).await.map_err(|_| closed())?;
        wait.await.map_err(|_| closed())?
    }

    /// Queues a line if there is room, for where nothing can wait. Whether there was.
    pub(crate) fn try_send(&self, mut line: Vec<u8>) -> bool {
        line.push(b'\n');
        let (written, _) = oneshot::channel();
        self.0.try_send((line, written)).is_ok()
    }
}

async fn write(mut stdin: ChildStdin, mut outgoing: mpsc::Receiver<Outgoing>) {
    while let Some((line, written)) = outgoing.recv().await {
        let outcome = stdin.write_all(&line).await;
        let is_over = outcome.is_err();
        let _ = written.send(outcome);
        if is_over {
            return;
        }
    }
}
