//! Whatever happens, in whatever order, and whenever the process ends: what is stored stays a
//! conversation that a provider accepts.

use std::collections::BTreeMap;

use dodona_agent::conversation::{
    Compaction, ContextId, ContextStatus, ConversationError, Conversations, Ending, NewContext,
    NewMessage, NewQuery, Query, QueryState, Which,
};
use dodona_proto::Message;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::storage::{
    Disk, alice, ask, asks, assert_in_step, assert_strict, bytes, crash, in_context, outcome,
    question, says,
};

/// Something that can happen. Numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Begin {
        context: usize,
        length: usize,
        model: bool,
    },
    Ask {
        calls: usize,
    },
    Start {
        call: usize,
    },
    End {
        call: usize,
        ending: Ending,
        length: usize,
    },
    Steer,
    Answer {
        length: usize,
    },
    Finish {
        state: QueryState,
        half: bool,
    },
    Drop,
    Crash,
    Rewind {
        context: usize,
        exchange: usize,
    },
    Fork {
        context: usize,
        exchange: usize,
    },
    Close {
        context: usize,
    },
    Compact {
        context: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = prop_oneof![
        Just(Ending::Success),
        Just(Ending::Error),
        Just(Ending::Timeout),
        Just(Ending::Denied),
        Just(Ending::Cancelled),
    ];
    let state = prop_oneof![
        Just(QueryState::Failed),
        Just(QueryState::Cancelled),
        Just(QueryState::Refused),
        Just(QueryState::Limited),
        Just(QueryState::Interrupted),
    ];
    let step = prop_oneof![
        4 => (0..3_usize, 1..900_usize, any::<bool>())
            .prop_map(|(context, length, model)| Step::Begin { context, length, model }),
        4 => (1..4_usize).prop_map(|calls| Step::Ask { calls }),
        4 => (0..4_usize).prop_map(|call| Step::Start { call }),
        6 => (0..4_usize, ending, 0..900_usize)
            .prop_map(|(call, ending, length)| Step::End { call, ending, length }),
        1 => Just(Step::Steer),
        3 => (1..900_usize).prop_map(|length| Step::Answer { length }),
        1 => (state, any::<bool>()).prop_map(|(state, half)| Step::Finish { state, half }),
        1 => Just(Step::Drop),
        2 => Just(Step::Crash),
        1 => (0..3_usize, 0..20_usize)
            .prop_map(|(context, exchange)| Step::Rewind { context, exchange }),
        1 => (0..3_usize, 0..20_usize)
            .prop_map(|(context, exchange)| Step::Fork { context, exchange }),
        1 => (0..3_usize).prop_map(|context| Step::Close { context }),
        2 => (0..3_usize).prop_map(|context| Step::Compact { context }),
    ];
    prop::collection::vec(step, 1..60)
}

/// What was acknowledged, in the order it was said.
type Acknowledged = BTreeMap<ContextId, Vec<String>>;

struct World {
    disk: Disk,
    conversations: Conversations,
    query: Option<Query>,
    /// The calls of the running query that have not ended.
    open: Vec<String>,
    turn: u32,
    said: Acknowledged,
}

impl World {
    async fn new() -> Self {
        let disk = Disk::new().await;
        let conversations = disk.open();
        let new = NewContext {
            token_budget: 4_000,
            ..NewContext::named(Some("small"))
        };
        conversations.create(&alice(), new).await.unwrap();
        Self {
            conversations,
            disk,
            query: None,
            open: Vec::new(),
            turn: 0,
            said: BTreeMap::new(),
        }
    }

    fn acknowledge(&mut self, context: &ContextId, exchange: &str) {
        let said = self.said.entry(context.clone()).or_default();
        said.push(exchange.to_owned());
    }

    /// Errors are part of life; what matters is what is stored afterwards.
    async fn take(&mut self, step: Step) {
        match step {
            Step::Begin {
                context,
                length,
                model,
            } => self.begin(context, length, model).await,
            Step::Ask { calls } => {
                let ids: Vec<String> = (0..calls).map(|n| format!("call_{n}")).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                if self.append(asks(&ids)).await {
                    self.open = ids.into_iter().map(str::to_owned).collect();
                }
            }
            Step::Start { call } => {
                if let (Some(query), Some(id)) = (&self.query, self.open.get(call)) {
                    query.tool_started(id, None).await.unwrap();
                }
            }
            Step::End {
                call,
                ending,
                length,
            } => self.end(call, ending, length).await,
            Step::Steer => {
                let content = "steer".to_owned();
                self.append(NewMessage::User { content }).await;
            }
            Step::Answer { length } => {
                if self.open.is_empty()
                    && let Some(query) = self.query.take()
                {
                    let context = query.context().clone();
                    let text = "w".repeat(length);
                    if let Ok(answered) = query.answer(self.turn + 1, text, None).await {
                        self.acknowledge(&context, answered.exchange.as_str());
                    }
                }
            }
            Step::Finish { state, half } => {
                if half && self.open.is_empty() {
                    self.append(says("HALF")).await;
                }
                if let Some(query) = self.query.take() {
                    query.finish(state, None).await.unwrap();
                }
            }
            Step::Drop => drop(self.query.take()),
            Step::Crash => {
                if let Some(query) = self.query.take() {
                    crash(query);
                }
                self.conversations = self.disk.open();
            }
            Step::Rewind { context, exchange } => {
                if let Some((context, exchange)) = self.choose(context, exchange).await {
                    let _ = self
                        .conversations
                        .rewind(&alice(), &context, &exchange)
                        .await;
                }
            }
            Step::Fork { context, exchange } => {
                if let Some((context, exchange)) = self.choose(context, exchange).await {
                    self.conversations
                        .fork(&alice(), &context, Some(&exchange), None)
                        .await
                        .unwrap();
                }
            }
            Step::Close { context } => {
                let list = self
                    .conversations
                    .list(&alice(), Which::All, 100)
                    .await
                    .unwrap();
                if list.len() > 2
                    && let Some(chosen) = list.get(context)
                {
                    let _ = self.conversations.close(&alice(), chosen.id.as_str()).await;
                }
            }
            Step::Compact { context } => {
                let list = self
                    .conversations
                    .list(&alice(), Which::Open, 100)
                    .await
                    .unwrap();
                if let Some(chosen) = list.get(context) {
                    compact(&self.conversations, &chosen.id).await.unwrap();
                }
            }
        }
        if self.query.is_none() {
            self.open.clear();
        }
    }

    async fn begin(&mut self, context: usize, length: usize, model: bool) {
        if self.query.is_some() {
            return;
        }
        let text = "q".repeat(length);
        let list = self
            .conversations
            .list(&alice(), Which::All, 100)
            .await
            .unwrap();
        let new = match list.get(context) {
            Some(chosen) => in_context(chosen.id.as_str(), &text),
            None => NewQuery {
                context: None,
                ..in_context("", &text)
            },
        };
        let new = NewQuery {
            model: if model { "one" } else { "two" }.to_owned(),
            counter: bytes(),
            ..new
        };
        // Closed ones refuse, and one that was dropped a moment ago may still be ending.
        if let Ok(query) = self.conversations.begin_query(&alice(), new).await {
            let context = query.context().clone();
            self.acknowledge(&context, query.begun().exchange.as_str());
            (self.turn, self.query) = (0, Some(query));
        }
    }

    async fn append(&mut self, said: NewMessage) -> bool {
        let Some(query) = &self.query else {
            return false;
        };
        let assistant = matches!(said, NewMessage::Assistant { .. });
        if assistant && !self.open.is_empty() {
            query.append(self.turn + 1, said).await.unwrap_err();
            return false;
        }
        let context = query.context().clone();
        match query.append(self.turn + 1, said).await {
            Ok(appended) => {
                self.turn += u32::from(assistant);
                self.acknowledge(&context, appended.exchange.as_str());
                true
            }
            Err(_) => false,
        }
    }

    async fn end(&mut self, call: usize, ending: Ending, length: usize) {
        let (Some(query), Some(id)) = (&self.query, self.open.get(call)) else {
            return;
        };
        let context = query.context().clone();
        let ended = query.tool_ended(id, outcome(ending, &"r".repeat(length)));
        if let Ok(appended) = ended.await {
            self.open.remove(call);
            self.acknowledge(&context, appended.exchange.as_str());
        }
    }

    async fn choose(&self, context: usize, exchange: usize) -> Option<(String, String)> {
        let list = self
            .conversations
            .list(&alice(), Which::All, 100)
            .await
            .unwrap();
        let chosen = list.get(context)?.id.to_string();
        let shown = self
            .conversations
            .show(&alice(), Some(&chosen))
            .await
            .unwrap();
        let exchange = shown.recent_exchanges.get(exchange)?.id.to_string();
        Some((chosen, exchange))
    }

    async fn check(&mut self) {
        let list = self
            .conversations
            .list(&alice(), Which::All, 1_000)
            .await
            .unwrap();
        let defaults = list
            .iter()
            .filter(|context| context.is_default && context.status != ContextStatus::Closed);
        assert!(defaults.count() <= 1, "more than one default conversation");
        for summary in &list {
            let id = Some(summary.id.as_str());
            let state = self.conversations.show(&alice(), id).await.unwrap();
            assert_in_step(&state);
            let has_summary = state.compressed_summary.is_some();
            let shown = self
                .conversations
                .window(&alice(), summary.id.as_str())
                .await
                .unwrap();
            assert_strict(&shown);
            if let Some(query) = &mut self.query
                && *query.context() == summary.id
            {
                let followed = query.window().await.unwrap();
                assert_eq!(followed, shown, "a query follows its conversation");
            }
            // What stands for earlier messages is no question.
            let standing_for = usize::from(has_summary);
            for pair in shown.windows(2).skip(standing_for) {
                if let [Message::User { .. }, Message::User { content }] = pair {
                    assert_eq!(
                        content, "steer",
                        "a question is never left open: {shown:#?}"
                    );
                }
            }
            let running = self.query.as_ref().map(Query::context) == Some(&summary.id);
            let half = |message: &Message| matches!(message, Message::Assistant { content, .. } if content == "HALF");
            assert!(
                running || !shown.iter().any(half),
                "half an answer is shown: {shown:#?}"
            );
            let archive = self.conversations.export(&alice(), id).await.unwrap();
            let stored: Vec<&str> = archive
                .exchanges
                .iter()
                .map(|entry| entry.exchange.id.as_str())
                .collect();
            let said = self
                .said
                .get(&summary.id)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let kept: Vec<&str> = stored
                .iter()
                .copied()
                .filter(|id| said.iter().any(|s| s == id))
                .collect();
            assert_eq!(
                kept, said,
                "what was acknowledged is stored, once and in order"
            );
        }
    }

    /// Ends whatever runs, as a new process does, and looks at the whole.
    async fn settle(mut self) {
        if let Some(query) = self.query.take() {
            crash(query);
        }
        self.conversations = self.disk.open();
        self.check().await;
        self.disk.assert_copies().await;
        let open = "select count(*) from tool_calls where status = 'pending'";
        assert_eq!(self.disk.number(open).await, 0, "every tool call has ended");
        let running = "select count(*) from queries where state = 'running'";
        assert_eq!(self.disk.number(running).await, 0);
        let mut next = self
            .conversations
            .begin_query(&alice(), question("Next?"))
            .await
            .unwrap();
        assert_strict(&next.window().await.unwrap());
        next.answer(1, "Yes.".to_owned(), None).await.unwrap();
    }
}

/// Shortens a conversation to its last two turns.
async fn compact(
    conversations: &Conversations,
    context: &ContextId,
) -> Result<Option<Compaction>, ConversationError> {
    let Some(plan) = conversations.plan_compaction(context, 2).await? else {
        return Ok(None);
    };
    let lines = plan.fold(None, &bytes());
    conversations.compact(&plan, lines, &bytes()).await
}

#[tokio::test]
async fn a_compaction_that_fails_half_way_has_changed_nothing() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    for n in 0..6 {
        let asked = format!("Question {n} about src/q{n}.rs, {}", "more ".repeat(50));
        ask(&conversations, &asked, "We decided to read it.").await;
    }
    let context = conversations.show(&alice(), None).await.unwrap().id;
    let before = conversations.export(&alice(), None).await.unwrap();
    let shown = conversations.window(&alice(), "default").await.unwrap();
    // The lines are written before the conversation says that they stand for something.
    let forbid = "create trigger forbid before update of summarized_to on oracle_contexts
        begin select raise(abort, 'no'); end";
    disk.execute(forbid).await;
    compact(&conversations, &context).await.unwrap_err();
    let after = conversations.export(&alice(), None).await.unwrap();
    assert_eq!(after.exchanges, before.exchanges);
    assert_eq!(after.context, before.context);
    assert_eq!(
        conversations.window(&alice(), "default").await.unwrap(),
        shown
    );
    let lines = "select count(*) from summary_lines";
    assert_eq!(disk.number(lines).await, 0);
    disk.execute("drop trigger forbid").await;
    let done = compact(&conversations, &context).await.unwrap().unwrap();
    assert!(done.after < done.before && disk.number(lines).await > 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0xc4a5),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_sequence_of_events_leaves_conversations_that_work(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
                world.check().await;
            }
            world.settle().await;
        });
    }
}
