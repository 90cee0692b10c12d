//! Connections beyond the limit: they get an answer that says so, and cost next to nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The whole answer. It does not depend on the request, which is not read for it.
const ANSWER: &str = "HTTP/1.1 503 Service Unavailable\r\n\
    Content-Type: application/json\r\n\
    Retry-After: 5\r\n\
    Content-Length: 43\r\n\
    Connection: close\r\n\r\n\
    {\"error\":\"too many connections, try later\"}";

/// How many connections are being refused at once; those beyond are closed without a word.
const AT_ONCE: usize = 256;

/// How long a peer may take to read the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Minimum time between two log lines about refused connections.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Refuses connections.
pub(crate) struct Refusals {
    places: Arc<Semaphore>,
    /// Since the last line in the log.
    count: u64,
    logged: Option<Instant>,
}

impl Refusals {
    pub(crate) fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE)),
            count: 0,
            logged: None,
        }
    }

    pub(crate) fn refuse(&mut self, stream: TcpStream, limit: usize) {
        self.count += 1;
        if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            let count = std::mem::take(&mut self.count);
            self.logged = Some(Instant::now());
            tracing::warn!(
                count,
                limit,
                "refused connections: the limit `server.max_connections` is reached"
            );
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, answer(stream)).await;
            drop(place);
        });
    }
}

/// What the peer sends is read to its end after the answer: closing with unread data would reset
/// the connection, and the peer might never see the answer.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(ANSWER.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ANSWER;

    #[test]
    fn the_answer_has_the_length_that_it_says() {
        let (head, body) = ANSWER.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{}",
            body.len()
        );
    }
}
