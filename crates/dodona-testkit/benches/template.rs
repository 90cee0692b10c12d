//! What a template costs, against Jinja2 with the same template compiled once.
//!
//! `cargo xtask bench template [-- --json] [-- --quick]`

use std::hint::black_box;

use anyhow::{Context, Result};
use dodona_template::{Limits, Template};
use dodona_testkit::measure::{self, Figure, Row, per_operation_on_cpu, side_by_side};
use dodona_testkit::{Lines, Python};
use serde_json::{Value, json};

/// Renders as often as it is asked to, and tells the nanoseconds of processor time for one.
const PEER: &str = r#"
import json, sys, time
from jinja2 import Environment
environment, compiled = Environment(), {}
for line in sys.stdin:
    case = json.loads(line)
    source, context = case["template"], case["context"]
    template = compiled.setdefault(source, environment.from_string(source))
    text = template.render(context)
    begun = time.process_time_ns()
    for _ in range(case["times"]):
        template.render(context)
    print(json.dumps({"text": text, "ns": (time.process_time_ns() - begun) / case["times"]}), flush=True)
"#;

const MESSAGE: &str = "Token usage at {{ (context.turn.token_usage * 100) | int }}%";
const LIST: &str = "{% for tool in context.tools if tool.ok %}{{ loop.index }}. {{ tool.name | upper }} \
                    took {{ tool.ms }} ms{{ ', ' if not loop.last }}{% endfor %}";
const FILTERS: &str = "{{ context.tools | selectattr('ok') | map(attribute='name') | unique | sort | join(', ') }} \
                       in {{ context.tools | sum(attribute='ms') }} ms";

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, times) = match (asked("--bench"), asked("--quick")) {
        (true, false) => (15, 2_000),
        (_, true) => (3, 500),
        // `cargo test` only wants to know that it works.
        (false, false) => (1, 10),
    };
    let mut peer = Python::with(&["jinja2==3.1.6"])?.lines(PEER)?;
    let rows = [
        row("a rule's message", MESSAGE, rounds, times, &mut peer)?,
        row(
            "a list of 20 with a condition",
            LIST,
            rounds,
            times,
            &mut peer,
        )?,
        row(
            "a chain of filters over 20",
            FILTERS,
            rounds,
            times,
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
    let tool = |n: u64| json!({"name": format!("tool_{}", n % 7), "ms": n * 3, "ok": !n.is_multiple_of(3)});
    let tools: Vec<Value> = (0..20).map(tool).collect();
    json!({"context": {"turn": {"number": 3, "token_usage": 0.8412}, "tools": tools}})
}

fn row(what: &str, source: &str, rounds: usize, times: u64, peer: &mut Lines) -> Result<Row> {
    let (limits, context) = (Limits::message(), context());
    let template = Template::compile(source, &limits)?;
    let question = json!({"template": source, "context": context, "times": times});
    let text = template.render(&context, &limits)?;
    let theirs = peer.ask(&question)?;
    anyhow::ensure!(
        theirs["text"] == text,
        "{what}: ours {text:?}, theirs {theirs}"
    );
    let ours = || {
        per_operation_on_cpu(times * 10, || {
            for _ in 0..times * 10 {
                let text = template.render(black_box(&context), &limits);
                black_box(text).expect("it rendered before");
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
            against: "Jinja2, precompiled".into(),
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
