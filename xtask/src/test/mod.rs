//! `cargo xtask test`: everything a contribution must pass, as a list of named steps.

mod packages;
mod page;
mod plan;
mod report;
mod steps;

use anyhow::{Result, bail};

use plan::Request;

const HELP: &str = "\
Runs everything a contribution must pass, and stops at the first step that fails.

Usage: cargo xtask test [--keep-going] [--with-model] [STEP…]

  STEP…         only these steps, in the order of the list
  --keep-going  run all steps, also after a failure
  --with-model  also the steps that are not for every day: a real small model is asked
  --list        name the steps
  --help        this text";

/// One thing that has to hold.
struct Step {
    name: &'static str,
    /// What is true once it passed.
    about: &'static str,
    /// Whether it runs only where it is asked for.
    extra: bool,
    run: fn() -> Result<()>,
}

/// In this order: what the others need, then what is quick, then what is slow.
const STEPS: &[Step] = &[
    Step {
        name: "packages",
        about: "the system has the tools we call",
        extra: false,
        run: packages::run,
    },
    Step {
        name: "fmt",
        about: "the code is formatted",
        extra: false,
        run: steps::fmt,
    },
    Step {
        name: "clippy",
        about: "no lint complains",
        extra: false,
        run: steps::clippy,
    },
    Step {
        name: "tests",
        about: "every test passes",
        extra: false,
        run: steps::tests,
    },
    Step {
        name: "page",
        about: "the page does what it should, in a browser",
        extra: false,
        run: page::run_tests,
    },
    Step {
        name: "doctests",
        about: "every example in the docs runs",
        extra: false,
        run: steps::doctests,
    },
    Step {
        name: "docs",
        about: "the docs build, without a broken link",
        extra: false,
        run: steps::docs,
    },
    Step {
        name: "tidy",
        about: "the house rules hold",
        extra: false,
        run: steps::tidy,
    },
    Step {
        name: "model",
        about: "a real small model answers through the program (with --with-model)",
        extra: true,
        run: steps::model,
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
