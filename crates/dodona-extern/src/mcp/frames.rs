//! Messages over a server's standard input and output: one line each, and none without end.

use std::io;
use std::sync::Arc;

use dodona_plugin::{LogLevel, PluginLog};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::process::{ChildStdin, ChildStdout};

use super::tap::Line;
use super::unreadable::Unreadable;
use crate::child::{LineReader, LineWriter};
use crate::text;

/// The pipes of a server's process.
pub(crate) struct Frames {
    lines: LineReader,
    /// `None` once closed, which closes the server's input.
    out: Option<LineWriter>,
    log: PluginLog,
    line: Arc<Line>,
}

impl Frames {
    pub(crate) fn new(
        stdin: ChildStdin,
        stdout: ChildStdout,
        most: usize,
        log: PluginLog,
        line: Arc<Line>,
    ) -> Self {
        Self {
            lines: LineReader::new(stdout, most),
            out: Some(LineWriter::start(stdin)),
            log,
            line,
        }
    }

    /// Parses a line. A line that is not a message is logged and skipped, because programs print. An
    /// unreadable answer becomes an error of its call.
    fn message(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(message) => Some(message),
            Err(error) => {
                let shown = text::line(&String::from_utf8_lossy(&line[..line.len().min(400)]), 200);
                let told = format!("not a message: {shown}");
                self.log.write(LogLevel::Warning, "stdout", &told);
                let found = Unreadable::examine(line, &error)?;
                match found.id {
                    Some(id) if self.line.is_open(&id) => {
                        Some(Unreadable::into_error(id, self.line.server(), &found.what))
                    }
                    _ => {
                        self.line
                            .stray(&format!("{} and belongs to no call", found.what));
                        None
                    }
                }
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
            let line = serde_json::to_vec(&message).map_err(io::Error::other)?;
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            out.ok_or_else(closed)?.send(line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.lines.next().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.line.ended.because(&format!("the server {error}"));
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.out = None;
        Ok(())
    }
}
