//! Running the program, and a form of what it did that can be compared.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The program.
pub(crate) const DODONA: &str = env!("CARGO_BIN_EXE_dodona");

/// A home of one's own, and a place to stand that is no project.
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Writes `config.toml`.
    pub(crate) fn configure(&self, text: &str) {
        let config = self.path().join("config");
        self.private_dir(&config);
        fs::write(config.join("config.toml"), text).unwrap();
    }

    #[cfg(unix)]
    fn private_dir(&self, dir: &Path) {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(dir).unwrap();
    }

    #[cfg(not(unix))]
    fn private_dir(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
    }

    /// The program with these arguments, in this home and nothing else around it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(DODONA);
        command
            .args(arguments)
            .env_clear()
            .env("DODONA_HOME", self.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.outcome(arguments, self.command(arguments).output().unwrap())
    }

    /// Runs it with something to read.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        self.outcome(arguments, child.wait_with_output().unwrap())
    }

    pub(crate) fn outcome(&self, arguments: &[&str], output: Output) -> Outcome {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is text");
        Outcome {
            command: arguments.join(" "),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
            folder: self.folder.path().to_owned(),
        }
    }
}

/// What a run came to.
pub(crate) struct Outcome {
    command: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    folder: PathBuf,
}

impl Outcome {
    /// Everything in one text, without what differs from run to run.
    pub(crate) fn shown(&self) -> String {
        let code = self
            .code
            .map_or("a signal".to_owned(), |code| code.to_string());
        let mut text = format!("$ dodona {}\n", self.command);
        for (name, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !output.is_empty() {
                text.push_str(&format!("----- {name}\n{output}"));
            }
        }
        text.push_str(&format!("----- exit {code}\n"));
        let folder = self.folder.to_string_lossy();
        text.replace(&format!("{folder}/home"), "[home]")
            .replace(&*folder, "[folder]")
    }
}

/// What differs from run to run, and what takes its place.
const FILTERS: &[(&str, &str)] = &[
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[id]",
    ),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
    (r"· \d+(\.\d)? m?s\b", "· [elapsed]"),
    (r"\d+(\.\d)? [KMGT]iB\b", "[size]"),
    (r"\bprocess \d+", "process [pid]"),
    (r"\bkill \d+", "kill [pid]"),
    (r"SQLite \d+\.\d+\.\d+", "SQLite [version]"),
    (r"\.rs:\d+:\d+", ".rs:[line]"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
    (r"\b0\.1\.0\b", "[version]"),
];

/// Compares with what is stored under this name.
#[track_caller]
pub(crate) fn assert_shown(name: &str, outcome: &Outcome) {
    let mut settings = insta::Settings::clone_current();
    for (pattern, replacement) in FILTERS {
        settings.add_filter(pattern, *replacement);
    }
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, outcome.shown()));
}

/// Runs it in a new home and compares.
#[track_caller]
pub(crate) fn check(name: &str, arguments: &[&str]) {
    assert_shown(name, &Home::new().run(arguments));
}

/// Waits until something is so. It fails the test if that takes absurdly long.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it never came to be that {what}");
}
