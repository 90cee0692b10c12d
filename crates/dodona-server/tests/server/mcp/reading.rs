//! Prompts, and resources that are no notes.

use serde_json::{Value, json};

use super::builder;
use super::client::Client;

#[tokio::test]
async fn what_plugins_have_to_read_is_passed_on() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let listed = client.ask("resources/list", json!({})).await;
    let uris: Vec<&Value> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["uri"])
        .collect();
    let known = [
        "dodona://vault/a.md",
        "dodona://vault/b%20c.md",
        "test://static-binary",
        "test://static-text",
        "test://watched-resource",
    ];
    assert_eq!(uris, known);
    let read = async |uri: &str| client.ask("resources/read", json!({ "uri": uri })).await;
    let text = read("test://static-text").await;
    let expected = json!({ "uri": "test://static-text", "mimeType": "text/plain", "text": "This is the content of the static text resource." });
    assert_eq!(text["result"]["contents"], json!([expected]), "{text}");
    let binary = read("test://static-binary").await;
    assert!(
        binary["result"]["contents"][0]["blob"].is_string(),
        "{binary}"
    );
    assert_eq!(read("test://other").await["error"]["code"], -32002);
    // A group that leaves the plugin out leaves these out.
    let vault = Client::begin_at(&owner, "/mcp?tools=vault").await;
    let listed = vault.ask("resources/list", json!({})).await;
    assert!(!listed.to_string().contains("test://"), "{listed}");
    let refused = vault
        .ask("resources/read", json!({ "uri": "test://static-text" }))
        .await;
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn prompts_of_plugins_have_the_plugins_name_before_theirs() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let listed = client.ask("prompts/list", json!({})).await;
    let first = &listed["result"]["prompts"][1];
    assert_eq!(first["name"], "test_prompt_with_arguments", "{listed}");
    assert_eq!(first["arguments"][0]["name"], "arg1");
    let given =
        json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "x", "arg2": "y" } });
    let filled = client.ask("prompts/get", given).await;
    let text = &filled["result"]["messages"][0]["content"]["text"];
    assert_eq!(
        *text, "Prompt with arguments: arg1='x', arg2='y'",
        "{filled}"
    );
    let unknown = client.ask("prompts/get", json!({ "name": "test" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    server.stop().await;
}

#[tokio::test]
async fn paths_of_notes_are_completed() {
    let server = builder().start().await;
    let owner = server.owner();
    let client = Client::begin(&owner).await;
    let complete = async |begun: &str| {
        let form = json!({ "type": "ref/resource", "uri": "dodona://vault/{+path}" });
        let argument = json!({ "name": "path", "value": begun });
        let answer = client
            .ask(
                "completion/complete",
                json!({ "ref": form, "argument": argument }),
            )
            .await;
        answer["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete("").await, json!(["a.md", "b c.md"]));
    assert_eq!(complete("C.M").await, json!(["b c.md"]));
    assert_eq!(complete("x").await, json!([]));
    server.stop().await;
}
