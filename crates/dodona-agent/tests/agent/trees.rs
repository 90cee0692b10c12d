//! Agents below agents: how deep they go, and how all of them end when one is stopped.

use std::time::Duration;

use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{Reply, SeenRequest};
use serde_json::{Value, json};

use crate::delegates::{asks_for, define, delegates, last, system, talk};
use crate::talk::Talk;

/// The main agent has two leads, each of which has two scouts, each of which waits until somebody
/// stops it.
fn waiting_tree(request: &SeenRequest) -> Reply {
    let both = |name: &str| {
        asks_for(&[
            delegates("d1", name, "Wait."),
            delegates("d2", name, "Wait."),
        ])
    };
    let has_asked = last(request)["role"] == "tool";
    match system(request) {
        scout if scout.starts_with("You are scout") => {
            Reply::stream().tool_call("w1", "kit_wait", &["{}"])
        }
        lead if lead.starts_with("You are lead") => match has_asked {
            true => Reply::text("The scouts were stopped."),
            false => both("scout"),
        },
        _ => match has_asked {
            true => Reply::text("The leads say that they were stopped."),
            false => both("lead"),
        },
    }
}

/// As many agents as there are in that tree: one, its leads, their scouts.
const AGENTS: usize = 1 + 2 + 4;

async fn waiting() -> Talk {
    let talk = talk().await;
    define(&talk, "lead", &["agent_delegate", "kit_wait"], "");
    define(&talk, "scout", &["kit_wait"], "");
    talk.server.respond_with(waiting_tree);
    talk
}

/// Waits until so many of these calls run.
async fn until_running(talk: &Talk, path: &str, count: usize) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let calls = talk.call("hub.calls", json!({})).await.unwrap().to_string();
        if calls.matches(&format!("\"{path}\"")).count() == count {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{calls}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until no query runs, and answers how each ended and how its tools did, by agent.
async fn endings(talk: &Talk) -> Vec<(String, String, Vec<String>)> {
    let all = json!({ "all": true });
    let all = talk.call("agent.contexts", all).await.unwrap();
    let mut found = Vec::new();
    for context in all["contexts"].as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shown = json!({ "context_id": context["id"] });
        let shown = talk.call("agent.show", shown).await.unwrap();
        let query = until_ended(talk, &context["id"]).await;
        let params = json!({ "query_id": query["id"] });
        let trace = talk.call("agent.trace", params).await.unwrap();
        let turns = trace["turns"].as_array().unwrap().iter();
        let calls = turns.flat_map(|turn| turn["calls"].as_array().unwrap());
        let calls = calls.map(|call| text(&call["ending"])).collect();
        found.push((
            text(&shown["context"]["agent_id"]),
            text(&query["state"]),
            calls,
        ));
    }
    found.sort();
    found
}

/// A query whose call was dropped is ended soon after.
async fn until_ended(talk: &Talk, context: &Value) -> Value {
    let params = json!({ "context_id": context });
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let queries = talk.call("agent.queries", params.clone()).await.unwrap();
        let query = &queries["queries"][0];
        if query["state"] != "running" {
            return query.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "{queries}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn all_of(agent: &str, state: &str, calls: &[&str]) -> (String, String, Vec<String>) {
    let calls = calls.iter().map(|ending| (*ending).to_owned()).collect();
    (agent.to_owned(), state.to_owned(), calls)
}

#[tokio::test]
async fn a_cancelled_question_takes_the_whole_tree_of_its_agents_with_it() {
    let talk = waiting().await;
    let asked = talk.ask("Send the leads");
    let stop = async {
        until_running(&talk, "agent.lead.scout.kit", 4).await;
        talk.call("hub.cancel", json!({ "path": "agent" }))
            .await
            .unwrap()
    };
    let (answer, stopped) = tokio::join!(asked, stop);
    assert_eq!(answer.status(), DoneStatus::Cancelled);
    // The question, the calls that delegate, the agents and what each of them waits for.
    let least = 1 + 2 + 2 + 4 + 4 + 4;
    assert!(
        stopped["stopped"].as_array().unwrap().len() >= least,
        "{stopped}"
    );
    let (lead, scout) = (
        all_of("lead", "cancelled", &["cancelled", "cancelled"]),
        all_of("scout", "cancelled", &["cancelled"]),
    );
    let mut expected = vec![all_of("oracle", "cancelled", &["cancelled", "cancelled"])];
    expected.extend(vec![lead; 2]);
    expected.extend(vec![scout; 4]);
    expected.sort();
    assert_eq!(endings(&talk).await, expected);
    // Nothing runs on: no call, and no request of anybody.
    until_running(&talk, "agent.lead.scout.kit", 0).await;
    let calls = talk.call("hub.calls", json!({})).await.unwrap();
    assert!(!calls.to_string().contains("\"agent."), "{calls}");
    assert_eq!(talk.server.requests().len(), AGENTS);
}

#[tokio::test]
async fn what_is_stopped_in_the_middle_is_reported_further_up() {
    let talk = waiting().await;
    let asked = talk.ask("Send the leads");
    let stop = async {
        until_running(&talk, "agent.lead.scout.kit", 4).await;
        talk.call("hub.cancel", json!({ "path": "agent.lead.scout" }))
            .await
            .unwrap()
    };
    let (answer, _) = tokio::join!(asked, stop);
    assert_eq!(answer.text(), "The leads say that they were stopped.");
    assert_eq!(answer.endings(), ["success", "success"]);
    let (lead, scout) = (
        all_of("lead", "complete", &["cancelled", "cancelled"]),
        all_of("scout", "cancelled", &["cancelled"]),
    );
    let mut expected = vec![all_of("oracle", "complete", &["success", "success"])];
    expected.extend(vec![lead; 2]);
    expected.extend(vec![scout; 4]);
    expected.sort();
    assert_eq!(endings(&talk).await, expected);
    until_running(&talk, "agent.lead.scout.kit", 0).await;
    assert_eq!(talk.server.requests().len(), AGENTS + 2 + 1);

    // A trace has all of them, each below the call that it works for.
    let params = json!({ "query_id": answer.response()["query_id"] });
    let trace = talk.call("agent.trace", params).await.unwrap();
    let agents = |turns: &Value| -> Vec<Value> {
        let calls = turns[0]["calls"].as_array().unwrap().iter();
        calls.map(|call| call["agent"].clone()).collect()
    };
    let leads = agents(&trace["turns"]);
    assert_eq!(leads.len(), 2);
    for lead in &leads {
        assert_eq!(
            (&lead["name"], &lead["state"]),
            (&json!("lead"), &json!("complete"))
        );
        assert_eq!(lead["turns"].as_array().unwrap().len(), 2);
        for scout in agents(&lead["turns"]) {
            assert_eq!(
                (&scout["name"], &scout["state"]),
                (&json!("scout"), &json!("cancelled"))
            );
            assert_eq!(scout["turns"][0]["calls"][0]["name"], "kit_wait");
        }
    }
    assert_ne!(leads[0]["query_id"], leads[1]["query_id"]);
}

#[tokio::test]
async fn agents_side_by_side_are_stopped_by_their_path() {
    let talk = waiting().await;
    let asked = talk.ask("Send the leads");
    let stop = async {
        until_running(&talk, "agent.lead.scout.kit", 4).await;
        talk.call("hub.cancel", json!({ "path": "agent.lead" }))
            .await
            .unwrap()
    };
    let (answer, stopped) = tokio::join!(asked, stop);
    assert!(
        stopped["stopped"].as_array().unwrap().len() >= 4,
        "{stopped}"
    );
    assert_eq!(answer.text(), "The leads say that they were stopped.");
    assert_eq!(answer.endings(), ["cancelled", "cancelled"]);
    until_running(&talk, "agent.lead.scout.kit", 0).await;
    assert_eq!(talk.server.requests().len(), AGENTS + 1);
}

#[tokio::test]
async fn an_agent_that_delegates_on_and_on_comes_to_an_end() {
    let talk = talk().await;
    define(&talk, "lead", &["agent_delegate"], "");
    talk.server
        .respond_with(|request| match last(request)["role"] == "tool" {
            true => Reply::text("It was done further down."),
            false => asks_for(&[delegates("d1", "lead", "Do it.")]),
        });
    let answer = talk.ask("Do it").await;
    assert_eq!(answer.text(), "It was done further down.");
    let requests = talk.server.requests();
    let told = requests
        .iter()
        .map(|request| last(request)["content"].to_string());
    let refused = told.filter(|told| told.contains("agents delegate at most 3 deep"));
    assert_eq!(refused.count(), 1);
    // Four agents, each asked twice.
    assert_eq!(requests.len(), 8);
}
