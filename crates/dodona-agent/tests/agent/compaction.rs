//! Shortening conversations: what must hold whatever was said in them.

use std::collections::BTreeSet;

use dodona_agent::conversation::{
    Compaction, ContextId, Conversations, ExchangeId, LineKind, NewContext, NewMessage, NewQuery,
    PinTo, Query, SummaryLine,
};
use dodona_proto::{Message, ToolCall};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;

use crate::storage::{
    Disk, alice, asks, assert_in_step, assert_strict, bytes, in_context, run, times,
};

const KEEP: u32 = 3;

/// A conversation with this budget, in which a byte is a token.
pub(crate) async fn budget(conversations: &Conversations, tokens: u64) -> ContextId {
    let new = NewContext {
        token_budget: tokens,
        ..NewContext::named(Some("long"))
    };
    conversations.create(&alice(), new).await.unwrap().id
}

/// Asks and answers, with as many tools in between.
pub(crate) async fn talk(
    conversations: &Conversations,
    question: &str,
    tools: &[&str],
    answer: &str,
) {
    let query = begin(conversations, question).await;
    let mut turn = 1;
    for result in tools {
        query.append(turn, asks(&["a"])).await.unwrap();
        run(&query, "a", result).await;
        turn += 1;
    }
    query.answer(turn, answer.to_owned(), None).await.unwrap();
}

async fn begin(conversations: &Conversations, question: &str) -> Query {
    let new = in_context("long", question);
    conversations.begin_query(&alice(), new).await.unwrap()
}

/// Shortens it without a model.
async fn compact(conversations: &Conversations, context: &ContextId) -> Option<Compaction> {
    compact_told(conversations, context, None).await
}

async fn compact_told(
    conversations: &Conversations,
    context: &ContextId,
    told: Option<Vec<SummaryLine>>,
) -> Option<Compaction> {
    let plan = conversations
        .plan_compaction(context, KEEP)
        .await
        .unwrap()?;
    let lines = plan.fold(told, &bytes());
    conversations.compact(&plan, lines, &bytes()).await.unwrap()
}

pub(crate) fn text_of(messages: &[Message]) -> String {
    let texts = messages.iter().map(|message| match message {
        Message::User { content }
        | Message::Tool { content, .. }
        | Message::Assistant { content, .. } => content.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn json(messages: &[Message]) -> Vec<String> {
    let texts = messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap());
    texts.collect()
}

pub(crate) async fn window(conversations: &Conversations) -> Vec<Message> {
    conversations.window(&alice(), "long").await.unwrap()
}

/// Facts that are said in a conversation, by kind.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) said: String,
    /// What must be found again.
    pub(crate) kept: String,
}

pub(crate) fn fact(kind: usize, n: usize) -> Fact {
    let said = |said: String, kept: String| Fact { said, kept };
    match kind {
        0 => {
            let kept = format!("We decided to use plan {n} for module {n}.");
            said(kept.clone(), kept)
        }
        1 => said(
            format!("See src/part{n}/mod.rs for it."),
            format!("src/part{n}/mod.rs"),
        ),
        2 => said(
            format!("It calls `handler_{n}` there."),
            format!("handler_{n}"),
        ),
        3 => said(
            format!("Run `cargo test -p part{n}` first."),
            format!("cargo test -p part{n}"),
        ),
        4 => said(
            format!("The timeout there is {n} ms now."),
            format!("{n} ms"),
        ),
        _ => said(
            format!("The one to ask is {} at any time.", person(n)),
            person(n),
        ),
    }
}

/// How many kinds of facts there are.
pub(crate) const KINDS: usize = 6;

/// Somebody's name, another one for each number below a few hundred.
pub(crate) fn person(n: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    format!("Mira Lind{}{}", letter(n / 26), letter(n))
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A query with these facts in its question and its answer, and tools between them.
    Talk {
        asked: Vec<(usize, usize)>,
        answered: Vec<(usize, usize)>,
        tools: usize,
        filler: usize,
    },
    Compact,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let facts = || prop::collection::vec((0..KINDS, 0..30_usize), 0..3);
    let talk = (facts(), facts(), 0..3_usize, 0..600_usize).prop_map(
        |(asked, answered, tools, filler)| Step::Talk {
            asked,
            answered,
            tools,
            filler,
        },
    );
    prop::collection::vec(prop_oneof![4 => talk, 1 => Just(Step::Compact)], 1..40)
}

pub(crate) fn sentence(
    facts: &[(usize, usize)],
    filler: usize,
    said: &mut BTreeSet<String>,
) -> String {
    let mut text = String::from("Well then. ");
    for (kind, n) in facts {
        let fact = fact(*kind, *n);
        text.push_str(&fact.said);
        text.push(' ');
        said.insert(fact.kept);
    }
    text.push_str(&"and so on ".repeat(filler / 10));
    text
}

/// As the turn loop does it: shortens where 90 % are reached, or something fell out.
pub(crate) async fn compact_if_due(conversations: &Conversations, context: &ContextId) {
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    if state.tokens_used * 100 >= state.token_budget * 90 {
        checked(conversations, context).await;
    }
}

/// Shortens, and checks what must hold of any two conversations before and after.
pub(crate) async fn checked(
    conversations: &Conversations,
    context: &ContextId,
) -> Option<Compaction> {
    let before = window(conversations).await;
    let originals = conversations.export(&alice(), Some("long")).await.unwrap();
    let done = compact(conversations, context).await;
    let after = window(conversations).await;
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    assert_in_step(&state);
    assert_strict(&after);
    let again = conversations.export(&alice(), Some("long")).await.unwrap();
    assert_eq!(again.exchanges, originals.exchanges, "the originals stay");
    let Some(done) = done else {
        assert_eq!(json(&before), json(&after), "nothing was done");
        return None;
    };
    assert!(done.after < done.before, "{done:?}");
    assert_eq!(done.after, state.tokens_used);
    assert!(state.summary_tokens <= state.token_budget * 2 / 5);
    // What stays is the end of what was there, byte for byte; the question of its first query may
    // have come along.
    let (kept, was) = (json(&after[1..]), json(&before));
    let same = kept.iter().rev().zip(was.iter().rev());
    let same = same.take_while(|(kept, was)| kept == was).count();
    assert!(same + 1 >= kept.len(), "{same} of {}", kept.len());
    if same < kept.len() {
        assert!(was.contains(&kept[0]), "{}", kept[0]);
    }
    assert_last_turns_stay(&before, &after[1..], state.token_budget);
    for line in conversations.summary(&alice(), Some("long")).await.unwrap() {
        assert!(
            !line.exchanges.is_empty() || line.kind == LineKind::Pinned,
            "{line:?}"
        );
        let known = |id: &ExchangeId| {
            originals
                .exchanges
                .iter()
                .any(|entry| entry.exchange.id == *id)
        };
        assert!(line.exchanges.iter().all(known), "{line:?}");
    }
    Some(done)
}

/// The last turns stay, or as many of them as have room in half of the budget.
fn assert_last_turns_stay(before: &[Message], after: &[Message], budget: u64) {
    let speaks = |message: &&Message| matches!(message, Message::Assistant { .. });
    let turns = |messages: &[Message]| messages.iter().filter(speaks).count();
    let (had, stay) = (turns(before), turns(after));
    if stay >= had.min(KEEP as usize) {
        return;
    }
    let begins = before.iter().rposition({
        let mut seen = 0;
        move |message| {
            seen += usize::from(matches!(message, Message::Assistant { .. }));
            seen > stay
        }
    });
    let begins = begins.unwrap();
    let question = before[..begins].iter().rev();
    let question = question.take_while(|message| !speaks(message)).count();
    let one_more = before[begins - question..]
        .iter()
        .map(|message| bytes()(message));
    assert!(
        one_more.sum::<u64>() > budget / 2,
        "{stay} of {had} turns stay, and there is room for one more"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0xd0d0),
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_that_counts_is_lost_and_there_is_a_bound(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let disk = Disk::new().await;
            let conversations = disk.open();
            // Room enough for every fact there can be: 180 of them.
            let context = budget(&conversations, 40_000).await;
            let pin = "Alice signs every release herself.";
            conversations
                .pin(&alice(), Some("long"), pin, PinTo::Keep, &bytes())
                .await
                .unwrap();
            let mut said = BTreeSet::from([pin.to_owned()]);
            for step in steps {
                match step {
                    Step::Talk { asked, answered, tools, filler } => {
                        let question = sentence(&asked, filler, &mut said);
                        let answer = sentence(&answered, filler, &mut said);
                        let results = vec!["found something"; tools];
                        talk(&conversations, &question, &results, &answer).await;
                        compact_if_due(&conversations, &context).await;
                    }
                    Step::Compact => {
                        checked(&conversations, &context).await;
                    }
                }
                let shown = text_of(&window(&conversations).await);
                for fact in &said {
                    assert!(shown.contains(fact.as_str()), "{fact:?} is lost: {shown}");
                }
            }
        });
    }
}

#[tokio::test]
async fn a_conversation_is_bounded_over_any_number_of_rounds() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    let mut rounds = 0;
    for n in 0..300 {
        // Every sentence is a fact of its own: there is never room for all.
        let mut said = BTreeSet::new();
        let facts: Vec<(usize, usize)> = (0..KINDS).map(|kind| (kind, n)).collect();
        let text = sentence(&facts, 100, &mut said);
        talk(&conversations, &text, &["found"], &text).await;
        let state = conversations.show(&alice(), Some("long")).await.unwrap();
        assert!(state.tokens_used * 10 <= state.token_budget * 11);
        if state.tokens_used * 10 >= state.token_budget * 9 {
            rounds += u32::from(checked(&conversations, &context).await.is_some());
        }
    }
    assert!(rounds > 50, "{rounds}");
    let lines = disk.number("select count(*) from summary_lines").await;
    assert!(lines < 200, "{lines}");
}

#[tokio::test]
async fn the_middle_of_a_running_query_is_folded_and_its_question_stays() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    let mut query = begin(&conversations, "Which files are there?").await;
    for turn in 1..=8 {
        query.append(turn, asks(&["a"])).await.unwrap();
        run(&query, "a", &"x".repeat(300)).await;
    }
    let before = query.window().await.unwrap();
    let done = compact(&conversations, &context).await.unwrap();
    assert_eq!((done.folded.from, done.folded.to), (1, 11));
    let after = query.window().await.unwrap();
    assert_strict(&after);
    assert_eq!(after[1], before[0], "the question");
    assert_eq!(json(&after[2..]), json(&before[11..]), "three turns");
    let Message::User { content } = &after[0] else {
        panic!("{after:?}");
    };
    assert!(
        content.contains("ran: code_search (query: login) #"),
        "{content}"
    );
    // It goes on from there, and what was folded does not come back when it has ended.
    query.append(9, asks(&["a"])).await.unwrap();
    run(&query, "a", "y").await;
    query.answer(10, "These.".to_owned(), None).await.unwrap();
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    assert_in_step(&state);
    assert_eq!(state.compression_count, 1);
    assert_eq!(json(&window(&conversations).await)[..5], json(&after)[..5]);
}

#[tokio::test]
async fn what_fell_out_of_the_window_is_in_the_next_summary() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    talk(
        &conversations,
        &format!("Mind src/first.rs please. {}", "So. ".repeat(200)),
        &[],
        "I do mind it.",
    )
    .await;
    let large = "y".repeat(3_500);
    let mut query = begin(&conversations, &large).await;
    query.window().await.unwrap();
    assert!(query.has_gap(), "the first query has left");
    let done = compact(&conversations, &context).await.unwrap();
    assert!(done.after < done.before);
    let shown = text_of(&query.window().await.unwrap());
    assert!(
        shown.contains("src/first.rs") && !query.has_gap(),
        "{shown}"
    );
}

#[tokio::test]
async fn a_question_that_fills_the_window_makes_the_summary_smaller() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    for n in 0..12 {
        let more = "and so on ".repeat(10);
        let text =
            format!("Look at src/file{n}.rs and `symbol_{n}` in it, it has {n} lines. {more}");
        talk(&conversations, &text, &[], &text).await;
    }
    compact(&conversations, &context).await.unwrap();
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    assert!(state.summary_tokens > 800, "{}", state.summary_tokens);
    let query = begin(&conversations, &"y".repeat(4_000)).await;
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    assert!(state.summary_tokens < 400, "{}", state.summary_tokens);
    assert!(state.tokens_used <= 4_400);
    query.answer(1, "Yes.".to_owned(), None).await.unwrap();
}

#[tokio::test]
async fn two_plans_do_not_undo_each_other() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    for n in 0..10 {
        let text = format!("Question {n}, {}", "and so on ".repeat(15));
        talk(&conversations, &text, &[], &text).await;
    }
    let first = conversations
        .plan_compaction(&context, KEEP)
        .await
        .unwrap()
        .unwrap();
    let second = first.clone();
    let lines = |plan: &dodona_agent::conversation::Plan| plan.fold(None, &bytes());
    let done = conversations
        .compact(&first, lines(&first), &bytes())
        .await
        .unwrap();
    assert!(done.is_some());
    let again = conversations
        .compact(&second, lines(&second), &bytes())
        .await
        .unwrap();
    assert_eq!(again, None, "it was made for what is no longer there");
}

#[tokio::test]
async fn what_a_model_tells_takes_the_place_of_the_story_and_not_of_the_facts() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 8_000).await;
    for n in 0..8 {
        let text = format!(
            "We must read src/f{n}.rs. It takes {n} ms. {}",
            "So. ".repeat(60)
        );
        talk(&conversations, &text, &[], &text).await;
    }
    let plan = conversations
        .plan_compaction(&context, KEEP)
        .await
        .unwrap()
        .unwrap();
    let told: SummaryLine = serde_json::from_value(json!({
        "kind": "told", "text": "Files were read.", "exchanges": [], "position": 2,
    }))
    .unwrap();
    let lines = plan.fold(Some(vec![told.clone()]), &bytes());
    let of = |kind| lines.iter().filter(|line| line.kind == kind).count();
    assert_eq!(
        (of(LineKind::Told), of(LineKind::Asked), of(LineKind::Said)),
        (1, 0, 0)
    );
    assert_eq!(of(LineKind::File), 5);
    assert!(
        of(LineKind::Number) == 5 && of(LineKind::Decision) == 5,
        "{lines:#?}"
    );
}

#[tokio::test]
async fn a_rewind_into_what_was_folded_brings_it_back() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    conversations
        .pin(&alice(), Some("long"), "Keep this.", PinTo::Keep, &bytes())
        .await
        .unwrap();
    for n in 0..12 {
        let text = format!(
            "Question number {n} about src/q{n}.rs, {}",
            "more ".repeat(50)
        );
        talk(&conversations, &text, &[], &text).await;
    }
    let all = conversations.export(&alice(), Some("long")).await.unwrap();
    compact(&conversations, &context).await.unwrap();
    let third = all.exchanges[4].exchange.id.as_str();
    conversations.rewind(&alice(), "long", third).await.unwrap();
    let state = conversations.show(&alice(), Some("long")).await.unwrap();
    assert_in_step(&state);
    let contents: Vec<&str> = state.recent_exchanges.iter().map(|e| &*e.content).collect();
    assert_eq!(contents.len(), 4, "two queries");
    let shown = text_of(&window(&conversations).await);
    assert!(
        shown.contains("Keep this.") && !shown.contains("src/q2.rs"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_fork_and_a_document_have_the_summary_too() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    for n in 0..12 {
        let text = format!(
            "Question number {n} about src/q{n}.rs, {}",
            "more ".repeat(50)
        );
        talk(&conversations, &text, &[], &text).await;
    }
    compact(&conversations, &context).await.unwrap();
    let archive = conversations.export(&alice(), Some("long")).await.unwrap();
    let text = serde_json::to_string(&archive).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    conversations
        .import(&alice(), read, Some("imported"))
        .await
        .unwrap();
    conversations
        .fork(&alice(), "long", None, Some("forked"))
        .await
        .unwrap();
    for copy in ["imported", "forked"] {
        let messages = conversations.window(&alice(), copy).await.unwrap();
        assert_eq!(
            json(&messages),
            json(&window(&conversations).await),
            "{copy}"
        );
        let state = conversations.show(&alice(), Some(copy)).await.unwrap();
        assert_in_step(&state);
        let lines = conversations.summary(&alice(), Some(copy)).await.unwrap();
        let originals = conversations.export(&alice(), Some(copy)).await.unwrap();
        let known = |id: &ExchangeId| {
            originals
                .exchanges
                .iter()
                .any(|entry| entry.exchange.id == *id)
        };
        assert!(
            lines.iter().all(|line| line.exchanges.iter().all(known)),
            "own ids"
        );
    }
    // Up to before the end of what was folded, there is nothing that could stand for it.
    let second = archive.exchanges[3].exchange.id.as_str();
    conversations
        .fork(&alice(), "long", Some(second), Some("early"))
        .await
        .unwrap();
    let state = conversations.show(&alice(), Some("early")).await.unwrap();
    assert_eq!(
        (state.compressed_summary, state.recent_exchanges.len()),
        (None, 4)
    );
}

#[tokio::test]
async fn a_document_with_nothing_but_a_text_keeps_it_as_its_summary() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let document = serde_json::from_value(json!({ "context": {
        "id": "c", "user_id": "alice", "project_id": "shop",
        "session_start": "2025-01-15T10:30:00Z",
        "compressed_summary": "Login uses JWT.\n- Refresh tokens were dropped.",
        "recent_exchanges": [{
            "id": "1", "role": "user", "content": "Why?", "timestamp": "2025-01-15T10:30:00Z",
            "token_count": 5,
        }],
    }}))
    .unwrap();
    conversations
        .import(&alice(), document, Some("long"))
        .await
        .unwrap();
    let shown = text_of(&window(&conversations).await);
    assert!(
        shown.contains("- Login uses JWT.\n- Refresh tokens were dropped."),
        "{shown}"
    );
    assert_in_step(&conversations.show(&alice(), Some("long")).await.unwrap());
}

#[tokio::test]
async fn another_model_counts_the_summary_too_and_what_no_longer_fits_is_folded() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 8_000).await;
    let mut files = Vec::new();
    for n in 0..44 {
        let file = format!("src/q{n}.rs");
        let text = format!("Question number {n} about {file}, {}", "more ".repeat(20));
        talk(&conversations, &text, &[], &text).await;
        files.push(file);
        compact_if_due(&conversations, &context).await;
    }
    let before = conversations.show(&alice(), Some("long")).await.unwrap();
    assert!(before.compression_count > 0 && before.tokens_used > 4_200);
    let new = NewQuery {
        model: "other".to_owned(),
        counter: times(2),
        ..in_context("long", "And now?")
    };
    let mut query = conversations.begin_query(&alice(), new).await.unwrap();
    let counted = conversations.show(&alice(), Some("long")).await.unwrap();
    assert_in_step(&counted);
    assert!(counted.summary_tokens > before.summary_tokens * 3 / 2);
    query.window().await.unwrap();
    assert!(query.has_gap(), "what no longer fits has left");
    let plan = conversations.plan_compaction(&context, KEEP).await.unwrap();
    let plan = plan.unwrap();
    let lines = plan.fold(None, &times(2));
    let done = conversations
        .compact(&plan, lines, &times(2))
        .await
        .unwrap();
    assert!(done.is_some());
    let shown = query.window().await.unwrap();
    assert_strict(&shown);
    let shown = text_of(&shown);
    for file in files {
        assert!(shown.contains(&file), "{file} is lost");
    }
}

#[tokio::test]
async fn pins_are_shown_word_for_word_are_bounded_and_can_be_released() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    budget(&conversations, 4_000).await;
    let pin = |text: String, to| {
        let conversations = conversations.clone();
        async move {
            conversations
                .pin(&alice(), Some("long"), &text, to, &bytes())
                .await
        }
    };
    let first = pin("Keep  this as it is.".to_owned(), PinTo::Keep)
        .await
        .unwrap();
    assert!(first.changed);
    assert!(
        !pin("Keep  this as it is.".to_owned(), PinTo::Keep)
            .await
            .unwrap()
            .changed
    );
    let shown = text_of(&window(&conversations).await);
    assert!(shown.ends_with("- Keep  this as it is."), "{shown}");
    let error = pin("x".repeat(600), PinTo::Keep).await.unwrap_err();
    assert!(error.to_string().contains("may take 500 tokens"), "{error}");
    assert!(pin(String::new(), PinTo::Keep).await.is_err());
    let released = pin("Keep  this as it is.".to_owned(), PinTo::Release)
        .await
        .unwrap();
    assert!(released.changed && released.pinned.is_empty());
    assert!(window(&conversations).await.is_empty());
    assert_in_step(&conversations.show(&alice(), Some("long")).await.unwrap());
}

#[tokio::test]
async fn originals_are_read_by_their_number() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    budget(&conversations, 4_000).await;
    talk(&conversations, "One?", &["found"], "Yes.").await;
    let original = conversations.original(&alice(), "long", 3).await.unwrap();
    assert_eq!(original.content, "found");
    let error = conversations
        .original(&alice(), "long", 9)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no exchange `#9`");
}

#[tokio::test]
async fn a_call_is_never_parted_from_its_answer() {
    let disk = Disk::new().await;
    let conversations = disk.open();
    let context = budget(&conversations, 4_000).await;
    for n in 0..6 {
        let query = begin(&conversations, &format!("Question {n}?")).await;
        let calls = ["a", "b", "c"].map(|id| ToolCall {
            id: id.to_owned(),
            name: "code_search".to_owned(),
            arguments: json!({ "query": "x".repeat(40) }),
        });
        let asked = NewMessage::Assistant {
            content: String::new(),
            calls: calls.to_vec(),
            opaque: None,
        };
        query.append(1, asked).await.unwrap();
        for id in ["b", "a"] {
            run(&query, id, &"r".repeat(60)).await;
        }
        // Said while tools run: it stands between a call and its answer.
        query
            .append(
                1,
                NewMessage::User {
                    content: "Hurry.".to_owned(),
                },
            )
            .await
            .unwrap();
        run(&query, "c", &"r".repeat(60)).await;
        query
            .answer(2, "Done it all.".to_owned(), None)
            .await
            .unwrap();
        checked(&conversations, &context).await;
    }
}
