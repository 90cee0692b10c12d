//! Conversations as wholes: their states, their windows, forks and rewinds.

use std::sync::{Arc, Mutex, mpsc};

use dodona_agent::conversation::{
    ContextStatus, ConversationError, Conversations, Counter, Ending, NewContext, NewQuery,
    OracleContext, QueryState, Recounted, Which,
};
use dodona_proto::Message;

use crate::storage::{
    Disk, alice, ask, asks, assert_in_step, assert_strict, crash, in_context, outcome, question,
    run, times,
};

/// A counter that tells when it counts first, and goes on when it is let go.
struct Held {
    begun: Arc<tokio::sync::Notify>,
    go_on: mpsc::Sender<()>,
    waits: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Held {
    fn new() -> Self {
        let (go_on, waits) = mpsc::channel();
        Self {
            begun: Arc::default(),
            go_on,
            waits: Arc::new(Mutex::new(waits)),
        }
    }

    fn counter(&self) -> Counter {
        let (begun, waits, count) = (Arc::clone(&self.begun), Arc::clone(&self.waits), times(1));
        Arc::new(move |message| {
            begun.notify_one();
            // Nothing is ever sent: letting go drops the sender.
            let _ = waits.lock().unwrap().recv();
            count(message)
        })
    }

    /// A change to the model that counts so.
    fn change(
        &self,
        conversations: &Conversations,
    ) -> impl Future<Output = Result<Recounted, ConversationError>> + use<> {
        let (conversations, counter) = (conversations.clone(), self.counter());
        async move {
            let me = alice();
            let change = conversations.change_model(&me, "default", "slow", &counter);
            change.await
        }
    }

    async fn counting(&self) {
        self.begun.notified().await;
    }

    fn let_go(self) {
        drop(self.go_on);
    }
}

async fn small(conversations: &Conversations) -> OracleContext {
    let new = NewContext {
        token_budget: 4_000,
        ..NewContext::named(Some("small"))
    };
    conversations.create(&alice(), new).await.unwrap()
}

#[tokio::test]
async fn a_closed_conversation_is_not_continued_and_the_default_is_made_anew() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let first = conversations.close(&alice(), "default").await.unwrap();
    let error = conversations
        .begin_query(&alice(), in_context(first.as_str(), "Two?"))
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, ConversationError::Closed(id) if id == first));
    let again = conversations
        .close(&alice(), first.as_str())
        .await
        .unwrap_err();
    assert_eq!(again.to_string(), "the conversation is closed already");
    ask(&conversations, "Two?", "Yes.").await;
    let second = conversations.show(&alice(), None).await.unwrap();
    assert_ne!(second.id, first);
    let shown = conversations
        .show(&alice(), Some(first.as_str()))
        .await
        .unwrap();
    assert_eq!(shown.status, ContextStatus::Closed);
    assert_eq!(shown.recent_exchanges.len(), 4, "it can still be read");
}

#[tokio::test]
async fn names_are_unique_among_those_not_closed_and_stand_for_ids() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let me = alice();
    let create = |name| conversations.create(&me, NewContext::named(Some(name)));
    let context = create("login").await.unwrap();
    let taken = create("login").await.unwrap_err();
    assert!(matches!(taken, ConversationError::NameTaken(name) if name == "login"));
    let reserved = create("default").await.unwrap_err();
    assert!(matches!(reserved, ConversationError::Invalid(invalid) if invalid.field == "name"));
    let query = conversations
        .begin_query(&alice(), in_context("login", "One?"))
        .await
        .unwrap();
    assert_eq!(*query.context(), context.id);
    query.answer(1, "Yes.".to_owned(), None).await.unwrap();
    conversations.close(&alice(), "login").await.unwrap();
    let next = create("login").await.unwrap();
    assert_ne!(next.id, context.id);
    let list = conversations.list(&alice(), Which::All, 10).await.unwrap();
    assert_eq!(list.len(), 2);
    let old = list
        .iter()
        .find(|summary| summary.id == context.id)
        .unwrap();
    assert_eq!(
        (old.queries, old.first_question.as_deref()),
        (1, Some("One?"))
    );
}

#[tokio::test]
async fn the_oldest_queries_leave_the_window_and_the_originals_stay() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    small(&conversations).await;
    for n in 0..10 {
        let query = conversations
            .begin_query(&alice(), in_context("small", &format!("Question {n}?")))
            .await
            .unwrap();
        query.append(1, asks(&["a"])).await.unwrap();
        run(&query, "a", &"x".repeat(900)).await;
        query.answer(2, "Yes.".to_owned(), None).await.unwrap();
        let context = conversations.show(&alice(), Some("small")).await.unwrap();
        assert_in_step(&context);
        assert!(context.tokens_used <= context.token_budget);
        assert_strict(&conversations.window(&alice(), "small").await.unwrap());
    }
    let context = conversations.show(&alice(), Some("small")).await.unwrap();
    assert_eq!(context.recent_exchanges.len(), 16, "four whole queries fit");
    assert_eq!(context.recent_exchanges[0].content, "Question 6?");
    let archive = conversations.export(&alice(), Some("small")).await.unwrap();
    assert_eq!(archive.exchanges.len(), 40);
}

#[tokio::test]
async fn a_running_query_may_use_a_tenth_more_and_not_a_token_beyond() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    small(&conversations).await;
    let query = conversations
        .begin_query(&alice(), in_context("small", "Why?"))
        .await
        .unwrap();
    let asked = query.append(1, asks(&["a", "b"])).await.unwrap();
    query.tool_started("a", None).await.unwrap();
    let room = 4_400 - asked.tokens_used - 4;
    let too_much = query
        .tool_ended(
            "a",
            outcome(Ending::Success, &"x".repeat(room as usize + 1)),
        )
        .await
        .unwrap_err();
    assert_eq!(
        too_much.to_string(),
        "4401 tokens do not fit into the conversation: its budget of 4000 allows at most 4400"
    );
    // Nothing of it was stored: the call is still open, and can end with less.
    let all = query
        .tool_ended("a", outcome(Ending::Success, &"x".repeat(room as usize)))
        .await
        .unwrap();
    assert_eq!(all.tokens_used, 4_400);
    query
        .finish(QueryState::Limited, Some("out of tokens"))
        .await
        .unwrap();
    let context = conversations.show(&alice(), Some("small")).await.unwrap();
    assert_in_step(&context);
    assert_strict(&conversations.window(&alice(), "small").await.unwrap());
    let next = conversations
        .begin_query(&alice(), in_context("small", "Shorter?"))
        .await
        .unwrap();
    assert_eq!(next.begun().dropped, 1, "what is over leaves the window");
}

#[tokio::test]
async fn a_question_that_never_fits_is_refused() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    small(&conversations).await;
    let long = in_context("small", &"x".repeat(5_000));
    let refused = conversations
        .begin_query(&alice(), long)
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(
        refused,
        ConversationError::OverBudget { budget: 4_000, .. }
    ));
    assert!(
        conversations
            .queries(&alice(), Some("small"), 5)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn another_model_counts_anew_and_what_no_longer_fits_leaves() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    small(&conversations).await;
    for _ in 0..3 {
        let query = conversations
            .begin_query(&alice(), in_context("small", &"q".repeat(900)))
            .await
            .unwrap();
        query.answer(1, "a".repeat(100), None).await.unwrap();
    }
    let before = conversations.show(&alice(), Some("small")).await.unwrap();
    let recounted = conversations
        .change_model(&alice(), "small", "wordy", &times(3))
        .await
        .unwrap();
    assert_eq!(recounted.before, before.tokens_used);
    assert_eq!(recounted.counted, 3 * 3_000 + 6 * 4);
    assert!(recounted.over_budget());
    assert_eq!(recounted.dropped, 2);
    let after = conversations.show(&alice(), Some("small")).await.unwrap();
    assert_in_step(&after);
    assert_eq!(after.tokens_used, recounted.after);
    assert_eq!(after.last_model.as_deref(), Some("wordy"));
    assert_eq!(after.status, ContextStatus::Active);
    assert_eq!(
        conversations
            .export(&alice(), Some("small"))
            .await
            .unwrap()
            .exchanges
            .len(),
        6
    );
}

#[tokio::test]
async fn a_query_with_another_model_recounts_by_itself() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let before = conversations.show(&alice(), None).await.unwrap();
    let other = NewQuery {
        model: "wordy".to_owned(),
        counter: times(3),
        ..question("Two?")
    };
    let query = conversations.begin_query(&alice(), other).await.unwrap();
    let counted = |text: &str| 4 + 3 * text.len() as u64;
    let after = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(after.recent_exchanges[0].token_count, counted("One?"));
    assert!(after.tokens_used > 2 * before.tokens_used);
    assert_in_step(&after);
    query.finish(QueryState::Cancelled, None).await.unwrap();
}

#[tokio::test]
async fn a_model_change_that_a_crash_cut_short_is_done_again() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let suspended = disk
        .db
        .write(|tx| tx.execute("update oracle_contexts set status = 'suspended'", ()));
    suspended.await.unwrap();
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("Two?"))
        .await
        .unwrap();
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(context.status, ContextStatus::Active);
    query.answer(1, "Yes.".to_owned(), None).await.unwrap();
}

#[tokio::test]
async fn a_conversation_is_suspended_while_another_model_counts_it() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let status = async || conversations.show(&alice(), None).await.unwrap().status;
    assert_eq!(status().await, ContextStatus::Active);
    let held = Held::new();
    let change = tokio::spawn(held.change(&conversations));
    held.counting().await;
    assert_eq!(status().await, ContextStatus::Suspended);
    held.let_go();
    change.await.unwrap().unwrap();
    assert_eq!(status().await, ContextStatus::Active);
}

#[tokio::test]
async fn a_model_change_that_nobody_waits_for_leaves_the_conversation_suspended_until_the_next_query()
 {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let held = Held::new();
    let change = tokio::spawn(held.change(&conversations));
    held.counting().await;
    change.abort();
    assert!(change.await.unwrap_err().is_cancelled());
    held.let_go();
    let left = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(left.status, ContextStatus::Suspended);
    ask(&conversations, "Two?", "Yes.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(context.status, ContextStatus::Active);
    assert_in_step(&context);
}

#[tokio::test]
async fn a_rewind_takes_back_from_an_exchange_on_and_keeps_the_originals() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One? see src/a.rs", "Yes.").await;
    ask(&conversations, "Two? see src/b.rs", "No.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    let two = &context.recent_exchanges[4];
    let rewound = conversations
        .rewind(&alice(), "default", two.id.as_str())
        .await
        .unwrap();
    assert_eq!(rewound.exchanges, 4);
    let after = conversations.show(&alice(), None).await.unwrap();
    assert_in_step(&after);
    assert_eq!(after.recent_exchanges, context.recent_exchanges[..4]);
    assert_eq!(after.mentioned_files.as_deref(), Some("src/a.rs"));
    let gone = conversations
        .rewind(&alice(), "default", two.id.as_str())
        .await;
    assert!(matches!(
        gone,
        Err(ConversationError::NotFound {
            what: "exchange",
            ..
        })
    ));
    let archive = conversations.export(&alice(), None).await.unwrap();
    let marked = archive
        .exchanges
        .iter()
        .filter(|entry| entry.rewound_at.is_some());
    assert_eq!((archive.exchanges.len(), marked.count()), (8, 4));
    ask(&conversations, "Three?", "Maybe.").await;
    assert_strict(&conversations.window(&alice(), "default").await.unwrap());
}

#[tokio::test]
async fn a_rewind_to_a_tools_answer_goes_before_the_message_that_asked_for_it() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    let answer = &context.recent_exchanges[2];
    conversations
        .rewind(&alice(), "default", answer.id.as_str())
        .await
        .unwrap();
    let shown = conversations.window(&alice(), "default").await.unwrap();
    assert_strict(&shown);
    let Message::Assistant {
        content,
        tool_calls,
        ..
    } = &shown[1]
    else {
        panic!("{shown:#?}")
    };
    assert_eq!(content, "(The answer to this was taken back.)");
    assert!(tool_calls.is_empty() && shown.len() == 2);
}

#[tokio::test]
async fn what_had_left_the_window_comes_back_when_a_rewind_makes_room() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    small(&conversations).await;
    for n in 0..6 {
        let text = format!("{n}{}", "x".repeat(980));
        let query = conversations
            .begin_query(&alice(), in_context("small", &text))
            .await
            .unwrap();
        query.answer(1, "Yes.".to_owned(), None).await.unwrap();
    }
    let context = conversations.show(&alice(), Some("small")).await.unwrap();
    assert!(context.recent_exchanges[0].content.starts_with('2'));
    let fifth = &context.recent_exchanges[4];
    assert!(fifth.content.starts_with('4'));
    conversations
        .rewind(&alice(), "small", fifth.id.as_str())
        .await
        .unwrap();
    let context = conversations.show(&alice(), Some("small")).await.unwrap();
    assert!(context.recent_exchanges[0].content.starts_with('0'));
    assert_in_step(&context);
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    ask(&conversations, "Two?", "No.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    let answer = &context.recent_exchanges[3];
    let forked = conversations
        .fork(
            &alice(),
            "default",
            Some(answer.id.as_str()),
            Some("branch"),
        )
        .await
        .unwrap();
    assert_eq!(forked.exchanges, 4);
    let branch = conversations.show(&alice(), Some("branch")).await.unwrap();
    assert!(!branch.is_default);
    let from = branch.forked_from.clone().unwrap();
    assert_eq!(
        (from.context_id, from.exchange_id),
        (context.id, Some(answer.id.clone()))
    );
    let texts = |context: &OracleContext| -> Vec<String> {
        context
            .recent_exchanges
            .iter()
            .map(|e| e.content.clone())
            .collect()
    };
    assert_eq!(texts(&branch), ["One?", "", "found it", "Yes."]);
    assert!(
        branch.recent_exchanges.iter().all(|e| e.id != answer.id),
        "ids are new"
    );
    let mut query = conversations
        .begin_query(&alice(), in_context("branch", "Three?"))
        .await
        .unwrap();
    assert_strict(&query.window().await.unwrap());
    query.answer(1, "Maybe.".to_owned(), None).await.unwrap();
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(texts(&context).last().map(String::as_str), Some("No."));
}

#[tokio::test]
async fn a_fork_in_the_middle_has_every_answer_of_a_tool_and_is_told_to_be_unfinished() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    let asked = query.append(1, asks(&["a", "b"])).await.unwrap();
    run(&query, "b", "2").await;
    run(&query, "a", "1").await;
    // A query that is running can be forked too.
    let forked = conversations
        .fork(&alice(), "default", Some(asked.exchange.as_str()), None)
        .await
        .unwrap();
    assert_eq!(forked.exchanges, 4);
    let shown = conversations
        .window(&alice(), forked.context.as_str())
        .await
        .unwrap();
    assert_strict(&shown);
    assert_eq!(shown.len(), 5);
    query.answer(2, "Yes.".to_owned(), None).await.unwrap();
    let forked = conversations
        .fork(&alice(), "default", Some(asked.exchange.as_str()), None)
        .await
        .unwrap();
    let queries = conversations
        .queries(&alice(), Some(forked.context.as_str()), 5)
        .await
        .unwrap();
    assert_eq!(queries[0].state, QueryState::Interrupted);
    assert_eq!(
        queries[0].reason.as_deref(),
        Some("the copy ends before its answer")
    );
}

#[tokio::test]
async fn open_calls_are_interrupted_in_a_fork_and_go_on_in_the_original() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    let forked = conversations
        .fork(&alice(), "default", None, None)
        .await
        .unwrap();
    let copy = conversations
        .show(&alice(), Some(forked.context.as_str()))
        .await
        .unwrap();
    assert_eq!(
        copy.recent_exchanges[1].calls()[0].ending,
        Some(Ending::Interrupted)
    );
    run(&query, "a", "1").await;
    query.answer(2, "Yes.".to_owned(), None).await.unwrap();
}

#[tokio::test]
async fn two_writers_share_one_default_conversation() {
    let disk = Arc::new(Disk::new().await);
    let conversations = disk.open();
    let tasks: Vec<_> = (0..2)
        .map(|writer| {
            let conversations = conversations.clone();
            tokio::spawn(async move {
                let mut asked = 0;
                while asked < 20 {
                    let text = format!("Question {asked} of {writer}?");
                    match conversations.begin_query(&alice(), question(&text)).await {
                        Ok(query) => {
                            query.append(1, asks(&["a"])).await.unwrap();
                            run(&query, "a", "found").await;
                            query.answer(2, "Yes.".to_owned(), None).await.unwrap();
                            asked += 1;
                        }
                        Err(ConversationError::Busy { .. }) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(disk.number("select count(*) from oracle_contexts").await, 1);
    let archive = conversations.export(&alice(), None).await.unwrap();
    assert_eq!((archive.queries.len(), archive.exchanges.len()), (40, 160));
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_in_step(&context);
    assert_strict(&conversations.window(&alice(), "default").await.unwrap());
}

#[tokio::test]
async fn writers_of_two_conversations_do_not_meet() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    for name in ["left", "right"] {
        conversations
            .create(&alice(), NewContext::named(Some(name)))
            .await
            .unwrap();
    }
    let write = |name: &'static str| {
        let conversations = conversations.clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let text = format!("{name} {n}");
                let query = conversations
                    .begin_query(&alice(), in_context(name, &text))
                    .await
                    .unwrap();
                query.answer(1, format!("{name} too"), None).await.unwrap();
            }
        })
    };
    let (left, right) = (write("left"), write("right"));
    left.await.unwrap();
    right.await.unwrap();
    for name in ["left", "right"] {
        let context = conversations.show(&alice(), Some(name)).await.unwrap();
        assert_eq!(context.recent_exchanges.len(), 40);
        assert!(
            context
                .recent_exchanges
                .iter()
                .all(|e| e.content.starts_with(name))
        );
        assert_in_step(&context);
    }
}

#[tokio::test]
async fn a_conversation_does_not_forget_how_it_was_counted_after_a_crash() {
    let disk = Disk::new().await;
    let query = disk
        .open()
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    let begun = query.begun().clone();
    crash(query);
    let context = disk.open().show(&alice(), None).await.unwrap();
    assert_eq!(context.tokens_used, begun.tokens_used);
    assert_eq!(begun.tokens, 8);
}
