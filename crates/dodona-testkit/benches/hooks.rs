//! What it costs to fire a hook point, against a bare loop over the same callbacks and against
//! pluggy, the hook library of pytest.
//!
//! Every callback looks at the payload and has nothing to say, as most have most of the time. The
//! payload goes round: what a dispatch gives back is what the next one is given.
//!
//! `cargo xtask bench hooks [-- --json] [-- --quick]`

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dodona_hooks::point::{PreToolExecute, TurnCompleted};
use dodona_hooks::{Hook, HookFailure, HookRegistry, Hooks, Point, Reply};
use dodona_proto::hook::{NoEdit, ToolPending, TurnCompleted as Turn, Verdict};
use dodona_proto::{
    ExchangeRange, HistorySnapshot, MethodName, PluginName, PluginPath, QuerySnapshot, StreamId,
    Surface, TurnSnapshot, UserId,
};
use dodona_testkit::measure::{self, Figure, Row, Sample, per_operation_on_cpu, side_by_side};
use dodona_testkit::{Lines, Python};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Fires as often as it is asked to, and tells the nanoseconds of processor time for one dispatch.
const PEER: &str = r#"
import json, sys, time
from types import SimpleNamespace
import pluggy
spec, impl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")
class Spec:
    @spec
    def turn_completed(self, turn): "A turn is over."
class Observer:
    def __init__(self, threshold): self.threshold = threshold
    @impl
    def turn_completed(self, turn):
        if turn.token_usage > self.threshold: return "too much"
turn = SimpleNamespace(token_usage=0.5)
for line in sys.stdin:
    case = json.loads(line)
    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for n in range(case["callbacks"]): manager.register(Observer(1.0 + n))
    fire = manager.hook.turn_completed
    said = len(fire(turn=turn))
    begun = time.process_time_ns()
    for _ in range(case["times"]): fire(turn=turn)
    print(json.dumps({"said": said, "ns": (time.process_time_ns() - begun) / case["times"]}), flush=True)
"#;

type Answer<E> = Result<Reply<E>, HookFailure>;
type Callback<P> = Box<dyn Fn(&<P as Point>::Payload) -> Answer<<P as Point>::Edit> + Send + Sync>;

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let (rounds, runs) = match (asked("--bench"), asked("--quick")) {
        (true, false) => (25, 10_000_000),
        (_, true) => (5, 1_000_000),
        // `cargo test` only wants to know that it works.
        (false, false) => (1, 1_000),
    };
    let bench = Bench {
        runtime: tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?,
        rounds,
        runs,
    };
    let mut pluggy = Python::with(&["pluggy==1.7.0"])?.lines(PEER)?;
    let mut rows = bench.nobody();
    for callbacks in [1, 10, 100] {
        rows.extend(bench.against_loop::<TurnCompleted, _>(callbacks, turn(), observer));
    }
    rows.extend(bench.against_loop::<PreToolExecute, _>(10, pending()?, gate));
    for callbacks in [0, 1, 10, 100] {
        rows.push(bench.against_pluggy(callbacks, &mut pluggy)?);
    }
    rows.push(bench.waiting());
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
    }
    Ok(())
}

/// Looks at a turn, and fails where it used too much.
fn observer(n: usize) -> impl Fn(&Turn) -> Answer<NoEdit> + Send + Sync + 'static {
    let threshold = 1.0 + n as f64;
    move |turn| match turn.snapshot.turn.token_usage > threshold {
        false => Ok(Reply::none()),
        true => Err(HookFailure::new("too much")),
    }
}

/// Looks at a tool's name, and refuses some.
fn gate(n: usize) -> impl Fn(&ToolPending) -> Answer<Verdict> + Send + Sync + 'static {
    let refused = format!("vault_write_{n}");
    move |call| match call.tool_name == refused {
        false => Ok(Reply::none()),
        true => Ok(Reply::edit(Verdict::Deny("not this one".into()))),
    }
}

/// A turn that is over.
fn turn() -> Turn {
    Turn {
        snapshot: snapshot(),
        is_last: false,
        tool_calls: 2,
        answer: None,
        error: None,
    }
}

fn snapshot() -> Arc<QuerySnapshot> {
    Arc::new(QuerySnapshot {
        query_id: "q1".into(),
        context_id: "c1".into(),
        user: user(),
        project: None,
        turn: TurnSnapshot {
            number: 3,
            iteration_count: 2,
            max_iterations: 20,
            token_usage: 0.5,
            context_usage: 0.1,
        },
        tokens_used: 10_000,
        token_budget: 20_000,
        history: HistorySnapshot::default(),
        exchanges: ExchangeRange::default(),
    })
}

fn user() -> UserId {
    UserId::new("alice").expect("a user's name")
}

/// A tool that is about to run.
fn pending() -> Result<ToolPending> {
    Ok(ToolPending {
        call_id: StreamId::random().root_call(),
        path: PluginPath::root(&PluginName::new("vault")?),
        method: MethodName::new("vault.write")?,
        tool_name: "vault_write".to_owned(),
        arguments: json!({"path": "notes/today.md", "text": "It rained."}),
        user: user(),
        surface: Surface::Rpc,
        project: None,
        snapshot: Some(snapshot()),
        ask: None,
        answer: None,
        denied: None,
    })
}

struct Bench {
    runtime: Runtime,
    rounds: usize,
    /// How many callbacks are run in one measurement of ours.
    runs: u64,
}

impl Bench {
    /// How often a list of so many callbacks is run.
    fn times(&self, callbacks: usize) -> u64 {
        self.runs.div_ceil(callbacks.max(1) as u64)
    }

    /// Nanoseconds for one dispatch.
    fn fire<P: Point>(&self, hooks: &Hooks, times: u64, payload: P::Payload) -> f64 {
        per_operation_on_cpu(times, || {
            self.runtime.block_on(async {
                let mut payload = payload;
                for _ in 0..times {
                    let fired = black_box(hooks).fire::<P>(payload).await;
                    payload = fired.payload;
                }
                black_box(payload);
            });
        })
    }

    /// What it costs that somebody could have been asked.
    fn nobody(&self) -> Vec<Row> {
        let (hooks, times) = (Hooks::default(), self.runs);
        let looked = || {
            per_operation_on_cpu(times, || {
                for _ in 0..times {
                    black_box(black_box(&hooks).has_subscribers::<TurnCompleted>());
                }
            })
        };
        let fired = || {
            per_operation_on_cpu(times, || {
                self.runtime.block_on(async {
                    for _ in 0..times {
                        let fired = black_box(&hooks).fire_with::<TurnCompleted>(turn).await;
                        black_box(fired.is_some());
                    }
                });
            })
        };
        let nothing = || {
            let none: Vec<Callback<TurnCompleted>> = Vec::new();
            per_operation_on_cpu(times, || {
                for _ in 0..times {
                    black_box(black_box(&none).is_empty());
                }
            })
        };
        let against = "an empty list";
        let line =
            |what, target, (ours, peer)| row(what, against, target, Figure::Overhead, ours, peer);
        let (look, fire) = (
            side_by_side(self.rounds, looked, nothing),
            side_by_side(self.rounds, fired, nothing),
        );
        vec![
            line("has_subscribers, nobody there", "0", look),
            line("fire_with, nobody there", "", fire),
        ]
    }

    /// For a whole dispatch, and for each callback of it.
    fn against_loop<P: Point, F>(
        &self,
        callbacks: usize,
        payload: P::Payload,
        callback: impl Fn(usize) -> F,
    ) -> Vec<Row>
    where
        F: Fn(&P::Payload) -> Answer<P::Edit> + Send + Sync + 'static,
    {
        let times = self.times(callbacks);
        let hooks = registered((0..callbacks).map(|n| Hook::inline::<P>(callback(n))));
        let list: Vec<Callback<P>> = (0..callbacks).map(|n| Box::new(callback(n)) as _).collect();
        let bare = || {
            per_operation_on_cpu(times, || {
                for _ in 0..times {
                    for callback in black_box(&list) {
                        drop(callback(&payload));
                    }
                }
            })
        };
        let ours = || self.fire::<P>(&hooks, times, payload.clone());
        let (ours, peer) = side_by_side(self.rounds, ours, bare);
        let what = format!("{}, {callbacks} inline", P::POINT);
        let each = |sample: Sample| Sample {
            median: sample.median / callbacks as f64,
            low: sample.low / callbacks as f64,
            high: sample.high / callbacks as f64,
        };
        let one = format!("{what}: each");
        vec![
            row(&what, "a bare loop", "", Figure::Overhead, ours, peer),
            row(
                &one,
                "a bare loop",
                "≤ 3 ns over",
                Figure::Overhead,
                each(ours),
                each(peer),
            ),
        ]
    }

    fn against_pluggy(&self, callbacks: usize, pluggy: &mut Lines) -> Result<Row> {
        let times = self.times(callbacks);
        let hooks = registered((0..callbacks).map(|n| Hook::inline::<TurnCompleted>(observer(n))));
        let question = json!({"callbacks": callbacks, "times": times.div_ceil(500)});
        let answer = pluggy.ask(&question)?;
        ensure!(answer["said"] == 0, "pluggy's callbacks say {answer}");
        let mut fault = None;
        let theirs = || {
            let nanos = pluggy.ask(&question).and_then(|answer| nanos(&answer));
            nanos.unwrap_or_else(|error| {
                fault = Some(error);
                f64::NAN
            })
        };
        let ours = || self.fire::<TurnCompleted>(&hooks, times, turn());
        let (ours, peer) = side_by_side(self.rounds, ours, theirs);
        let what = format!("TURN_COMPLETED, {callbacks} inline");
        match fault {
            Some(error) => Err(error),
            None => Ok(row(&what, "pluggy", "", Figure::Rate, ours, peer)),
        }
    }

    /// Callbacks that may wait and do not: a timer and a record each.
    fn waiting(&self) -> Row {
        const CALLBACKS: usize = 10;
        let times = self.times(CALLBACKS).div_ceil(100);
        let async_of = |n| {
            let look = Arc::new(observer(n));
            Hook::waiting::<TurnCompleted, _>(move |turn: Arc<Turn>| {
                let look = Arc::clone(&look);
                async move { look(&turn) }
            })
        };
        let waiting = registered((0..CALLBACKS).map(async_of));
        let inline = registered((0..CALLBACKS).map(|n| Hook::inline::<TurnCompleted>(observer(n))));
        let (ours, peer) = side_by_side(
            self.rounds,
            || self.fire::<TurnCompleted>(&waiting, times, turn()),
            || self.fire::<TurnCompleted>(&inline, times, turn()),
        );
        let what = format!("TURN_COMPLETED, {CALLBACKS} async");
        row(&what, "the same inline", "", Figure::Overhead, ours, peer)
    }
}

/// Hooks of one plugin, frozen.
fn registered(hooks: impl Iterator<Item = Hook>) -> Hooks {
    let plugin = PluginName::new("bench").expect("a plugin's name");
    let mut registry = HookRegistry::default();
    for hook in hooks {
        registry.register(&plugin, hook);
    }
    registry.freeze()
}

fn nanos(answer: &Value) -> Result<f64> {
    answer["ns"].as_f64().context("no time")
}

fn row(what: &str, against: &str, target: &str, figure: Figure, ours: Sample, peer: Sample) -> Row {
    Row {
        what: what.to_owned(),
        against: against.to_owned(),
        target: target.to_owned(),
        figure,
        ours,
        peer,
    }
}
