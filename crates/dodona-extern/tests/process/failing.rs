//! Programs that do not start, or misbehave.

use std::fs;

use serde_json::json;

use crate::support::{Home, ask, ask_until, assert_failed, log, status};

const PID: &str = "[[process.methods]]\nname = \"do\"\ndoc = \"Do.\"\ntimeout = 5\nparams = { type = \"object\", properties = { how = { type = \"string\" } } }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_start_fails_with_the_reason() {
    let home = Home::new();
    for (name, program) in [
        (
            "exits",
            "print('no licence found', file=sys.stderr); sys.exit(3)",
        ),
        (
            "refuses",
            "def initialize(p): raise ValueError('the setting `colour` must be green')\nserve(initialize=initialize)",
        ),
        ("silent", "time.sleep(3600)"),
        ("syntax", "def ("),
        ("missing", "serve()"),
    ] {
        home.plugin(name, &[], PID, program);
    }
    home.set("silent", "[server]\nstart_timeout = \"500ms\"\n");
    let manifest = home.dir("missing").join("manifest.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(
        &manifest,
        text.replace("\"python3\"", "\"no-such-program\""),
    )
    .unwrap();
    let hub = home.start().await;
    for (name, words) in [
        ("exits", "no licence found"),
        ("refuses", "the setting `colour` must be green"),
        ("silent", "it did not answer `initialize` within 0.5 s"),
        ("syntax", "SyntaxError"),
        ("missing", "no-such-program` could not be started"),
    ] {
        assert_failed(&hub, name, words);
    }
    let wrong = home.dir("exits").with_extension("toml");
    fs::write(wrong, "[server]\nstart_timeot = \"1s\"\n").unwrap();
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_failed(&hub, "exits", "unknown field `start_timeot`");
    hub.stop().await;
}

const ODD: &str = r#"
def call(request):
    how = request["params"].get("how")
    if how == "crash": os._exit(9)
    if how == "close": os.close(1); time.sleep(3600)
    if how == "large": print("x" * (3 << 20), flush=True)
    if how == "garbage":
        for line in ["{", "[]", "null", "7", '{"id": 1}', '{"method": 3, "id": 4}', '{"id": "zz", "result": 1}', "\x00\x01"]:
            print(line, flush=True)
    if how == "flood":
        for n in range(60): send({"id": n, "method": "nothing.there", "params": {}})
        for n in range(60): sys.stdin.readline()
    if how == "deaf":
        for n in range(50000): send({"id": n, "method": "nothing.there", "params": {"text": "x" * 100}})
    if how == "twice":
        send({"id": 1, "result": {"stolen": True}})
        send({"id": 999, "result": {"stolen": True}})
    if how == "notices":
        for n in range(2000): notify("log", message="x" * 1000)
    return {"done": True}
serve(call=call)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_misbehaves_harms_only_its_own_call() {
    let home = Home::new();
    home.plugin("odd", &[], PID, ODD);
    home.set("odd", "[server]\nmax_message = 1048576\n");
    let hub = home.start().await;
    for how in ["garbage", "flood", "twice", "notices"] {
        let done = ask(&hub, "odd.do", json!({ "how": how })).await;
        assert_eq!(done.unwrap(), json!({"done": true}), "{how}");
    }
    // One that asks without end and reads no answer ends at the deadline of its call.
    let deaf = ask(&hub, "odd.do", json!({"how": "deaf"}))
        .await
        .unwrap_err();
    assert!(deaf.starts_with("limit.deadline"), "{deaf}");
    assert_eq!(ask_until(&hub, "odd.do", json!({})).await["done"], true);
    for (how, words) in [
        ("crash", "exit status: 9"),
        ("large", "sent a message of more than 1048576 bytes"),
        ("close", "closed its output"),
    ] {
        let told = ask(&hub, "odd.do", json!({ "how": how }))
            .await
            .unwrap_err();
        assert!(
            told.starts_with("odd.not_running") && told.contains(words),
            "{how}: {told}"
        );
        assert_eq!(ask_until(&hub, "odd.do", json!({})).await["done"], true);
    }
    assert_eq!(status(&hub, "odd").reason, None);
    let lines = log(&hub, "odd").await;
    assert!(lines.len() <= 1_000);
    hub.stop().await;
}
