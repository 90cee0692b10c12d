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
    let mut failed = Vec::new();
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
            let label = test.binary.label();
            times.set(&label, test.start.elapsed());
            test.report(passed)?;
            if !passed {
                failed.push(label);
            }
        }
    }
    times.save()?;
    if !failed.is_empty() {
        bail!("failing test binaries: {}", failed.join(", "));
    }
    Ok(())
}

struct Running {
    binary: TestBinary,
    child: Child,
    log: PathBuf,
    start: Instant,
}

impl Running {
    fn start(binary: TestBinary, library_path: &str) -> Result<Self> {
        let log = binary.executable.with_extension("log");
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
    fn report(self, passed: bool) -> Result<()> {
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
