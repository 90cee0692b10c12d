//! Every step of a question.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::show::{self, Info};
use crate::layout;
use crate::paint::{Paint, one_line};

/// The event by which the journal knows what rules decided.
const DECIDED: &str = "rules.decided";

/// How long a line becomes.
const LONGEST: usize = 100;

#[derive(Deserialize)]
pub(super) struct Traced {
    pub(super) query: Info,
    pub(super) answer: Option<String>,
    turns: Vec<Turn>,
    events: Vec<Event>,
    hooks: Vec<Run>,
}

#[derive(Deserialize)]
struct Turn {
    turn: u32,
    at: Timestamp,
    messages: usize,
    text: String,
    calls: Vec<Call>,
    tools_told: u64,
    tools_known: u64,
    tokens_saved: u64,
    usage: Usage,
    cost_micros: Option<u64>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    arguments: Map<String, Value>,
    path: Option<String>,
    ending: Option<String>,
    duration_ms: Option<u64>,
    result_size: Option<u64>,
    agent: Option<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    name: String,
    query_id: String,
    state: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Event {
    at: Timestamp,
    kind: String,
    source: String,
    payload: Value,
}

#[derive(Deserialize)]
struct Run {
    at: Timestamp,
    plugin: String,
    hook: String,
    micros: f64,
    edit: Option<Value>,
    error: Option<String>,
    effects: u64,
}

/// Tokens read and written, over all turns, those of agents below them included.
pub(super) fn sum(traced: &Traced) -> (u64, u64) {
    sum_of(&traced.turns)
}

fn sum_of(turns: &[Turn]) -> (u64, u64) {
    let add = |(read, written): (u64, u64), more: (u64, u64)| (read + more.0, written + more.1);
    turns.iter().fold((0, 0), |sum, turn| {
        let agents = turn.calls.iter().filter_map(|call| call.agent.as_ref());
        let below = agents.map(|agent| sum_of(&agent.turns)).fold((0, 0), add);
        add(
            add(sum, (turn.usage.input_tokens, turn.usage.output_tokens)),
            below,
        )
    })
}

/// The turns with the tools of each, and below each turn what happened in it beside.
pub(super) fn tree(traced: &Traced, paint: Paint) -> String {
    let mut text = show::heading(traced, paint);
    let start = traced.query.started_at;
    let mut since = start;
    for turn in &traced.turns {
        turn_lines(turn, start, "", paint, &mut text);
        let until = next_start(traced, turn);
        beside(traced, (since, until), start, paint, &mut text);
        since = until;
    }
    text
}

/// A turn, its tools, and below each that delegated what the agent did, further to the right.
fn turn_lines(turn: &Turn, start: Timestamp, margin: &str, paint: Paint, text: &mut String) {
    let _ = write!(text, "{margin}{}", turn_line(turn, start, paint));
    for call in &turn.calls {
        let _ = writeln!(text, "{margin}  {}", call_line(call, paint));
        let Some(agent) = &call.agent else {
            continue;
        };
        let margin = format!("{margin}    ");
        let _ = writeln!(
            text,
            "{margin}{}  {}  {}",
            paint.bold(one_line(&agent.name)),
            agent.state,
            paint.dim(layout::short_id(&agent.query_id)),
        );
        for turn in &agent.turns {
            turn_lines(turn, start, &margin, paint, text);
        }
    }
}

/// When the turn after this one was answered; what happens after the last belongs to the last.
fn next_start(traced: &Traced, turn: &Turn) -> Timestamp {
    let is_last = traced
        .turns
        .last()
        .is_some_and(|last| last.turn == turn.turn);
    let mut ends = traced.events.iter();
    let end = ends.find(|event| event.kind == "agent.turn.end" && event.at >= turn.at);
    match (is_last, end) {
        (true, _) | (false, None) => Timestamp::MAX,
        (false, Some(end)) => end.at,
    }
}

fn turn_line(turn: &Turn, start: Timestamp, paint: Paint) -> String {
    let cost = turn.cost_micros.filter(|cost| *cost > 0);
    #[expect(clippy::cast_precision_loss, reason = "it is shown with four decimals")]
    let cost = cost.map(|cost| format!(" · ${:.4}", cost as f64 / 1e6));
    let said = layout::cut(&one_line(&turn.text), 0, Some(LONGEST / 2));
    let tools = (turn.tokens_saved > 0).then(|| {
        let (told, known, saved) = (turn.tools_told, turn.tools_known, turn.tokens_saved);
        format!(" · {told} of {known} tools offered, {saved} tokens saved")
    });
    format!(
        "{}  {:>7}  {} messages · {} read, {} written{}{}  {said}\n",
        paint.heading(format!("turn {}", turn.turn)),
        after(start, turn.at),
        turn.messages,
        turn.usage.input_tokens,
        turn.usage.output_tokens,
        cost.unwrap_or_default(),
        tools.unwrap_or_default(),
    )
}

fn call_line(call: &Call, paint: Paint) -> String {
    let arguments = one_line(&Value::Object(call.arguments.clone()).to_string());
    let arguments = layout::cut(&arguments, 0, Some(LONGEST / 2));
    let ending = call.ending.as_deref().unwrap_or("open");
    let ending = match ending {
        "success" => paint.good(ending),
        _ => paint.bad(ending),
    };
    let time = call.duration_ms.map(|time| format!(" · {time} ms"));
    let size = call.result_size.map(|size| format!(" · {size} bytes"));
    format!(
        "› {} {arguments}  {ending}{}{}  {}",
        one_line(&call.name),
        time.unwrap_or_default(),
        size.unwrap_or_default(),
        paint.dim(call.path.as_deref().map(one_line).unwrap_or_default()),
    )
}

/// What was journaled and what callbacks did in a stretch of time, but for what the lines above say.
fn beside(
    traced: &Traced,
    (since, until): (Timestamp, Timestamp),
    start: Timestamp,
    paint: Paint,
    text: &mut String,
) {
    let within = |at: Timestamp| at > since && at <= until || (since == start && at == since);
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    let told = |kind: &str| kind.starts_with("agent.turn.") || kind == "tool.call.success";
    for event in traced.events.iter().filter(|event| within(event.at)) {
        if !told(&event.kind) && event.kind != "tool.call.pending" {
            lines.extend(event_lines(event).map(|line| (event.at, line)));
        }
    }
    for run in traced.hooks.iter().filter(|run| within(run.at)) {
        let what = match (&run.error, &run.edit) {
            (Some(error), _) => format!("failed: {}", one_line(error)),
            (None, Some(edit)) => one_line(&edit.to_string()),
            (None, None) => format!("{} effects", run.effects),
        };
        let what = layout::cut(&what, 0, Some(LONGEST));
        lines.push((
            run.at,
            format!("{} {}  {:.0} µs  {what}", run.hook, run.plugin, run.micros),
        ));
    }
    lines.sort();
    for (at, line) in lines {
        let _ = writeln!(
            text,
            "  {}",
            paint.dim(format!("· {:>7}  {line}", after(start, at)))
        );
    }
}

/// An event in one line; what rules decided in one line for each rule.
fn event_lines(event: &Event) -> impl Iterator<Item = String> {
    let decisions = event.payload["rules"]
        .as_array()
        .filter(|_| event.kind == DECIDED);
    let decided = decisions.into_iter().flatten().map(|decided| {
        let (rule, outcome) = (&decided["rule"], &decided["outcome"]);
        let what = match &outcome["error"] {
            Value::Null => format!("fired: {}", outcome["decisions"]),
            error => format!("failed: {error}"),
        };
        format!("rule {} {what}", rule.as_str().unwrap_or_default())
    });
    let plain = decisions
        .is_none()
        .then(|| format!("{} ({}) {}", event.kind, event.source, event.payload));
    let lines: Vec<String> = decided.chain(plain).collect();
    lines
        .into_iter()
        .map(|line| layout::cut(&one_line(&line), 0, Some(LONGEST)))
}

fn after(start: Timestamp, at: Timestamp) -> String {
    let seconds = at.duration_since(start).as_secs_f64();
    format!("+{seconds:.2} s")
}
