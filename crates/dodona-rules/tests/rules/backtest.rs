//! What would have fired, over what an agent really did.

use dodona_proto::ItemBody;
use dodona_testkit::model_server::Reply;
use serde_json::{Value, json};

use crate::rig::{Rig, calls_echo, calls_fail, notice};

/// The report over everything that happened.
pub(crate) async fn backtest(rig: &Rig) -> Value {
    let stream = rig.open("rules.backtest", json!({ "examples": 100 })).await;
    let items = stream.collect().await.unwrap().into_iter();
    // Items of what it calls itself come along.
    let own = items.filter(|item| item.call_id.depth() == 0);
    let mut data = own.filter_map(|item| match item.body {
        ItemBody::Data { data, .. } => Some(data),
        _ => None,
    });
    data.next().unwrap()
}

fn of<'r>(report: &'r Value, rule: &str) -> &'r Value {
    let mut rules = report["rules"].as_array().unwrap().iter();
    let found = rules.find(|one| one["rule"] == rule);
    found.unwrap_or_else(|| panic!("{report:#}"))
}

fn messages<'v>(list: &'v Value, message: impl Fn(&'v Value) -> &'v Value) -> Vec<&'v str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| message(one).as_str().unwrap()).collect()
}

/// Tells how many messages there are, and what the last one says.
fn reader(trigger: &str) -> String {
    notice(
        "reader",
        trigger,
        "len(context.history.messages) > 0",
        "{{ context.history.messages | length }}, {{ context.history.messages[-1].role }}: {{ context.history.messages[-1].content }}",
    )
}

#[tokio::test]
async fn a_rule_that_reads_messages_is_asked_again_with_those_of_then() {
    for trigger in ["on_turn_start", "on_tool_complete"] {
        let rig = Rig::with(&[("reader.toml", &reader(trigger))]).await;
        rig.ask([
            calls_echo("a", "one"),
            calls_echo("b", "two"),
            Reply::text("Done."),
        ])
        .await;
        // What was said before is part of what is said later.
        let answer = rig
            .ask([calls_echo("c", "three"), Reply::text("Done again.")])
            .await;
        let log = Value::from(rig.log().await);
        let then = messages(&log, |one| &one["decisions"][0]["message"]);
        assert!(then.len() >= 3, "{log:#}");
        let rig = rig.restart().await;
        let report = backtest(&rig).await;
        let again = of(&report, "rules/reader");
        assert_eq!(again["not_replayable"], 0, "{again:#}");
        assert_eq!(messages(&again["examples"], |one| &one["message"]), then);
        // The same of the ways to ask about one event and one query.
        let params = json!({ "rule": "reader", "limit": 2 });
        let explained = rig.call("rules.explain", params).await.unwrap();
        assert_eq!(explained["events"][0]["verdict"], "fired", "{explained:#}");
        let query = &answer.data("AgentResponse")[0]["query_id"];
        let params = json!({ "query_id": query });
        let replayed = rig.call("agent.replay", params).await.unwrap();
        let told = (&replayed["not_asked"], &replayed["divergence"]);
        assert_eq!(told, (&json!([]), &Value::Null), "{replayed:#}");
    }
}

#[tokio::test]
async fn messages_of_a_request_that_failed_are_not_made_up() {
    let rig = Rig::with(&[("reader.toml", &reader("on_turn_start"))]).await;
    rig.ask([Reply::text("Yes.")]).await;
    rig.ask([Reply::status(500)]).await;
    assert_eq!(rig.fired("reader").await, 2);
    let report = backtest(&rig).await;
    let again = of(&report, "rules/reader");
    assert_eq!(
        (&again["fired"], &again["not_replayable"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(again["reasons"][0]["gap"], "messages");
}

#[tokio::test]
async fn nothing_of_the_bundled_rules_is_unknown() {
    let rig = Rig::with_window(40_000, |options| {
        options.max_turns = 6;
        options.token_budget = Some(38_000);
    })
    .await;
    let lists = |id: &str| {
        let arguments = json!({ "count": 7 }).to_string();
        Reply::stream().tool_call(id, "tools_list", &[&arguments])
    };
    let replies = [
        lists("a"),
        calls_fail("b"),
        calls_fail("c"),
        calls_fail("d"),
        calls_echo("e", &" apple".repeat(33_400)),
        Reply::text("Done."),
    ];
    rig.ask(replies).await;
    let log = rig.call("rules.log", json!({ "limit": 1000 })).await;
    let log = log.unwrap();
    let log = log["executions"].as_array().unwrap();
    let report = backtest(&rig).await;
    let rules = report["rules"].as_array().unwrap();
    assert_eq!((rules.len(), &report["unreadable"]), (6, &json!(0)));
    for one in rules {
        assert_eq!(one["not_replayable"], 0, "{one:#}");
        let fired = log.iter().filter(|logged| logged["rule"] == one["rule"]);
        assert_eq!(one["fired"], fired.count(), "{one:#}");
        assert!(one["fired"].as_u64().unwrap() > 0, "{one:#}");
    }
}
