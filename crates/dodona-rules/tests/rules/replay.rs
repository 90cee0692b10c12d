//! Asking rules again about what the journal has.

use std::collections::HashMap;
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use dodona_proto::{Severity, StreamId};
use dodona_rules::load::{RuleSet, bundled, load_text};
use dodona_rules::replay::{Gap, Replay, Setup, Step};
use dodona_rules::{CompiledRule, Origin, Scope};
use dodona_script::Engine;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

/// A journal, one event after the other.
struct Tape {
    stream: StreamId,
    events: Vec<RecordedEvent>,
}

impl Tape {
    fn new() -> Self {
        Self {
            stream: StreamId::random(),
            events: Vec::new(),
        }
    }

    fn add(&mut self, kind: &str, payload: &Value) -> &mut Self {
        let position = self.events.len() as u64 + 1;
        let began: Timestamp = "2026-03-03T10:00:00Z".parse().unwrap();
        self.events.push(RecordedEvent {
            position,
            id: Uuid::now_v7(),
            kind: kind.to_owned(),
            source: "agent".to_owned(),
            severity: Severity::Info,
            timestamp: began + SignedDuration::from_mins(position as i64),
            user: "alice".parse().ok(),
            project: "shop".parse().ok(),
            call: Some(self.stream.root_call()),
            payload: payload.to_string().into(),
            causes: Vec::new(),
        });
        self
    }

    fn turn(&mut self, query: &str, number: u64, calls: u64) -> &mut Self {
        let snapshot = snapshot(query, number, calls);
        self.add(
            "agent.turn.start",
            &json!({ "snapshot": snapshot, "model": "offline" }),
        )
    }

    fn tool(&mut self, query: &str, number: u64, calls: u64, more: Value) -> &mut Self {
        let mut payload = json!({
            "tool_name": "vault_search", "path": "agent.vault", "arguments": { "query": "x" },
            "snapshot": snapshot(query, number, calls), "ending": "success", "duration_ms": 1.0,
        });
        let fields = payload.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        self.add("tool.call.success", &payload)
    }
}

fn snapshot(query: &str, turn: u64, calls: u64) -> Value {
    json!({
        "query_id": query, "context_id": "c", "user": "alice", "project": "shop",
        "turn": { "number": turn, "iteration_count": turn, "max_iterations": 30, "token_usage": 0.9, "context_usage": 0.1 },
        "tokens_used": 1, "token_budget": 2,
        "history": { "total_tool_calls": calls, "total_failures": 0, "message_count": 3 },
    })
}

fn rule(trigger: &str, expression: &str, rest: &str) -> Arc<CompiledRule> {
    let text = format!(
        "[rule]\nid = \"x\"\ntrigger = \"{trigger}\"\n[condition]\nexpression = \"{expression}\"\n{rest}\n"
    );
    let origin = Origin {
        scope: Scope::User,
        path: "x.toml".to_owned(),
    };
    let loaded = load_text(origin, &text, &|_| Err("no scripts".to_owned()));
    loaded
        .rule
        .unwrap_or_else(|| panic!("{:#?}", loaded.problems))
}

fn replay(rules: Vec<Arc<CompiledRule>>, tape: &Tape) -> Vec<Step> {
    let (rules, scripts) = (RuleSet::new(rules), Engine::new(1));
    let nothing = Arc::new(json!({}));
    let mut replay = Replay::new(Setup {
        rules: &rules,
        scripts: &scripts,
        settings: HashMap::new(),
        user_settings: Arc::clone(&nothing),
        project_settings: nothing,
        is_disabled: &|_| false,
    });
    let steps = tape.events.iter().map(|event| replay.event(event).unwrap());
    steps.collect()
}

fn messages(steps: &[Step]) -> Vec<String> {
    let answers = steps.iter().flat_map(|step| &step.answers);
    let decisions = answers.flat_map(|answer| &answer.outcome.decisions);
    decisions
        .filter_map(|decision| decision.message().map(str::to_owned))
        .collect()
}

const LOG: &str = "[action]\ntype = \"log\"\nmessage = \"turn {{ context.turn.number }}\"";

#[test]
fn limits_hold_as_they_did() {
    let mut tape = Tape::new();
    for number in 1..=7 {
        tape.turn("q", number, 0);
    }
    let always = |limits: &str| {
        let rest = format!("{LOG}\n[limits]\n{limits}");
        messages(&replay(vec![rule("on_turn_start", "True", &rest)], &tape))
    };
    assert_eq!(
        always("cooldown = \"3 turns\""),
        ["turn 1", "turn 4", "turn 7"]
    );
    assert_eq!(
        always("cooldown = \"2m\""),
        ["turn 1", "turn 3", "turn 5", "turn 7"]
    );
    assert_eq!(always("once_per = \"query\""), ["turn 1"]);
}

#[test]
fn what_a_rule_sets_it_sees_from_the_next_event_on() {
    let mut tape = Tape::new();
    for number in 1..=4 {
        tape.turn("q", number, 0);
    }
    let rest = "[[actions]]\ntype = \"set_state\"\nkey = \"n\"\nvalue = \"{{ context.state.get('n', 0) + 1 }}\"\n[[actions]]\ntype = \"log\"\nmessage = \"was {{ context.state.get('n', 0) }}\"";
    let steps = replay(
        vec![rule("on_turn_start", "context.state.get('n', 0) < 3", rest)],
        &tape,
    );
    assert_eq!(messages(&steps), ["was 0", "was 1", "was 2"]);
}

#[test]
fn earlier_tools_are_put_together_from_their_own_events() {
    let mut tape = Tape::new();
    let read = json!({ "tool_name": "vault_read", "result": { "text": "a note" } });
    let nested = json!({ "path": "agent.vault.search" });
    tape.turn("q", 1, 0)
        .tool("q", 1, 0, json!({}))
        .tool("q", 1, 0, nested)
        .turn("q", 2, 1)
        .tool("q", 2, 1, read)
        .turn("q", 3, 2);
    let condition = "tool_completed('vault_read') and recent_tool_count('vault_search', 9) == 1";
    let steps = replay(vec![rule("on_turn_start", condition, LOG)], &tape);
    assert_eq!(messages(&steps), ["turn 3"]);
    assert!(steps.iter().all(|step| step.gaps.is_empty()));
}

#[test]
fn what_the_journal_does_not_have_is_said_and_not_made_up() {
    let gaps = |steps: &[Step]| {
        let gaps = steps.iter().flat_map(|step| &step.gaps);
        gaps.map(|(_, gap)| *gap).collect::<Vec<_>>()
    };
    // The first tool call was before what is read.
    let mut tape = Tape::new();
    tape.turn("q", 2, 1);
    let steps = replay(
        vec![rule("on_turn_start", "not tool_completed('x')", LOG)],
        &tape,
    );
    assert_eq!(
        (gaps(&steps), messages(&steps).len()),
        (vec![Gap::Tools], 0)
    );
    // A result that was too large.
    let mut tape = Tape::new();
    tape.tool("q", 1, 0, json!({ "result_bytes": 1_000_000 }));
    let looks = rule("on_tool_complete", "context.result.result is None", LOG);
    let steps = replay(vec![looks], &tape);
    assert_eq!(
        (gaps(&steps), messages(&steps).len()),
        (vec![Gap::Result], 0)
    );
    let does_not = rule("on_tool_complete", "context.result.success", LOG);
    let steps = replay(vec![does_not], &tape);
    assert_eq!((gaps(&steps), messages(&steps).len()), (vec![], 1));
    // Messages are nowhere in the journal.
    let mut tape = Tape::new();
    tape.turn("q", 1, 0);
    let reads = rule("on_turn_start", "len(context.history.messages) == 0", LOG);
    assert_eq!(gaps(&replay(vec![reads], &tape)), [Gap::Messages]);
    let counts = rule("on_turn_start", "message_count_above(2)", LOG);
    assert_eq!(messages(&replay(vec![counts], &tape)), ["turn 1"]);
}

#[test]
fn an_event_of_another_version_does_not_end_the_replay() {
    let rules = bundled().into_iter().filter_map(|loaded| loaded.rule);
    let rules = RuleSet::new(rules.collect());
    let (scripts, nothing) = (Engine::new(1), Arc::new(json!({})));
    let mut replay = Replay::new(Setup {
        rules: &rules,
        scripts: &scripts,
        settings: HashMap::new(),
        user_settings: Arc::clone(&nothing),
        project_settings: nothing,
        is_disabled: &|_| false,
    });
    let mut tape = Tape::new();
    tape.add(
        "agent.turn.start",
        &json!({ "snapshot": { "turn": "three" } }),
    );
    tape.turn("q", 1, 0);
    assert!(replay.event(&tape.events[0]).is_err());
    let step = replay.event(&tape.events[1]).unwrap();
    assert_eq!(messages(&[step]).len(), 1, "the token budget is at 90 %");
}

#[test]
fn the_payload_is_what_rules_saw_of_it() {
    let mut tape = Tape::new();
    tape.add(
        "session.end",
        &json!({ "context_id": "c", "user": "alice", "project": "shop", "reason": "idle", "turns": 7 }),
    );
    let text = "[action]\ntype = \"log\"\nmessage = \"{{ context.event.payload | tojson }} {{ context.turn.number }}\"";
    let steps = replay(vec![rule("on_session_end", "True", text)], &tape);
    let expected = r#"{"context_id": "c", "reason": "idle", "turns": 7} 7"#;
    assert_eq!(messages(&steps), [expected]);
}
