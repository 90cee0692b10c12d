//! A query from its question to its end.

use dodona_agent::conversation::{
    ContextStatus, ConversationError, Ending, ExchangeOrigin, ExchangeRole, NewMessage, NewQuery,
    QueryState, ToolCallStatus, Which,
};
use dodona_proto::{Message, StreamId};
use serde_json::json;

use crate::storage::{
    Disk, alice, ask, asks, assert_in_step, assert_strict, bytes, crash, in_context, outcome,
    owner, question, run, says,
};

#[tokio::test]
async fn the_first_question_makes_the_default_conversation() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "How does login work?", "By tokens.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    assert!(context.is_default);
    assert_eq!(
        (context.name.as_deref(), context.agent_id.as_str()),
        (Some("default"), "oracle")
    );
    assert_eq!(context.status, ContextStatus::Active);
    assert_eq!(context.last_model.as_deref(), Some("tiny"));
    assert!(context.last_activity.unwrap() >= context.session_start);
    assert_in_step(&context);
    let roles: Vec<_> = context.recent_exchanges.iter().map(|e| e.role).collect();
    use ExchangeRole::{Assistant, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, Assistant]);
    let call = &context.recent_exchanges[1].calls()[0];
    assert_eq!(call.status, ToolCallStatus::Success);
    assert_eq!(call.result.as_deref(), Some("found it"));
    assert_eq!(call.duration_ms, Some(7));
}

#[tokio::test]
async fn the_window_is_what_was_said() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let mut query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    query.append(1, asks(&["a", "b"])).await.unwrap();
    // The second ends first; what the model is shown has the order of the calls.
    run(&query, "b", "second").await;
    run(&query, "a", "first").await;
    let shown = query.window().await.unwrap();
    assert_strict(&shown);
    let results: Vec<&str> = shown
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(results, ["first", "second"]);
    query.answer(2, "Because.".to_owned(), None).await.unwrap();
    let mut again = conversations
        .begin_query(&alice(), question("And?"))
        .await
        .unwrap();
    assert_eq!(again.turns_before(), 2);
    let shown = again.window().await.unwrap();
    assert_strict(&shown);
    assert!(matches!(shown.last(), Some(Message::User { content }) if content == "And?"));
    assert_eq!(shown.len(), 6);
}

#[tokio::test]
async fn a_steering_message_joins_the_conversation_when_the_loop_takes_it() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let mut query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    let shown = query.window().await.unwrap();
    conversations
        .steer(&alice(), None, "In French.".to_owned(), &bytes())
        .await
        .unwrap();
    assert_eq!(query.window().await.unwrap(), shown);
    assert!(query.take_steering(1).await.unwrap().is_some());
    let seen = query.window().await.unwrap();
    assert_eq!(seen[..shown.len()], shown[..]);
    assert!(matches!(&seen[shown.len()..], [Message::User { content }] if content == "In French."));
    assert!(query.take_steering(1).await.unwrap().is_none());
}

#[tokio::test]
async fn a_steering_message_of_a_query_that_ends_stays_in_the_conversation() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    let message = "In French.".to_owned();
    conversations
        .steer(&alice(), None, message, &bytes())
        .await
        .unwrap();
    crash(query);
    let conversations = disk.open();
    let context = conversations.show(&alice(), None).await.unwrap();
    let last = context.recent_exchanges.last().unwrap();
    assert_eq!(last.content, "In French.");
    assert_eq!(last.origin, Some(ExchangeOrigin::Steering));
    assert_strict(&conversations.window(&alice(), "default").await.unwrap());
}

#[tokio::test]
async fn the_state_of_a_conversation_has_what_a_running_query_said_so_far() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("What does `src/login.rs` do?"))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_in_step(&context);
    assert_eq!(context.recent_exchanges.len(), 2);
    assert_eq!(context.mentioned_files.as_deref(), Some("src/login.rs"));
    crash(query);
    assert_eq!(disk.open().recover().await.unwrap(), 1);
    disk.assert_copies().await;
}

#[tokio::test]
async fn a_query_that_was_not_answered_is_told_so_and_half_an_answer_is_not_shown() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let states = [
        QueryState::Failed,
        QueryState::Cancelled,
        QueryState::Refused,
        QueryState::Limited,
        QueryState::Interrupted,
    ];
    for state in states {
        let query = conversations
            .begin_query(&alice(), question("Why?"))
            .await
            .unwrap();
        query.append(1, says("Because of the HALF")).await.unwrap();
        query
            .finish(state, Some("as the test wants"))
            .await
            .unwrap();
    }
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(
        context.recent_exchanges.len(),
        10,
        "the originals are in the window"
    );
    let shown = conversations.window(&alice(), "default").await.unwrap();
    assert_strict(&shown);
    assert_eq!(shown.len(), 10);
    for message in &shown {
        if let Message::Assistant { content, .. } = message {
            assert!(content.starts_with("(This was not answered: "), "{content}");
        }
    }
    let ended: Vec<_> = conversations
        .queries(&alice(), None, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|query| query.state)
        .collect();
    assert_eq!(ended, states.into_iter().rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn calls_that_are_open_when_their_query_ends_end_with_it() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    for (state, ending) in [
        (QueryState::Cancelled, Ending::Cancelled),
        (QueryState::Failed, Ending::Interrupted),
    ] {
        let query = conversations
            .begin_query(&alice(), question("Why?"))
            .await
            .unwrap();
        query.append(1, asks(&["a", "b"])).await.unwrap();
        query.tool_started("a", None).await.unwrap();
        query.finish(state, None).await.unwrap();
        let context = conversations.show(&alice(), None).await.unwrap();
        let last = context.recent_exchanges.last().unwrap();
        for call in last.calls() {
            assert_eq!(
                (call.status, call.ending),
                (ToolCallStatus::Error, Some(ending))
            );
        }
    }
    assert_strict(&conversations.window(&alice(), "default").await.unwrap());
}

#[tokio::test]
async fn what_has_ended_takes_nothing_more() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    run(&query, "a", "1").await;
    let again = query.tool_ended("a", outcome(Ending::Success, "2")).await;
    assert!(matches!(
        again,
        Err(ConversationError::NotFound {
            what: "open tool call",
            ..
        })
    ));
    // Another process takes it for left behind, and ends it.
    disk.open().recover().await.unwrap();
    let late = query.append(2, says("Because.")).await.unwrap_err();
    assert!(
        matches!(
            late,
            ConversationError::Ended {
                state: QueryState::Interrupted,
                ..
            }
        ),
        "{late}"
    );
    let late = query.finish(QueryState::Complete, None).await.unwrap_err();
    assert!(matches!(late, ConversationError::Ended { .. }), "{late}");
}

#[tokio::test]
async fn one_query_at_a_time_in_a_conversation() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let first = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    let second = conversations.begin_query(&alice(), question("Two?")).await;
    assert!(matches!(second, Err(ConversationError::Busy { query, .. }) if query == *first.id()));
    for busy in [
        conversations.close(&alice(), "default").await.map(|_| ()),
        conversations
            .rewind(&alice(), "default", first.begun().exchange.as_str())
            .await
            .map(|_| ()),
    ] {
        assert!(
            matches!(busy, Err(ConversationError::Busy { .. })),
            "{busy:?}"
        );
    }
    first.finish(QueryState::Cancelled, None).await.unwrap();
    conversations
        .begin_query(&alice(), question("Two?"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dropped_query_is_interrupted_and_the_next_one_works() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    query.append(1, asks(&["a"])).await.unwrap();
    drop(query);
    // Its end is written behind the scenes; until it is, the conversation is busy.
    let mut next = loop {
        match conversations.begin_query(&alice(), question("Two?")).await {
            Ok(query) => break query,
            Err(ConversationError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_strict(&next.window().await.unwrap());
    let queries = conversations.queries(&alice(), None, 2).await.unwrap();
    assert_eq!(queries[1].state, QueryState::Interrupted);
    assert_eq!(
        queries[1].reason.as_deref(),
        Some("its call ended before it did")
    );
}

#[tokio::test]
async fn a_crash_interrupts_and_a_second_recovery_changes_nothing() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    query.append(1, asks(&["a", "b"])).await.unwrap();
    run(&query, "a", "found").await;
    query.tool_started("b", None).await.unwrap();
    crash(query);
    let conversations = disk.open();
    assert_eq!(conversations.recover().await.unwrap(), 1);
    assert_eq!(conversations.recover().await.unwrap(), 0);
    let context = conversations.show(&alice(), None).await.unwrap();
    let calls = context.recent_exchanges[1].calls();
    assert_eq!(calls[0].ending, Some(Ending::Success));
    assert_eq!(calls[1].ending, Some(Ending::Interrupted));
    let shown = conversations.window(&alice(), "default").await.unwrap();
    assert_strict(&shown);
    let Some(Message::Tool { content, .. }) = shown.get(3) else {
        panic!("{shown:#?}")
    };
    assert!(content.contains("interrupted while it ran"), "{content}");
    ask(&conversations, "Two?", "Yes.").await;
}

#[tokio::test]
async fn a_message_while_tools_run_does_not_part_them_from_their_answers() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let mut query = conversations
        .begin_query(&alice(), question("One?"))
        .await
        .unwrap();
    query.append(1, asks(&["a", "b"])).await.unwrap();
    run(&query, "a", "1").await;
    let steer = NewMessage::User {
        content: "Look at the notes too.".to_owned(),
    };
    query.append(1, steer).await.unwrap();
    run(&query, "b", "2").await;
    let shown = query.window().await.unwrap();
    assert_strict(&shown);
    assert!(matches!(shown.last(), Some(Message::User { .. })));
}

#[tokio::test]
async fn somebody_elses_ids_do_not_exist() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    ask(&conversations, "One?", "Yes.").await;
    let context = conversations.show(&alice(), None).await.unwrap();
    let (id, exchange) = (context.id.as_str(), context.recent_exchanges[0].id.as_str());
    let bob = owner("bob");
    let asked = [
        conversations.show(&bob, Some(id)).await.map(|_| ()),
        conversations.window(&bob, id).await.map(|_| ()),
        conversations.close(&bob, id).await.map(|_| ()),
        conversations.fork(&bob, id, None, None).await.map(|_| ()),
        conversations.rewind(&bob, id, exchange).await.map(|_| ()),
        conversations.export(&bob, Some(id)).await.map(|_| ()),
        conversations.queries(&bob, Some(id), 5).await.map(|_| ()),
        conversations
            .begin_query(&bob, in_context(id, "Mine?"))
            .await
            .map(|_| ()),
    ];
    for answer in asked {
        let error = answer.unwrap_err();
        assert!(
            matches!(error, ConversationError::NotFound { .. }),
            "{error}"
        );
        assert_eq!(
            error.to_string(),
            format!("there is no conversation `{id}`")
        );
    }
    assert!(
        conversations
            .list(&bob, Which::All, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn what_a_provider_wants_to_see_again_is_shown_to_its_own_model_only() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let signed = json!({ "signature": "s3cr3t" });
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    let plain = query.begun().tokens_used;
    let answered = query
        .answer(1, "Because.".to_owned(), Some(signed.clone()))
        .await
        .unwrap();
    assert_eq!(
        answered.tokens_used,
        plain + 4 + 8 + signed.to_string().len() as u64
    );
    let seen = |messages: &[Message]| match &messages[1] {
        Message::Assistant { opaque, .. } => opaque.clone(),
        other => panic!("{other:?}"),
    };
    let mut same = conversations
        .begin_query(&alice(), question("And?"))
        .await
        .unwrap();
    assert_eq!(seen(&same.window().await.unwrap()), Some(signed));
    same.finish(QueryState::Cancelled, None).await.unwrap();
    let other = NewQuery {
        model: "other".to_owned(),
        ..question("And?")
    };
    let mut other = conversations.begin_query(&alice(), other).await.unwrap();
    assert_eq!(seen(&other.window().await.unwrap()), None);
    let context = conversations.show(&alice(), None).await.unwrap();
    assert_eq!(
        context.recent_exchanges[1].token_count, 12,
        "counted without it"
    );
    assert_in_step(&context);
    let text = serde_json::to_string(&context).unwrap();
    assert!(!text.contains("s3cr3t"), "it is no part of the data model");
}

#[tokio::test]
async fn a_call_below_a_query_finds_its_conversation() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let root = StreamId::random().root_call();
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    assert_eq!(conversations.context_of_call(&root), None);
    query.runs_in(&root);
    let below = root.child(1).and_then(|child| child.child(4)).unwrap();
    assert_eq!(
        conversations.context_of_call(&below).as_ref(),
        Some(query.context())
    );
    let elsewhere = StreamId::random().root_call();
    assert_eq!(conversations.context_of_call(&elsewhere), None);
    query.finish(QueryState::Cancelled, None).await.unwrap();
    assert_eq!(conversations.context_of_call(&below), None);
}
