//! The steps that are one cargo command each.

use anyhow::Result;

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

/// What the properties are tried with, unless the variable says otherwise.
const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261116");

/// `--all-targets` would be shorter, but it also runs the benches.
pub(super) fn tests() -> Result<()> {
    let mut command = cargo(&[
        "test",
        "--workspace",
        "--no-fail-fast",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
    ]);
    let (variable, seed) = PROPERTY_SEED;
    if std::env::var_os(variable).is_none() {
        command.env(variable, seed);
    }
    run(&mut command)
}

pub(super) fn doctests() -> Result<()> {
    run(&mut cargo(&["test", "--workspace", "--doc"]))
}

pub(super) fn docs() -> Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

pub(super) fn tidy() -> Result<()> {
    crate::tidy::check()
}

/// The program first: what asks the model runs it from the same folder.
pub(super) fn model() -> Result<()> {
    run(&mut cargo(&["build", "--package", "dodona"]))?;
    let testkit = ["run", "--package", "dodona-testkit", "--bin", "real-model"];
    run(&mut cargo(&testkit))
}
