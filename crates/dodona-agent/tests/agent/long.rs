//! Long conversations through the whole loop: what a request takes stays the same, what was said long
//! ago comes back with the question that needs it, and another model is shown what fits it.

use std::sync::atomic::{AtomicUsize, Ordering};

use dodona_llm::TokenCounter;
use dodona_proto::DoneStatus;
use dodona_testkit::model_server::{Reply, SeenRequest};
use serde_json::{Value, json};

use crate::talk::{Setup, Talk};

/// How many questions, and how many turns each takes: all but the last ask for a tool.
const QUESTIONS: usize = 100;
const TURNS: usize = 10;

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

/// What is said in a turn of the whole conversation, counted from 0.
fn said_in(turn: usize) -> Reply {
    let part = turn / TURNS + 1;
    let rest = "The rest of it is as it was before. ";
    match turn % TURNS {
        last if last + 1 == TURNS => Reply::text(&format!(
            "We decided to give part {part} to team {part}. It may take {} MB, as \
             src/part{part}/limit.rs says. {}",
            1_000 + part,
            rest.repeat(20)
        )),
        step => {
            let text = json!({ "text": format!("step {step} of {part}: {}", rest.repeat(8)) });
            Reply::stream().tool_call("c", "kit_echo", &[&text.to_string()])
        }
    }
}

/// What a hundred turns took: of each request the tokens and the messages, and what is kept of the
/// conversation after them.
struct Stretch {
    tokens: Vec<usize>,
    messages: usize,
    kept: [usize; 3],
}

impl Stretch {
    async fn of(talk: &Talk) -> Self {
        let requests = talk.server.requests();
        let counter = TokenCounter::default();
        let shown = talk.call("agent.show", json!({})).await.unwrap();
        let length = |value: &Value| value.as_array().unwrap().len();
        talk.server.forget();
        Self {
            tokens: requests
                .iter()
                .map(|request| tokens(request, counter))
                .collect(),
            messages: requests
                .iter()
                .map(|request| texts(request).len())
                .max()
                .unwrap(),
            kept: [
                length(&shown["summary"]),
                length(&shown["context"]["recent_exchanges"]),
                shown.to_string().len(),
            ],
        }
    }

    fn most(&self) -> usize {
        self.tokens.iter().max().copied().unwrap()
    }

    fn mean(&self) -> usize {
        self.tokens.iter().sum::<usize>() / self.tokens.len()
    }
}

fn print(stretches: &[Stretch]) {
    println!("\n turns   tokens of a request   messages   kept of the conversation");
    println!("         mean        at most    at most    lines  exchanges  bytes");
    for (number, stretch) in (1..).zip(stretches) {
        let (mean, most, messages) = (stretch.mean(), stretch.most(), stretch.messages);
        let [lines, exchanges, bytes] = stretch.kept;
        println!(
            "{:>6}  {mean:>5}  {most:>13}  {messages:>9}  {lines:>7}  {exchanges:>9}  {bytes:>5}",
            number * 100
        );
    }
}

#[tokio::test]
async fn a_thousand_turns_cost_what_the_first_hundred_do_and_the_beginning_is_known() {
    let talk = Talk::with(|options| {
        options.token_budget = Some(4_000);
        options.keep_turns = 2;
    })
    .await;
    let turn = AtomicUsize::new(0);
    talk.server
        .respond_with(move |_| said_in(turn.fetch_add(1, Ordering::Relaxed)));
    let mut stretches = Vec::new();
    for part in 1..=QUESTIONS {
        let question = format!("Who has part {part}, and how large may it be?");
        let asked = talk.ask(&question).await;
        assert_eq!(asked.status(), DoneStatus::Complete, "{}", asked.error());
        if (part * TURNS).is_multiple_of(100) {
            stretches.push(Stretch::of(&talk).await);
        }
    }
    print(&stretches);
    assert_eq!(
        stretches.iter().map(|s| s.tokens.len()).sum::<usize>(),
        1_000
    );
    let compactions = talk.events("context.compacted").await.len();
    assert!(compactions >= 20, "{compactions}");
    // The first hundred turns fill the window; from then on nothing grows.
    let (early, late) = (&stretches[1], &stretches[9]);
    // What is looked up for a question comes on top of the budget.
    assert!(stretches.iter().all(|s| s.most() <= 4_400 + 2_000));
    assert!(late.most() * 10 <= early.most() * 12);
    assert!(late.mean() * 10 <= early.mean() * 12);
    assert!(late.messages * 10 <= early.messages * 12);
    // How much is kept rises until the next compaction, so that single moments say nothing.
    let kept = |part: &[Stretch], what: usize| part.iter().map(|s| s.kept[what]).max();
    for what in 0..stretches[0].kept.len() {
        let (early, late) = (kept(&stretches[1..5], what), kept(&stretches[5..], what));
        let (early, late) = (early.unwrap(), late.unwrap());
        assert!(late * 10 <= early * 15, "{late} late, {early} early");
    }

    // Part 1 has long left the summary; a question about it brings it back.
    talk.server.respond_with(|_| Reply::text("Team 1 has it."));
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
