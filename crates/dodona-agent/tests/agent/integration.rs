//! Every hook point of the agent, fired by the real loop: what plugins see there, what they can
//! change, and what of it reaches the model, the reader and the journal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_agent::AgentOptions;
use dodona_plugin::activation::Activating;
use dodona_plugin::hooks::{Hook, HookFailure, Point, Reply, point};
use dodona_plugin::{Contribution, Plugin, PluginContext};
use dodona_proto::hook::{
    ModelCallEdit, ModelResponseEdit, Passage, PreloadEdit, PreloadRequest, PreloadedEdit,
    PromptEdit, SessionEnd, ToolAddition,
};
use dodona_proto::{
    Category, DeliverAt, DoneStatus, Effect, HookPoint, Message, MethodName, Notification,
    Priority, ToolCall,
};
use dodona_testkit::model_server::Reply as ModelReply;
use serde_json::{Value, json};

use crate::talk::{Setup, Talk};

/// A plugin that brings the hooks of a test.
struct Hooked {
    name: &'static str,
    hooks: Box<dyn Fn() -> Vec<Hook> + Send + Sync>,
}

impl Plugin for Hooked {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let hooks = (self.hooks)().into_iter();
            Ok(hooks.fold(Contribution::new(), Contribution::hook))
        })
    }
}

/// Without passages that are looked up unasked: those are tool calls too.
async fn talk(hooks: impl Fn() -> Vec<Hook> + Send + Sync + 'static) -> Talk {
    set_up(hooks, |options| options.preload = 0).await
}

pub(crate) async fn set_up(
    hooks: impl Fn() -> Vec<Hook> + Send + Sync + 'static,
    change: impl FnOnce(&mut AgentOptions),
) -> Talk {
    let plugin = Hooked {
        name: "hooked",
        hooks: Box::new(hooks),
    };
    let setup = Setup {
        plugins: vec![Arc::new(plugin)],
        ..Setup::default()
    };
    Talk::set_up(setup, change).await
}

/// What hooks have seen, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(HookPoint, Value)>>>);

impl Seen {
    pub(crate) fn watch<P: Point>(&self) -> Hook {
        let seen = self.clone();
        Hook::inline::<P>(move |payload| {
            let shown = serde_json::to_value(payload).unwrap();
            seen.0.lock().unwrap().push((P::POINT, shown));
            Ok(Reply::none())
        })
    }

    /// Forgets everything so far.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(crate) fn points(&self) -> Vec<&'static str> {
        let seen = self.0.lock().unwrap();
        seen.iter().map(|(point, _)| point.as_str()).collect()
    }

    fn at(&self, wanted: HookPoint) -> Vec<Value> {
        let seen = self.0.lock().unwrap();
        let at = seen.iter().filter(|(point, _)| *point == wanted);
        at.map(|(_, shown)| shown.clone()).collect()
    }
}

fn notify(message: &str) -> Notification {
    Notification::new(message)
}

pub(crate) fn calls_echo() -> ModelReply {
    ModelReply::stream().tool_call("c1", "kit_echo", &[r#"{"text":"one"}"#])
}

fn last_content(messages: &[Value]) -> &str {
    messages.last().unwrap()["content"].as_str().unwrap()
}

#[tokio::test]
async fn the_points_of_a_query_are_fired_in_their_order() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || {
        vec![
            watched.watch::<point::SessionResolved>(),
            watched.watch::<point::QueryReceived>(),
            watched.watch::<point::ToolRegistryBuild>(),
            watched.watch::<point::SystemPromptExtend>(),
            watched.watch::<point::PrePreload>(),
            watched.watch::<point::PostPreload>(),
            watched.watch::<point::PreLlmCall>(),
            watched.watch::<point::PostLlmResponse>(),
            watched.watch::<point::PreToolExecute>(),
            watched.watch::<point::PostToolExecute>(),
            watched.watch::<point::TurnCompleted>(),
        ]
    })
    .await;
    talk.server.reply(calls_echo());
    talk.server.reply(ModelReply::text("Done."));
    talk.ask("Go").await;
    assert_eq!(
        seen.points(),
        [
            "TOOL_REGISTRY_BUILD",
            "SESSION_RESOLVED",
            "QUERY_RECEIVED",
            "SYSTEM_PROMPT_EXTEND",
            "PRE_PRELOAD",
            "POST_PRELOAD",
            "PRE_LLM_CALL",
            "POST_LLM_RESPONSE",
            "PRE_TOOL_EXECUTE",
            "POST_TOOL_EXECUTE",
            "TURN_COMPLETED",
            "PRE_LLM_CALL",
            "POST_LLM_RESPONSE",
            "TURN_COMPLETED",
        ]
    );
    let turns = seen.at(HookPoint::TurnCompleted);
    assert_eq!(turns[0]["is_last"], false);
    assert_eq!(turns[0]["tool_calls"], 1);
    assert_eq!(turns[1]["answer"], "Done.");
    let numbers = |point| -> Vec<Value> {
        let at = seen.at(point).into_iter();
        at.map(|shown| shown["snapshot"]["turn"]["number"].clone())
            .collect()
    };
    assert_eq!(numbers(HookPoint::PreLlmCall), [json!(1), json!(2)]);
    assert_eq!(numbers(HookPoint::PreToolExecute), [json!(1)]);
}

#[tokio::test]
async fn events_are_journaled_once_each_with_what_rules_would_see() {
    let talk = talk(Vec::new).await;
    talk.server.reply(calls_echo());
    talk.server
        .reply(ModelReply::stream().tool_call("c2", "kit_fail", &["{}"]));
    talk.server.reply(ModelReply::text("Done."));
    talk.ask("Go").await;
    let events = talk.events("").await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "session.start",
            "query.start",
            "agent.turn.start",
            "tool.call.pending",
            "tool.call.success",
            "agent.turn.end",
            "agent.turn.start",
            "tool.call.pending",
            "tool.call.failure",
            "agent.turn.end",
            "agent.turn.start",
            "agent.turn.end",
        ]
    );
    assert_eq!(events[1].payload["question"], "Go");
    let success = &events[4].payload;
    assert_eq!(success["tool_name"], "kit_echo");
    assert_eq!(success["arguments"]["text"], "one");
    assert_eq!(success["result"]["text"], "one");
    assert_eq!(success["snapshot"]["turn"]["iteration_count"], 1);
    assert_eq!(events[8].payload["error"], "the tool is broken");
    for event in &events {
        assert_eq!(
            event.user.as_ref().unwrap().as_str(),
            "alice",
            "{}",
            event.kind
        );
        assert!(
            event.project.is_some() && event.call.is_some(),
            "{}",
            event.kind
        );
    }
    let ranges: Vec<&Value> = events
        .iter()
        .filter(|event| event.kind == "agent.turn.start")
        .map(|event| &event.payload["snapshot"]["exchanges"])
        .collect();
    assert_eq!(*ranges[0], json!({ "from": 1, "to": 1 }));
    assert_eq!(*ranges[1], json!({ "from": 1, "to": 3 }));
}

#[tokio::test]
async fn session_resolved_says_whether_a_session_begins() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || vec![watched.watch::<point::SessionResolved>()]).await;
    for question in ["One", "Two"] {
        talk.server.reply(ModelReply::text("Yes."));
        talk.ask(question).await;
    }
    let resolved = seen.at(HookPoint::SessionResolved);
    assert_eq!(
        (&resolved[0]["is_new"], &resolved[1]["is_new"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(resolved[0]["model"], "main");
    assert_eq!(talk.events("session.start").await.len(), 1);
}

#[tokio::test]
async fn query_received_shows_the_question_and_its_effects_reach_the_first_request() {
    let talk = talk(|| {
        vec![Hook::inline::<point::QueryReceived>(|query| {
            let note = notify(&format!("asked: {}", query.question));
            Ok(Reply::none().effect(Effect::NotifySelf(note)))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Yes."));
    let answer = talk.ask("Is it so?").await;
    let sent = talk.sent();
    let told = last_content(&sent);
    assert!(told.contains("not from the user") && told.ends_with("says: asked: Is it so?"));
    let shown = answer.data("Notification");
    assert_eq!((shown.len(), &shown[0]["plugin"]), (1, &json!("hooked")));
}

#[tokio::test]
async fn the_system_prompt_can_be_extended_and_is_shown_so() {
    let talk = talk(|| {
        vec![Hook::inline::<point::SystemPromptExtend>(|_| {
            Ok(Reply::edit(PromptEdit::Append(
                "Speak like a pirate.".to_owned(),
            )))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Arr."));
    talk.ask("Hi").await;
    let sent = talk.sent();
    assert!(
        sent[0]["content"]
            .as_str()
            .unwrap()
            .ends_with("Speak like a pirate.")
    );
    let shown = talk.call("agent.prompt", json!({})).await.unwrap();
    assert_eq!(shown["system"], sent[0]["content"]);
}

#[tokio::test]
async fn what_is_preloaded_can_be_chosen_and_changed_and_cited() {
    let talk = set_up(
        || {
            vec![
                Hook::inline::<point::PrePreload>(|preload| {
                    let asked = preload
                        .requests
                        .iter()
                        .map(|request| request.method.as_str());
                    assert_eq!(asked.collect::<Vec<_>>(), ["agent.seek", "search.query"]);
                    let params = json!({ "query": "apples", "limit": 1 });
                    let method = MethodName::new("search.query").unwrap();
                    let requests = vec![PreloadRequest { method, params }];
                    Ok(Reply::edit(PreloadEdit { requests }))
                }),
                Hook::inline::<point::PostPreload>(|preloaded| {
                    let mut passages = preloaded.passages.clone();
                    let text = "Pears are out of season.".to_owned();
                    passages.push(Passage { source: None, text });
                    Ok(Reply::edit(PreloadedEdit { passages }))
                }),
            ]
        },
        |_| {},
    )
    .await;
    std::fs::write(
        talk.root().join("fruit.md"),
        "# Fruit\n\nApples ripen in September.\n",
    )
    .unwrap();
    talk.call("search.index", json!({})).await.unwrap();
    let asked = json!({ "message": "When are they ripe?" });
    let would = talk.call("agent.prompt", asked).await.unwrap();
    talk.server.reply(ModelReply::text("In September [1]."));
    let answer = talk.ask("When are they ripe?").await;
    let sent = talk.sent();
    assert_eq!(sent[1]["content"], "When are they ripe?");
    let passages = last_content(&sent);
    assert!(passages.starts_with("Passages of the project"));
    assert!(passages.contains("[1] fruit.md") && passages.contains("Apples ripen"));
    assert!(passages.ends_with("Pears are out of season."));
    assert_eq!(would["messages"][1]["content"], passages);
    assert_eq!(answer.response()["sources"][0]["path"], "fruit.md");
    let kept = talk.call("agent.show", json!({})).await.unwrap();
    let kept = &kept["context"]["recent_exchanges"];
    assert_eq!(kept[0]["content"], "When are they ripe?");
    assert_eq!(kept[1]["origin"], "preload");
}

#[tokio::test]
async fn tools_can_be_added_that_are_marked_as_such() {
    let talk = talk(|| {
        vec![Hook::inline::<point::ToolRegistryBuild>(|table| {
            assert_eq!(table.agent, "oracle");
            let add = |method: &str| ToolAddition {
                method: MethodName::new(method).unwrap(),
                description: Some("Says it again.".to_owned()),
            };
            Ok(Reply::edit(vec![
                add("kit.echo"),
                add("hub.calls"),
                add("not.there"),
            ]))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    let body = talk.server.last_request().body;
    let tools = body["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["function"]["name"] == name);
    assert_eq!(
        find("kit_echo").unwrap()["function"]["description"],
        "Says it again."
    );
    assert!(find("hub_calls").is_none() && find("not_there").is_none());
}

#[tokio::test]
async fn effects_of_adding_tools_are_carried_out() {
    let talk = talk(|| {
        vec![Hook::inline::<point::ToolRegistryBuild>(|_| {
            Ok(Reply::none().effect(Effect::NotifySelf(notify("There is one tool."))))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    assert!(last_content(&talk.sent()).ends_with("There is one tool."));
}

#[tokio::test]
async fn a_request_can_be_changed_before_it_is_sent() {
    let talk = talk(|| {
        vec![Hook::waiting::<point::PreLlmCall, _>(|call| async move {
            assert_eq!(call.model, "main");
            let mut edit = ModelCallEdit {
                append: vec![Message::User {
                    content: "Be brief.".to_owned(),
                }],
                tools: Some(vec!["search_query".to_owned()]),
                ..ModelCallEdit::default()
            };
            edit.options.temperature = Some(0.5);
            Ok(Reply::edit(edit))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    let body = talk.server.last_request().body;
    assert_eq!(last_content(&talk.sent()), "Be brief.");
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["temperature"], 0.5);
    // In that request only.
    let kept = talk.call("agent.show", json!({})).await.unwrap();
    assert!(!kept.to_string().contains("Be brief."));
}

#[tokio::test]
async fn what_a_model_said_can_be_changed_before_it_counts() {
    let talk = talk(|| {
        vec![Hook::inline::<point::PostLlmResponse>(|said| {
            let edit = match said.calls.is_empty() {
                true => ModelResponseEdit {
                    text: Some(said.text.replace("secret", "[removed]")),
                    calls: None,
                },
                false => ModelResponseEdit {
                    text: None,
                    calls: Some(vec![ToolCall {
                        id: String::new(),
                        name: "kit_echo".to_owned(),
                        arguments: json!({ "text": "safe" }),
                    }]),
                },
            };
            Ok(Reply::edit(edit))
        })]
    })
    .await;
    talk.server
        .reply(ModelReply::stream().tool_call("c1", "kit_panic", &["{}"]));
    let pieces = ["The se", "cret ", "is out."];
    let streamed = pieces
        .into_iter()
        .fold(ModelReply::stream(), ModelReply::add_text);
    talk.server.reply(streamed);
    let answer = talk.ask("Tell me").await;
    assert_eq!(answer.endings(), ["success"]);
    assert_eq!(answer.text(), "The [removed] is out.");
    // No reader has seen what the hook removed, not even for a moment.
    let streamed = serde_json::to_string(&answer.items).unwrap();
    assert!(streamed.contains("[removed]"), "{streamed}");
    assert!(!streamed.contains("The se"), "{streamed}");
    let kept = talk.call("agent.show", json!({})).await.unwrap();
    assert!(!kept.to_string().contains("secret"));
}

#[tokio::test]
async fn a_turn_that_fails_is_completed_too() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || vec![watched.watch::<point::TurnCompleted>()]).await;
    talk.server.reply(ModelReply::status(400));
    let answer = talk.ask("Hi").await;
    assert_eq!(answer.status(), DoneStatus::Failed);
    let turns = seen.at(HookPoint::TurnCompleted);
    assert_eq!((turns.len(), &turns[0]["is_last"]), (1, &json!(true)));
    assert!(
        turns[0]["error"]
            .as_str()
            .unwrap()
            .contains("did not answer")
    );
    let ended = talk.events("agent.turn.end").await;
    assert_eq!(ended.len(), 1);
}

#[tokio::test]
async fn what_fails_in_a_hook_changes_no_turn() {
    let talk = set_up(
        || {
            vec![
                Hook::inline::<point::SessionResolved>(|_| panic!("boom")),
                Hook::inline::<point::QueryReceived>(|_| Err(HookFailure::new("no"))),
                Hook::waiting::<point::PreLlmCall, _>(|_| std::future::pending())
                    .timeout(Duration::from_millis(20)),
                Hook::inline::<point::SystemPromptExtend>(|_| panic!("boom")),
                Hook::inline::<point::PostLlmResponse>(|_| panic!("boom")),
                Hook::inline::<point::PreToolExecute>(|_| panic!("boom")),
                Hook::inline::<point::PostToolExecute>(|_| panic!("boom")),
                Hook::inline::<point::TurnCompleted>(|_| panic!("boom")),
            ]
        },
        |_| {},
    )
    .await;
    talk.server.reply(calls_echo());
    talk.server.reply(ModelReply::text("Done."));
    let answer = talk.ask("Go").await;
    assert_eq!(
        (answer.text(), answer.endings()),
        ("Done.", vec!["success"])
    );
}

#[tokio::test]
async fn the_three_moments_of_delivery() {
    let talk = talk(|| {
        let send = |at: DeliverAt| {
            move |text: &str| {
                let mut note = notify(text);
                note.deliver_at = at;
                Effect::NotifySelf(note)
            }
        };
        let (start, after, now) = (
            send(DeliverAt::TurnStart),
            send(DeliverAt::AfterTool),
            send(DeliverAt::Immediate),
        );
        vec![
            Hook::inline::<point::PreLlmCall>(move |call| {
                let turn = call.snapshot.turn.iteration_count;
                let reply = Reply::none();
                Ok(match turn {
                    1 => reply
                        .effect(start("start"))
                        .effect(after("after"))
                        .effect(now("now")),
                    _ => reply,
                })
            }),
            Hook::inline::<point::TurnCompleted>(move |turn| {
                let reply = Reply::none();
                Ok(match turn.is_last {
                    true => reply.effect(Effect::NotifySelf(notify("for the next query"))),
                    false => reply,
                })
            }),
        ]
    })
    .await;
    talk.server.reply(calls_echo());
    talk.server.reply(ModelReply::text("Done."));
    talk.ask("One").await;
    let requests = talk.server.requests();
    let told = |index: usize| -> Vec<String> {
        let messages = requests[index].body["messages"].as_array().unwrap();
        let notices = messages
            .iter()
            .filter_map(|message| message["content"].as_str());
        let notices = notices.filter(|text| text.starts_with("Notices"));
        notices
            .map(|text| text.replace("Notices from Dodona, not from the user:\n", ""))
            .collect()
    };
    assert_eq!(
        told(0),
        ["- [info] plugin `hooked` says: start\n- [info] plugin `hooked` says: now"]
    );
    assert_eq!(
        told(1),
        [
            "- [info] plugin `hooked` says: start\n- [info] plugin `hooked` says: now",
            "- [info] plugin `hooked` says: after"
        ]
    );
    talk.server.reply(ModelReply::text("Done."));
    let answer = talk.ask("Two").await;
    let messages: Vec<_> = answer.data("Notification");
    let texts: Vec<_> = messages
        .iter()
        .map(|note| note["message"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["for the next query", "start", "now"]);
}

#[tokio::test]
async fn notifications_are_told_once_the_most_urgent_first_and_the_same_not_twice() {
    let talk = talk(|| {
        vec![Hook::inline::<point::QueryReceived>(|query| {
            if query.question != "One" {
                return Ok(Reply::none());
            }
            let note = |text: &str, priority, category| {
                let mut note = notify(text);
                (note.priority, note.category) = (priority, category);
                Effect::NotifySelf(note)
            };
            Ok(Reply::none()
                .effect(note("low", Priority::Low, Category::Info))
                .effect(note("same", Priority::Normal, Category::Reminder))
                .effect(note("same", Priority::Normal, Category::Reminder))
                .effect(note("high", Priority::Critical, Category::Error)))
        })]
    })
    .await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("One").await;
    let sent = talk.sent();
    assert!(last_content(&sent).ends_with("- [error] plugin `hooked` says: high\n- [reminder] plugin `hooked` says: same\n- [info] plugin `hooked` says: low"));
    talk.server.reply(ModelReply::text("Yes."));
    let answer = talk.ask("Two").await;
    assert!(answer.data("Notification").is_empty());
}

#[tokio::test]
async fn too_many_notifications_wait_for_the_next_request() {
    let long = "word ".repeat(400);
    let talk = talk(move || {
        let long = long.clone();
        vec![Hook::inline::<point::QueryReceived>(move |query| {
            let mut reply = Reply::none();
            if query.question == "One" {
                for n in 0..4 {
                    reply = reply.effect(Effect::NotifySelf(notify(&format!("{n} {long}"))));
                }
            }
            Ok(reply)
        })]
    })
    .await;
    let mut told = Vec::new();
    for question in ["One", "Two", "Three"] {
        talk.server.reply(ModelReply::text("Yes."));
        told.push(talk.ask(question).await.data("Notification").len());
    }
    assert_eq!(told, [2, 2, 0]);
}

#[tokio::test]
async fn a_session_ends_once_when_it_is_closed() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || vec![watched.watch::<point::SessionEnd>()]).await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    talk.call("agent.close", json!({})).await.unwrap();
    let ended = seen.at(HookPoint::SessionEnd);
    assert_eq!(
        (ended.len(), &ended[0]["reason"]),
        (1, &json!(SessionEnd::Closed))
    );
    assert_eq!(ended[0]["turns"], 1);
    let talk = talk.restart().await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi again").await;
    assert_eq!(seen.at(HookPoint::SessionEnd).len(), 1);
    assert_eq!(talk.events("session.end").await.len(), 1);
    assert_eq!(talk.events("session.start").await.len(), 2);
}

#[tokio::test]
async fn a_session_ends_when_nothing_is_said_for_a_while() {
    let seen = Seen::default();
    let watched = seen.clone();
    let idle = Duration::from_millis(200);
    let hooks = move || vec![watched.watch::<point::SessionEnd>()];
    let talk = set_up(hooks, move |options| options.session_idle = idle).await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    while seen.at(HookPoint::SessionEnd).is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(seen.at(HookPoint::SessionEnd)[0]["reason"], "idle");
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi again").await;
    assert_eq!(talk.events("session.start").await.len(), 2);
}

#[tokio::test]
async fn a_session_ends_with_an_orderly_stop() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || vec![watched.watch::<point::SessionEnd>()]).await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    let talk = talk.restart().await;
    let ended = seen.at(HookPoint::SessionEnd);
    assert_eq!((ended.len(), &ended[0]["reason"]), (1, &json!("shutdown")));
    assert_eq!(talk.events("session.end").await.len(), 1);
}

#[tokio::test]
async fn a_session_that_a_crash_cut_off_ends_at_the_next_start() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = talk(move || vec![watched.watch::<point::SessionEnd>()]).await;
    talk.server.reply(ModelReply::text("Yes."));
    talk.ask("Hi").await;
    talk.events("").await;
    let talk = talk.kill().await;
    let crashed = |seen: &Seen| {
        let ended = seen.at(HookPoint::SessionEnd);
        ended
            .iter()
            .filter(|ended| ended["reason"] == "crashed")
            .count()
    };
    while crashed(&seen) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ended = talk.events("session.end").await;
    assert_eq!(
        (ended.len(), &ended[0].payload["reason"]),
        (1, &json!("crashed"))
    );
    let talk = talk.restart().await;
    talk.events("").await;
    assert_eq!(crashed(&seen), 1);
}
