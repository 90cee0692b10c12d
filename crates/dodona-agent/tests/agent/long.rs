//! Long conversations through the whole loop: what a request takes stays the same, what was said long
//! ago comes back with the question that needs it, and another model is shown what fits it.

use dodona_llm::TokenCounter;
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{Reply, SeenRequest};
use serde_json::json;

use crate::talk::{Setup, Talk};

/// How many questions.
const LONG: usize = 80;

fn texts(request: &SeenRequest) -> Vec<&str> {
    let messages = request.body["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap_or_default())
        .collect()
}

/// What the messages of a request take, the system prompt left out.
fn tokens(request: &SeenRequest, counter: TokenCounter) -> usize {
    let texts = texts(request);
    texts[1..].iter().map(|text| 4 + counter.count(text)).sum()
}

#[tokio::test]
async fn a_long_conversation_costs_what_a_short_one_does_and_knows_its_beginning() {
    let talk = Talk::with(|options| {
        options.token_budget = Some(4_000);
        options.keep_turns = 2;
    })
    .await;
    for n in 1..=LONG {
        let answer = format!(
            "We decided to give part {n} to team {n}. It may take {} MB, as src/part{n}/limit.rs says. {}",
            1_000 + n,
            "The rest of it is as it was before. ".repeat(30)
        );
        talk.server.reply(Reply::text(&answer));
        let asked = talk
            .ask(&format!("Who has part {n}, and how large may it be?"))
            .await;
        assert_eq!(asked.status(), DoneStatus::Complete, "{}", asked.error());
    }
    let counter = TokenCounter::default();
    let sizes: Vec<usize> = talk
        .server
        .requests()
        .iter()
        .map(|request| tokens(request, counter))
        .collect();
    let most = |sizes: &[usize]| sizes.iter().max().copied().unwrap();
    let (early, late) = (
        most(&sizes[LONG / 4..LONG / 2]),
        most(&sizes[LONG * 3 / 4..]),
    );
    println!(
        "tokens of a request: {early} early, {late} late, {} at most",
        most(&sizes)
    );
    assert!(talk.events("context.compacted").await.len() >= 5);
    // What is looked up for a question comes on top of the budget.
    assert!(most(&sizes) <= 4_400 + 2_000, "{sizes:?}");
    assert!(late * 10 <= early * 12, "{early} early, {late} late");

    // Part 1 has long left the summary; a question about it brings it back.
    talk.server.reply(Reply::text("Team 1 has it."));
    talk.ask("What did we decide about part 1, which team has it?")
        .await;
    let request = talk.server.last_request();
    let shown = texts(&request).join("\n");
    assert!(
        shown.contains("We decided to give part 1 to team 1."),
        "{shown}"
    );
}

#[tokio::test]
async fn another_model_is_asked_once_the_conversation_is_counted_anew_and_fits() {
    let setup = Setup {
        model: |name, config| {
            // Two families with two tokenizers: the older one takes many more for Greek.
            let id = if name == "main" { "gpt-4o" } else { "gpt-4" };
            config.model = Some(id.to_owned());
        },
        ..Setup::default()
    };
    let talk = Talk::set_up(setup, |options| {
        options.token_budget = Some(4_000);
        options.preload = 0;
        options.keep_turns = 1;
    })
    .await;
    let greek = "Ὁ Ζεὺς ἐν Δωδώνῃ διὰ τῆς δρυὸς ἐμαντεύετο, καὶ οἱ ἱερεῖς τὰ φύλλα ἤκουον. ";
    let (newer, older) = (
        TokenCounter::for_model("gpt-4o"),
        TokenCounter::for_model("gpt-4"),
    );
    let answer = |n: usize| format!("We decided to keep leaf {n}. {}", greek.repeat(8));
    assert!(older.count(&answer(1)) * 10 > newer.count(&answer(1)) * 12);
    // Nearly full, for the one that counts less.
    let mut n = 0;
    let used = loop {
        n += 1;
        talk.server.reply(Reply::text(&answer(n)));
        talk.ask(&format!("Which leaf is number {n}?")).await;
        let shown = talk.call("agent.show", json!({})).await.unwrap();
        let used = shown["context"]["tokens_used"].as_u64().unwrap();
        if used + newer.count(&answer(n)) as u64 + 60 > 3_500 {
            break used;
        }
    };
    assert_eq!(talk.events("context.compacted").await.len(), 0, "{used}");

    talk.server.reply(Reply::text("They rustle."));
    let params = json!({ "message": "What do the leaves do?", "model": "other" });
    let asked = talk.ask_with(params).await;
    assert_eq!(asked.status(), DoneStatus::Complete, "{}", asked.error());
    let events = talk.events("context.compacted").await;
    assert_eq!(
        events.len(),
        1,
        "counted anew it is too long, and shortened before it is sent"
    );
    let before = events[0].payload["before"].as_u64().unwrap();
    assert!(before > used, "{before} as the other counts, {used} before");
    let request = talk.server.last_request();
    assert_eq!(request.body["model"], "gpt-4");
    assert!(
        tokens(&request, older) <= 3_600,
        "{}",
        tokens(&request, older)
    );
    let shown = texts(&request).join("\n");
    for leaf in 1..=n {
        let decided = format!("We decided to keep leaf {leaf}.");
        assert!(shown.contains(&decided), "{decided} is lost: {shown}");
    }
    let context = talk.call("agent.show", json!({})).await.unwrap();
    assert_eq!(context["context"]["status"], "active");
    assert_eq!(context["context"]["last_model"], "other");

    // And back again.
    talk.server.reply(Reply::text("Still."));
    let asked = talk.ask("Do they still?").await;
    assert_eq!(asked.status(), DoneStatus::Complete, "{}", asked.error());
    assert_eq!(talk.server.last_request().body["model"], "gpt-4o");
    assert_eq!(talk.last_query().await.0, "complete");
}
