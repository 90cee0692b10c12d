//! What requests to models used.

use dodona_agent::conversation::{
    Conversations, Ending, QueryState, UsageBy, UsageFilter, UsageRecord, UsageReport,
};
use dodona_proto::Usage;
use jiff::{Timestamp, ToSpan};

use crate::storage::{Disk, alice, asks, outcome, owner, question, run};

fn record(turn: u32, path: &str, tool: Option<&str>, cost: Option<u64>) -> UsageRecord {
    UsageRecord {
        turn,
        model: "tiny".to_owned(),
        path: path.to_owned(),
        tool: tool.map(str::to_owned),
        usage: Usage {
            input_tokens: 100,
            output_tokens: 10,
            cached_input_tokens: 40,
            cache_write_tokens: 3,
            reasoning_tokens: 5,
        },
        cost_micros: cost,
    }
}

/// A query of two turns, the second with a subagent's request.
async fn used(disk: &Disk) -> Conversations {
    let conversations = disk.open();
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    query
        .usage(record(1, "agent", None, Some(700)), None)
        .await
        .unwrap();
    query.append(1, asks(&["a", "b"])).await.unwrap();
    run(&query, "a", "found").await;
    let delegated = record(1, "agent.librarian", Some("agent_delegate"), None);
    query.usage(delegated, None).await.unwrap();
    query.tool_started("b", None).await.unwrap();
    query
        .tool_ended("b", outcome(Ending::Timeout, "too slow"))
        .await
        .unwrap();
    query
        .usage(record(2, "agent", None, Some(300)), None)
        .await
        .unwrap();
    query.answer(2, "Because.".to_owned(), None).await.unwrap();
    conversations
}

fn all() -> UsageFilter {
    UsageFilter {
        limit: 100,
        ..UsageFilter::default()
    }
}

async fn report(conversations: &Conversations, by: UsageBy) -> UsageReport {
    conversations.usage(&alice(), by, all()).await.unwrap()
}

#[tokio::test]
async fn a_total_has_all_tokens_and_the_cost_of_what_has_a_price() {
    let disk = Disk::new().await;
    let report = report(&used(&disk).await, UsageBy::Day).await;
    assert_eq!(report.rows.len(), 1);
    for sum in [&report.total, &report.rows[0]] {
        assert_eq!((sum.requests, sum.unpriced), (3, 1));
        assert_eq!(sum.cost_micros, Some(1_000));
        assert_eq!(
            (sum.usage.input_tokens, sum.usage.cached_input_tokens),
            (300, 120)
        );
        assert_eq!(
            (sum.usage.output_tokens, sum.usage.reasoning_tokens),
            (30, 15)
        );
        assert_eq!(sum.usage.cache_write_tokens, 9);
    }
}

#[tokio::test]
async fn a_path_has_what_is_below_it() {
    let disk = Disk::new().await;
    let conversations = used(&disk).await;
    let sums: Vec<_> = report(&conversations, UsageBy::Path)
        .await
        .rows
        .into_iter()
        .map(|row| (row.key, row.requests, row.cost_micros))
        .collect();
    let librarian = ("agent.librarian".to_owned(), 1, None);
    assert_eq!(sums, [("agent".to_owned(), 3, Some(1_000)), librarian]);
    let below = UsageFilter {
        path: Some("agent.librarian".to_owned()),
        ..all()
    };
    let report = conversations
        .usage(&alice(), UsageBy::Model, below)
        .await
        .unwrap();
    assert_eq!(
        (report.total.requests, report.rows[0].key.as_str()),
        (1, "tiny")
    );
}

#[tokio::test]
async fn a_turn_and_a_query_have_their_question() {
    let disk = Disk::new().await;
    let conversations = used(&disk).await;
    let turns = report(&conversations, UsageBy::Turn).await.rows;
    let requests: Vec<_> = turns.iter().map(|row| row.requests).collect();
    assert_eq!(requests, [1, 2], "the latest first");
    assert!(turns[0].key.ends_with("#2") && turns[1].key.ends_with("#1"));
    assert!(turns.iter().all(|row| row.label.as_deref() == Some("Why?")));
    let queries = report(&conversations, UsageBy::Query).await.rows;
    assert_eq!((queries.len(), queries[0].requests), (1, 3));
    let contexts = report(&conversations, UsageBy::Context).await.rows;
    assert_eq!(contexts[0].label.as_deref(), Some("default"));
}

#[tokio::test]
async fn a_tool_has_its_calls_and_its_requests_and_a_copy_did_not_run() {
    let disk = Disk::new().await;
    let conversations = used(&disk).await;
    conversations
        .fork(&alice(), "default", None, None)
        .await
        .unwrap();
    let report = report(&conversations, UsageBy::Tool).await;
    let [delegate, search] = &report.rows[..] else {
        panic!("{report:#?}")
    };
    assert_eq!(
        (delegate.key.as_str(), delegate.requests),
        ("agent_delegate", 1)
    );
    assert!(delegate.tool.is_none());
    let ran = search.tool.as_ref().unwrap();
    assert_eq!((ran.calls, ran.failed, ran.duration_ms), (2, 1, 14));
    let results = ["found", "too slow"].map(|text| 4 + text.len() as u64);
    assert_eq!(ran.result_tokens, results.iter().sum::<u64>());
}

#[tokio::test]
async fn time_conversation_and_user_are_filters() {
    let disk = Disk::new().await;
    let conversations = used(&disk).await;
    let requests = async |owner, filter: UsageFilter| {
        let report = conversations.usage(&owner, UsageBy::Day, filter).await;
        report.unwrap().total.requests
    };
    let now = Timestamp::now();
    let (hour_ago, soon) = (now - 1.hour(), now + 1.hour());
    let times = [
        (None, None, 3),
        (Some(hour_ago), Some(soon), 3),
        (Some(soon), None, 0),
        (None, Some(hour_ago), 0),
    ];
    for (since, until, expected) in times {
        let filter = UsageFilter {
            since,
            until,
            ..all()
        };
        assert_eq!(requests(alice(), filter).await, expected);
    }
    assert_eq!(requests(owner("bob"), all()).await, 0);
    let query = conversations
        .begin_query(&alice(), question("Why?"))
        .await
        .unwrap();
    let context = Some(query.context().to_string());
    query.finish(QueryState::Cancelled, None).await.unwrap();
    assert_eq!(requests(alice(), UsageFilter { context, ..all() }).await, 3);
    let strange = UsageFilter {
        context: Some("other".to_owned()),
        ..all()
    };
    let error = conversations
        .usage(&alice(), UsageBy::Day, strange)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no conversation `other`");
}
