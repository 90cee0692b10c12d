//! `cargo xtask test`: everything a contribution must pass, as a list of named steps.

mod affected;
mod binaries;
mod packages;
mod page;
mod plan;
mod report;
mod steps;
mod times;

use anyhow::{Result, bail};

use plan::Request;
use times::Times;

const HELP: &str = "\
Run everything a contribution must pass. Stops at the first step that fails.

Usage: cargo xtask test [--quick [--since REV]] [--keep-going] [--with-model] [STEP…]

  STEP…         run only these steps, in the order of the list
  --quick       run formatting, lints, house rules, and the unit and in-process tests of the crates
                that changed and of those that depend on them
  --since REV   with --quick: what counts as changed, default `HEAD`; uncommitted changes always do
  --keep-going  run all steps, also after a failure
  --with-model  run the extra steps too: a real small model answers through the program
  --list        list lanes and steps, with the time each took last
  --help        show this text";

/// One thing that has to hold.
struct Step {
    name: &'static str,
    /// What is true once it passed.
    about: &'static str,
    lane: Lane,
    run: fn(&Scope) -> Result<()>,
}

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// In every run.
    Quick,
    /// In every run without `--quick`.
    Full,
    /// Only with `--with-model` or by name.
    Extra,
}

/// Which crates the tests are about.
enum Scope {
    Everything,
    /// The crates that changed since a revision, and those that depend on them.
    ChangedSince(String),
}

/// In this order: what the others need, then what is quick, then what is slow.
const STEPS: &[Step] = &[
    Step {
        name: "packages",
        about: "the system has the tools we call",
        lane: Lane::Full,
        run: |_| packages::run(),
    },
    Step {
        name: "fmt",
        about: "the code is formatted",
        lane: Lane::Quick,
        run: |_| steps::fmt(),
    },
    Step {
        name: "tidy",
        about: "the house rules hold",
        lane: Lane::Quick,
        run: |_| crate::tidy::check(),
    },
    Step {
        name: "clippy",
        about: "no lint complains",
        lane: Lane::Quick,
        run: |_| steps::clippy(),
    },
    Step {
        name: "tests",
        about: "every test passes",
        lane: Lane::Quick,
        run: steps::tests,
    },
    Step {
        name: "page",
        about: "the page does what it should, in a browser",
        lane: Lane::Full,
        run: |_| page::run_tests(),
    },
    Step {
        name: "dist",
        about: "every package installs, answers and shows the page",
        lane: Lane::Full,
        run: |_| crate::dist::check(),
    },
    Step {
        name: "doctests",
        about: "every example in the docs runs",
        lane: Lane::Full,
        run: |_| steps::doctests(),
    },
    Step {
        name: "docs",
        about: "the docs build, without a broken link",
        lane: Lane::Full,
        run: |_| steps::docs(),
    },
    Step {
        name: "model",
        about: "a real small model answers through the program (with --with-model)",
        lane: Lane::Extra,
        run: |_| steps::model(),
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match plan::parse(arguments, STEPS)? {
        Request::Help => println!("{HELP}\n\n{}", list(STEPS, &Times::load())),
        Request::List => println!("{}", list(STEPS, &Times::load())),
        Request::Run(plan) => {
            let outcomes = plan.execute();
            println!("\n{}", report::summary(&outcomes));
            report::record(&outcomes)?;
            let failed = report::failed(&outcomes);
            if !failed.is_empty() {
                bail!("failed: {}", failed.join(", "));
            }
        }
    }
    Ok(())
}

/// Lanes, steps and test binaries, with the time of the last run.
fn list(steps: &[Step], times: &Times) -> String {
    let named = |lane: Lane| {
        let steps = steps.iter().filter(move |step| step.lane == lane);
        steps.map(|step| step.name).collect::<Vec<_>>().join(", ")
    };
    let (quick, extra) = (named(Lane::Quick), named(Lane::Extra));
    let mut lines = vec![
        "Lanes:".to_owned(),
        format!("  quick  {quick}: of what changed (--quick)"),
        "  full   quick for all crates, and the other steps (the default)".to_owned(),
        format!("  extra  {extra} (--with-model, or by name)"),
        "\nSteps, with the time of the last run:".to_owned(),
    ];
    let last = |name: &str| match times.get(name) {
        Some(time) => format!("{time:.1} s"),
        None => "-".to_owned(),
    };
    lines.extend(steps.iter().map(|step| {
        let (name, about) = (step.name, step.about);
        format!("  {name:<10} {:>9}   {about}", last(name))
    }));
    let is_step = |name: &str| steps.iter().any(|step| step.name == name);
    let mut binaries = times.longest_first();
    binaries.retain(|(name, _)| !is_step(name));
    if !binaries.is_empty() {
        lines.push("\nTest binaries, longest last run first:".to_owned());
        let line = |(name, time): &(&str, f64)| format!("  {name:<34} {time:>7.1} s");
        lines.extend(binaries.iter().map(line));
    }
    lines.join("\n")
}
