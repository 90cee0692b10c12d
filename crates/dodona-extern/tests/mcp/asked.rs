//! Servers that ask something of us, and servers of another age.

use serde_json::{Value, json};

use crate::support::{text, with_good};

#[tokio::test]
async fn a_server_that_asks_gets_a_clear_answer_and_nothing_else() {
    let hub = with_good("").await;
    let told = text(&hub, "good.ask", json!({})).await;
    let answers: Value = serde_json::from_str(&told).unwrap();
    // No model works for a server, no person is asked in its name, and it is told of no folder.
    let expected = json!({
        "sampling/createMessage": {"code": -32601},
        "elicitation/create": {"action": "decline"},
        "roots/list": {"roots": []},
    });
    assert_eq!(answers, expected);
    hub.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_at_a_question_of_a_newer_protocol_is_asked_as_it_expects() {
    let hub = with_good("[server.env]\nSTRICT = \"1\"\n").await;
    assert_eq!(
        text(&hub, "good.say", json!({"text": "here"})).await,
        "here"
    );
    hub.stop().await;
}

#[tokio::test]
async fn the_older_protocols_are_spoken_as_the_user_or_the_server_wants() {
    for (wanted, spoken, asked_for) in [
        ("auto", "2025-11-25", "2025-11-25"),
        ("auto", "2025-06-18", "2025-11-25"),
        ("auto", "2024-11-05", "2025-11-25"),
        ("2025-11-25", "2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18", "2025-06-18"),
    ] {
        let settings =
            format!("[server]\nprotocol = \"{wanted}\"\n[server.env]\nPROTOCOL = \"{spoken}\"\n");
        let hub = with_good(&settings).await;
        let told = text(&hub, "good.protocol", json!({})).await;
        assert_eq!(told, asked_for, "{wanted}, {spoken}");
        hub.stop().await;
    }
}
