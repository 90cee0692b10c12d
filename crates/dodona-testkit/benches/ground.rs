//! What the ground costs: a call through the hub against the function itself, the journal against
//! raw SQLite.
//!
//! Calls are measured in processor time, because they never wait; what is durable waits for the
//! disk and is measured by the clock.
//!
//! `cargo xtask bench ground [-- --json] [-- --quick]`. Databases are in the temporary directory;
//! set `TMPDIR` to measure another disk.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use dodona_hub::{Limit, Request};
use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, NoParams, Params, Plugin, PluginContext, plugin,
};
use dodona_proto::Principal;
use dodona_testkit::measure::{
    self, Figure, Row, per_operation, per_operation_on_cpu, side_by_side,
};
use dodona_testkit::{TestHub, principal};
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Items of the long stream.
const ITEMS: u64 = 100_000;

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let rounds = match (asked("--bench"), asked("--quick")) {
        (true, false) => 15,
        (_, true) => 3,
        // `cargo test` only wants to know that it works.
        (false, false) => 1,
    };
    let ground = Ground::new()?;
    let folder = tempfile::tempdir()?;
    let raw = raw(folder.path())?;
    let rows = [
        ground.call(rounds * 3, Checked::No),
        ground.call(rounds * 3, Checked::Yes),
        ground.nested(rounds * 3),
        ground.stream(rounds.div_ceil(3), &raw)?,
        // After the stream: by then both logs have their size, and no write has to extend one.
        ground.mutating(rounds, &raw)?,
    ];
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
    }
    ground.stop();
    Ok(())
}

/// A plugin that does next to nothing, so that the way there is what is measured.
struct Sums;

#[derive(Serialize, Deserialize, JsonSchema)]
struct AddParams {
    a: u64,
    b: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Sum {
    sum: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ManyParams {
    calls: u64,
}

#[plugin(name = "sums")]
impl Sums {
    /// Adds two numbers.
    #[method(scope = "sums:use")]
    async fn add(&self, _ctx: &CallCtx, p: AddParams) -> Result<Sum, CallError> {
        Ok(add(p))
    }

    /// Calls `sums.add` many times.
    #[method(scope = "sums:use")]
    async fn many(&self, ctx: &CallCtx, p: ManyParams) -> Result<Sum, CallError> {
        for n in 0..p.calls {
            let params = Params::code(json!({"a": n, "b": 2}));
            let sum = ctx.call_value("sums.add", params).await?;
            std::hint::black_box(sum);
        }
        Ok(Sum { sum: p.calls })
    }

    /// Changes nothing, but says that it does: it is journaled.
    #[method(scope = "sums:use", mutates)]
    async fn put(&self, _ctx: &CallCtx, _p: NoParams) -> Result<Sum, CallError> {
        Ok(Sum { sum: 0 })
    }
}

/// The function itself.
fn add(p: AddParams) -> Sum {
    Sum { sum: p.a + p.b }
}

/// The function as the plugin's method has it, without the hub.
async fn add_directly(p: AddParams) -> Result<Sum, CallError> {
    Ok(add(p))
}

struct SumsPlugin;

impl Plugin for SumsPlugin {
    fn name(&self) -> &'static str {
        "sums"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async { Ok(Contribution::new().methods(Arc::new(Sums).plugin_methods()?)) })
    }
}

/// Whether parameters are checked against the schema, as those from a wire are.
#[derive(Clone, Copy, PartialEq)]
enum Checked {
    Yes,
    No,
}

struct Ground {
    runtime: Runtime,
    hub: TestHub,
    alice: Arc<Principal>,
}

impl Ground {
    fn new() -> Result<Self> {
        let runtime = Runtime::new()?;
        // Limits that are looked at and never met.
        let unmet = Limit {
            per_second: 1_000_000_000,
            burst: 1_000_000_000,
            concurrent: 1_000_000,
        };
        let hub = TestHub::builder()
            .config(|config| config.limits.user = unmet)
            .plugin(|| SumsPlugin);
        let hub = runtime.block_on(hub.start());
        let alice = principal("alice");
        Ok(Self {
            runtime,
            hub,
            alice,
        })
    }

    fn stop(self) {
        self.runtime.block_on(self.hub.stop());
    }

    fn request(&self, method: &str, params: Value, checked: Checked) -> Request {
        let alice = Arc::clone(&self.alice);
        match checked {
            Checked::Yes => Request::new(alice, method, params),
            Checked::No => Request::from_code(alice, method, params),
        }
    }

    fn call(&self, rounds: usize, checked: Checked) -> Row {
        const CALLS: u64 = 10_000;
        let ours = || {
            per_operation_on_cpu(CALLS, || {
                self.runtime.block_on(async {
                    for n in 0..CALLS {
                        let request = self.request("sums.add", json!({"a": n, "b": 2}), checked);
                        let sum = (*self.hub).call(request).await;
                        std::hint::black_box(sum).expect("a sum");
                    }
                });
            })
        };
        let (what, against, target) = match checked {
            Checked::No => ("hub.call, from code", "the function", "≤ 1 µs over"),
            Checked::Yes => ("hub.call, parameters checked", "the same in JSON", ""),
        };
        let (ours, peer) = side_by_side(rounds, ours, || match checked {
            Checked::No => self.directly(),
            Checked::Yes => self.in_json(),
        });
        row(what, against, target, Figure::Overhead, ours, peer)
    }

    /// Many direct calls, because one is shorter than the clock can tell.
    fn directly(&self) -> f64 {
        const CALLS: u64 = 1_000_000;
        per_operation_on_cpu(CALLS, || {
            self.runtime.block_on(async {
                for n in 0..CALLS {
                    let p = AddParams {
                        a: std::hint::black_box(n),
                        b: 2,
                    };
                    let _ = std::hint::black_box(add_directly(p).await);
                }
            });
        })
    }

    /// What any caller pays for whom parameters and results are JSON values.
    fn in_json(&self) -> f64 {
        const CALLS: u64 = 20_000;
        per_operation_on_cpu(CALLS, || {
            self.runtime.block_on(async {
                for n in 0..CALLS {
                    let params = std::hint::black_box(json!({"a": n, "b": 2}));
                    let p: AddParams = serde_json::from_value(params).expect("parameters");
                    let sum = add_directly(p).await.expect("a sum");
                    let sum = serde_json::to_value(sum).expect("a value");
                    std::hint::black_box(sum);
                }
            });
        })
    }

    fn nested(&self, rounds: usize) -> Row {
        const CALLS: u64 = 10_000;
        let ours = || {
            per_operation_on_cpu(CALLS, || {
                let request = self.request("sums.many", json!({"calls": CALLS}), Checked::No);
                let called = self.runtime.block_on((*self.hub).call(request));
                called.expect("sums");
            })
        };
        let (ours, peer) = side_by_side(rounds, ours, || self.directly());
        let target = "≤ 1 µs over";
        row(
            "ctx.call, nested",
            "the function",
            target,
            Figure::Overhead,
            ours,
            peer,
        )
    }

    fn mutating(&self, rounds: usize, raw: &Connection) -> Result<Row> {
        const CALLS: u64 = 50;
        raw.execute_batch("create table put (no integer primary key, body text)")?;
        let ours = || {
            per_operation(CALLS, || {
                self.runtime.block_on(async {
                    for _ in 0..CALLS {
                        let request = self.request("sums.put", json!({}), Checked::No);
                        (*self.hub).call(request).await.expect("a journaled call");
                    }
                });
            })
        };
        let peer = || {
            per_operation(CALLS, || {
                for _ in 0..CALLS {
                    raw.execute("insert into put (body) values ('sums.put')", ())
                        .expect("a commit");
                }
            })
        };
        let (ours, peer) = side_by_side(rounds, ours, peer);
        let what = "hub.call, mutating: journaled and durable";
        Ok(row(what, "one SQLite commit", "", Figure::Rate, ours, peer))
    }

    fn stream(&self, rounds: usize, raw: &Connection) -> Result<Row> {
        let written = self.count_once();
        let batches = batches(&self.hub.data_dir().join("journal.db"), &written)?;
        raw.execute_batch(
            "create table items (stream_no integer not null, seq integer not null,
                call text not null, path text not null, kind integer not null, body text not null,
                at integer not null, primary key (stream_no, seq)) without rowid",
        )?;
        let mut stream_no = 0;
        let peer = || {
            stream_no += 1;
            per_operation(ITEMS, || {
                write_raw(raw, stream_no, &batches).expect("commits");
            })
        };
        let ours = || {
            per_operation(ITEMS, || {
                self.count_once();
            })
        };
        let (ours, peer) = side_by_side(rounds, ours, peer);
        let what = format!("echo.count to {ITEMS}, journaled, to its reader");
        let against = format!("raw SQLite, same rows in {} commits", batches.len());
        Ok(row(&what, &against, "", Figure::Rate, ours, peer))
    }

    /// Counts to the end and tells the stream.
    fn count_once(&self) -> String {
        let request = self.request("echo.count", json!({"to": ITEMS}), Checked::No);
        self.runtime.block_on(async {
            let mut stream = (*self.hub).open(request).await.expect("a stream");
            let id = stream.stream().to_string();
            let mut items = 0;
            while let Some(more) = stream.next().await.expect("items") {
                items += more.len() as u64;
            }
            assert_eq!(items, ITEMS + 2, "the numbers, a beginning and an end");
            id
        })
    }
}

fn row(
    what: &str,
    against: &str,
    target: &str,
    figure: Figure,
    ours: measure::Sample,
    peer: measure::Sample,
) -> Row {
    Row {
        what: what.to_owned(),
        against: against.to_owned(),
        target: target.to_owned(),
        figure,
        ours,
        peer,
    }
}

/// A database as the store opens it.
fn raw(folder: &Path) -> Result<Connection> {
    let raw = Connection::open(folder.join("raw.db"))?;
    raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    raw.pragma_update(None, "synchronous", "FULL")?;
    Ok(raw)
}

/// One item as the journal stores it.
struct Stored {
    seq: i64,
    call: String,
    path: String,
    kind: i64,
    body: String,
    at: i64,
}

/// The rows of a stream by the transaction that wrote them. Those of one transaction have one
/// time; two within a millisecond count as one here, which is in favour of the peer.
fn batches(journal: &Path, stream: &str) -> Result<Vec<Vec<Stored>>> {
    let journal = Connection::open(journal)?;
    let mut statement = journal.prepare(
        "select seq, call, path, kind, body, at from items
            where stream_no = (select no from streams where stream_id = ?1) order by seq",
    )?;
    let rows = statement.query_map([stream], |row| {
        Ok(Stored {
            seq: row.get(0)?,
            call: row.get(1)?,
            path: row.get(2)?,
            kind: row.get(3)?,
            body: row.get(4)?,
            at: row.get(5)?,
        })
    })?;
    let mut batches: Vec<Vec<Stored>> = Vec::new();
    for row in rows {
        let row = row?;
        match batches.last_mut() {
            Some(batch) if batch[0].at == row.at => batch.push(row),
            _ => batches.push(vec![row]),
        }
    }
    Ok(batches)
}

fn write_raw(raw: &Connection, stream_no: i64, batches: &[Vec<Stored>]) -> rusqlite::Result<()> {
    let mut insert = raw.prepare_cached("insert into items values (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for batch in batches {
        raw.execute_batch("begin immediate")?;
        for row in batch {
            insert.execute((
                stream_no, row.seq, &row.call, &row.path, row.kind, &row.body, row.at,
            ))?;
        }
        raw.execute_batch("commit")?;
    }
    Ok(())
}
