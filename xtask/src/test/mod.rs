//! `cargo xtask test`: everything a contribution must pass, as a list of named steps.

mod packages;
mod plan;
mod report;
mod steps;

use anyhow::{Result, bail};

use plan::Request;

const HELP: &str = "\
Runs everything a contribution must pass, and stops at the first step that fails.

Usage: cargo xtask test [--keep-going] [STEP…]

  STEP…         only these steps, in the order of the list
  --keep-going  run all steps, also after a failure
  --list        name the steps
  --help        this text";

/// One thing that has to hold.
struct Step {
    name: &'static str,
    /// What is true once it passed.
    about: &'static str,
    run: fn() -> Result<()>,
}

/// In this order: what the others need, then what is quick, then what is slow.
const STEPS: &[Step] = &[
    Step {
        name: "packages",
        about: "the system has the tools we call",
        run: packages::run,
    },
    Step {
        name: "fmt",
        about: "the code is formatted",
        run: steps::fmt,
    },
    Step {
        name: "clippy",
        about: "no lint complains",
        run: steps::clippy,
    },
    Step {
        name: "tests",
        about: "every test passes",
        run: steps::tests,
    },
    Step {
        name: "doctests",
        about: "every example in the docs runs",
        run: steps::doctests,
    },
    Step {
        name: "docs",
        about: "the docs build, without a broken link",
        run: steps::docs,
    },
    Step {
        name: "tidy",
        about: "the house rules hold",
        run: steps::tidy,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match plan::parse(arguments, STEPS)? {
        Request::Help => println!("{HELP}\n\nSteps:\n{}", list(STEPS)),
        Request::List => println!("{}", list(STEPS)),
        Request::Run(plan) => {
            let outcomes = plan.execute();
            println!("\n{}", report::summary(&outcomes));
            let failed = report::failed(&outcomes);
            if !failed.is_empty() {
                bail!("failed: {}", failed.join(", "));
            }
        }
    }
    Ok(())
}

fn list(steps: &[Step]) -> String {
    let lines = steps
        .iter()
        .map(|step| format!("  {:<10} {}", step.name, step.about));
    lines.collect::<Vec<_>>().join("\n")
}
