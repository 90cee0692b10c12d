//! How fast the journal is asked again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use dodona_proto::{Event, Severity};
use dodona_rules::CompiledRule;
use dodona_rules::load::{RuleSet, bundled};
use dodona_rules::replay::{Replay, Setup};
use dodona_script::Engine;
use dodona_store::journal::{EventFilter, Journal, JournalOptions, ReadPosition, RecordedEvent};
use dodona_store::{Store, StoreOptions};
use dodona_testkit::measure::{Figure, Row, nanos_each, side_by_side};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The turns of a query, each with a tool call.
const TURNS: u64 = 5;

/// Bundled rules over a journal of queries, against reading the journal alone.
pub(super) fn rows(in_full: bool) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let (queries, rounds) = match in_full {
        true => (10_000, 5),
        false => (20, 1),
    };
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), StoreOptions::default())?;
    let journal = runtime.block_on(Journal::open(&store, JournalOptions::default()))?;
    let events = runtime.block_on(fill(&journal, queries))?;
    let rules: Vec<Arc<CompiledRule>> = bundled().into_iter().filter_map(|one| one.rule).collect();
    let rules = Arc::new(RuleSet::new(rules));
    let fired = runtime.block_on(backtest(&journal, &rules))?;
    ensure!(fired == 3 * queries, "{fired} firings in {queries} queries");
    let timed = |work: &dyn Fn() -> Result<u64>| {
        let begun = Instant::now();
        match work() {
            Ok(_) => nanos_each(begun.elapsed(), events),
            Err(_) => f64::NAN,
        }
    };
    let (ours, peer) = side_by_side(
        rounds,
        || timed(&|| runtime.block_on(backtest(&journal, &rules))),
        || timed(&|| runtime.block_on(read(&journal))),
    );
    Ok(vec![Row {
        what: format!("backtest, {events} events, 6 rules"),
        against: "reading the journal alone".into(),
        target: "≥ 200 000 events/s".into(),
        figure: Figure::Rate,
        ours,
        peer,
    }])
}

fn filter() -> EventFilter {
    EventFilter::of("alice".parse().expect("a user's name"))
}

/// Writes queries as the agent does. Tells how many events that made.
async fn fill(journal: &Journal, queries: u64) -> Result<u64> {
    let mut count = 0;
    for query in 0..queries {
        for event in events_of(query) {
            journal.publish(event).await?;
            count += 1;
        }
    }
    journal.flush().await?;
    Ok(count)
}

fn events_of(query: u64) -> Vec<Event> {
    let call = dodona_proto::StreamId::random().root_call();
    let event = |kind: &str, payload: Value| Event {
        id: Uuid::now_v7(),
        kind: kind.to_owned(),
        source: "agent".to_owned(),
        severity: Severity::Info,
        payload,
        timestamp: Timestamp::now(),
        user: "alice".parse().ok(),
        project: "shop".parse().ok(),
        call: Some(call),
        causes: Vec::new(),
    };
    let about = |kind: &str, turn: u64, more: Value| {
        let mut payload = json!({ "snapshot": snapshot(query, turn) });
        if let (Some(fields), Some(more)) = (payload.as_object_mut(), more.as_object()) {
            fields.extend(more.clone());
        }
        event(kind, payload)
    };
    let question =
        json!({ "question": "How does login work, and why did we drop refresh tokens?" });
    let mut events = vec![about("query.start", 0, question)];
    for turn in 1..=TURNS {
        let tool = json!({
            "tool_name": "vault_search", "method": "vault.search", "path": "agent.vault",
            "surface": "cli", "arguments": { "query": "refresh tokens", "limit": 5 },
        });
        events.push(about(
            "agent.turn.start",
            turn,
            json!({ "model": "offline" }),
        ));
        events.push(about("tool.call.pending", turn, tool.clone()));
        let mut ended = tool;
        ended["ending"] = json!("success");
        ended["answered"] = json!(false);
        ended["duration_ms"] = json!(1.5);
        ended["result"] = json!({ "passages": vec!["a passage of a note"; 3 + turn as usize] });
        events.push(about("tool.call.success", turn, ended));
        let end = json!({ "is_last": turn == TURNS, "tool_calls": 1, "error": null });
        events.push(about("agent.turn.end", turn, end));
    }
    events
}

fn snapshot(query: u64, turn: u64) -> Value {
    json!({
        "query_id": format!("query-{query}"), "context_id": format!("context-{query}"),
        "user": "alice", "project": "shop",
        "turn": {
            "number": turn, "iteration_count": turn, "max_iterations": 30,
            "token_usage": 0.17 * turn as f64, "context_usage": 0.05 * turn as f64,
        },
        "tokens_used": 1_000 * turn, "token_budget": 6_000,
        "history": { "total_tool_calls": turn.saturating_sub(1), "total_failures": 0, "message_count": 2 * turn },
        "exchanges": { "from": 1, "to": turn },
    })
}

async fn read(journal: &Journal) -> Result<u64> {
    let (mut place, mut count) = (ReadPosition::Beginning, 0);
    loop {
        let page = journal.events_from(filter(), place).await?;
        let Some(last) = page.last() else {
            return Ok(count);
        };
        place = ReadPosition::After(last.position);
        count += page.len() as u64;
    }
}

/// As the method does it: one thread reads, another asks. Tells how many rules fired.
async fn backtest(journal: &Journal, rules: &Arc<RuleSet>) -> Result<u64> {
    let (pages, mut waiting) = mpsc::channel::<Vec<RecordedEvent>>(2);
    let rules = Arc::clone(rules);
    let working = tokio::task::spawn_blocking(move || {
        let scripts = Engine::new(1);
        let nobody = |_: &CompiledRule| false;
        let nothing = Arc::new(json!({}));
        let mut replay = Replay::new(Setup {
            rules: &rules,
            scripts: &scripts,
            settings: HashMap::new(),
            user_settings: Arc::clone(&nothing),
            project_settings: nothing,
            is_disabled: &nobody,
        });
        let mut fired = 0;
        while let Some(page) = waiting.blocking_recv() {
            for event in &page {
                let step = replay.event(event)?;
                let answers = step.answers.iter();
                fired += answers.filter(|answer| answer.outcome.fired).count() as u64;
            }
        }
        anyhow::Ok(fired)
    });
    let mut place = ReadPosition::Beginning;
    loop {
        let page = journal.events_from(filter(), place).await?;
        let Some(last) = page.last() else { break };
        place = ReadPosition::After(last.position);
        if pages.send(page).await.is_err() {
            break;
        }
    }
    drop(pages);
    working.await?
}
