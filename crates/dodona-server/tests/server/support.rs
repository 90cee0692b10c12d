//! A server in this process, and what every test says to it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{PluginHub, Request};
use dodona_proto::{Principal, Scopes, Surface, UserId};
use dodona_server::{ServerOptions, serve};
use dodona_testkit::{HubBuilder, TestHub};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http::{Connection, Response};
use crate::sse::Events;
use crate::ws::Socket;

/// How long anything may take before the test has failed. Never reached by one that passes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for an answer, but not for ever.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} took longer than {PATIENCE:?}"),
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) struct Server {
    pub(crate) hub: PluginHub,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
    _home: TestHub,
}

/// A server before its start.
pub(crate) struct Builder {
    pub(crate) options: ServerOptions,
    pub(crate) hub: HubBuilder,
    listen: &'static str,
}

impl Builder {
    pub(crate) fn options(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) fn hub(mut self, change: impl FnOnce(HubBuilder) -> HubBuilder) -> Self {
        self.hub = change(self.hub);
        self
    }

    pub(crate) fn listen(mut self, address: &'static str) -> Self {
        self.listen = address;
        self
    }

    pub(crate) async fn start(self) -> Server {
        let home = self.hub.start().await;
        let hub = PluginHub::clone(&home);
        let token = hub.local_token(&home.home().join("token")).await.unwrap();
        let listener = TcpListener::bind(self.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(serve(listener, hub.clone(), self.options, shutdown.clone()));
        Server {
            hub,
            address,
            token,
            shutdown,
            task,
            _home: home,
        }
    }
}

impl Server {
    pub(crate) fn builder() -> Builder {
        Builder {
            options: ServerOptions::default(),
            hub: TestHub::builder(),
            listen: "127.0.0.1:0",
        }
    }

    pub(crate) async fn start() -> Self {
        Self::builder().start().await
    }

    /// Shuts it down and waits until everything has ended.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        soon("the shutdown", self.task).await.unwrap().unwrap();
    }

    /// The owner of the machine, with every right.
    pub(crate) fn owner(&self) -> User<'_> {
        self.with_token(&self.token)
    }

    pub(crate) fn with_token(&self, token: &str) -> User<'_> {
        User {
            server: self,
            token: token.to_owned(),
        }
    }

    /// A new token, and its public id.
    pub(crate) async fn token(&self, user: &str, name: &str, scopes: &[&str]) -> (String, String) {
        let made = self
            .owner()
            .call(
                "hub.token_create",
                json!({"user": user, "name": name, "scopes": scopes}),
            )
            .await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&made["token"]), text(&made["info"]["id"]))
    }

    /// A user with every right but that to see others.
    pub(crate) async fn user(&self, name: &str) -> User<'_> {
        let scopes = [
            "echo:*",
            "hub:read",
            "hub:cancel",
            "hub:tokens",
            "hub:login",
            "hub:projects",
        ];
        let (token, _) = self.token(name, "test", &scopes).await;
        self.with_token(&token)
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// How many calls are running, nested ones included.
    pub(crate) fn running(&self) -> usize {
        let principal = Principal {
            user: UserId::new("local").unwrap(),
            scopes: Scopes::all(),
            surface: Surface::Internal,
        };
        self.hub.calls(&principal).len()
    }

    /// Asserts that somebody else is served as ever.
    pub(crate) async fn still_serves(&self) {
        let said = self
            .owner()
            .call("echo.say", json!({"text": "still here"}))
            .await;
        assert_eq!(said, json!({"text": "still here"}));
    }

    /// A call that needs no socket.
    pub(crate) async fn inside(&self, method: &str, params: Value) -> Value {
        let principal = Arc::new(Principal {
            user: UserId::new("local").unwrap(),
            scopes: Scopes::all(),
            surface: Surface::Internal,
        });
        self.hub
            .call(Request::new(principal, method, params))
            .await
            .unwrap()
    }
}

/// Somebody with a token.
pub(crate) struct User<'a> {
    server: &'a Server,
    pub(crate) token: String,
}

impl Deref for User<'_> {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.server
    }
}

impl User<'_> {
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Posts a body and gives back the whole answer.
    pub(crate) async fn post(&self, body: impl AsRef<[u8]>) -> Response {
        let mut connection = self.connect().await;
        connection.post(&self.token, body.as_ref()).await;
        connection.response().await
    }

    /// Posts a body that must be answered with JSON.
    pub(crate) async fn answer(&self, body: impl AsRef<[u8]>) -> Value {
        let response = self.post(body).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }

    /// A call: the whole response object.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.answer(request.to_string()).await
    }

    /// A call that must succeed.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let mut connection = self.connect().await;
        connection
            .request("GET", path, &[("Authorization", &self.bearer())], b"")
            .await;
        connection.response().await
    }

    /// Starts a streaming method over HTTP; the stream's id.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> String {
        let begun = self.call(method, params).await;
        let id = begun["stream_id"].as_str().unwrap().to_owned();
        assert_eq!(begun["sse_url"], json!(format!("/streams/{id}")));
        id
    }

    /// Reads a stream after an item.
    pub(crate) async fn events(&self, stream: &str, after: u64) -> Events {
        Events::open(self.address, &self.token, stream, after).await
    }

    pub(crate) async fn socket(&self) -> Socket {
        Socket::open(self.address, &self.token).await
    }
}
