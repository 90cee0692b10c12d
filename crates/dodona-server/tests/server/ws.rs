//! A WebSocket client that sends exactly the frames it is told to.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::Connection;

pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

pub(crate) struct Socket {
    pub(crate) connection: Connection,
    /// Items and answers that came while another one was waited for.
    waiting: VecDeque<Value>,
    id: u64,
}

/// A frame; `None` in its place is the end of the connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) opcode: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code of a close frame.
    #[track_caller]
    pub(crate) fn close_code(&self) -> u16 {
        assert_eq!(self.opcode, CLOSE, "{self:?}");
        u16::from_be_bytes([self.payload[0], self.payload[1]])
    }
}

/// The bytes of a frame.
pub(crate) fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload.len() {
        n @ 0..126 => bytes.push(masked | n as u8),
        n @ 126..65536 => {
            bytes.push(masked | 126);
            bytes.extend((n as u16).to_be_bytes());
        }
        n => {
            bytes.push(masked | 127);
            bytes.extend((n as u64).to_be_bytes());
        }
    }
    bytes.extend(mask.iter().flatten());
    let key = mask.unwrap_or_default();
    bytes.extend(payload.iter().zip(key.iter().cycle()).map(|(b, k)| b ^ k));
    bytes
}

pub(crate) const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

impl Socket {
    pub(crate) async fn open(address: SocketAddr, token: &str) -> Self {
        Self::over(Connection::open(address).await, token).await
    }

    pub(crate) async fn over(connection: Connection, token: &str) -> Self {
        Self::try_over(connection, token).await.expect("an upgrade")
    }

    /// `None` when the connection ends before the upgrade.
    pub(crate) async fn try_over(mut connection: Connection, token: &str) -> Option<Self> {
        let mut head = format!("GET /rpc HTTP/1.1\r\nHost: {}\r\n", connection.host);
        for (name, value) in UPGRADE {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Authorization: Bearer {token}\r\n\r\n"));
        connection.try_send(head.as_bytes()).await.ok()?;
        let head = connection.head().await?;
        assert_eq!(head.status, 101, "{head:?}");
        // The answer to the key above, from RFC 6455.
        let accept = head.header("sec-websocket-accept");
        assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        Some(Self {
            connection,
            waiting: VecDeque::new(),
            id: 0,
        })
    }

    pub(crate) async fn frame(&mut self, first: u8, payload: &[u8]) {
        let bytes = frame(first, payload, Some([7, 11, 13, 17]));
        self.connection.send(&bytes).await;
    }

    /// A whole text message.
    pub(crate) async fn say(&mut self, text: &str) {
        self.frame(0x80 | TEXT, text.as_bytes()).await;
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) async fn next_frame(&mut self) -> Option<Frame> {
        let connection = &mut self.connection;
        let head = connection.read_exactly(2).await?;
        assert_eq!(
            head[1] & 0x80,
            0,
            "a server does not mask, or this is out of step"
        );
        let length = match head[1] {
            126 => {
                let bytes = connection.read_exactly(2).await?;
                u64::from(u16::from_be_bytes(bytes.try_into().unwrap()))
            }
            127 => u64::from_be_bytes(connection.read_exactly(8).await?.try_into().unwrap()),
            short => u64::from(short),
        };
        assert_eq!(head[0] & 0x80, 0x80, "the server does not fragment");
        Some(Frame {
            opcode: head[0] & 0x0f,
            payload: connection
                .read_exactly(usize::try_from(length).unwrap())
                .await?,
        })
    }

    /// The next frame that is no ping.
    pub(crate) async fn next_message(&mut self) -> Option<Frame> {
        loop {
            let frame = self.next_frame().await?;
            if frame.opcode != PING {
                return Some(frame);
            }
        }
    }

    /// The next text message, parsed.
    pub(crate) async fn json(&mut self) -> Value {
        if let Some(value) = self.waiting.pop_front() {
            return value;
        }
        self.fresh_json().await.expect("a message")
    }

    /// The next text message; `None` when a close frame or the end came first.
    pub(crate) async fn fresh_json(&mut self) -> Option<Value> {
        let frame = self.next_message().await?;
        match frame.opcode {
            TEXT => Some(serde_json::from_slice(&frame.payload).unwrap()),
            CLOSE => None,
            other => panic!("a frame of kind {other}"),
        }
    }

    /// Sends a call; its id.
    pub(crate) async fn send_call(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let call = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.say(&call.to_string()).await;
        self.id
    }

    /// The answer with this id; what else comes is kept.
    pub(crate) async fn answer_to(&mut self, id: u64) -> Value {
        let is_it = |value: &Value| value["id"] == json!(id);
        if let Some(at) = self.waiting.iter().position(is_it) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let value = self.fresh_json().await.expect("an answer");
            if is_it(&value) {
                return value;
            }
            self.waiting.push_back(value);
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_call(method, params).await;
        self.answer_to(id).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Subscribes; the stream's id.
    pub(crate) async fn subscribe(&mut self, params: Value) -> String {
        let id = self.call("hub.subscribe", params).await;
        id.as_str().unwrap().to_owned()
    }

    /// The same; `None` when the connection ended first.
    pub(crate) async fn try_subscribe(&mut self, params: Value) -> Option<()> {
        let call = json!({"jsonrpc": "2.0", "id": 0, "method": "hub.subscribe", "params": params});
        let frame = frame(0x80 | TEXT, call.to_string().as_bytes(), Some([1, 2, 3, 4]));
        self.connection.try_send(&frame).await.ok()?;
        let answer = self.fresh_json().await?;
        assert_eq!(answer["id"], 0, "{answer}");
        assert!(answer["result"].is_string(), "{answer}");
        Some(())
    }

    /// The next item of a subscription; `None` when the connection ended first.
    pub(crate) async fn try_item(&mut self, stream: &str) -> Option<Value> {
        let message = match self.waiting.pop_front() {
            Some(value) => value,
            None => self.fresh_json().await?,
        };
        assert_eq!(message["method"], "hub.item", "{message}");
        assert_eq!(message["params"]["subscription"], stream);
        assert!(message.get("id").is_none(), "a notification has no id");
        Some(message["params"]["result"].clone())
    }

    pub(crate) async fn item(&mut self, stream: &str) -> Value {
        self.try_item(stream).await.expect("an item")
    }

    /// Every item to the terminal.
    pub(crate) async fn items(&mut self, stream: &str) -> Vec<Value> {
        let mut items = Vec::new();
        loop {
            let item = self.item(stream).await;
            let ended = item.get("status").is_some() && item["call_id"] == stream;
            items.push(item);
            if ended {
                return items;
            }
        }
    }

    /// The close frame at the end of the connection, after whatever else came.
    pub(crate) async fn close_frame(&mut self) -> Option<Frame> {
        loop {
            let frame = self.next_frame().await?;
            if frame.opcode == CLOSE {
                return Some(frame);
            }
        }
    }
}
