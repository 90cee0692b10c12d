//! A client that sends exactly the bytes it is told to.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::soon;

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) host: String,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let is_json = self.header("content-type") == Some("application/json");
        assert!(is_json, "{self:?} is not JSON");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The dotted code of the error in it.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["data"]["code"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = soon("connecting", TcpStream::connect(address))
            .await
            .unwrap();
        Self::over(stream, address)
    }

    pub(crate) fn over(stream: TcpStream, address: SocketAddr) -> Self {
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            host: address.to_string(),
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        soon("sending", self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends as much as the other side takes before it goes away.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        soon("sending", self.stream.write_all(bytes)).await
    }

    pub(crate) async fn request(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let mut head = format!("{verb} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || verb == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes).await;
    }

    /// A JSON-RPC body with a token.
    pub(crate) async fn post(&mut self, token: &str, body: &[u8]) {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        self.request("POST", "/rpc", &headers, body).await;
    }

    /// More bytes; `false` at the end.
    async fn fill(&mut self) -> bool {
        let read = soon("reading", self.stream.read_buf(&mut self.buffer)).await;
        matches!(read, Ok(n) if n > 0)
    }

    /// Bytes up to and with a mark; `None` when the connection ends before.
    pub(crate) async fn read_to(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..]
                .windows(mark.len())
                .position(|window| window == mark);
            if let Some(at) = found {
                let rest = self.buffer.split_off(from + at + mark.len());
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            from = self.buffer.len().saturating_sub(mark.len() - 1);
            if !self.fill().await {
                return None;
            }
        }
    }

    pub(crate) async fn read_exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < bytes {
            if !self.fill().await {
                return None;
            }
        }
        let rest = self.buffer.split_off(bytes);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// The status line and headers of the next response; `None` when the connection has ended.
    pub(crate) async fn head(&mut self) -> Option<Response> {
        let head = String::from_utf8(self.read_to(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_ascii_lowercase(), value.trim().to_owned())
            })
            .collect();
        Some(Response {
            status,
            headers,
            body: Vec::new(),
        })
    }

    /// The next piece of a chunked body; `None` at its proper end, an error when it breaks off.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, BrokenOff> {
        let size = self.read_to(b"\r\n").await.ok_or(BrokenOff)?;
        let size = std::str::from_utf8(&size).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        let piece = self.read_exactly(size + 2).await.ok_or(BrokenOff)?;
        Ok((size > 0).then(|| piece[..size].to_owned()))
    }

    pub(crate) async fn try_response(&mut self) -> Option<Response> {
        let mut response = self.head().await?;
        if let Some(length) = response.header("content-length") {
            let length = length.parse().unwrap();
            response.body = self.read_exactly(length).await?;
        } else if response.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.chunk().await.ok()? {
                response.body.extend(piece);
            }
        }
        Some(response)
    }

    pub(crate) async fn response(&mut self) -> Response {
        self.try_response().await.expect("a response")
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn closed(&mut self) {
        while self.fill().await {}
    }
}

/// A body that ended before its end.
#[derive(Debug, PartialEq)]
pub(crate) struct BrokenOff;
