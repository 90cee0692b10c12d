//! What a script costs, limits and sandbox included, against the same function in lupa without any.
//!
//! `cargo xtask bench script [-- --json] [-- --quick]`

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, Result};
use dodona_script::{Engine, Limits, Script};
use dodona_testkit::measure::{self, Figure, Row, per_operation_on_cpu, side_by_side};
use dodona_testkit::{Lines, Python};
use serde_json::{Value, json};

/// Calls a function as often as it is asked to. The context is what lupa makes of Python's values:
/// looked up when it is touched, as ours is.
const PEER: &str = r#"
import json, sys, time, lupa
runtime, loaded = lupa.LuaRuntime(unpack_returned_tuples=True), {}
def shown(value):
    if isinstance(value, dict):
        return lupa.as_itemgetter({key: shown(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return runtime.table_from([shown(inner) for inner in value])
    return value
for line in sys.stdin:
    case = json.loads(line)
    context = shown(case["context"])
    function = loaded.setdefault(case["script"], runtime.execute("return function(context)\n" + case["script"] + "\nend"))
    value = function(context)
    begun = time.process_time_ns()
    for _ in range(case["times"]):
        function(context)
    spent = time.process_time_ns() - begun
    print(json.dumps({"matched": value not in (None, False), "ns": spent / case["times"]}), flush=True)
"#;

const THRESHOLD: &str = "return context.turn.token_usage > 0.8";
const COUNT: &str = "
    local failed = 0
    for _, call in ipairs(context.calls) do
        if not call.success then failed = failed + 1 end
    end
    if failed < 3 then return false end
    return { type = 'notify_self', message = failed .. ' calls failed' }";
const LOOP: &str = "local n = 0 for i = 1, 10000 do n = n + i % 7 end return n > 0";

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, times) = match (asked("--bench"), asked("--quick")) {
        (true, false) => (15, 5_000),
        (_, true) => (3, 1_000),
        // `cargo test` only wants to know that it works.
        (false, false) => (1, 10),
    };
    let mut peer = Python::with(&["lupa==2.8"])?.lines(PEER)?;
    let rows = [
        row("a threshold", THRESHOLD, rounds, times, &mut peer)?,
        row(
            "20 calls counted, an action made",
            COUNT,
            rounds,
            times,
            &mut peer,
        )?,
        row(
            "10 000 rounds of a loop",
            LOOP,
            rounds,
            times.div_ceil(50),
            &mut peer,
        )?,
    ];
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
    }
    Ok(())
}

fn context() -> Value {
    let call = |n: u64| json!({"tool_name": format!("tool_{n}"), "success": !n.is_multiple_of(4)});
    let calls: Vec<Value> = (0..20).map(call).collect();
    json!({"turn": {"number": 3, "token_usage": 0.8412}, "calls": calls})
}

fn row(what: &str, source: &str, rounds: usize, times: u64, peer: &mut Lines) -> Result<Row> {
    let (engine, limits) = (Engine::new(1), Limits::default());
    let (script, context) = (Script::compile(source, "bench.lua")?, Arc::new(context()));
    let question = json!({"script": source, "context": *context, "times": times});
    let matched = engine.run(&script, context.clone(), &limits)?.matched;
    let theirs = peer.ask(&question)?;
    anyhow::ensure!(
        theirs["matched"] == matched,
        "{what}: ours {matched}, theirs {theirs}"
    );
    let ours = || {
        per_operation_on_cpu(times, || {
            for _ in 0..times {
                let outcome = engine.run(black_box(&script), context.clone(), &limits);
                black_box(outcome).expect("it ran before");
            }
        })
    };
    let mut fault = None;
    let theirs = || match nanos(peer, &question) {
        Ok(nanos) => nanos,
        Err(error) => {
            fault = Some(error);
            f64::NAN
        }
    };
    let (ours, theirs) = side_by_side(rounds, ours, theirs);
    match fault {
        Some(error) => Err(error),
        None => Ok(Row {
            what: what.into(),
            against: "lupa, no limits".into(),
            target: String::new(),
            figure: Figure::Rate,
            ours,
            peer: theirs,
        }),
    }
}

fn nanos(peer: &mut Lines, question: &Value) -> Result<f64> {
    peer.ask(question)?["ns"]
        .as_f64()
        .context("the peer tells no time")
}
