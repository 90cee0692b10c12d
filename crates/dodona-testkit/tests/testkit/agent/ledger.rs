//! What an agent's users were told over the life of one home, and whether it is there.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use dodona_proto::{DoneStatus, HubStreamItem, ItemBody, StreamId};
use dodona_testkit::{fault, fingerprint, principal};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde_json::json;

use super::life::{self, Agent};
use super::script;

/// A home and everything its users were told.
pub(super) struct Ledger {
    home: PathBuf,
    url: String,
    /// The number of the last question.
    asked: u64,
    /// The questions since the last check.
    new: BTreeMap<u64, Told>,
    /// The calls that have run, ever.
    ran: HashSet<String>,
    pub(super) seen: Seen,
}

/// What was told of one question.
#[derive(Default)]
struct Told {
    stream: Option<StreamId>,
    /// Fingerprints by number.
    items: BTreeMap<u64, u64>,
    /// What the items say, where they are the agent's own.
    labels: Vec<String>,
}

/// What the checks met, so that a test can tell that they met anything.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    pub(super) kills: u64,
    pub(super) items: u64,
    pub(super) complete: u64,
    pub(super) interrupted: u64,
    /// Tool calls that were open when their process was killed.
    pub(super) cut_calls: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        self.kills += more.kills;
        self.items += more.items;
        self.complete += more.complete;
        self.interrupted += more.interrupted;
        self.cut_calls += more.cut_calls;
    }
}

impl Ledger {
    pub(super) fn new(home: &Path, url: &str) -> Self {
        Self {
            home: home.to_owned(),
            url: url.to_owned(),
            asked: 0,
            new: BTreeMap::new(),
            ran: HashSet::new(),
            seen: Seen::default(),
        }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn next_question(&self) -> u64 {
        self.asked + 1
    }

    /// Notes what a process said. Nothing may be said, and nothing may run, twice.
    pub(super) fn note(&mut self, lines: &[String]) {
        self.seen.kills += 1;
        for line in lines.iter().filter_map(|line| line.strip_prefix("life ")) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "asking" => {
                    self.asked = rest.parse().unwrap();
                    self.new.insert(self.asked, Told::default());
                }
                "open" => {
                    let (number, stream) = rest.split_once(' ').unwrap();
                    self.told(number).stream = Some(stream.parse().unwrap());
                }
                "item" => self.note_item(rest),
                "ran" => assert!(self.ran.insert(rest.to_owned()), "{rest} ran twice"),
                _ => {}
            }
        }
    }

    fn told(&mut self, number: &str) -> &mut Told {
        let number = number.parse().unwrap();
        self.new.get_mut(&number).expect("it was asked before")
    }

    fn note_item(&mut self, rest: &str) {
        let words: Vec<&str> = rest.splitn(4, ' ').collect();
        let [number, seq, print, label] = words[..] else {
            panic!("the agent said {rest:?}");
        };
        let told = self.told(number);
        let next = told.items.last_key_value().map_or(1, |(last, _)| last + 1);
        let seq = seq.parse().unwrap();
        assert_eq!(seq, next, "a reader met a hole or a repetition");
        told.items
            .insert(seq, u64::from_str_radix(print, 16).unwrap());
        told.labels.push(label.trim_end().to_owned());
        self.seen.items += 1;
    }

    /// Opens the home again, compares, and asks the next question.
    pub(super) async fn check(&mut self) {
        let agent = Agent::start(&self.home, &self.url).await;
        let new = std::mem::take(&mut self.new);
        let mut streams = BTreeMap::new();
        for (number, told) in &new {
            if let Some(ended) = check_stream(&agent, *number, told).await {
                streams.insert(*number, ended);
            }
        }
        // The first use ends what the dead process left.
        agent.call("agent.contexts", json!({})).await;
        {
            let stored = Stored::open(&agent);
            stored.check_whole();
            stored.check_files(&life::files(&self.home));
            for (number, told) in &new {
                self.count(&stored, *number);
                stored.check_told(*number, told);
            }
            for (number, ended) in &streams {
                stored.check_agrees(*number, ended);
            }
        }
        self.asked += 1;
        answered(&agent, self.asked).await;
        self.seen.complete += 1;
        let stored = Stored::open(&agent);
        stored.check_whole();
        stored.check_complete(self.asked);
        drop(stored);
        agent.hub.stop().await;
    }

    fn count(&mut self, stored: &Stored, number: u64) {
        match stored.state(number).as_deref() {
            Some("complete") => self.seen.complete += 1,
            Some("interrupted") => self.seen.interrupted += 1,
            // The process died before the question was stored.
            None => return,
            other => panic!("question {number} ended as {other:?}"),
        }
        let endings = stored.endings(number);
        let cut = endings.values().filter(|ending| *ending == "interrupted");
        self.seen.cut_calls += cut.count() as u64;
    }
}

/// How a stream ended that was acknowledged, and the answer in it.
struct StreamEnd {
    status: DoneStatus,
    answer: Option<String>,
}

impl StreamEnd {
    fn of(items: &[HubStreamItem]) -> Self {
        let answer = items.iter().rev().find_map(|item| match &item.body {
            ItemBody::Data { content_type, data } if content_type == "AgentResponse" => {
                data["text"].as_str().map(str::to_owned)
            }
            _ => None,
        });
        let Some(ItemBody::Done { status, .. }) = items.last().map(|item| &item.body) else {
            panic!("a stream has no end: {items:#?}");
        };
        Self {
            status: *status,
            answer,
        }
    }
}

/// What a reader saw of a stream is in the journal, as it was. Nothing where no stream was
/// acknowledged.
async fn check_stream(agent: &Agent, number: u64, told: &Told) -> Option<StreamEnd> {
    let stream = told.stream?;
    let reader = agent.hub.attach(&principal("alice"), stream, 0).await;
    let mut reader = reader.unwrap_or_else(|error| panic!("{stream} is lost: {error}"));
    let mut stored = Vec::new();
    while let Some(items) = reader.next().await.unwrap() {
        stored.extend(items);
    }
    let items: Vec<HubStreamItem> = stored.iter().map(|item| item.to_item().unwrap()).collect();
    assert_eq!(fault(&items), None, "question {number}: {items:#?}");
    for (seq, print) in &told.items {
        let found = stored.get(*seq as usize - 1).map(|item| fingerprint(item));
        assert_eq!(found, Some(*print), "item {seq} of question {number}");
    }
    Some(StreamEnd::of(&items))
}

/// The server refuses a conversation that a strict provider would refuse.
async fn answered(agent: &Agent, number: u64) {
    let items = agent.ask(number).await.collect().await.unwrap();
    let done = ItemBody::Done {
        status: DoneStatus::Complete,
        reason: None,
    };
    assert_eq!(
        items.last().map(|item| &item.body),
        Some(&done),
        "{items:#?}"
    );
}

/// The conversations as they are on disk.
struct Stored(Connection);

impl Stored {
    fn open(agent: &Agent) -> Self {
        let file = agent.hub.data_dir().join("plugins/agent/agent.db");
        Self(Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap())
    }

    /// What is true whatever has happened.
    fn check_whole(&self) {
        for (what, sql) in [
            (
                "queries without an end",
                "select count(*) from queries where state = 'running' or ended_at is null",
            ),
            (
                "calls without an end",
                "select count(*) from tool_calls where status = 'pending' or ending is null",
            ),
            (
                "questions that are there twice",
                "select count(*) from (select 1 from queries group by question having count(*) > 1)",
            ),
            (
                "results that are there twice",
                "select count(*) from (select 1 from exchanges where role = 'tool'
                    group by query_id, tool_call_id having count(*) > 1)",
            ),
            (
                "queries with more than one question",
                "select count(*) from queries where 1 <> (select count(*) from exchanges
                    where query_id = queries.id and role = 'user')",
            ),
            (
                "holes",
                "select count(*) from (select 1 from exchanges group by context_id
                    having count(*) <> max(position))",
            ),
        ] {
            let found: i64 = self.0.query_row(sql, (), |row| row.get(0)).unwrap();
            assert_eq!(found, 0, "{what}");
        }
    }

    /// The recorded ending of each write agrees with the disk: a success has written its file, a
    /// call that never started has not, and a file belongs to a call that was recorded as started.
    fn check_files(&self, files: &Path) {
        let sql = "select call_id, ending, started_at is not null from tool_calls";
        let mut statement = self.0.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let calls: Vec<(String, String, bool)> = rows.unwrap().map(Result::unwrap).collect();
        for (id, ending, started) in calls.iter().filter(|(id, ..)| script::writes(id)) {
            let written = files.join(id).exists();
            match ending.as_str() {
                "success" => assert!(written && *started, "{id} wrote no file"),
                "interrupted" if *started => {}
                "interrupted" => assert!(!written, "{id} wrote and was never recorded as started"),
                other => panic!("{id} ended as {other}"),
            }
        }
    }

    /// What somebody was told is stored, and nothing else was made of it.
    fn check_told(&self, number: u64, told: &Told) {
        let endings = self.endings(number);
        for label in &told.labels {
            let words: Vec<&str> = label.split(' ').collect();
            match words[..] {
                ["ToolCall", id] => assert!(endings.contains_key(id), "{id} is lost"),
                ["ToolResult", id, ending] => {
                    assert_eq!(endings.get(id).map(String::as_str), Some(ending), "{id}");
                }
                ["AgentResponse"] => self.check_complete(number),
                ["TextDelta" | "Usage"] => assert!(self.state(number).is_some(), "{number}"),
                _ => {}
            }
        }
        if self.state(number).as_deref() == Some("complete") {
            self.check_complete(number);
        }
    }

    /// An acknowledged question is in its conversation, and the stream and the conversation have the
    /// same end.
    fn check_agrees(&self, number: u64, stream: &StreamEnd) {
        let state = self.state(number);
        assert!(state.is_some(), "question {number} is in no conversation");
        let is_complete = state.as_deref() == Some("complete");
        let streamed = stream.status == DoneStatus::Complete;
        assert_eq!(
            is_complete, streamed,
            "question {number}: {state:?} and {:?}",
            stream.status
        );
        let answer = is_complete.then(|| script::answer(number));
        assert_eq!(stream.answer, answer, "the answer to question {number}");
    }

    fn check_complete(&self, number: u64) {
        assert_eq!(self.state(number).as_deref(), Some("complete"), "{number}");
        let sql = "select json from exchanges where query_id =
            (select id from queries where question = ?1) order by position desc limit 1";
        let last: String = self
            .0
            .query_row(sql, [script::question(number)], |row| row.get(0))
            .unwrap();
        let last: serde_json::Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["content"], script::answer(number));
        let expected = script::calls(number)
            .into_iter()
            .map(|(id, ending)| (id, ending.to_owned()));
        assert_eq!(self.endings(number), expected.collect());
    }

    fn state(&self, number: u64) -> Option<String> {
        let sql = "select state from queries where question = ?1";
        let found = self
            .0
            .query_row(sql, [script::question(number)], |row| row.get(0));
        found.optional().unwrap()
    }

    fn endings(&self, number: u64) -> BTreeMap<String, String> {
        let sql = "select call_id, ending from tool_calls where query_id =
            (select id from queries where question = ?1)";
        let mut statement = self.0.prepare(sql).unwrap();
        let rows = statement
            .query_map([script::question(number)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        rows.map(Result::unwrap).collect()
    }
}
