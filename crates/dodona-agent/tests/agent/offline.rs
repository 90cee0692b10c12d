//! The agent on a real hub, with real tools and the model that needs nothing.

use std::sync::Arc;

use dodona_agent::AgentPlugin;
use dodona_hub::{HubConfig, PluginHub, Request};
use dodona_plugin::Plugin;
use dodona_proto::{HubStreamItem, ItemBody, Principal, Project, Scopes, Surface, UserId};
use serde_json::{Value, json};

fn alice() -> Arc<Principal> {
    let user = UserId::new("alice").unwrap();
    Arc::new(Principal {
        user,
        scopes: Scopes::all(),
        surface: Surface::Internal,
    })
}

/// Asks a project with one note and one function, and collects the whole stream.
async fn ask(question: &str) -> Vec<HubStreamItem> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(
        root.join("auth.md"),
        "# Login\n\nLogin issues a token that lasts a day.\n",
    )
    .unwrap();
    std::fs::write(
        root.join("jwt.rs"),
        "/// Issues a login token.\nfn issue_token() {}\n",
    )
    .unwrap();
    let mut plugins = dodona_knowledge::plugins(dodona_knowledge::Options::default());
    plugins.push(Arc::new(AgentPlugin::default()) as Arc<dyn Plugin>);
    let hub = PluginHub::start(&folder.path().join("data"), HubConfig::default(), plugins)
        .await
        .unwrap();
    let registered = hub
        .call(Request::new(
            alice(),
            "hub.register_project",
            json!({ "root": root }),
        ))
        .await
        .unwrap();
    let project: Project = serde_json::from_value(registered).unwrap();
    let request = Request {
        project: Some(project.id),
        ..Request::new(alice(), "agent.chat", json!({ "message": question }))
    };
    hub.open(request).await.unwrap().collect().await.unwrap()
}

/// The agent's own data items, by content type.
fn data(items: &[HubStreamItem], wanted: &str) -> Vec<Value> {
    let own = items
        .iter()
        .filter(|item| item.plugin_path.as_str() == "agent");
    own.filter_map(|item| match &item.body {
        ItemBody::Data { content_type, data } if content_type == wanted => Some(data.clone()),
        _ => None,
    })
    .collect()
}

#[tokio::test]
async fn an_answer_quotes_the_project_and_cites_lines_that_stand_there() {
    let items = ask("How does login work?").await;
    let mut called: Vec<Value> = data(&items, "ToolCall")
        .iter()
        .map(|call| call["method"].clone())
        .collect();
    // It searches, then reads what it quotes.
    called.dedup();
    let steps = [
        "code.search",
        "vault.search",
        "thread.seek",
        "agent.seek",
        "code.read",
    ];
    assert_eq!(called, steps);
    let response = &data(&items, "AgentResponse")[0];
    let text = response["text"].as_str().unwrap();
    assert!(
        text.contains("Login issues a token that lasts a day. [1]"),
        "{text}"
    );
    assert!(text.contains("No model was used"), "{text}");
    assert_eq!(response["sources"][0]["path"], "auth.md");
    assert_eq!(
        (
            &response["sources"][0]["line_start"],
            &response["sources"][0]["line_end"]
        ),
        (&json!(1), &json!(3))
    );
    assert_eq!(
        data(&items, "Source").len(),
        response["sources"].as_array().unwrap().len()
    );
    let streamed: String = data(&items, "TextDelta")
        .iter()
        .map(|delta| delta["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(streamed, text, "what is streamed is what is answered");
}

#[tokio::test]
async fn tools_run_as_calls_below_the_agent() {
    let items = ask("How does login work?").await;
    for path in ["agent.code", "agent.vault", "agent.search"] {
        assert!(
            items.iter().any(|item| item.plugin_path.as_str() == path),
            "nothing came from {path}"
        );
    }
    assert!(matches!(items.last().unwrap().body, ItemBody::Done { .. }));
}

#[tokio::test]
async fn with_nothing_relevant_it_says_so() {
    let items = ask("What is the airspeed of a swallow?").await;
    let response = &data(&items, "AgentResponse")[0];
    assert!(
        response["text"]
            .as_str()
            .unwrap()
            .starts_with("Nothing in this project answers that.")
    );
    assert_eq!(response["sources"], json!([]));
}
