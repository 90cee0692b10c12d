//! `kill -9` at any moment while notes are written, moved, deleted and undone.
//!
//! The test plays two roles: the one that is run starts itself again as a process that changes notes
//! and prints what was acknowledged, kills it, and looks at what is left.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::writing::history;
use crate::{Setup, TestProject};

const ROLE: &str = "DODONA_KILLED_VAULT";
/// The test below, as the process finds it that is started.
const NAME: &str =
    "killed::whenever_the_process_is_killed_no_note_is_lost_or_torn_and_links_and_history_hold";
const NOTES: u64 = 12;
const KILLS: u64 = 16;

/// A small generator of numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn whenever_the_process_is_killed_no_note_is_lost_or_torn_and_links_and_history_hold() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Ok(role) = std::env::var(ROLE) {
        let (place, seed) = role.rsplit_once('#').unwrap();
        runtime.block_on(change_notes(PathBuf::from(place), seed.parse().unwrap()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::default();
    make_notes(folder.path(), &mut ledger);
    let mut chance = Chance(7);
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let lines = run_and_kill(folder.path(), round, &mut chance);
        acknowledged += lines.len();
        lines.iter().for_each(|line| ledger.take(line));
        runtime.block_on(check(folder.path(), &ledger));
    }
    assert!(acknowledged > 0, "nothing was ever acknowledged");
}

/// What was acknowledged: the versions of each note.
#[derive(Default)]
struct Ledger {
    versions: BTreeMap<u64, Vec<String>>,
}

impl Ledger {
    fn take(&mut self, line: &str) {
        let (id, version) = line.split_once(' ').unwrap();
        self.versions
            .entry(id.parse().unwrap())
            .or_default()
            .push(version.to_owned());
    }
}

/// The text of a note that links to others, between two lines that say which it is.
fn text(id: u64, count: u64, links: &str) -> String {
    let filler = format!("Filler of {id}.\n").repeat(40);
    format!("begin {id} {count}\n\n{links}\n\n{filler}\nend {id} {count}\n")
}

fn make_notes(place: &Path, ledger: &mut Ledger) {
    for id in 0..NOTES {
        let (a, b) = ((id + 1) % NOTES, (id + 5) % NOTES);
        let links = format!(
            "[[note{a}|{a}]] and [{b}](../d{}/note{b}.md) end of links",
            b % 3
        );
        let path = place.join(format!("project/d{}/note{id}.md", id % 3));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text(id, 0, &links)).unwrap();
        ledger.versions.insert(id, Vec::new());
    }
}

/// Starts the process, lets it work for a random while, kills it, and answers with what it said was
/// acknowledged.
fn run_and_kill(place: &Path, round: u64, chance: &mut Chance) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{}#{round}", place.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().ends_with("ready")),
        "the process ended before it was ready"
    );
    let acks = |line: std::io::Result<String>| line.ok()?.strip_prefix("ack ").map(str::to_owned);
    let mut said: Vec<String> = lines
        .by_ref()
        .filter_map(acks)
        .take(chance.below(6) as usize)
        .collect();
    std::thread::sleep(Duration::from_micros(chance.below(30_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had said and nobody had read yet was acknowledged all the same.
    said.extend(lines.filter_map(acks));
    said
}

/// One line past every buffer.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// Changes notes until it is killed.
async fn change_notes(place: PathBuf, seed: u64) {
    let project = TestProject::at(place, None, Setup::default()).await;
    project.index().await;
    say("\nready");
    let mut chance = Chance(seed * 1_000 + 1);
    loop {
        let paths = notes(&project.root());
        let id = chance.below(NOTES);
        let (path, old) = &paths[&id];
        match chance.below(5) {
            0 | 1 => {
                let links = old
                    .lines()
                    .find(|line| line.ends_with("end of links"))
                    .unwrap();
                let body = text(id, chance.below(1_000_000), links);
                let done = project
                    .call("vault.write", json!({ "path": path, "body": body }))
                    .await
                    .unwrap();
                acknowledge(id, &done, path);
            }
            2 | 3 => {
                let new = format!(
                    "d{}/{}/note{id}.md",
                    chance.below(3),
                    ["x", "y z", "ü"][chance.below(3) as usize]
                );
                let params = json!({ "old_path": path, "new_path": new });
                if *path != new {
                    let done = project.call("vault.move", params).await.unwrap();
                    acknowledge(id, &done, &new);
                }
            }
            _ => {
                project
                    .call("vault.delete", json!({ "path": path }))
                    .await
                    .unwrap();
                project
                    .call("vault.undo", json!({ "path": path }))
                    .await
                    .unwrap();
            }
        }
    }
}

fn acknowledge(id: u64, done: &Value, path: &str) {
    let edits = done["notes"].as_array().unwrap().iter();
    for edit in edits.filter(|edit| edit["path"] == path) {
        say(&format!("ack {id} {}", edit["version"].as_str().unwrap()));
    }
}

/// Every note on the disk by its number: path and text. Each is there once, and whole.
fn notes(root: &Path) -> BTreeMap<u64, (String, String)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let (first, last) = (text.lines().next().unwrap(), text.lines().last().unwrap());
            let said = first.strip_prefix("begin ").expect(&name);
            assert_eq!(last.strip_prefix("end "), Some(said), "{name} is torn");
            let id = said.split(' ').next().unwrap().parse().unwrap();
            if let Some((other, _)) = found.insert(id, (name.clone(), text)) {
                panic!("note {id} is there twice: {other} and {name}");
            }
        }
    }
    found
}

/// What is left is sound, once somebody has asked for the notes.
async fn check(place: &Path, ledger: &Ledger) {
    let project = TestProject::at(place.to_owned(), None, Setup::default()).await;
    let graph = project.call("vault.graph", json!({})).await.unwrap();
    let notes = notes(&project.root());
    let trash = project.call("vault.trash", json!({})).await.unwrap();
    let trash: Vec<String> = trash["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["path"].as_str().unwrap().to_owned())
        .collect();
    for id in 0..NOTES {
        let deleted = trash
            .iter()
            .find(|path| path.ends_with(&format!("/note{id}.md")));
        match (notes.get(&id), deleted) {
            (Some((path, _)), None) => check_history(&project, path, &ledger.versions[&id]).await,
            (None, Some(path)) => {
                check_history(&project, path, &ledger.versions[&id]).await;
                project
                    .call("vault.undo", json!({ "path": path }))
                    .await
                    .unwrap();
            }
            (there, deleted) => {
                panic!("note {id}: on the disk {there:?}, in the trash {deleted:?}")
            }
        }
    }
    if trash.is_empty() {
        assert_eq!(graph["unresolved"], json!([]));
        check_links(&graph, &notes);
    }
    project.stop().await;
}

/// Each link leads to the note whose number it shows.
fn check_links(graph: &Value, notes: &BTreeMap<u64, (String, String)>) {
    let mut expected: Vec<(String, String)> = Vec::new();
    for (id, (path, _)) in notes {
        for to in [(id + 1) % NOTES, (id + 5) % NOTES] {
            expected.push((path.clone(), notes[&to].0.clone()));
        }
    }
    expected.sort();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let edges = graph["edges"].as_array().unwrap().iter();
    let edges: Vec<_> = edges
        .map(|edge| (text(&edge["from"]), text(&edge["to"])))
        .collect();
    assert_eq!(edges, expected);
}

/// Everything that was acknowledged is in the history, each version can be read, and each took the
/// place of the one before it.
async fn check_history(project: &TestProject, path: &str, acknowledged: &[String]) {
    let past = history(project, path).await;
    let versions: Vec<&str> = past
        .iter()
        .filter_map(|past| past["version"].as_str())
        .collect();
    for version in acknowledged {
        assert!(
            versions.contains(&version.as_str()),
            "{path} lost {version}"
        );
    }
    for pair in past.windows(2) {
        if pair[0]["moved_from"].is_null() {
            assert_eq!(
                pair[0]["previous"], pair[1]["version"],
                "the history of {path} has a hole"
            );
        }
    }
    let oldest = versions.last().unwrap();
    project
        .call("vault.read", json!({ "path": path, "version": oldest }))
        .await
        .unwrap();
}
