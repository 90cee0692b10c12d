//! The tasks of a contributor: `cargo xtask test`, `tidy`, `bench`, `fuzz` and `dist`.
//!
//! A plain program instead of scripts, so that the tasks run wherever the workspace builds and are
//! themselves compiled, linted and tested. Its dependencies are few on purpose: every fresh
//! checkout pays for them before the first check runs.

mod bench;
mod dist;
mod fuzz;
mod metadata;
mod process;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
Tasks for contributors.

Usage: cargo xtask <TASK> [ARGUMENTS]

Tasks:
  test    everything a contribution must pass
  tidy    the house rules that no compiler checks
  bench   the speed tables, as ratios measured in one run
  fuzz    texts that nobody thought of, for the parsers and the small languages
  dist    the packages of a release, from one build of the program

`cargo xtask <TASK> --help` says more about each.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((task, rest)) = arguments.split_first() else {
        bail!("no task given\n\n{HELP}");
    };
    match task.as_str() {
        "test" => test::run(rest),
        "tidy" => tidy::run(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "dist" => dist::run(rest),
        "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(())
        }
        unknown => bail!("unknown task `{unknown}`\n\n{HELP}"),
    }
}
