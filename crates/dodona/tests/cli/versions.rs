//! Homes of other versions: one written by 0.1.0 opens, and one of a newer version is refused unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dodona_store::{Durability, Store, StoreOptions};
use tempfile::TempDir;

use crate::harness::{DODONA, Home};

/// The databases of a home written by 0.1.0.
const DATABASES: &[&str] = &[
    "hub.db",
    "journal.db",
    "plugins/agent/agent.db",
    "plugins/echo/echo.db",
    "plugins/rules/rules.db",
    "plugins/search/search.db",
    "plugins/thread/thread.db",
    "plugins/vault/vault.db",
    "plugins/web/web.db",
];

/// A copy of the home written by 0.1.0, and of the project it knows.
struct Released {
    folder: TempDir,
}

impl Released {
    fn unpack() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(fixtures.join("home-0.1.0.tar.gz"))
            .arg("-C")
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(status.success());
        Self { folder }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project").canonicalize().unwrap()
    }

    /// Lets the home know the project at its place in this copy.
    fn at_its_place(self) -> Self {
        let root = self.project().to_str().unwrap().to_owned();
        change(
            &self.data(),
            "hub.db",
            "update projects set root = ?1",
            root,
        );
        self
    }

    /// Records a migration that this program does not know.
    fn with_newer(self, databases: &[&str]) -> Self {
        for database in databases {
            // Far ahead of the release: this version may have migrations of its own.
            let sql = "insert into dodona_migrations (version, name, checksum, applied_at)
                       select max(version) + 1000, ?1, '', '' from dodona_migrations";
            change(&self.data(), database, sql, "future".to_owned());
        }
        self
    }

    fn run(&self, arguments: &[&str]) -> crate::harness::Outcome {
        let output = Command::new(DODONA)
            .args(arguments)
            .env_clear()
            .env("DODONA_HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Home::new().outcome(arguments, output)
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    fn succeed(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(
            outcome.code,
            Some(0),
            "{arguments:?}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
        outcome.stdout
    }

    #[track_caller]
    fn shows(&self, arguments: &[&str], parts: &[&str]) {
        let printed = self.succeed(arguments);
        for part in parts {
            assert!(
                printed.contains(part),
                "{arguments:?} lacks `{part}`: {printed}"
            );
        }
    }

    /// The bytes of all files.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.home(), &mut found);
        found
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
}

fn change(data: &Path, database: &str, sql: &'static str, value: String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(data, StoreOptions::default()).unwrap();
        let db = store.database(database, Durability::Full);
        let changed = db.write(move |tx| tx.execute(sql, (value.as_str(),))).await;
        assert_eq!(changed.unwrap(), 1, "{database}");
        store.close().await;
    });
}

#[test]
fn home_of_0_1_0_opens_with_everything_in_it() {
    let home = Released::unpack().at_its_place();
    // Twice: the first start may migrate, the second opens the result.
    for _ in 0..2 {
        home.succeed(&["doctor"]);
        let questions = ["How long is green tea brewed?", "shopping"];
        home.shows(&["contexts", "list"], &questions);
        home.shows(
            &["contexts", "show", "shopping"],
            &["How much water does the kettle hold?", "one litre"],
        );
        home.shows(&["contexts", "seek", "loose tea"], &["bought loose"]);
        home.shows(&["rules", "list"], &["long-search", "token-budget-warning"]);
        home.shows(&["rules", "log"], &["long-search"]);
        home.shows(&["query", "list"], &["How long is green tea brewed?"]);
        home.shows(
            &["notes", "history", "notes/tasting.md"],
            &["a89763f80433", "5d90b266cd57"],
        );
        home.shows(&["threads", "read", "tea-order"], &["sencha in March"]);
        home.shows(&["token", "list"], &["throwaway", "vault:read"]);
        let plugins = home.succeed(&["plugins", "list"]);
        let state = |name: &str| plugins.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(state("tally").contains(" active"), "{plugins}");
        assert!(state("standup").contains(" disabled"), "{plugins}");
    }
    home.shows(
        &["ask", "How long is green tea brewed?"],
        &["two minutes", "notes/brewing.md:"],
    );
}

#[test]
fn home_of_a_newer_version_is_refused_and_not_changed() {
    let each = DATABASES.iter().map(std::slice::from_ref);
    for newer in each.chain([DATABASES]) {
        let home = Released::unpack().with_newer(newer);
        let before = home.contents();
        for arguments in [
            &["contexts", "list"][..],
            &["ask", "How long is green tea brewed?"],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            let outcome = home.run(arguments);
            assert_eq!(
                outcome.code,
                Some(5),
                "{newer:?} {arguments:?}: {}",
                outcome.stderr
            );
            let message = "error: this home directory belongs to a newer version of Dodona: `";
            assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
            assert!(
                newer.iter().any(|file| outcome.stderr.contains(file)),
                "{newer:?}: {}",
                outcome.stderr
            );
            assert!(
                outcome
                    .stderr
                    .contains("hint: install the newer version again")
            );
            let after = home.contents();
            let names = |contents: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<PathBuf> {
                contents.keys().cloned().collect()
            };
            assert_eq!(names(&after), names(&before), "{newer:?} {arguments:?}");
            assert!(after == before, "{newer:?} {arguments:?} changed a file");
        }
    }
}

#[test]
fn doctor_reports_the_home_of_a_newer_version() {
    let home = Released::unpack().with_newer(&["plugins/rules/rules.db"]);
    let journal = fs::read(home.data().join("journal.db")).unwrap();
    let outcome = home.run(&["doctor"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(
        outcome
            .stdout
            .contains("belongs to a newer version of Dodona"),
        "{}",
        outcome.stdout
    );
    assert_eq!(fs::read(home.data().join("journal.db")).unwrap(), journal);
}
