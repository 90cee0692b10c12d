//! Methods of a process.

use dodona_proto::{ItemBody, PluginState};
use serde_json::json;

use crate::support::{Home, ask, ask_until, assert_active, is_alive, log, status, until};

const METHODS: &str = r#"
[[process.methods]]
name = "count"
doc = "Count the words of a text."
read_only = true
tool = true
params = { type = "object", properties = { text = { type = "string" } }, required = ["text"] }
result = { type = "object", properties = { words = { type = "integer" } }, required = ["words"] }
[[process.methods]]
name = "who"
doc = "Return what the process knows."
[[process.methods]]
name = "fail"
doc = "Fail."
params = { type = "object", properties = { how = { type = "string" } } }
result = { type = "object", properties = { n = { type = "integer" } } }
[[process.methods]]
name = "tick"
doc = "Emit items."
streaming = true
result = { type = "object", title = "Tick", properties = { n = { type = "integer" } }, required = ["n"] }
[[process.methods]]
name = "hang"
doc = "Hang."
timeout = 0.5
params = { type = "object", properties = { polite = { type = "boolean" } } }
[[process.methods]]
name = "pid"
doc = "Return the id of the process."
read_only = true
"#;

const PROGRAM: &str = r#"
started = {}

def initialize(params):
    started.update(params)

def call(request):
    method, params, context = request["method"], request["params"], request["context"]
    if method == "count":
        return {"words": len(params["text"].split())}
    if method == "who":
        return {"context": context, "started": started, "cwd": os.getcwd(), "env": dict(os.environ)}
    if method == "fail":
        if params["how"] == "code": raise Failed("probe.no_such_word", "there is no such word")
        if params["how"] == "foreign": raise Failed("auth.forbidden", "not mine to say")
        if params["how"] == "schema": return {"n": "three"}
        if params["how"] == "print": print("hello\n\x1b[31mred"); return {}
        if params["how"] == "stderr": print("a line of standard error", file=sys.stderr); return {}
        raise ValueError("it went wrong")
    if method == "tick":
        ask("host.progress", message="ticking", percentage=50)
        for n in range(3): ask("host.emit", data={"n": n})
        try: ask("host.emit", data={"n": "x"})
        except RuntimeError as error: notify("log", level="warning", message=str(error))
        return {"n": 3}
    if method == "hang":
        if params.get("polite"):
            while True:
                message = json.loads(sys.stdin.readline())
                if message.get("method") == "cancel": return {}
        time.sleep(3600)
    return {"pid": os.getpid()}

serve(initialize=initialize, call=call)
"#;

fn probe() -> Home {
    let home = Home::new();
    home.plugin("probe", &[], METHODS, PROGRAM);
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_of_a_process_is_called_like_any_other() {
    let home = probe();
    home.set(
        "probe",
        "colour = \"blue\"\n[server.env]\nTOLD = \"by the user\"\n",
    );
    let hub = home.start().await;
    assert_active(&hub, "probe");
    let counted = ask(&hub, "probe.count", json!({"text": "one two three"})).await;
    assert_eq!(counted.unwrap(), json!({"words": 3}));
    // Parameters are checked before the process sees them.
    let wrong = ask(&hub, "probe.count", json!({"text": 3}))
        .await
        .unwrap_err();
    assert!(wrong.starts_with("rpc.invalid_params"), "{wrong}");
    let who = ask(&hub, "probe.who", json!({})).await.unwrap();
    assert_eq!(who["context"]["user"], "ada");
    assert_eq!(who["context"]["scopes"], json!(["*"]));
    assert_eq!(who["context"]["settings"], json!({"colour": "blue"}));
    assert_eq!(who["started"]["plugin"], "probe");
    assert_eq!(who["started"]["protocol"], 1);
    assert!(
        who["cwd"].as_str().unwrap().ends_with("plugins/probe"),
        "{who}"
    );
    assert_eq!(who["env"]["TOLD"], "by the user");
    assert!(
        who["env"].get("CARGO_MANIFEST_DIR").is_none(),
        "only a few variables are passed on"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_process_have_a_code_and_its_output_is_logged() {
    let home = probe();
    let hub = home.start().await;
    for (how, expected) in [
        ("plain", "probe.failed: `probe.fail` failed: it went wrong"),
        ("code", "probe.no_such_word: there is no such word"),
        // A plugin has no say over the codes of others.
        (
            "foreign",
            "probe.failed: `probe.fail` failed: not mine to say",
        ),
        (
            "schema",
            "the result of `probe.fail` does not fit its schema at `/n`",
        ),
    ] {
        let told = ask(&hub, "probe.fail", json!({ "how": how }))
            .await
            .unwrap_err();
        assert!(told.contains(expected), "{told}");
    }
    for how in ["print", "stderr"] {
        ask(&hub, "probe.fail", json!({ "how": how }))
            .await
            .unwrap();
    }
    let lines = log(&hub, "probe").await;
    for expected in [
        "warning stdout: not a message: hello",
        "warning stdout: not a message: [31mred",
        "info stderr: a line of standard error",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected}: {lines:#?}"
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_method_emits_items_as_they_come() {
    let home = probe();
    let hub = home.start().await;
    let stream = hub.open("ada", "probe.tick", json!({})).await.unwrap();
    let items = stream.collect().await.unwrap();
    let shown: Vec<String> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Data { data, content_type } => Some(format!("{content_type} {data}")),
            ItemBody::Progress { message, .. } => Some(message.clone()),
            _ => None,
        })
        .collect();
    let expected = [
        "ticking",
        r#"Tick {"n":0}"#,
        r#"Tick {"n":1}"#,
        r#"Tick {"n":2}"#,
        r#"Tick {"n":3}"#,
    ];
    assert_eq!(shown, expected);
    let lines = log(&hub, "probe").await;
    assert!(
        lines
            .iter()
            .any(|line| line.contains("does not fit its schema")),
        "{lines:#?}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_hangs_ends_at_its_deadline_and_its_process_is_started_again() {
    let home = probe();
    let hub = home.start().await;
    let pid = ask(&hub, "probe.pid", json!({})).await.unwrap()["pid"].clone();
    // One that answers when it is told of the cancel is left running.
    let polite = ask(&hub, "probe.hang", json!({"polite": true}))
        .await
        .unwrap_err();
    assert!(polite.starts_with("limit.deadline"), "{polite}");
    assert_eq!(ask(&hub, "probe.pid", json!({})).await.unwrap()["pid"], pid);
    let late = ask(&hub, "probe.hang", json!({})).await.unwrap_err();
    assert!(late.starts_with("limit.deadline"), "{late}");
    until("the process that hangs was not ended", || !is_alive(&pid)).await;
    let other = ask_until(&hub, "probe.pid", json!({})).await["pid"].clone();
    assert_ne!(other, pid);
    let lines = log(&hub, "probe").await;
    let told = "it did not answer a request that was cancelled";
    assert!(lines.iter().any(|line| line.contains(told)), "{lines:#?}");
    assert_eq!(status(&hub, "probe").state, PluginState::Active);
    hub.stop().await;
}

const NESTED: &str = r#"
[[process.methods]]
name = "through"
doc = "Call another method."
params = { type = "object", properties = { method = { type = "string" }, params = {} } }
[[process.methods]]
name = "plain"
doc = "Return."
"#;

const NESTED_PROGRAM: &str = r#"
def call(request):
    if request["method"] == "plain": return {"plain": True}
    return {"result": ask("host.call", method=request["params"]["method"], params=request["params"].get("params", {}))}
serve(call=call)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_process_calls_what_it_is_granted_and_not_itself_without_end() {
    let home = Home::new();
    home.plugin("nester", &["call:echo"], NESTED, NESTED_PROGRAM);
    home.target();
    let hub = home.start().await;
    assert_active(&hub, "nester");
    let through = |method: &str, params| {
        let params = json!({"method": method, "params": params});
        ask(&hub, "nester.through", params)
    };
    let said = through("echo.say", json!({"text": "hi"})).await.unwrap();
    assert_eq!(said["result"]["text"], "hi");
    let refused = through("target.act", json!({"path": "x"}))
        .await
        .unwrap_err();
    assert!(refused.contains("target"), "{refused}");
    // One request at a time: a call that leads back would wait for itself.
    let back = through("nester.plain", json!({})).await.unwrap_err();
    assert!(back.contains("set `concurrency`"), "{back}");
    hub.stop().await;
}

const PARALLEL: &str = r#"
import threading
lock = threading.Lock()
def answer(message):
    time.sleep(message["params"]["params"]["delay"])
    with lock: send({"id": message["id"], "result": {"id": message["id"]}})
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize": send({"id": message["id"], "result": None})
    elif message.get("method") == "call": threading.Thread(target=answer, args=[message], daemon=True).start()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn requests_overlap_where_the_manifest_says_so() {
    let home = Home::new();
    let declares = "concurrency = 8\n[[process.methods]]\nname = \"wait\"\ndoc = \"Wait.\"\nread_only = true\nparams = { type = \"object\", properties = { delay = { type = \"number\" } } }\n";
    home.plugin("parallel", &[], declares, PARALLEL);
    let hub = home.start().await;
    // The second is answered while the first still waits.
    let mut slow = Box::pin(ask(&hub, "parallel.wait", json!({"delay": 20})));
    let quick = async {
        for _ in 0..4 {
            ask(&hub, "parallel.wait", json!({"delay": 0}))
                .await
                .unwrap();
        }
    };
    tokio::select! {
        _ = &mut slow => panic!("the slow one was first"),
        () = quick => {}
    }
    drop(slow);
    hub.stop().await;
}
