//! The steps that are cargo commands.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{Scope, affected, binaries};
use crate::metadata::{Metadata, Reach, TargetKind};
use crate::process::{cargo, run};

pub(super) fn fmt() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

pub(super) fn clippy() -> Result<()> {
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Integration tests that start programs or take minutes: not part of the quick lane.
const SLOW: [&str; 5] = ["cli", "mcp", "server", "store", "testkit"];

/// `--all-targets` would be shorter, but it also runs the benches.
const ALL: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

pub(super) fn tests(scope: &Scope) -> Result<()> {
    match scope {
        Scope::Everything => {
            let targets = ALL.map(str::to_owned);
            binaries::run(binaries::build(&targets)?)
        }
        Scope::ChangedSince(revision) => tests_of(&affected::since(revision)?),
    }
}

/// The unit tests and the in-process integration tests of some crates.
fn tests_of(crates: &BTreeSet<String>) -> Result<()> {
    if crates.is_empty() {
        println!("no crate changed");
        return Ok(());
    }
    let names: Vec<&str> = crates.iter().map(String::as_str).collect();
    println!("affected crates: {}", names.join(", "));
    let members = Metadata::load(Reach::Members)?.members;
    // The whole workspace is selected, so that features, and with them the compiled dependencies,
    // are those of a full run; the targets keep cargo from building more tests than are run.
    let mut targets = vec!["--lib".to_owned(), "--bins".to_owned()];
    let in_process = members
        .iter()
        .filter(|member| crates.contains(&member.name))
        .flat_map(|member| &member.targets)
        .filter(|target| target.kind == TargetKind::Test && !SLOW.contains(&target.name.as_str()));
    for target in in_process {
        targets.extend(["--test".to_owned(), target.name.clone()]);
    }
    let mut built = binaries::build(&targets)?;
    built.retain(|binary| crates.contains(&binary.package));
    binaries::run(built)
}

pub(super) fn doctests() -> Result<()> {
    run(&mut cargo(&["test", "--workspace", "--doc"]))
}

pub(super) fn docs() -> Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The program first: what asks the model runs it from the same folder.
pub(super) fn model() -> Result<()> {
    run(&mut cargo(&["build", "--package", "dodona"]))?;
    let testkit = ["run", "--package", "dodona-testkit", "--bin", "real-model"];
    run(&mut cargo(&testkit))
}
