//! Builds the test binaries with one cargo command and runs them, two at a time.
//!
//! `cargo test` runs one binary after the other. Most of ours wait for child processes, timers and
//! disks, so two at a time use both cores better and the whole run is shorter.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::report::seconds;
use super::times::Times;
use crate::process::{cargo, display, output};

/// A binary that runs longer is killed and reported. The longest takes about five minutes.
const MAX_RUN: Duration = Duration::from_secs(20 * 60);

/// Binaries that run at the same time.
const AT_ONCE: usize = 2;

/// Tests that may fail at first and pass when they are run again alone. More than that is no
/// coincidence.
const MAX_FLAKY: usize = 3;

/// Started first where no earlier run was recorded: a long binary that starts last runs alone.
const LONG: [&str; 8] = [
    "cli", "agent", "server", "mcp", "testkit", "macros", "rules", "hub",
];

/// What the generated inputs of property tests start from, unless the variable is set.
const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261116");

/// A test binary that cargo built.
pub(super) struct TestBinary {
    /// The package, for example `dodona-rules`.
    pub(super) package: String,
    /// The target: the crate itself for unit tests, else the name of the integration test.
    pub(super) target: String,
    pub(super) kind: TestKind,
    executable: PathBuf,
    /// The folder of the package: tests read their fixtures relative to it.
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestKind {
    Unit,
    Integration,
}

impl TestBinary {
    /// Where the output of the binary is written while it runs.
    fn log(&self) -> PathBuf {
        self.executable.with_extension("log")
    }

    fn label(&self) -> String {
        match self.kind {
            TestKind::Unit => format!("{} (unit)", self.package),
            TestKind::Integration => format!("{} {}", self.package, self.target),
        }
    }
}

/// Builds test binaries: the arguments choose the targets, as for `cargo test --workspace`.
pub(super) fn build(targets: &[String]) -> Result<Vec<TestBinary>> {
    let mut command = cargo(&["test", "--workspace", "--no-run"]);
    command.args(targets);
    let shown = display(&command);
    println!("$ {shown}");
    command.arg("--message-format=json-render-diagnostics");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line?).unwrap_or_default();
        binaries.extend(binary(&message));
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(binaries)
}

/// Reads the message about one artifact; `None` for anything but a test binary.
fn binary(message: &Value) -> Option<TestBinary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let kind = match message["target"]["kind"][0].as_str()? {
        "test" => TestKind::Integration,
        _ => TestKind::Unit,
    };
    Some(TestBinary {
        package: folder.file_name()?.to_string_lossy().into_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind,
        executable: PathBuf::from(message["executable"].as_str()?),
        folder: folder.to_owned(),
    })
}

/// Runs the binaries and reports each. Fails at the end if one failed.
pub(super) fn run(mut binaries: Vec<TestBinary>) -> Result<()> {
    let mut times = Times::load();
    let last = |binary: &TestBinary| {
        let unknown = match LONG.contains(&binary.target.as_str()) {
            true => f64::INFINITY,
            false => 0.0,
        };
        times.get(&binary.label()).unwrap_or(unknown)
    };
    binaries.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let library_path = library_path()?;
    let mut waiting = VecDeque::from(binaries);
    let mut running: Vec<Running> = Vec::new();
    let mut failed: Vec<TestBinary> = Vec::new();
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < AT_ONCE
            && let Some(binary) = waiting.pop_front()
        {
            running.push(Running::start(binary, &library_path)?);
        }
        std::thread::sleep(Duration::from_millis(20));
        let mut index = 0;
        while let Some(test) = running.get_mut(index) {
            let Some(passed) = test.poll()? else {
                index += 1;
                continue;
            };
            let test = running.swap_remove(index);
            times.set(&test.binary.label(), test.start.elapsed());
            test.report(passed)?;
            if !passed {
                failed.push(test.binary);
            }
        }
    }
    times.save()?;
    retry(failed, &library_path)
}

/// Runs the tests that failed once more, alone. A test that passes now is flaky: it is reported with
/// its name, and the run passes. The output of its failure was printed before.
///
/// Without this, one race in 2 000 tests discards a run of half an hour; the report keeps it from
/// being forgotten.
fn retry(failed: Vec<TestBinary>, library_path: &str) -> Result<()> {
    let mut flaky = Vec::new();
    let mut failing = Vec::new();
    for binary in failed {
        let label = binary.label();
        let tests = failed_tests(&String::from_utf8_lossy(&std::fs::read(binary.log())?));
        // A binary that crashed or was killed names no test.
        if tests.is_empty() || flaky.len() + tests.len() > MAX_FLAKY {
            failing.push(label);
            continue;
        }
        println!("running again, alone: {label}: {}", tests.join(", "));
        let mut again = Running::start_tests(binary, &tests, library_path)?;
        let passed = loop {
            if let Some(passed) = again.poll()? {
                break passed;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        again.report(passed)?;
        if passed {
            flaky.extend(tests.iter().map(|test| format!("{label}: {test}")));
        } else {
            failing.push(label);
        }
    }
    for test in &flaky {
        println!("FLAKY, find out why: {test}");
    }
    if !failing.is_empty() {
        bail!("failing test binaries: {}", failing.join(", "));
    }
    Ok(())
}

/// The names of the tests that failed, from the output of a test binary.
fn failed_tests(output: &str) -> Vec<String> {
    let results = output.lines().filter_map(|line| line.strip_prefix("test "));
    let failed = results.filter_map(|line| line.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
}

struct Running {
    binary: TestBinary,
    child: Child,
    log: PathBuf,
    start: Instant,
}

impl Running {
    fn start(binary: TestBinary, library_path: &str) -> Result<Self> {
        Self::start_tests(binary, &[], library_path)
    }

    /// Starts the named tests of a binary; all of them if no test is named.
    fn start_tests(binary: TestBinary, tests: &[String], library_path: &str) -> Result<Self> {
        let log = binary.log();
        let output =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(&binary.executable);
        command
            .current_dir(&binary.folder)
            .env("CARGO_MANIFEST_DIR", &binary.folder)
            .env("CARGO_PKG_NAME", &binary.package)
            .env("LD_LIBRARY_PATH", library_path)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        let (variable, seed) = PROPERTY_SEED;
        if std::env::var_os(variable).is_none() {
            command.env(variable, seed);
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.executable.display()))?;
        Ok(Self {
            binary,
            child,
            log,
            start: Instant::now(),
        })
    }

    /// Returns whether the tests passed, once they have ended.
    fn poll(&mut self) -> Result<Option<bool>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if self.start.elapsed() < MAX_RUN {
            return Ok(None);
        }
        println!(
            "{}: killed after {} s",
            self.binary.label(),
            MAX_RUN.as_secs()
        );
        self.child.kill()?;
        self.child.wait()?;
        Ok(Some(false))
    }

    /// Prints the summary of a binary that passed and everything of one that failed.
    fn report(&self, passed: bool) -> Result<()> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
        let (label, time) = (self.binary.label(), seconds(self.start.elapsed()));
        if passed {
            let result = text.lines().rfind(|line| line.starts_with("test result:"));
            println!(
                "{label:<34} {time:>9}   {}",
                result.unwrap_or("no test result")
            );
            std::fs::remove_file(&self.log)?;
        } else {
            println!("{label:<34} {time:>9}   FAILED\n{text}");
        }
        Ok(())
    }
}

/// Tests of procedural macros load the compiler's libraries, as cargo arranges it.
fn library_path() -> Result<String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib");
    let paths = [
        Some(library.display().to_string()),
        std::env::var("LD_LIBRARY_PATH").ok(),
    ];
    Ok(paths.into_iter().flatten().collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failed_tests_are_read_from_the_output() {
        let output =
            "running 2 tests\ntest a::works ... ok\ntest a::fails ... FAILED\n\nfailures:\n";
        assert_eq!(failed_tests(output), ["a::fails"]);
        assert!(failed_tests("error: killed").is_empty());
    }

    #[test]
    fn test_binaries_are_told_from_other_artifacts() {
        let artifact = |kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": "/w/crates/dodona-rules/Cargo.toml",
                "target": {"name": "rules", "kind": [kind]},
                "profile": {"test": test},
                "executable": "/t/rules-1",
            })
        };
        let integration = binary(&artifact("test", true)).unwrap();
        assert_eq!(integration.label(), "dodona-rules rules");
        assert_eq!(binary(&artifact("lib", true)).unwrap().kind, TestKind::Unit);
        assert!(binary(&artifact("bin", false)).is_none());
        assert!(binary(&json!({"reason": "build-finished"})).is_none());
    }
}
