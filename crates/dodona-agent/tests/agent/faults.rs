//! Everything that a provider, a model, a tool or a disk is known to do wrong, as the user of
//! `agent.chat` sees it: an error that says what happened, an ending that is recorded, and a
//! conversation that goes on.

use std::path::PathBuf;
use std::time::Duration;

use dodona_hub::HubConfig;
use dodona_llm::Provider;
use dodona_proto::{DoneStatus, ItemBody};
use dodona_testkit::model_server::{Gate, ModelServer, Reply, Step};
use dodona_testkit::rusqlite::Connection;
use serde_json::{Value, json};

use crate::talk::{Answer, Setup, Talk};

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// Something that goes wrong before there is an answer.
struct Fault {
    what: &'static str,
    replies: Vec<Reply>,
    /// What the error says.
    says: &'static str,
    /// What the reader saw before.
    shown: &'static str,
}

fn fault(what: &'static str, replies: impl Into<Vec<Reply>>, says: &'static str) -> Fault {
    Fault {
        what,
        replies: replies.into(),
        says,
        shown: "",
    }
}

impl Fault {
    fn after(self, shown: &'static str) -> Self {
        Self { shown, ..self }
    }
}

/// A talk in which a request is sent twice at most.
async fn talk(provider: Provider) -> Talk {
    let setup = Setup {
        provider,
        model: |_, config| {
            config.retries = 1;
            config.retry_delay = Duration::from_millis(1);
        },
        ..Setup::default()
    };
    Talk::set_up(setup, |_| {}).await
}

/// The fault is told and recorded, and the next question is answered: the server refuses a
/// conversation that is not well formed.
async fn meet(talk: &Talk, fault: Fault, params: Value) {
    let (what, replies) = (fault.what, fault.replies.len());
    for reply in fault.replies {
        talk.server.reply(reply);
    }
    let before = talk.server.requests().len();
    let answer = talk.ask_with(params).await;
    assert_eq!(answer.status(), DoneStatus::Failed, "{what}");
    let error = answer.error();
    assert!(error.contains(fault.says), "{what}: {error}");
    assert!(!error.contains("secret"), "{what}: {error}");
    assert_eq!(answer.pieces().concat(), fault.shown, "{what}");
    assert_eq!(talk.server.requests().len(), before + replies, "{what}");
    let recorded = talk.last_query().await;
    assert_eq!(recorded, ("failed".to_owned(), Some(error.to_owned())));
    goes_on(talk, what).await;
    let half = talk.sent().into_iter().any(|message| {
        !fault.shown.is_empty() && message["role"] == "assistant" && says(&message, fault.shown)
    });
    assert!(!half, "{what}: half an answer is shown as one");
}

fn says(message: &Value, text: &str) -> bool {
    message["content"].to_string().contains(text)
}

async fn goes_on(talk: &Talk, after: &str) {
    talk.server.reply(Reply::text("I am here."));
    let answer = talk.ask("Are you still there?").await;
    assert_eq!(
        answer.status(),
        DoneStatus::Complete,
        "{after}: {:?}",
        answer.items
    );
    assert_eq!(answer.text(), "I am here.", "{after}");
    assert_eq!(talk.last_query().await.0, "complete", "{after}");
    assert_eq!(talk.server.waiting(), 0, "{after}");
}

#[tokio::test]
async fn a_provider_that_fails_is_told_and_the_conversation_goes_on() {
    let twice = |reply: Reply| [reply.clone(), reply];
    for provider in BOTH {
        let talk = talk(provider).await;
        let faults = [
            fault("a wrong key", [Reply::status(401)], "401"),
            fault("busy", twice(Reply::status(429)), "429"),
            fault(
                "busy for an hour",
                [Reply::status(429).header("retry-after", "3600")],
                "429",
            ),
            fault("broken", twice(Reply::status(500)), "500"),
            fault(
                "garbage",
                [Reply::text("It is").raw("data: {\"choi\n\n")],
                "cannot be read",
            )
            .after("It is"),
            fault(
                "garbage from the beginning",
                twice(Reply::stream().raw("data: {\"choi\n\n")),
                "cannot be read",
            ),
            fault("cut", [Reply::text("It is").step(Step::Cut)], "broke").after("It is"),
            fault(
                "no end",
                [Reply::text("It is").step(Step::End)],
                "ends in the middle",
            )
            .after("It is"),
            fault("a bomb", [Reply::gzip_bomb(256 << 20)], "compressed"),
            fault(
                "an error event",
                [Reply::text("It is").error("overloaded_error", "Overloaded")],
                "Overloaded",
            )
            .after("It is"),
            fault("nothing", [Reply::stream()], "an empty answer"),
            fault(
                "only thoughts",
                [Reply::stream().reasoning("Hm.")],
                "reasoning and no answer",
            ),
        ];
        for fault in faults {
            meet(&talk, fault, json!({ "message": "Well?" })).await;
        }
    }
}

#[tokio::test]
async fn a_provider_that_is_busy_for_a_moment_is_asked_again_and_the_reader_is_told() {
    for provider in BOTH {
        for busy in [
            Reply::status(429),
            Reply::status(429).header("retry-after", "0.02"),
            Reply::status(500),
        ] {
            let talk = talk(provider).await;
            talk.server.reply(busy);
            talk.server.reply(Reply::text("Here."));
            let answer = talk.ask("Well?").await;
            assert_eq!(answer.text(), "Here.");
            let told = answer.items.iter().any(|item| {
                matches!(&item.body, ItemBody::Progress { message, .. } if message.starts_with("retrying `main` in ") && message.contains("(attempt 2 of 2)"))
            });
            assert!(told, "{:?}", answer.items);
            goes_on(&talk, "busy").await;
        }
    }
}

#[tokio::test]
async fn a_provider_that_hangs_is_given_up() {
    for provider in BOTH {
        let setup = Setup {
            provider,
            // One is impatient before an answer, the other within it: none of them has to be
            // quick for the questions that are answered.
            model: |name, config| match name {
                "main" => config.idle_timeout = Duration::from_secs(2),
                _ => config.first_token_timeout = Duration::from_millis(50),
            },
            ..Setup::default()
        };
        let talk = Talk::set_up(setup, |_| {}).await;
        let silent = fault("silence", [Reply::hang()], "has not begun to answer");
        let params = json!({ "message": "Well?", "model": "other" });
        meet(&talk, silent, params).await;
        let begun = Reply::text("It is").step(Step::Hang);
        let stuck = fault("a hang", [begun], "has been silent").after("It is");
        meet(&talk, stuck, json!({ "message": "Well?" })).await;
    }
}

#[tokio::test]
async fn a_redirection_is_not_followed_and_takes_the_key_nowhere() {
    for provider in BOTH {
        let talk = talk(provider).await;
        let elsewhere = ModelServer::start().await;
        let path = match provider {
            Provider::Anthropic => "/messages",
            _ => "/chat/completions",
        };
        let away = Reply::redirect(&format!("{}{path}", elsewhere.url()));
        let fault = fault("a redirection", [away], "redirect");
        meet(&talk, fault, json!({ "message": "Well?" })).await;
        assert!(elsewhere.requests().is_empty());
    }
}

#[tokio::test]
async fn a_letter_that_comes_in_pieces_is_whole() {
    for provider in BOTH {
        let talk = talk(provider).await;
        let text = "Grüße, 木 und 🌳!";
        let bytewise = Reply::stream().step(Step::ByteByByte).add_text(text);
        talk.server.reply(bytewise);
        let answer = talk.ask("Well?").await;
        assert_eq!(answer.text(), text);
        assert_eq!(answer.pieces().concat(), text);
        goes_on(&talk, "letters in pieces").await;
        assert!(talk.sent().iter().any(|message| says(message, text)));
    }
}

/// A repeated piece of text cannot be told from one that was meant twice. A repeated piece of a
/// call can be: in one protocol because blocks are numbered, in the other because the arguments
/// no longer are JSON.
#[tokio::test]
async fn a_piece_that_comes_twice_does_no_harm() {
    for provider in BOTH {
        let talk = talk(provider).await;
        talk.server
            .reply(Reply::text("Tick. ").step(Step::Repeat).add_text("Tock."));
        let answer = talk.ask("Well?").await;
        assert_eq!(answer.text(), "Tick. Tick. Tock.");
        goes_on(&talk, "a text twice").await;

        let call = Reply::stream().tool_call("c", "kit_echo", &[r#"{"text":"x"}"#]);
        talk.server.reply(call.step(Step::Repeat));
        if provider == Provider::OpenAi {
            talk.server.reply(Reply::text("I see."));
        }
        let answer = talk.ask("Well?").await;
        match provider {
            Provider::OpenAi => assert_eq!(answer.endings(), ["error"]),
            _ => assert_eq!(answer.status(), DoneStatus::Failed),
        }
        goes_on(&talk, "a call twice").await;
    }
}

#[tokio::test]
async fn whatever_becomes_of_a_tool_is_recorded_and_the_conversation_goes_on() {
    for provider in BOTH {
        let talk = talk(provider).await;
        let calls = [
            ("fail", "kit_fail", "{}", "error"),
            ("hang", "kit_hang", "{}", "timeout"),
            ("panic", "kit_panic", "{}", "error"),
            ("unknown", "nobody_knows", "{}", "error"),
            ("type", "kit_echo", r#"{"text":7}"#, "error"),
            ("missing", "kit_echo", "{}", "error"),
            ("broken", "kit_echo", r#"{"text":"#, "error"),
            ("list", "kit_echo", "[1]", "error"),
            ("fine", "kit_echo", r#"{"text":"x"}"#, "success"),
        ];
        for (id, name, arguments, ending) in calls {
            talk.server
                .reply(Reply::stream().tool_call(id, name, &[arguments]));
            talk.server.reply(Reply::text("I see."));
            let answer = talk.ask(&format!("Try {id}")).await;
            assert_eq!(answer.endings(), [ending], "{id}");
            assert_eq!(answer.text(), "I see.");
            goes_on(&talk, id).await;
        }
        let expected: Vec<(String, String)> = calls
            .iter()
            .map(|(id, _, _, ending)| ((*id).to_owned(), (*ending).to_owned()))
            .collect();
        assert_eq!(stored_endings(&talk), expected);
    }
}

fn database(talk: &Talk) -> PathBuf {
    talk.folder.path().join("data/plugins/agent/agent.db")
}

/// Every call there ever was, with its ending.
fn stored_endings(talk: &Talk) -> Vec<(String, String)> {
    let stored = Connection::open(database(talk)).unwrap();
    let sql = "select call_id, ending from tool_calls t join exchanges e on e.id = t.exchange_id
        order by e.position, t.ordinal";
    let mut rows = stored.prepare(sql).unwrap();
    let rows = rows.query_map((), |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// An answer that is read to its end and that no conversation has room for.
#[tokio::test]
async fn an_answer_without_end_is_bounded_and_costs_nothing_but_itself() {
    let piece = "many words and no end to them, ".repeat(1_000);
    for (pieces, status, state, says) in [
        (9 << 20, DoneStatus::Limited, "limited", "do not fit"),
        (11 << 20, DoneStatus::Failed, "failed", "larger than"),
    ] {
        let talk = talk(Provider::OpenAi).await;
        let mut reply = Reply::stream().usage(10, 2_000_000, 0);
        for _ in 0..pieces / piece.len() {
            reply = reply.add_text(&piece);
        }
        talk.server.reply(reply);
        let answer = talk.ask("Everything, please").await;
        assert_eq!(answer.status(), status, "{}", answer.error());
        assert!(answer.error().contains(says), "{}", answer.error());
        let (recorded, reason) = talk.last_query().await;
        assert_eq!(
            (recorded.as_str(), reason.as_deref()),
            (state, Some(answer.error()))
        );
        goes_on(&talk, state).await;
    }
}

/// Holds the conversations' database as another process would.
fn lock(talk: &Talk) -> Connection {
    let other = Connection::open(database(talk)).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("begin immediate").unwrap();
    other
}

#[tokio::test]
async fn a_database_that_is_locked_for_a_moment_is_waited_for() {
    let talk = talk(Provider::OpenAi).await;
    goes_on(&talk, "the beginning").await;
    talk.server.reply(Reply::text("Here."));
    let other = lock(&talk);
    let asking = talk.ask("Well?");
    tokio::pin!(asking);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut asking).await;
    assert!(early.is_err(), "nothing is answered that is not stored");
    other.execute_batch("rollback").unwrap();
    assert_eq!(asking.await.text(), "Here.");
    goes_on(&talk, "a lock").await;
}

#[tokio::test]
async fn a_database_that_stays_locked_fails_the_query_and_nothing_else() {
    let mut config = HubConfig::default();
    config.store.busy_timeout = Duration::from_millis(50);
    let setup = Setup {
        config,
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |_| {}).await;
    goes_on(&talk, "the beginning").await;

    // Before the question is stored: it was never asked.
    let other = lock(&talk);
    let answer = talk.ask("Well?").await;
    assert_eq!(answer.status(), DoneStatus::Failed);
    assert_eq!(answer.error(), "the database is busy");
    other.execute_batch("rollback").unwrap();
    assert_eq!(talk.last_query().await.0, "complete");
    goes_on(&talk, "a lock").await;

    // While the model speaks: the answer cannot be stored, and is not given.
    let gate = Gate::new();
    talk.server.reply(
        Reply::stream()
            .add_text("It is")
            .wait(&gate)
            .add_text(" so."),
    );
    let seen = talk.server.requests().len();
    let stream = talk.open("agent.chat", json!({ "message": "Well?" })).await;
    talk.server.until_requests(seen + 1).await;
    let other = lock(&talk);
    gate.open();
    let items = stream.collect().await.unwrap();
    let answer = Answer { items };
    assert_eq!(answer.status(), DoneStatus::Failed);
    assert_eq!(answer.error(), "the database is busy");
    assert!(answer.data("AgentResponse").is_empty());
    other.execute_batch("rollback").unwrap();
    goes_on(&talk, "a lock within a query").await;
    let found = talk.call("agent.queries", json!({})).await.unwrap();
    let failed = &found["queries"][1];
    assert_eq!(
        (&failed["state"], &failed["reason"]),
        (&json!("failed"), &json!("the database is busy")),
        "{found:#}"
    );
}
