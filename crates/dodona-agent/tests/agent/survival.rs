//! Facts through many shortenings of a conversation: shown at once, or with the question that needs
//! them.

use std::collections::BTreeSet;

use dodona_agent::conversation::{Compaction, ContextId, Conversations};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::compaction::{
    Fact, Step, budget, checked, compact_if_due, fact, person, sentence, steps, talk, text_of,
    window,
};
use crate::storage::{Disk, alice};

/// A conversation like one about a project: what is asked, what tools are used, what comes of it.
fn working_day(task: usize, n: usize) -> (String, String) {
    let question = format!(
        "Please look at src/service{task}/handler.rs once more (question {n}); requests take {} ms since \
         the release of last week, and I would like to know which change has made them so slow.",
        100 + task
    );
    let answer = format!(
        "The time goes into `refresh_cache_{task}`, which is called for every request. \
         We decided to call it once per worker {task} instead. It needs {} MB more, which is fine as \
         far as the limits of the container go. To see it, run `cargo bench -p service{task}` before \
         and after; the numbers should differ clearly. The change goes to {} for review. {}",
        1000 + task,
        person(task),
        "The rest of the request is spent in places that have not changed since then. ".repeat(4)
    );
    (question, answer)
}

/// A fact of a kind, the text by which it is known, and a question of somebody who needs it.
type Known = (&'static str, String, String);

/// The facts of a task.
fn facts_of(task: usize) -> [Known; 7] {
    let slow = format!("What made service{task} slow, and since when?");
    [
        (
            "decision",
            format!("We decided to call it once per worker {task} instead."),
            format!("What did we decide about worker {task}?"),
        ),
        (
            "file",
            format!("src/service{task}/handler.rs"),
            format!("Which file has the handler of service{task}?"),
        ),
        ("symbol", format!("refresh_cache_{task}"), slow.clone()),
        (
            "command",
            format!("cargo bench -p service{task}"),
            format!("How do I bench service{task}?"),
        ),
        ("number", format!("{} ms", 100 + task), slow),
        (
            "number",
            format!("{} MB", 1000 + task),
            format!("How much more does worker {task} need?"),
        ),
        (
            "name",
            person(task),
            format!("Who reviews the change of service{task}?"),
        ),
    ]
}

/// What is kept of each kind, in hundredths: what a model is shown, and with it what it is shown
/// when a question comes to speak of it.
struct Row {
    done: Compaction,
    facts: usize,
    shown: [u64; 6],
    /// Looked up in the fifth round and in the last.
    found: Option<[u64; 6]>,
}

/// Talks until a conversation was shortened ten times. A task takes some questions.
async fn ten_rounds(questions_per_task: usize) -> Vec<Row> {
    let disk = Disk::new().await;
    let conversations = disk.open();
    // About 16 000 tokens of a real model, which has four bytes to a token.
    let context = budget(&conversations, 64_000).await;
    let mut facts: BTreeSet<Known> = BTreeSet::new();
    let mut table = Vec::new();
    for n in 0.. {
        let task = n / questions_per_task;
        let (question, answer) = working_day(task, n);
        talk(&conversations, &question, &[&"z".repeat(600)], &answer).await;
        facts.extend(facts_of(task));
        let state = conversations.show(&alice(), Some("long")).await.unwrap();
        if state.tokens_used * 10 >= state.token_budget * 9 {
            let done = checked(&conversations, &context).await.unwrap();
            let window = text_of(&window(&conversations).await);
            let is_shown = |text: &str| window.contains(text);
            let mut row = Row {
                done,
                facts: facts.len(),
                shown: part(
                    &facts,
                    &facts.iter().filter(|(_, text, _)| is_shown(text)).collect(),
                ),
                found: None,
            };
            if matches!(table.len(), 4 | 9) {
                let mut kept = BTreeSet::new();
                for known @ (_, text, question) in &facts {
                    if is_shown(text) || comes_back(&conversations, &context, question, text).await
                    {
                        kept.insert(known);
                    }
                }
                row.found = Some(part(&facts, &kept));
            }
            table.push(row);
        }
        if table.len() == 10 {
            break;
        }
    }
    table
}

fn print(title: &str, table: &[Row]) {
    println!("\n{title}");
    println!(
        "round  facts  before  after   decision        file     command      number        name      symbol"
    );
    for row in table {
        let kinds = row.shown.iter().enumerate();
        let kinds: String = kinds
            .map(|(place, shown)| match row.found {
                Some(found) => format!("{:>12}", format!("{shown}/{} %", found[place])),
                None => format!("{:>12}", format!("{shown} %")),
            })
            .collect();
        let Compaction {
            count,
            before,
            after,
            ..
        } = row.done;
        println!("{count:5}  {:5}  {before:6}  {after:5}{kinds}", row.facts);
    }
}

#[tokio::test]
async fn facts_survive_ten_compactions() {
    let table = ten_rounds(6).await;
    let told = "shown at once / shown when asked for";
    print(
        &format!("facts; a task takes six questions; {told}"),
        &table,
    );
    let last = table.last().unwrap();
    assert_eq!((last.shown, last.found), ([100; 6], Some([100; 6])));
    // Where every question is about something else there is no room for all of it. What is not
    // shown comes back with the question that needs it.
    let table = ten_rounds(1).await;
    print(
        &format!("the same; every question is a task of its own; {told}"),
        &table,
    );
    assert_eq!(table[0].shown, [100; 6]);
    let last = table.last().unwrap();
    assert!(
        last.shown.iter().any(|kept| *kept < 100),
        "there is a bound"
    );
    for row in table.iter().filter(|row| row.found.is_some()) {
        assert_eq!(row.found, Some([100; 6]), "after round {}", row.done.count);
    }
}

/// The part of each kind that is kept, in hundredths.
fn part(facts: &BTreeSet<Known>, kept: &BTreeSet<&Known>) -> [u64; 6] {
    ["decision", "file", "command", "number", "name", "symbol"].map(|kind| {
        let of_kind = facts.iter().filter(|(of, ..)| *of == kind).count();
        let kept = kept.iter().filter(|(of, ..)| *of == kind).count();
        kept as u64 * 100 / of_kind as u64
    })
}

/// Whether a text is among what goes with a question, as the turn loop looks it up.
async fn comes_back(
    conversations: &Conversations,
    context: &ContextId,
    question: &str,
    text: &str,
) -> bool {
    let found = conversations
        .seek(&alice(), question, 3, Some(context))
        .await;
    let found = found.unwrap();
    found.iter().any(|memory| memory.text.contains(text))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0xfac7),
        ..ProptestConfig::default()
    })]
    #[test]
    fn what_there_is_no_room_for_comes_back_with_a_question(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let disk = Disk::new().await;
            let conversations = disk.open();
            // Room for few of the facts there can be.
            let context = budget(&conversations, 6_000).await;
            let mut said = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Talk { asked, answered, tools, filler } => {
                        let question = sentence(&asked, filler / 2, &mut BTreeSet::new());
                        let answer = sentence(&answered, filler / 2, &mut BTreeSet::new());
                        said.extend(asked.into_iter().chain(answered));
                        let results = vec!["found something"; tools];
                        talk(&conversations, &question, &results, &answer).await;
                        compact_if_due(&conversations, &context).await;
                    }
                    Step::Compact => {
                        checked(&conversations, &context).await;
                    }
                }
                let state = conversations.show(&alice(), Some("long")).await.unwrap();
                assert!(state.tokens_used * 10 <= state.token_budget * 11);
            }
            let shown = text_of(&window(&conversations).await);
            for (kind, n) in said {
                let Fact { said, kept } = fact(kind, n);
                let there = shown.contains(&kept)
                    || comes_back(&conversations, &context, &said, &kept).await;
                assert!(there, "{kept:?} does not come back");
            }
        });
    }
}
