//! `DAEMON_SERVER_REGISTER`: routes that plugins add, over real HTTP.

use std::sync::{Arc, Mutex};

use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::point::{DaemonServerRegister, PreToolExecute};
use dodona_plugin::hooks::{Hook, HookFailure, Reply};
use dodona_plugin::{
    CallCtx, CallError, Contribution, Emitter, NoParams, Plugin, PluginContext, plugin,
};
use dodona_proto::hook::{ServerRoute, Verdict};
use dodona_proto::{ErrorCode, MethodName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::Response;
use crate::support::{Builder, Server, User};

/// A shelf of notes, reachable by paths of its own.
#[derive(Default)]
struct Shelf {
    notes: Mutex<Vec<String>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Count {
    notes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct FaultParams {
    code: String,
}

#[plugin(name = "shelf")]
impl Shelf {
    /// Says it back, with who asked.
    #[method(scope = "shelf:read", tool(category = "meta"))]
    async fn read(&self, ctx: &CallCtx, p: Note) -> Result<Note, CallError> {
        let text = format!("{} for {}", p.text, ctx.principal.user);
        Ok(Note { text })
    }

    /// Keeps a note.
    #[method(scope = "shelf:write", mutates)]
    async fn keep(&self, _ctx: &CallCtx, p: Note) -> Result<Count, CallError> {
        let mut notes = self.notes.lock().unwrap();
        notes.push(p.text);
        Ok(Count { notes: notes.len() })
    }

    /// Fails with the code.
    #[method(scope = "shelf:read")]
    async fn raise(&self, _ctx: &CallCtx, p: FaultParams) -> Result<Count, CallError> {
        Err(CallError::new(ErrorCode::from(p.code), "as asked").log("a secret of the house"))
    }

    /// Only for plugins.
    #[method]
    async fn inner(&self, _ctx: &CallCtx, _p: NoParams) -> Result<Count, CallError> {
        Ok(Count { notes: 0 })
    }

    /// A stream.
    #[method(scope = "shelf:read")]
    async fn watch(
        &self,
        _ctx: &CallCtx,
        _p: NoParams,
        _out: Emitter<Note>,
    ) -> Result<(), CallError> {
        Ok(())
    }
}

/// The shelf with callbacks.
struct ShelfPlugin(fn() -> Vec<Hook>);

impl Plugin for ShelfPlugin {
    fn name(&self) -> &'static str {
        "shelf"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let methods = Arc::new(Shelf::default()).plugin_methods()?;
            let contribution = Contribution::new().methods(methods);
            Ok((self.0)()
                .into_iter()
                .fold(contribution, Contribution::hook))
        })
    }
}

fn route(path: &str, method: &str) -> ServerRoute {
    ServerRoute {
        path: path.to_owned(),
        method: MethodName::new(method).unwrap(),
    }
}

/// A callback that adds routes.
fn adding(routes: &'static [(&'static str, &'static str)]) -> Hook {
    Hook::inline::<DaemonServerRegister>(move |_| {
        let routes = routes.iter().map(|(path, method)| route(path, method));
        Ok(Reply::edit(routes.collect()))
    })
}

fn usual() -> Vec<Hook> {
    vec![adding(&[
        ("note", "shelf.read"),
        ("notes/new", "shelf.keep"),
        ("raise", "shelf.raise"),
    ])]
}

fn with(hooks: fn() -> Vec<Hook>) -> Builder {
    Server::builder().hub(|hub| hub.plugin(move || ShelfPlugin(hooks)))
}

/// Posts JSON to a path.
async fn post(user: &User<'_>, path: &str, body: &str) -> Response {
    send(
        user,
        "POST",
        path,
        &[("Content-Type", "application/json")],
        body,
    )
    .await
}

async fn send(
    user: &User<'_>,
    verb: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    let mut connection = user.connect().await;
    let bearer = user.bearer();
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend(headers);
    connection.request(verb, path, &all, body.as_bytes()).await;
    connection.response().await
}

/// The status of a `GET`.
async fn status(user: &User<'_>, path: &str) -> u16 {
    user.get(path).await.status
}

#[tokio::test]
async fn a_route_answers_a_get_with_the_query_as_parameters() {
    let server = with(usual).start().await;
    let response = server
        .owner()
        .get("/plugins/shelf/note?text=a%20b%2Fc")
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json(), json!({"text": "a b/c for local"}));
    server.stop().await;
}

#[tokio::test]
async fn a_route_answers_a_post_with_the_body_as_parameters() {
    let server = with(usual).start().await;
    let owner = server.owner();
    for kept in 1..=2 {
        let response = post(&owner, "/plugins/shelf/notes/new", r#"{"text": "x"}"#).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.json(), json!({"notes": kept}));
    }
    server.stop().await;
}

#[tokio::test]
async fn nobody_gets_in_without_a_token_nor_learns_what_is_there() {
    let server = with(usual).start().await;
    for path in ["note?text=x", "nothing"] {
        let mut connection = server.connect().await;
        let path = format!("/plugins/shelf/{path}");
        connection.request("GET", &path, &[], b"").await;
        let response = connection.response().await;
        assert_eq!(response.status, 401, "{response:?}");
        assert_eq!(response.code(), "auth.unauthenticated");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_token_without_the_scope_is_not_enough() {
    let server = with(usual).start().await;
    let (token, _) = server.token("alice", "test", &["shelf:read"]).await;
    let alice = server.with_token(&token);
    let response = post(&alice, "/plugins/shelf/notes/new", r#"{"text": "x"}"#).await;
    assert_eq!(response.status, 403, "{response:?}");
    assert_eq!(response.code(), "auth.forbidden");
    let response = alice.get("/plugins/shelf/note?text=x").await;
    assert_eq!(response.json(), json!({"text": "x for alice"}));
    server.stop().await;
}

#[tokio::test]
async fn requests_of_other_hosts_and_origins_are_refused() {
    let server = with(usual).start().await;
    let owner = server.owner();
    let path = "/plugins/shelf/note?text=x";
    let other = [("Origin", "http://elsewhere.example")];
    assert_eq!(send(&owner, "GET", path, &other, "").await.status, 403);
    let mut connection = server.connect().await;
    connection.host = "elsewhere.example".to_owned();
    let bearer = owner.bearer();
    let token = [("Authorization", bearer.as_str())];
    connection.request("GET", path, &token, b"").await;
    assert_eq!(connection.response().await.status, 403);
    server.stop().await;
}

#[tokio::test]
async fn parameters_are_checked_as_on_every_surface() {
    let server = with(usual).start().await;
    let owner = server.owner();
    for query in ["", "?txt=x", "?text=x&more=y", "?text=x&text=y"] {
        let response = owner.get(&format!("/plugins/shelf/note{query}")).await;
        assert_eq!(response.status, 400, "{query}: {response:?}");
        assert_eq!(response.code(), "rpc.invalid_params", "{query}");
    }
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for (body, code) in [
        ("", "rpc.invalid_params"),
        ("null", "rpc.invalid_params"),
        ("[1]", "rpc.invalid_params"),
        (r#"{"text": 1}"#, "rpc.invalid_params"),
        (r#"{"text": 1e999}"#, "rpc.invalid_params"),
        ("{", "rpc.parse_error"),
        (&deep, "limit.depth"),
    ] {
        let response = post(&owner, "/plugins/shelf/note", body).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (400, code),
            "{body}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_must_say_that_it_is_json_and_be_small_enough() {
    let server = with(usual)
        .options(|options| options.body_bytes = 100)
        .start()
        .await;
    let owner = server.owner();
    let path = "/plugins/shelf/note";
    let plain = [("Content-Type", "text/plain")];
    let response = send(&owner, "POST", path, &plain, r#"{"text": "x"}"#).await;
    assert_eq!(response.status, 415, "{response:?}");
    let large = json!({"text": "x".repeat(200)}).to_string();
    assert_eq!(post(&owner, path, &large).await.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn a_link_that_somebody_follows_changes_nothing() {
    let server = with(usual).start().await;
    let owner = server.owner();
    let response = owner.get("/plugins/shelf/notes/new?text=x").await;
    assert_eq!(
        (response.status, response.header("allow")),
        (405, Some("POST"))
    );
    let response = send(&owner, "DELETE", "/plugins/shelf/note", &[], "").await;
    assert_eq!(
        (response.status, response.header("allow")),
        (405, Some("GET, POST"))
    );
    let kept = post(&owner, "/plugins/shelf/notes/new", r#"{"text": "x"}"#).await;
    assert_eq!(kept.json(), json!({"notes": 1}));
    server.stop().await;
}

#[tokio::test]
async fn an_error_of_the_method_has_its_status_and_no_secret() {
    let server = with(usual).start().await;
    let owner = server.owner();
    for (code, status) in [
        ("hub.not_found", 404),
        ("limit.rate", 429),
        ("limit.deadline", 504),
        ("plugin.not_active", 503),
        ("store.unavailable", 503),
        ("policy.denied", 403),
        ("call.cancelled", 409),
        ("shelf.own", 500),
    ] {
        let response = owner
            .get(&format!("/plugins/shelf/raise?code={code}"))
            .await;
        assert_eq!((response.status, response.code().as_str()), (status, code));
        assert!(!response.text().contains("secret"), "{response:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_gate_has_its_say_over_a_route_too() {
    fn hooks() -> Vec<Hook> {
        let gate = Hook::inline::<PreToolExecute>(|call| {
            Ok(match call.arguments["text"] == "secret" {
                true => Reply::edit(Verdict::Deny("not this one".into())),
                false => Reply::none(),
            })
        });
        usual().into_iter().chain([gate]).collect()
    }
    let server = with(hooks).start().await;
    let owner = server.owner();
    let response = owner.get("/plugins/shelf/note?text=secret").await;
    assert_eq!(
        (response.status, response.code().as_str()),
        (403, "policy.denied")
    );
    assert_eq!(status(&owner, "/plugins/shelf/note?text=x").await, 200);
    server.stop().await;
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Watches this thread for as long as the guard lives.
    fn watch(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The lines in which all of the words are.
    fn lines(&self, words: &[&str]) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let told = text
            .lines()
            .filter(|line| words.iter().all(|word| line.contains(word)));
        told.count()
    }
}

const BAD: &[(&str, &str)] = &[
    ("", "shelf.read"),
    ("..", "shelf.read"),
    ("a/../b", "shelf.read"),
    ("a%2fb", "shelf.read"),
    ("/rooted", "shelf.read"),
    ("{wild}", "shelf.read"),
    ("foreign", "echo.say"),
    ("unknown", "shelf.nothing"),
    ("inside", "shelf.inner"),
    ("stream", "shelf.watch"),
    ("note", "shelf.raise"),
];

// On one thread, so that the subscriber sees all of it.
#[tokio::test(flavor = "current_thread")]
async fn a_route_that_is_none_is_refused_by_name_and_the_rest_is_mounted() {
    let log = Log::default();
    let guard = log.watch();
    let server = with(|| usual().into_iter().chain([adding(BAD)]).collect())
        .start()
        .await;
    let owner = server.owner();
    // The first to take a path has it.
    let response = owner.get("/plugins/shelf/note?text=x").await;
    assert_eq!(response.json(), json!({"text": "x for local"}));
    drop(guard);
    for (path, method) in BAD {
        let words = ["WARN", "plugin=shelf", &format!("path={path:?}"), method];
        assert_eq!(log.lines(&words), 1, "{path}");
    }
    for path in [
        "..", "a/../b", "a%2fb", "b", "foreign", "unknown", "inside", "stream", "",
    ] {
        let path = format!("/plugins/shelf/{path}");
        assert_eq!(status(&owner, &path).await, 404, "{path}");
    }
    for path in [
        "/plugins/echo/note",
        "/plugins/shelf/note/",
        "/plugins/shelf%2fnote",
        "/plugins/",
    ] {
        assert_eq!(status(&owner, path).await, 404, "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_callback_that_panics_fails_or_hangs_affects_nothing_else() {
    fn hooks() -> Vec<Hook> {
        let panics = Hook::inline::<DaemonServerRegister>(|_| panic!("boom"));
        let fails = Hook::inline::<DaemonServerRegister>(|_| Err(HookFailure::new("no disk")));
        let hangs = Hook::waiting::<DaemonServerRegister, _>(|_| std::future::pending());
        let late = hangs.timeout(std::time::Duration::from_millis(20));
        [panics, fails, late].into_iter().chain(usual()).collect()
    }
    let log = Log::default();
    let guard = log.watch();
    let server = with(hooks).start().await;
    let owner = server.owner();
    assert_eq!(status(&owner, "/plugins/shelf/note?text=x").await, 200);
    drop(guard);
    for why in ["panicked", "no disk", "longer than"] {
        assert_eq!(
            log.lines(&["plugin=shelf", "DAEMON_SERVER_REGISTER", why]),
            1,
            "{why}"
        );
    }
    server.still_serves().await;
    server.stop().await;
}

#[tokio::test]
async fn routes_go_and_come_with_their_plugin() {
    let server = with(usual).start().await;
    let owner = server.owner();
    let note = "/plugins/shelf/note?text=x";
    let shelf = json!({"plugin": "shelf"});
    assert_eq!(status(&owner, note).await, 200);
    owner.call("plugins.disable", shelf.clone()).await;
    assert_eq!(status(&owner, note).await, 404);
    owner.call("plugins.enable", shelf).await;
    assert_eq!(status(&owner, note).await, 200);
    server.stop().await;
}

#[tokio::test]
async fn without_routes_there_is_nothing_below_plugins() {
    let server = Server::start().await;
    let owner = server.owner();
    let response = owner.get("/plugins/echo/say").await;
    assert_eq!(
        (response.status, response.code().as_str()),
        (404, "hub.not_found")
    );
    assert_eq!(
        owner.ask("echo.say", Value::Null).await["error"]["code"],
        -32602
    );
    server.stop().await;
}
