//! What was acknowledged over the life of one home, and whether it is there.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use dodona_proto::{CallError, DoneStatus, HubStreamItem, ItemBody, StreamId};
use dodona_testkit::{Chance, TestHub, assert_well_formed, fault, fingerprint, principal};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::writer::Line;

/// How many streams of earlier runs each check reads again.
const OLD_STREAMS: u64 = 5;

/// A home and everything its writers were told.
pub(crate) struct Ledger {
    home: PathBuf,
    /// Fingerprints by stream and number.
    streams: HashMap<StreamId, BTreeMap<u64, u64>>,
    /// Streams of the run that was not checked yet.
    new: Vec<StreamId>,
    old: Vec<StreamId>,
    tally: Tally,
    pub(crate) seen: Seen,
}

/// What the counter of `echo.tally` may be.
#[derive(Default)]
struct Tally {
    /// As it was read last.
    stored: u64,
    /// Calls since then: begun, and answered.
    tried: u64,
    answered: u64,
    /// The highest answer since then.
    highest: u64,
    /// Answers over the life of the home.
    ever: u64,
}

/// What the checks met, so that a test can tell that they met anything.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) runs: u64,
    pub(crate) items: u64,
    pub(crate) streams: u64,
    pub(crate) interrupted: u64,
    pub(crate) tallies: u64,
    pub(crate) errors: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        self.runs += more.runs;
        self.items += more.items;
        self.streams += more.streams;
        self.interrupted += more.interrupted;
        self.tallies += more.tallies;
        self.errors += more.errors;
    }
}

impl Ledger {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
            streams: HashMap::new(),
            new: Vec::new(),
            old: Vec::new(),
            tally: Tally::default(),
            seen: Seen::default(),
        }
    }

    /// Notes what a run of the writer said. Nothing may be said twice.
    pub(crate) fn note(&mut self, said: &[Line]) {
        self.seen.runs += 1;
        for line in said {
            match line {
                Line::Open(stream) => {
                    assert!(
                        self.streams.insert(*stream, BTreeMap::new()).is_none(),
                        "stream {stream} was opened twice"
                    );
                    self.new.push(*stream);
                    self.seen.streams += 1;
                }
                Line::Item {
                    stream,
                    seq,
                    fingerprint,
                } => {
                    let items = self.streams.get_mut(stream).expect("a stream that is open");
                    let next = items.last_key_value().map_or(1, |(last, _)| last + 1);
                    assert_eq!(
                        *seq, next,
                        "a reader of {stream} met a hole or a repetition"
                    );
                    items.insert(*seq, *fingerprint);
                    self.seen.items += 1;
                }
                Line::Tallying => self.tally.tried += 1,
                Line::Tally(count) => {
                    self.tally.answered += 1;
                    self.tally.ever += 1;
                    self.tally.highest = self.tally.highest.max(*count);
                    self.seen.tallies += 1;
                }
                Line::Error(_) => self.seen.errors += 1,
                Line::Ready | Line::Finished => {}
            }
        }
    }

    /// Opens the home again and compares.
    pub(crate) async fn check(&mut self, chance: &mut Chance) {
        let hub = TestHub::builder().start_at(&self.home).await;
        let hub = hub.expect("the home of a killed process opens");
        let old = self.old.len() as u64;
        let again = (0..OLD_STREAMS.min(old)).map(|_| self.old[chance.below(old) as usize]);
        for stream in again.collect::<Vec<_>>() {
            self.check_stream(&hub, stream).await;
        }
        for stream in std::mem::take(&mut self.new) {
            let interrupted = self.check_stream(&hub, stream).await;
            self.seen.interrupted += u64::from(interrupted);
            self.old.push(stream);
        }
        self.check_tally(&hub).await;
        self.check_new_calls(&hub).await;
        check_databases(&hub).await;
        let journal = hub.data_dir().join("journal.db");
        hub.stop().await;
        self.check_rows(&journal);
    }

    /// Reads every stream there ever was.
    pub(crate) async fn check_all(&self) {
        let hub = TestHub::builder().start_at(&self.home).await.unwrap();
        for stream in &self.old {
            self.check_stream(&hub, *stream).await;
        }
        hub.stop().await;
    }

    /// Compares one stream; tells whether it was interrupted.
    async fn check_stream(&self, hub: &TestHub, stream: StreamId) -> bool {
        let alice = principal("alice");
        let reader = hub.attach(&alice, stream, 0).await;
        let mut reader = reader.unwrap_or_else(|error| panic!("{stream} is lost: {error}"));
        let mut stored = Vec::new();
        while let Some(items) = reader.next().await.expect("a stored stream can be read") {
            stored.extend(items);
        }
        let items: Vec<HubStreamItem> = stored.iter().map(|item| item.to_item().unwrap()).collect();
        if let Some(fault) = fault(&items) {
            panic!("stream {stream}: {fault}, in {items:#?}");
        }
        for (seq, expected) in &self.streams[&stream] {
            let found = stored.get(*seq as usize - 1);
            let found = found.unwrap_or_else(|| panic!("item {seq} of {stream} is lost"));
            assert_eq!(
                fingerprint(found),
                *expected,
                "item {seq} of {stream} is another one: {found:?}"
            );
        }
        was_interrupted(&items)
    }

    /// Every answered call is counted, and no call twice.
    async fn check_tally(&mut self, hub: &TestHub) {
        let stats = hub.call("alice", "echo.stats", json!({})).await.unwrap();
        let stored = stats["calls"]["tally"].as_u64().unwrap_or(0);
        let Tally {
            stored: before,
            tried,
            answered,
            highest,
            ever,
        } = self.tally;
        assert!(
            stored >= highest && stored >= before + answered,
            "{answered} counts were answered, the highest {highest}, on top of {before}; stored are {stored}"
        );
        assert!(
            stored <= before + tried,
            "{tried} calls were begun on top of {before}; stored are {stored}"
        );
        self.tally = Tally {
            stored,
            ever,
            ..Tally::default()
        };
    }

    /// The hub goes on where the dead one stopped.
    async fn check_new_calls(&mut self, hub: &TestHub) {
        let said = hub.call("alice", "echo.say", json!({"text": "on"})).await;
        assert_eq!(said.unwrap(), json!({"text": "on"}));
        let counted = hub.call("alice", "echo.tally", json!({})).await.unwrap();
        self.tally.stored += 1;
        self.tally.ever += 1;
        assert_eq!(counted["count"], self.tally.stored);
        let items = short_stream(hub).await.unwrap();
        assert_well_formed(&items);
        assert_eq!(items.len(), 5, "progress, three numbers, a terminal");
    }

    /// Also for streams and calls that began and were never told of.
    fn check_rows(&self, journal: &Path) {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let journal = Connection::open_with_flags(journal, flags).unwrap();
        let count = |sql: &str| -> i64 { journal.query_row(sql, (), |row| row.get(0)).unwrap() };
        let open = "select (select count(*) from streams where ended_at is null)
            + (select count(*) from calls where ended_at is null)";
        assert_eq!(count(open), 0, "streams or calls have no end");
        let holes = "select count(*) from (select stream_no from items group by stream_no
            having count(*) <> max(seq) or min(seq) <> 1)";
        assert_eq!(count(holes), 0, "streams have holes");
        let strays = "select count(*) from items where stream_no not in (select no from streams)";
        assert_eq!(count(strays), 0, "items belong to no stream");
        let ends = "select count(*) from streams where 1 <>
            (select count(*) from items where stream_no = no and kind = 4 and call = '')";
        assert_eq!(count(ends), 0, "streams have not exactly one terminal");
        let complete = "select count(*) from calls where method = 'echo.tally'
            and status = 'complete'";
        assert!(
            count(complete) >= self.tally.ever as i64,
            "answered calls are not in the journal: {} of {}",
            count(complete),
            self.tally.ever
        );
    }
}

async fn short_stream(hub: &TestHub) -> Result<Vec<HubStreamItem>, CallError> {
    let stream = hub.open("alice", "echo.count", json!({"to": 3})).await?;
    stream.collect().await
}

async fn check_databases(hub: &TestHub) {
    let reports = hub.check().await;
    assert!(reports.len() >= 3, "journal, hub, echo: {reports:?}");
    for report in reports {
        assert!(report.problems.is_empty(), "{report:?}");
    }
}

fn was_interrupted(items: &[HubStreamItem]) -> bool {
    let interrupted = items.last().map(|item| &item.body)
        == Some(&ItemBody::Done {
            status: DoneStatus::Failed,
            reason: Some("interrupted".to_owned()),
        });
    if !interrupted {
        // Whoever was still open when the process died ended with the root.
        let by_recovery = |item: &&HubStreamItem| matches!(&item.body, ItemBody::Done { reason: Some(reason), .. } if reason == "interrupted");
        assert_eq!(items.iter().find(by_recovery), None);
    }
    interrupted
}
