//! What an event costs with many rules, against the engine one would write in Python, and how fast
//! the journal is asked again.
//!
//! Rules are those of a server with many teams: thresholds that rarely hold, each with a message, in
//! three mixes. All of them expressions; one in twenty a script of nothing but comparisons, which we
//! ask like an expression; one in twenty a script that must run to say anything, and a virtual machine
//! costs what it costs: there is no goal for those. Of the scripts as many fire as of the others.
//!
//! Both engines do the same: they go through the rules of the trigger by priority, ask each, render
//! the message of those that fire, keep one that fails from failing others, and answer with what was
//! decided. Neither writes a log or delivers anything. Both have conditions parsed, templates and
//! scripts compiled and the context at hand; ours keeps nothing of one event for the next. They are
//! asked about the same event, and must agree on how many fire. Theirs has no limits of time and
//! memory for scripts, ours has.
//!
//! `cargo xtask bench rules [-- --json] [-- --quick]`

mod journal;

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use dodona_rules::load::{RuleSet, load_text};
use dodona_rules::{Limiter, Origin, RuleContext, Scope, Trigger, TriggerEvaluation};
use dodona_script::Engine;
use dodona_testkit::measure::{self, Figure, Row, per_operation_on_cpu, side_by_side};
use dodona_testkit::{Lines, Python};
use serde_json::{Value, json};

/// The engine in Python.
const PEER: &str = include_str!("peer.py");

/// What conditions are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    /// All of them expressions.
    Expressions,
    /// One in twenty a script that only compares.
    Scripts,
    /// One in twenty a script that must run.
    RunningScripts,
}

/// One rule in so many is a script, where there are any.
const SCRIPTS: usize = 20;

/// The usage that the event has, in thousandths: rules below it fire.
const USAGE: usize = 500;

dodona_testkit::allocate_as_shipped!();

fn main() -> Result<()> {
    // Cargo and others pass arguments of their own; those are not ours to refuse.
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let sizes: &[usize] = match (asked("--bench"), asked("--quick")) {
        (true, false) => &[10, 100, 1_000, 10_000],
        (_, true) => &[10, 100, 1_000],
        // `cargo test` only wants to know that it works.
        (false, false) => &[20],
    };
    let rounds = match (asked("--bench"), asked("--quick")) {
        (true, false) => 7,
        (_, true) => 3,
        (false, false) => 1,
    };
    let packages = ["simpleeval==1.0.8", "jinja2==3.1.6", "lupa==2.8"];
    let mut peer = Python::with(&packages)?.lines(PEER)?;
    let mut rows = Vec::new();
    for &count in sizes {
        for mix in [Mix::Expressions, Mix::Scripts, Mix::RunningScripts] {
            for percent in [0, 1, 10] {
                rows.push(event(count, percent, mix, rounds, &mut peer)?);
            }
        }
    }
    rows.extend(journal::rows(asked("--bench") && !asked("--quick"))?);
    if asked("--json") {
        println!("{:#}", measure::as_json(&rows));
    } else {
        print!("{}", measure::table(&rows));
        print!("{}", growth(&rows));
    }
    Ok(())
}

/// A rule as both engines get it.
struct Source {
    id: String,
    priority: usize,
    condition: Condition,
    message: String,
}

enum Condition {
    Expression(String),
    Script(String),
}

/// Rules of which `percent` in a hundred fire.
fn sources(count: usize, percent: usize, mix: Mix) -> Vec<Source> {
    let firing = count * percent / 100;
    let source = |index: usize| {
        // Those that fire are spread over the others.
        let fires = firing > 0 && index.is_multiple_of(count.div_ceil(firing));
        let threshold = match fires {
            true => index % USAGE,
            false => USAGE + 1 + index % (1_000 - USAGE),
        };
        let threshold = threshold as f64 / 1_000.0;
        // One of each twenty, and not always the same one: as many of them fire as of the others.
        let is_script = index % SCRIPTS == index / SCRIPTS % SCRIPTS;
        let condition = match (is_script, mix) {
            (true, Mix::Scripts) => Condition::Script(format!(
                "return context.turn.token_usage > {threshold:?} and context.turn.number > 3"
            )),
            (true, Mix::RunningScripts) => Condition::Script(format!(
                "local turn = context.turn return turn.token_usage > {threshold:?} and turn.number > 3"
            )),
            _ => Condition::Expression(format!(
                "context.turn.token_usage > {threshold:?} and context.turn.number > 3 and context.user.id != 'u{index}'"
            )),
        };
        Source {
            id: format!("rule-{index}"),
            priority: 1 + index * 7 % 1_000,
            condition,
            message: format!(
                "Rule {index}: {{{{ (context.turn.token_usage * 100) | int }}}}% in turn {{{{ context.turn.number }}}}"
            ),
        }
    };
    (0..count).map(source).collect()
}

/// The event that both are asked about.
fn context() -> Value {
    json!({
        "turn": { "number": 12, "token_usage": USAGE as f64 / 1_000.0, "context_usage": 0.3, "iteration_count": 4, "max_iterations": 30 },
        "history": { "total_tool_calls": 9, "total_failures": 1, "messages": [], "tools": [], "failures": {} },
        "user": { "id": "alice", "settings": {} },
        "project": { "id": "shop", "settings": {} },
    })
}

fn event(count: usize, percent: usize, mix: Mix, rounds: usize, peer: &mut Lines) -> Result<Row> {
    let sources = sources(count, percent, mix);
    let rules = ours(&sources)?;
    let context = RuleContext::from_json(&context(), &json!({})).map_err(anyhow::Error::msg)?;
    let scripts = Engine::new(1);
    let fired = ask(&rules, &context, &scripts);
    let loaded = peer.ask(&json!({ "rules": theirs(&sources) }))?;
    ensure!(loaded["loaded"] == count, "the peer did not load: {loaded}");
    // So many that the first ones, after the peer had the caches to itself, do not count; the peer
    // has one to itself before its clock starts.
    let times = match rounds {
        1 => 1,
        _ => (2_000_000 / count).min(20_000) as u64,
    };
    let slow = (2_000 / count).max(1);
    let question = json!({ "trigger": "on_turn_start", "context": self::context(), "times": slow });
    let answer = peer.ask(&question)?;
    ensure!(
        answer["fired"] == fired,
        "{fired} fire, the peer says {answer}"
    );
    let mut fault = None;
    let peers = || {
        let nanos = peer
            .ask(&question)
            .and_then(|answer| answer["ns"].as_f64().context("no time"));
        nanos.unwrap_or_else(|error| {
            fault = Some(error);
            f64::NAN
        })
    };
    let mine = || {
        per_operation_on_cpu(times, || {
            for _ in 0..times {
                black_box(ask(&rules, &context, &scripts));
            }
        })
    };
    let (ours, theirs) = side_by_side(rounds, mine, peers);
    if let Some(error) = fault {
        return Err(error);
    }
    Ok(Row {
        what: {
            let scripts = count.div_ceil(SCRIPTS);
            let scripts = match mix {
                Mix::Expressions => String::new(),
                Mix::Scripts => format!(", {scripts} scripts"),
                Mix::RunningScripts => format!(", {scripts} scripts run"),
            };
            format!("event, {count} rules, {fired} fire{scripts}")
        },
        against: "simpleeval + Jinja2 + lupa".into(),
        target: match (count, percent, mix) {
            (1_000, 10, Mix::Expressions | Mix::Scripts) => "≥ 1 000×".into(),
            _ => String::new(),
        },
        figure: Figure::Rate,
        ours,
        peer: theirs,
    })
}

fn ours(sources: &[Source]) -> Result<RuleSet> {
    let rules = sources.iter().map(|source| {
        let condition = match &source.condition {
            Condition::Expression(text) => format!("expression = {text:?}"),
            Condition::Script(_) => "script = \"a.lua\"".to_owned(),
        };
        let text = format!(
            "[rule]\nid = {:?}\ntrigger = \"on_turn_start\"\npriority = {}\n[condition]\n{condition}\n[action]\ntype = \"notify_self\"\nmessage = {:?}\n",
            source.id, source.priority, source.message
        );
        let origin = Origin {
            scope: Scope::User,
            path: source.id.clone(),
        };
        let script = |_: &str| match &source.condition {
            Condition::Script(text) => Ok(text.clone()),
            Condition::Expression(_) => Err("it has no script".to_owned()),
        };
        let loaded = load_text(origin, &text, &script);
        loaded.rule.with_context(|| format!("{:?}", loaded.problems))
    });
    Ok(RuleSet::new(rules.collect::<Result<Vec<_>>>()?))
}

fn theirs(sources: &[Source]) -> Vec<Value> {
    let rule = |source: &Source| {
        let (key, text) = match &source.condition {
            Condition::Expression(text) => ("expression", text),
            Condition::Script(text) => ("script", text),
        };
        json!({
            "id": source.id, "trigger": "on_turn_start", "priority": source.priority,
            key: text, "message": source.message,
        })
    };
    sources.iter().map(rule).collect()
}

fn ask(rules: &RuleSet, context: &RuleContext, scripts: &Engine) -> usize {
    let limiter = Limiter::new();
    let rules = rules.at(Trigger::OnTurnStart);
    let contexts = vec![context.clone(); rules.plugin_names().count()];
    let round = TriggerEvaluation {
        rules,
        contexts: &contexts,
        limiter: &limiter,
        scripts,
        is_disabled: &|_| false,
    };
    let answers = round.evaluate();
    answers.iter().filter(|answer| answer.outcome.fired).count()
}

/// How the price of an event grows with the rules, and with those that fire.
fn growth(rows: &[Row]) -> String {
    let mut text = "growth (µs for an event, ours and the peer's)\n".to_owned();
    for row in rows.iter().filter(|row| row.what.starts_with("event")) {
        let bar = "#".repeat((row.ours.median.max(1.0).log2() as usize).saturating_sub(6));
        text.push_str(&format!(
            "{:40} {:>12.2} {:>14.1}  {bar}\n",
            row.what,
            row.ours.median / 1e3,
            row.peer.median / 1e3
        ));
    }
    text
}
