//! `kill -9` while `dodona index` runs: what is left is sound, and the next run completes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use dodona_knowledge::search::{FileChunks, SearchIndex};
use dodona_testkit::Chance;
use dodona_testkit::rusqlite::Connection;
use serde_json::Value;

use crate::harness::Home;

const FILES: u64 = 700;
const KILLS: u64 = 24;

/// Passages, each by its path, its first line and its text.
type Passages = Vec<(String, u32, String)>;

/// The size of a file, and when it was written, in nanoseconds.
type Stamp = (i64, i64);

/// A project whose files keep changing.
struct Tree {
    home: Home,
    root: PathBuf,
    texts: BTreeMap<String, String>,
    /// Grows with every file that is written, so that no text is like another.
    version: usize,
}

#[test]
fn an_index_that_was_killed_is_sound_and_is_completed() {
    let seed = Chance::seed();
    println!("DODONA_SEED={seed}");
    let mut chance = Chance::from_seed(seed);
    let mut tree = Tree::new(&mut chance);
    let begun = Instant::now();
    tree.index();
    let whole = begun.elapsed();
    tree.check_complete();
    let mut interrupted = 0;
    for _ in 0..KILLS {
        tree.change(&mut chance);
        let share = chance.below(1_000) as f64 / 1_000.0;
        interrupted += u64::from(tree.index_killed_after(whole.mul_f64(share)));
        tree.check_sound();
        if chance.below(3) == 0 {
            tree.index();
            tree.check_complete();
        }
    }
    tree.index();
    tree.check_complete();
    assert!(
        interrupted > KILLS / 4,
        "{interrupted} runs were interrupted"
    );
}

impl Tree {
    fn new(chance: &mut Chance) -> Self {
        let home = Home::new();
        let root = home.path().with_file_name("tree");
        let mut tree = Self {
            home,
            root,
            texts: BTreeMap::new(),
            version: 0,
        };
        (0..FILES).for_each(|number| tree.write(number, chance));
        tree
    }

    fn write(&mut self, number: u64, chance: &mut Chance) {
        self.version += 1;
        let kind = ["md", "txt", "rs"][(number % 3) as usize];
        let path = format!("part{}/file{number}.{kind}", number % 7);
        let mut text = format!(
            "This is version {}.
",
            self.version
        );
        for part in 0..=chance.below(4) {
            text.push_str(&match kind {
                "rs" => format!("/// Part {part}.\nfn part_{part}() {{\n    go({part});\n}}\n\n"),
                "md" => format!("\n# Part {part}\n\nThis says\nsomething\nof {part}.\n"),
                _ => format!("A line of {part}.\n").repeat(40),
            });
        }
        let file = self.root.join(&path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &text).unwrap();
        self.texts.insert(path, text);
    }

    /// Changes, adds and removes many files: several steps of the indexer.
    fn change(&mut self, chance: &mut Chance) {
        for number in 0..FILES + 100 {
            if chance.below(2) == 0 {
                self.write(number, chance);
            }
        }
        let gone: Vec<String> = self.texts.keys().cloned().collect();
        for path in gone.iter().filter(|_| chance.below(10) == 0) {
            fs::remove_file(self.root.join(path)).unwrap();
            self.texts.remove(path);
        }
    }

    /// Indexes to the end.
    fn index(&self) -> Value {
        let outcome = self.home.run(&["index", "--project", "tree", "--json"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.shown());
        serde_json::from_str(&outcome.stdout).unwrap()
    }

    /// Tells whether it was still running when it was killed.
    fn index_killed_after(&self, time: Duration) -> bool {
        let mut command = self.home.command(&["index", "--project", "tree"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        thread::sleep(time);
        child.kill().unwrap();
        !child.wait().unwrap().success()
    }

    /// Everything that the index has, and what the catalogue says of the files.
    fn left(&self) -> (Passages, BTreeMap<String, Stamp>) {
        let plugin = self.home.data().join("plugins/search");
        let index = SearchIndex::open(&plugin.join("indexes/tree")).unwrap();
        assert!(!index.was_recreated(), "it could not be read");
        assert!(index.is_sound().unwrap(), "a file of it is damaged");
        let db = Connection::open(plugin.join("search.db")).unwrap();
        let fault: String = db
            .query_row("pragma integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(fault, "ok");
        let mut select = db
            .prepare("select path, size, mtime_ns from files")
            .unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
        let files = rows.unwrap().map(Result::unwrap).collect();
        let passages = index.all().unwrap().into_iter();
        let passages = passages.map(|hit| (hit.path, hit.line_start, hit.text));
        (passages.collect(), files)
    }

    fn expected(&self, path: &str) -> Passages {
        let chunks = FileChunks::of(path, &self.texts[path]).chunks.into_iter();
        chunks
            .map(|chunk| (path.to_owned(), chunk.line_start, chunk.text))
            .collect()
    }

    fn stamp(&self, path: &str) -> Stamp {
        let metadata = fs::metadata(self.root.join(path)).unwrap();
        let written = metadata.modified().unwrap();
        let since = written.duration_since(UNIX_EPOCH).unwrap();
        (metadata.len() as i64, since.as_nanos() as i64)
    }

    /// Nothing is there twice, and what the catalogue calls read can be found, all of it.
    fn check_sound(&self) {
        let (passages, files) = self.left();
        let distinct =
            |a: &(String, u32, String), b: &(String, u32, String)| (&a.0, a.1) < (&b.0, b.1);
        assert!(passages.is_sorted_by(distinct), "a passage is there twice");
        for (path, stamp) in &files {
            if self.texts.contains_key(path) && *stamp == self.stamp(path) {
                let of_file = passages.iter().filter(|(of, ..)| of == path);
                assert_eq!(of_file.cloned().collect::<Vec<_>>(), self.expected(path));
            }
        }
    }

    /// Index and catalogue have exactly what is on the disk, and another run finds nothing to do.
    fn check_complete(&self) {
        let (passages, files) = self.left();
        let paths = || self.texts.keys();
        let expected: Passages = paths().flat_map(|path| self.expected(path)).collect();
        assert_eq!(passages, expected);
        let stamps = paths().map(|path| (path.clone(), self.stamp(path)));
        assert_eq!(files, stamps.collect());
        let again = self.index();
        assert_eq!(
            (&again["changed"], &again["removed"]),
            (&0.into(), &0.into())
        );
    }
}
