//! Whatever is written, it reads back, from wherever it is read.

use std::sync::Arc;

use dodona_proto::{DoneStatus, ErrorCode, HubStreamItem, ItemBody};
use dodona_store::journal::{Journal, JournalOptions, StoredItem};
use proptest::prelude::*;
use serde_json::Value;

use super::{Tape, assert_whole, rest};
use crate::support::Scratch;

/// The calls of each stream, by their ordinals.
const CALLS: [&[u32]; 4] = [&[], &[1], &[1, 1], &[2]];

#[derive(Debug, Clone)]
enum Step {
    Send {
        stream: usize,
        call: usize,
        body: ItemBody,
    },
    /// Makes what was sent so far a batch of its own.
    Flush,
    /// Lets the pump take what it finds.
    Pause,
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\é]{0,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = ItemBody> {
    let delta = (
        prop_oneof![Just("TextDelta"), Just("ReasoningDelta")],
        any::<String>(),
    );
    let delta = delta.prop_map(|(content_type, text)| ItemBody::Data {
        content_type: content_type.into(),
        data: serde_json::json!({ "text": text }),
    });
    let data =
        (prop_oneof![Just("Tick"), Just("TextDelta")], json()).prop_map(|(content_type, data)| {
            ItemBody::Data {
                content_type: content_type.into(),
                data,
            }
        });
    let progress =
        (any::<String>(), prop::option::of(0.0..=100.0_f32)).prop_map(|(message, percentage)| {
            ItemBody::Progress {
                message,
                percentage,
            }
        });
    let error = (any::<String>(), any::<bool>(), any::<Option<String>>()).prop_map(
        |(error, recoverable, hint)| ItemBody::Error {
            error,
            code: ErrorCode::Storage,
            recoverable,
            hint,
        },
    );
    prop_oneof![6 => delta, 2 => data, 1 => progress, 1 => error]
}

fn step() -> impl Strategy<Value = Step> {
    let send = (0..3_usize, 0..CALLS.len(), body()).prop_map(|(stream, call, body)| Step::Send {
        stream,
        call,
        body,
    });
    prop_oneof![12 => send, 1 => Just(Step::Flush), 1 => Just(Step::Pause)]
}

/// The text of a delta that may be merged.
fn delta(body: &ItemBody) -> Option<(&str, &str)> {
    match body {
        ItemBody::Data { content_type, data } if content_type.ends_with("Delta") => {
            let fields = data.as_object().filter(|fields| fields.len() == 1)?;
            Some((content_type, fields.get("text")?.as_str()?))
        }
        _ => None,
    }
}

/// The same items with every delta joined to its neighbour of the same call and type: two
/// streams that differ only in what was merged are the same in this form.
fn merged(items: impl Iterator<Item = HubStreamItem>) -> Vec<HubStreamItem> {
    let mut all: Vec<HubStreamItem> = Vec::new();
    for mut item in items {
        item.seq = 0;
        let more = delta(&item.body).map(|(kind, text)| (kind.to_owned(), text.to_owned()));
        if let (Some(last), Some((kind, more))) = (all.last_mut(), more)
            && last.call_id == item.call_id
            && let Some((last_kind, text)) = delta(&last.body)
            && last_kind == kind
        {
            let text = format!("{text}{more}");
            last.body = ItemBody::Data {
                content_type: kind.into(),
                data: serde_json::json!({ "text": text }),
            };
            continue;
        }
        all.push(item);
    }
    all
}

/// Plays the steps and ends every call, the innermost first. Returns what was written to each
/// stream, what a reader saw that was there from the start, and one that came in the middle.
async fn play(journal: &Journal, steps: Vec<Step>, middle: usize) -> Vec<Played> {
    let mut played = Vec::new();
    for _ in 0..3 {
        let tape = Tape::begin(journal).await;
        let live = tokio::spawn(rest(tape.writer.reader(0)));
        played.push(Played {
            tape,
            live,
            late: None,
            sent: Vec::new(),
        });
    }
    for (at, step) in steps.into_iter().enumerate() {
        if at == middle {
            for one in &mut played {
                let reader = journal.reader(one.tape.id(), 0).await.unwrap().unwrap();
                one.late = Some(tokio::spawn(rest(reader)));
            }
        }
        match step {
            Step::Send { stream, call, body } => played[stream].send(CALLS[call], body).await,
            Step::Flush => journal.flush().await.unwrap(),
            Step::Pause => tokio::task::yield_now().await,
        }
    }
    for one in &mut played {
        one.end();
    }
    played
}

struct Played {
    tape: Tape,
    live: tokio::task::JoinHandle<Vec<Arc<StoredItem>>>,
    late: Option<tokio::task::JoinHandle<Vec<Arc<StoredItem>>>>,
    sent: Vec<HubStreamItem>,
}

impl Played {
    fn note(&mut self, ordinals: &[u32], body: ItemBody) {
        let (call_id, plugin_path) = (self.tape.call(ordinals), super::path(ordinals));
        self.sent.push(HubStreamItem {
            call_id,
            seq: 0,
            plugin_path,
            body,
        });
    }

    async fn send(&mut self, ordinals: &[u32], body: ItemBody) {
        self.note(ordinals, body.clone());
        self.tape.send(ordinals, body).await;
    }

    fn end(&mut self) {
        for ordinals in CALLS
            .iter()
            .rev()
            .filter(|ordinals| !ordinals.is_empty())
            .chain([&CALLS[0]])
        {
            self.tape.end(ordinals, DoneStatus::Complete);
            self.note(
                ordinals,
                ItemBody::Done {
                    status: DoneStatus::Complete,
                    reason: None,
                },
            );
        }
    }
}

async fn reads_back(steps: Vec<Step>, middle: usize, cut: u64, ring: usize) {
    let scratch = Scratch::new();
    let options = JournalOptions {
        ring_items: ring,
        ..JournalOptions::default()
    };
    let journal = Journal::open(&scratch.store, options).await.unwrap();
    for one in play(&journal, steps, middle).await {
        let id = one.tape.id();
        let live = one.live.await.unwrap();
        let parsed: Vec<HubStreamItem> = live.iter().map(|item| item.to_item().unwrap()).collect();
        assert_whole(&parsed);
        assert_eq!(merged(parsed.iter().cloned()), merged(one.sent.into_iter()));
        // The same from the database, from anywhere, and from half-way.
        journal.flush().await.unwrap();
        assert_eq!(
            rest(journal.reader(id, 0).await.unwrap().unwrap()).await,
            live
        );
        assert_eq!(journal.page(id, 0, 10_000).await.unwrap(), live);
        if let Some(late) = one.late {
            assert_eq!(late.await.unwrap(), live);
        }
        let cut = cut % (live.len() as u64 + 1);
        let second = rest(journal.reader(id, cut).await.unwrap().unwrap()).await;
        assert_eq!(second, live[usize::try_from(cut).unwrap()..]);
        // What goes over the wire is what a parsed item would be.
        for (item, parsed) in live.iter().zip(&parsed) {
            let mut wire = String::new();
            item.write_json(&mut wire);
            assert_eq!(wire, serde_json::to_string(parsed).unwrap());
        }
    }
    scratch.store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_items_read_back_in_order_from_memory_and_from_the_database(
        steps in prop::collection::vec(step(), 0..60),
        middle in 0..60_usize,
        cut in any::<u64>(),
        ring in 1..12_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(reads_back(steps, middle, cut, ring));
    }
}
