//! The recorded ending of each tool call, compared with what the tool did on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::CallStream;
use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::{Hook, Reply as HookReply, point};
use dodona_plugin::{CallCtx, CallError, Contribution, Plugin, PluginContext, plugin};
use dodona_proto::hook::Verdict;
use dodona_testkit::model_server::Reply;
use dodona_testkit::rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::talk::{Answer, Setup, Talk};

/// Tools that write files.
struct Disk {
    root: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// The name of the file.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Written {
    name: String,
}

impl Disk {
    fn write_file(&self, name: &str) {
        std::fs::write(self.root.join(name), name).unwrap();
    }
}

#[plugin(name = "disk")]
impl Disk {
    /// Write a file at once.
    #[method(scope = "disk:use", tool(category = "meta"), mutates)]
    async fn write(&self, _ctx: &CallCtx, p: Target) -> Result<Written, CallError> {
        self.write_file(&p.name);
        Ok(Written { name: p.name })
    }

    /// Write a file on another thread, as the vault does.
    #[method(scope = "disk:use", tool(category = "meta"), mutates)]
    async fn write_later(&self, _ctx: &CallCtx, p: Target) -> Result<Written, CallError> {
        let (path, name) = (self.root.join(&p.name), p.name.clone());
        let work = move || std::fs::write(path, name).unwrap();
        tokio::task::spawn_blocking(work).await.unwrap();
        Ok(Written { name: p.name })
    }

    /// Write a file, and never return.
    #[method(scope = "disk:use", tool(category = "meta"), mutates)]
    async fn write_and_hang(&self, _ctx: &CallCtx, p: Target) -> Result<Written, CallError> {
        self.write_file(&p.name);
        std::future::pending().await
    }
}

struct DiskPlugin {
    root: PathBuf,
}

impl Plugin for DiskPlugin {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let disk = Disk {
                root: self.root.clone(),
            };
            let denies = Hook::inline::<point::PreToolExecute>(|call| {
                Ok(match call.arguments["name"] == "denied" {
                    true => HookReply::edit(Verdict::Deny("not this file".to_owned())),
                    false => HookReply::none(),
                })
            });
            Ok(Contribution::new()
                .methods(Arc::new(disk).plugin_methods()?)
                .hook(denies))
        })
    }
}

struct World {
    talk: Talk,
    files: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let plugin: Arc<dyn Plugin> = Arc::new(DiskPlugin {
            root: files.path().to_owned(),
        });
        let setup = Setup {
            plugins: vec![plugin],
            ..Setup::default()
        };
        let talk = Talk::set_up(setup, |_| {}).await;
        Self { talk, files }
    }

    fn database(&self) -> Connection {
        database(&self.talk)
    }

    fn records(&self) -> Vec<Record> {
        let mut records = records(&self.database());
        for record in &mut records {
            record.on_disk = self.files.path().join(&record.id).exists();
        }
        records
    }

    fn is_written(&self, name: &str) -> bool {
        self.files.path().join(name).exists()
    }
}

fn database(talk: &Talk) -> Connection {
    let path: &Path = talk.folder.path();
    Connection::open(path.join("data/plugins/agent/agent.db")).unwrap()
}

#[derive(Debug)]
struct Record {
    id: String,
    ending: Option<String>,
    started: bool,
    result: String,
    on_disk: bool,
}

fn records(database: &Connection) -> Vec<Record> {
    let sql = "select t.call_id, t.ending, t.started_at is not null, e.json from tool_calls t
        join exchanges e on e.id = t.exchange_id order by t.exchange_id, t.ordinal";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map((), |row| {
        let (id, json): (String, String) = (row.get(0)?, row.get(3)?);
        let json: Value = serde_json::from_str(&json).unwrap();
        let calls = json["tool_calls"].as_array().unwrap();
        let call = calls.iter().find(|call| call["id"] == *id).unwrap();
        Ok(Record {
            result: call["result"].as_str().unwrap_or_default().to_owned(),
            id,
            ending: row.get(1)?,
            started: row.get(2)?,
            on_disk: false,
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// What must hold between a record and the disk, whenever the query was stopped.
fn check(records: &[Record]) {
    for record in records {
        let ending = record.ending.as_deref().expect("every call has ended");
        let writes = record.id.starts_with("write") || record.id == "denied";
        if !writes {
            continue;
        }
        match ending {
            "success" => assert!(record.on_disk && record.started, "{record:?}"),
            "denied" => assert!(!record.on_disk && !record.started, "{record:?}"),
            "cancelled" | "interrupted" if record.started => {
                assert!(
                    record.result.contains("may have taken effect"),
                    "{record:?}"
                );
            }
            "cancelled" | "interrupted" => {
                assert!(record.result.contains("no effect"), "{record:?}");
                assert!(!record.on_disk, "{record:?}");
            }
            other => panic!("{other}: {record:?}"),
        }
    }
}

/// Reads items until one satisfies `wanted`. Returns whether one did before the stream ended.
async fn read_until(stream: &mut CallStream, mut wanted: impl FnMut(&Value) -> bool) -> bool {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
        let Some(items) = next.expect("an item within a minute").unwrap() else {
            return false;
        };
        for item in items {
            let item = serde_json::to_value(item.to_item().unwrap()).unwrap();
            if wanted(&item) {
                return true;
            }
        }
    }
}

fn is_result_of(item: &Value, id: &str) -> bool {
    item["content_type"] == "ToolResult" && item["data"]["id"] == id
}

/// Waits until the query has ended. On a busy machine its call is dropped before it has stored its
/// end, which is then stored in the background.
async fn until_cancelled(talk: &Talk) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while talk.last_query().await.0 == "running" {
        let now = tokio::time::Instant::now();
        assert!(now < deadline, "the query has not ended within a minute");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(talk.last_query().await.0, "cancelled");
}

async fn cancel(talk: &Talk, stream: &CallStream) {
    let target = json!({ "stream_id": stream.stream() });
    talk.call("hub.cancel", target).await.unwrap();
}

fn one_call(id: &str, tool: &str) -> Reply {
    Reply::stream().tool_call(id, tool, &[&format!(r#"{{"name":"{id}"}}"#)])
}

#[tokio::test]
async fn a_finished_write_is_recorded_although_its_slow_sibling_is_cancelled() {
    let world = World::new().await;
    let talk = &world.talk;
    talk.server.reply(
        Reply::stream()
            .tool_call("slow", "kit_wait", &["{}"])
            .tool_call("write1", "disk_write", &[r#"{"name":"write1"}"#]),
    );
    let mut stream = talk.open("agent.chat", json!({ "message": "Write" })).await;
    assert!(read_until(&mut stream, |item| is_result_of(item, "write1")).await);
    cancel(talk, &stream).await;
    read_until(&mut stream, |_| false).await;
    until_cancelled(talk).await;
    let records = world.records();
    check(&records);
    let endings = records
        .iter()
        .map(|r| (r.id.as_str(), r.ending.as_deref().unwrap()));
    assert_eq!(
        endings.collect::<Vec<_>>(),
        [("slow", "cancelled"), ("write1", "success")]
    );
    // The next model sees the results in the order of the calls, and that the write finished.
    talk.server.reply(Reply::text("I see."));
    talk.ask("What happened?").await;
    let sent = talk.sent();
    let results: Vec<&Value> = sent.iter().filter(|m| m["role"] == "tool").collect();
    assert_eq!(results[0]["tool_call_id"], "slow");
    assert_eq!(results[1]["tool_call_id"], "write1");
    assert!(
        !results[1]["content"]
            .as_str()
            .unwrap()
            .contains("cancelled")
    );
}

#[tokio::test]
async fn a_finished_write_is_recorded_although_its_sibling_times_out() {
    let world = World::new().await;
    let talk = &world.talk;
    talk.server.reply(
        Reply::stream()
            .tool_call("slow", "kit_hang", &["{}"])
            .tool_call("write1", "disk_write", &[r#"{"name":"write1"}"#]),
    );
    talk.server.reply(Reply::text("Done."));
    let answer = talk.ask("Write").await;
    let order: Vec<&str> = answer
        .data("ToolResult")
        .iter()
        .map(|result| result["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        order,
        ["write1", "slow"],
        "results arrive in the order of ending"
    );
    assert_eq!(answer.endings(), ["timeout", "success"]);
    check(&world.records());
}

#[tokio::test]
async fn a_denied_write_is_never_recorded_as_started() {
    let world = World::new().await;
    let talk = &world.talk;
    talk.server.reply(
        Reply::stream()
            .tool_call("denied", "disk_write", &[r#"{"name":"denied"}"#])
            .tool_call("write1", "disk_write", &[r#"{"name":"write1"}"#]),
    );
    talk.server.reply(Reply::text("One of them."));
    let answer = talk.ask("Write both").await;
    assert_eq!(answer.endings(), ["denied", "success"]);
    assert!(!world.is_written("denied") && world.is_written("write1"));
    check(&world.records());
}

/// The tools of the step-by-step tests: a write that never returns, one that returns at once, one
/// on another thread, one that is denied, and a read.
fn every_kind() -> Reply {
    let name = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    Reply::stream()
        .add_text("Writing.")
        .tool_call("write1", "disk_write", &[&name("write1")])
        .tool_call("echo", "kit_echo", &[r#"{"text":"x"}"#])
        .tool_call("denied", "disk_write", &[&name("denied")])
        .tool_call("write2", "disk_write_later", &[&name("write2")])
        .tool_call("write3", "disk_write", &[&name("write3")])
}

#[tokio::test]
async fn records_agree_with_the_disk_when_a_query_is_cancelled_after_any_item() {
    let mut steps = 0;
    for step in 1.. {
        let world = World::new().await;
        let talk = &world.talk;
        talk.server.reply(every_kind());
        talk.server.reply(one_call("write4", "disk_write_and_hang"));
        let mut stream = talk.open("agent.chat", json!({ "message": "Go" })).await;
        let (mut seen, mut finished, mut hangs) = (0, Vec::new(), false);
        let reached = read_until(&mut stream, |item| {
            seen += 1;
            if item["content_type"] == "ToolResult" && item["data"]["ending"] == "success" {
                finished.push(item["data"]["id"].as_str().unwrap().to_owned());
            }
            hangs |= item["content_type"] == "ToolCall" && item["data"]["id"] == "write4";
            seen == step || hangs
        });
        assert!(reached.await, "the last tool never returns");
        cancel(talk, &stream).await;
        read_until(&mut stream, |_| false).await;
        until_cancelled(talk).await;
        let records = world.records();
        check(&records);
        for id in &finished {
            let record = records.iter().find(|record| record.id == *id).unwrap();
            assert_eq!(
                record.ending.as_deref(),
                Some("success"),
                "step {step}: {record:?}"
            );
        }
        steps = step;
        if hangs {
            break;
        }
    }
    assert!(steps > 8, "only {steps} steps");
}

#[tokio::test]
async fn a_write_that_finished_before_a_crash_is_found_in_the_journal() {
    let world = World::new().await;
    let talk = &world.talk;
    talk.server.reply(one_call("write1", "disk_write"));
    talk.server.reply(Reply::text("Written."));
    let answer: Answer = talk.ask("Write").await;
    assert_eq!(answer.endings(), ["success"]);
    // As a process leaves it that is killed after the tool has ended and before that is stored.
    let World { talk, files } = world;
    let talk = talk.restart_after(|talk| {
        let database = database(talk);
        for sql in [
            "update queries set state = 'running', ended_at = null",
            "update tool_calls set status = 'pending', ending = null, ended_at = null,
                duration_ms = null, result_size = null",
            "update exchanges set json = json_replace(json, '$.tool_calls[0].status', 'pending',
                '$.tool_calls[0].result', null, '$.tool_calls[0].ending', null,
                '$.tool_calls[0].duration_ms', null) where role = 'assistant'
                and json_extract(json, '$.tool_calls') is not null",
        ] {
            assert!(database.execute(sql, ()).unwrap() > 0, "{sql}");
        }
    });
    let world = World {
        talk: talk.await,
        files,
    };
    world.talk.call("agent.contexts", json!({})).await.unwrap();
    let records = world.records();
    assert_eq!(records[0].ending.as_deref(), Some("success"), "{records:?}");
    check(&records);
    assert_eq!(world.talk.last_query().await.0, "interrupted");
}

#[tokio::test]
async fn the_time_of_a_tool_has_no_waiting_for_other_tools() {
    let world = World::new().await;
    let talk = &world.talk;
    let mut reply = Reply::stream();
    for number in 0..12 {
        let id = format!("write{number}");
        let arguments = format!(r#"{{"name":"{id}"}}"#);
        reply = reply.tool_call(&id, "disk_write_later", &[&arguments]);
    }
    talk.server.reply(reply);
    talk.server.reply(Reply::text("Written."));
    let answer = talk.ask("Write twelve files").await;
    assert_eq!(answer.endings(), ["success"; 12]);
    let results = answer.data("ToolResult");
    let times = results.iter().map(|one| one["duration_ms"].as_u64());
    let times: Vec<u64> = times.map(Option::unwrap).collect();
    // They run one after the other, so that without waiting the sum is at most the whole turn.
    let events = talk.events("agent.turn").await;
    let at = |kind: &str| {
        events
            .iter()
            .find(|event| event.kind == kind)
            .unwrap()
            .timestamp
    };
    let whole = at("agent.turn.end").duration_since(at("agent.turn.start"));
    let sum = u128::from(times.iter().sum::<u64>());
    let whole = whole.unsigned_abs().as_millis() + 12;
    assert!(sum <= whole, "{times:?} in a turn of {whole} ms");
}
