//! Messages over a server's standard input and output: one line each, and none without end.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use dodona_plugin::{LogLevel, PluginLog};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use super::ended::Ended;
use super::text;

/// How many messages may wait to be written to a server that does not read.
const WAITING: usize = 64;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A message on its way to the server, and whoever waits for it to be written.
type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// The pipes of a server's process.
pub(crate) struct Frames {
    stdout: ChildStdout,
    read: BytesMut,
    /// How much of what was read is known to hold no end of a line.
    searched: usize,
    most: usize,
    /// `None` once closed, which closes the server's input.
    out: Option<mpsc::Sender<Outgoing>>,
    log: PluginLog,
    ended: Arc<Ended>,
}

impl Frames {
    pub(crate) fn new(
        stdin: ChildStdin,
        stdout: ChildStdout,
        most: usize,
        log: PluginLog,
        ended: Arc<Ended>,
    ) -> Self {
        let (out, outgoing) = mpsc::channel(WAITING);
        tokio::spawn(write(stdin, outgoing));
        Self {
            stdout,
            read: BytesMut::new(),
            searched: 0,
            most,
            out: Some(out),
            log,
            ended,
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

    /// What a line says; what is no message is noted down and passed over, because programs print.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(message) => Some(message),
            Err(_) => {
                let shown = text::line(&String::from_utf8_lossy(&line[..line.len().min(400)]), 200);
                let told = format!("not a message: {shown}");
                self.log.write(LogLevel::Warning, "stdout", &told);
                None
            }
        }
    }

    /// Reads more. What was read stays if this is dropped halfway.
    async fn fill(&mut self) -> bool {
        if self.read.len() > self.most {
            let most = self.most;
            self.ended.because(&format!(
                "the server sent a message of more than {most} bytes"
            ));
            return false;
        }
        self.read.reserve(CHUNK);
        match self.stdout.read_buf(&mut self.read).await {
            Ok(0) => false,
            Ok(_) => true,
            Err(error) => {
                self.ended
                    .because(&format!("its output cannot be read: {error}"));
                false
            }
        }
    }
}

impl Transport<RoleClient> for Frames {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let mut line = serde_json::to_vec(&message).map_err(io::Error::other)?;
            line.push(b'\n');
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (written, wait) = oneshot::channel();
            let out = out.ok_or_else(closed)?;
            out.send((line, written)).await.map_err(|_| closed())?;
            wait.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(line) = self.line() {
                if let Some(message) = self.message(&line) {
                    return Some(message);
                }
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.out = None;
        Ok(())
    }
}

/// Writes one message after the other, whole, whatever becomes of those who wait.
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
