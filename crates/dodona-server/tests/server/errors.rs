//! Every error code as the wire tells it.

use dodona_plugin::activation::Activating;
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::ErrorCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::Server;

/// The whole table. The HTTP status is that of a request that did not get as far as a method;
/// with a method's answer it is always 200.
const TABLE: &str = "
    rpc.parse_error           -32700  failed
    rpc.invalid_request       -32600  failed
    rpc.method_not_found      -32601  failed
    rpc.invalid_params        -32602  failed
    rpc.internal_error        -32603  failed
    call.panicked             -32603  failed
    auth.unauthenticated      -32001  refused
    auth.forbidden            -32002  refused
    hub.not_found             -32004  failed
    limit.rate                -32005  limited    retryable
    limit.concurrency         -32005  limited    retryable
    limit.turns               -32005  limited
    limit.size                -32005  limited
    limit.depth               -32005  limited
    limit.deadline            -32005  limited    retryable
    plugin.not_active         -32006  failed     retryable
    call.cancelled            -32007  cancelled
    call.interrupted          -32007  failed     retryable
    policy.approval_required  -32008  refused
    policy.denied             -32009  refused
    store.unavailable         -32010  failed     retryable
    faults.own                -32000  failed
";

/// A plugin that fails as asked.
struct Faults;

#[derive(Deserialize, JsonSchema)]
struct FaultParams {
    code: String,
}

#[derive(Serialize, JsonSchema)]
struct Never {}

#[plugin(name = "faults")]
impl Faults {
    /// Fails with the code.
    #[method(scope = "faults:use")]
    async fn raise(&self, _ctx: &CallCtx, p: FaultParams) -> Result<Never, CallError> {
        Err(CallError::new(ErrorCode::from(p.code), "as asked")
            .hint("ask otherwise")
            .data(json!({"n": 1}))
            .log("a secret of the house"))
    }
}

struct FaultsPlugin;

impl Plugin for FaultsPlugin {
    fn name(&self) -> &'static str {
        "faults"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let methods = std::sync::Arc::new(Faults).plugin_methods();
        Box::pin(async { Ok(Contribution::new().methods(methods?)) })
    }
}

#[tokio::test]
async fn every_code_has_its_number_on_every_transport() {
    let server = Server::builder()
        .hub(|hub| hub.plugin(|| FaultsPlugin))
        .start()
        .await;
    let owner = server.owner();
    let mut socket = owner.socket().await;
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let (name, number, status) = (cells[0], cells[1].parse::<i64>().unwrap(), cells[2]);
        let expected = json!({
            "code": number,
            "message": "as asked",
            "data": {"code": name, "retryable": cells.len() > 3, "hint": "ask otherwise", "data": {"n": 1}},
        });
        let params = json!({"code": name});
        let over_http = owner.ask("faults.raise", params.clone()).await;
        assert_eq!(over_http["error"], expected, "{name}");
        let over_websocket = socket.ask("faults.raise", params.clone()).await;
        assert_eq!(over_websocket["error"], expected, "{name}");

        // As a stream: an error item, unless it was cancelled, then the terminal.
        let stream = socket
            .subscribe(json!({"method": "faults.raise", "params": params}))
            .await;
        let items = socket.items(&stream).await;
        assert_eq!(items.last().unwrap()["status"], status, "{name}");
        if name != "call.cancelled" {
            assert_eq!(items[0]["code"], name);
            assert_eq!(items[0]["recoverable"], false);
        }
        let text = format!("{over_http}{over_websocket}{items:?}");
        assert!(!text.contains("secret"), "{text}");
    }
    server.stop().await;
}

#[test]
fn the_table_is_complete() {
    // Whoever adds a code is told by this match to add a line above.
    let name = |code: &ErrorCode| match code {
        ErrorCode::ParseError
        | ErrorCode::InvalidRequest
        | ErrorCode::MethodNotFound
        | ErrorCode::InvalidParams
        | ErrorCode::Internal
        | ErrorCode::Panicked
        | ErrorCode::Unauthenticated
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::RateLimited
        | ErrorCode::TooManyCalls
        | ErrorCode::TooManyTurns
        | ErrorCode::TooLarge
        | ErrorCode::TooDeep
        | ErrorCode::DeadlineExceeded
        | ErrorCode::PluginNotActive
        | ErrorCode::Cancelled
        | ErrorCode::Interrupted
        | ErrorCode::Denied
        | ErrorCode::ApprovalRequired
        | ErrorCode::Storage
        | ErrorCode::Plugin(_) => code.to_string(),
    };
    let names: Vec<&str> = TABLE
        .split_whitespace()
        .filter(|word| word.contains('.'))
        .collect();
    assert_eq!(names.len(), 22);
    for known in names {
        assert_eq!(name(&ErrorCode::from(known.to_owned())), known);
    }
}

#[tokio::test]
async fn a_request_that_reaches_no_method_has_a_status_of_its_own() {
    let server = Server::builder()
        .options(|options| options.body_bytes = 100)
        .start()
        .await;
    let owner = server.owner();
    let none = server.with_token(
        "dod_000000000000_0000000000000000000000000000000000000000000000000000000000000000",
    );
    let stream = uuid_like();
    let cases = [
        (
            none.get(&format!("/streams/{stream}")).await,
            401,
            "auth.unauthenticated",
        ),
        (none.post("{}").await, 401, "auth.unauthenticated"),
        (
            owner.get(&format!("/streams/{stream}")).await,
            404,
            "hub.not_found",
        ),
        (owner.get("/streams/nothing").await, 404, "hub.not_found"),
        (
            owner.get(&format!("/streams/{stream}?after=x")).await,
            400,
            "rpc.invalid_params",
        ),
        (
            owner.get("/login?code=guessed").await,
            401,
            "auth.unauthenticated",
        ),
        (owner.get("/login").await, 400, "rpc.invalid_params"),
        (owner.post(" ".repeat(101)).await, 413, "limit.size"),
    ];
    for (response, status, code) in cases {
        assert_eq!((response.status, response.code().as_str()), (status, code));
        assert_eq!(response.header("www-authenticate").is_some(), status == 401);
    }
    server.stop().await;
}

fn uuid_like() -> String {
    "00000000-0000-4000-8000-000000000000".to_owned()
}
