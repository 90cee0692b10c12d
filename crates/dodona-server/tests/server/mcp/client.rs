//! A client that sends what it is told to.

use serde_json::{Value, json};

use crate::http::{Connection, Response};
use crate::support::{User, soon};

const KINDS: &str = "application/json, text/event-stream";

/// A client with a session.
pub(super) struct Client<'a> {
    pub(super) user: &'a User<'a>,
    pub(super) session: String,
    path: String,
}

impl<'a> Client<'a> {
    pub(super) async fn begin(user: &'a User<'a>) -> Self {
        Self::begin_at(user, "/mcp").await
    }

    pub(super) async fn begin_at(user: &'a User<'a>, path: &str) -> Self {
        Self::begin_with(user, path, json!({})).await
    }

    /// One that can do something for its server.
    pub(super) async fn begin_with(user: &'a User<'a>, path: &str, can: Value) -> Self {
        let mut begin = initialize();
        begin["params"]["capabilities"] = can;
        let begun = post(user, path, None, &begin).await;
        assert_eq!(begun.status, 200, "{begun:?}");
        let session = begun.header("mcp-session-id").unwrap().to_owned();
        let (user, path) = (user, path.to_owned());
        let client = Self {
            user,
            session,
            path,
        };
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post(&note).await.status, 202);
        client
    }

    pub(super) async fn post(&self, message: &Value) -> Response {
        post(self.user, &self.path, Some(&self.session), message).await
    }

    /// Sends a request and leaves the answer to be read.
    pub(super) async fn open(&self, message: &Value) -> Connection {
        let mut connection = self.user.connect().await;
        send(
            &mut connection,
            self.user,
            &self.path,
            Some(&self.session),
            message,
        )
        .await;
        connection
    }

    /// The messages that answer a request; the last is the answer.
    pub(super) async fn messages(&self, method: &str, params: Value) -> Vec<Value> {
        let answer = self.post(&request(method, params)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        messages(&answer)
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Value {
        self.messages(method, params).await.pop().unwrap()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .ask(
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            )
            .await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// What the server says while it works on a request.
    pub(super) async fn watch(&self, method: &str, params: Value) -> Told {
        Told::of(self.open(&request(method, params)).await).await
    }

    /// What the server says without being asked.
    pub(super) async fn listen(&self) -> Told {
        Told::of(self.send_other("GET").await).await
    }

    pub(super) async fn other(&self, verb: &str) -> Response {
        self.send_other(verb).await.response().await
    }

    async fn send_other(&self, verb: &str) -> Connection {
        let mut connection = self.user.connect().await;
        let headers = [
            ("Authorization", self.user.bearer()),
            ("Accept", KINDS.to_owned()),
            ("Mcp-Session-Id", self.session.clone()),
        ];
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        connection.request(verb, &self.path, &headers, b"").await;
        connection
    }
}

/// The messages of a stream, as they come.
pub(super) struct Told {
    connection: Connection,
    text: String,
}

impl Told {
    pub(super) async fn of(mut connection: Connection) -> Self {
        let head = connection.head().await.unwrap();
        assert_eq!(
            head.header("content-type"),
            Some("text/event-stream"),
            "{head:?}"
        );
        let text = String::new();
        Self { connection, text }
    }

    /// The next message that is as wanted.
    pub(super) async fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        soon(what, async {
            loop {
                let message = self.next().await;
                let message = message.unwrap_or_else(|| panic!("the stream ended before {what}"));
                if is_it(&message) {
                    return message;
                }
            }
        })
        .await
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((line, rest)) = self.text.split_once('\n') {
                let data = line.strip_prefix("data:").unwrap_or_default();
                let message = serde_json::from_str(data.trim()).ok();
                self.text = rest.to_owned();
                if message.is_some() {
                    return message;
                }
            }
            let piece = self.connection.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next message with this method.
    pub(super) async fn method(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
            .await
    }

    /// The answer to the request.
    pub(super) async fn result(&mut self) -> Value {
        let answer = |message: &Value| message["id"] == 7 && message.get("method").is_none();
        self.until("the answer", answer).await["result"].clone()
    }
}

pub(super) fn initialize() -> Value {
    let about = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    request("initialize", params)
}

pub(super) fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// What a stateless client sends: everything with each request.
pub(super) fn stateless(method: &str, params: Value) -> Value {
    let mut message = stateless_with(method, params, json!({}));
    message["params"]["_meta"]["progressToken"] = "p".into();
    message
}

/// The same of one that can do something for its server.
pub(super) fn stateless_with(method: &str, mut params: Value, can: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    request(method, params)
}

pub(super) async fn post(
    user: &User<'_>,
    path: &str,
    session: Option<&str>,
    message: &Value,
) -> Response {
    let mut connection = user.connect().await;
    send(&mut connection, user, path, session, message).await;
    connection.response().await
}

pub(super) async fn send(
    connection: &mut Connection,
    user: &User<'_>,
    path: &str,
    session: Option<&str>,
    message: &Value,
) {
    let bearer = user.bearer();
    let mut headers = vec![
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", KINDS),
    ];
    let method = message["method"].as_str().unwrap_or_default();
    let name = message["params"]["name"].as_str();
    if message["params"]["_meta"].is_object() && session.is_none() {
        headers.extend([
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ]);
        headers.extend(name.map(|name| ("Mcp-Name", name)));
    }
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    connection
        .request("POST", path, &headers, message.to_string().as_bytes())
        .await;
}

/// The messages of an answer, whichever form it has.
pub(super) fn messages(answer: &Response) -> Vec<Value> {
    if answer.header("content-type") == Some("application/json") {
        return vec![answer.json()];
    }
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.map(str::trim).filter(|data| !data.is_empty());
    messages
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}
