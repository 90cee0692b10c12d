//! Which steps to run, and running them.

use std::time::Instant;

use anyhow::{Result, bail};

use super::Step;
use super::report::{Outcome, Verdict, seconds};

/// What the command line asks for.
pub(super) enum Request<'a> {
    Help,
    List,
    Run(Plan<'a>),
}

/// The steps to run, in order.
pub(super) struct Plan<'a> {
    pub(super) steps: Vec<&'a Step>,
    pub(super) after_failure: AfterFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    Stop,
    KeepGoing,
}

pub(super) fn parse<'a>(arguments: &[String], steps: &'a [Step]) -> Result<Request<'a>> {
    let mut after_failure = AfterFailure::Stop;
    let mut extra = false;
    let mut names = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--list" => return Ok(Request::List),
            "--keep-going" => after_failure = AfterFailure::KeepGoing,
            "--with-model" => extra = true,
            option if option.starts_with('-') => {
                bail!("unknown option `{option}`; see `cargo xtask test --help`")
            }
            name if steps.iter().any(|step| step.name == name) => names.push(name),
            unknown => {
                let known = steps.iter().map(|step| step.name).collect::<Vec<_>>();
                bail!(
                    "no step is called `{unknown}`; there are: {}",
                    known.join(", ")
                );
            }
        }
    }
    let wanted = |step: &&Step| match (names.is_empty(), step.extra) {
        (_, true) if extra => true,
        (true, is_extra) => !is_extra,
        (false, _) => names.contains(&step.name),
    };
    Ok(Request::Run(Plan {
        steps: steps.iter().filter(wanted).collect(),
        after_failure,
    }))
}

impl Plan<'_> {
    /// Runs the steps and says how each ended, those that were not reached included.
    pub(super) fn execute(&self) -> Vec<Outcome> {
        let mut stopped = false;
        let mut outcomes = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let outcome = if stopped {
                Outcome::skipped(step.name)
            } else {
                execute(step)
            };
            let failed = outcome.verdict == Verdict::Failed;
            stopped |= failed && self.after_failure == AfterFailure::Stop;
            outcomes.push(outcome);
        }
        outcomes
    }
}

fn execute(step: &Step) -> Outcome {
    println!("\n── {}: {}", step.name, step.about);
    let start = Instant::now();
    let result = (step.run)();
    let time = start.elapsed();
    let verdict = match result {
        Ok(()) => {
            println!("── {} passed in {}", step.name, seconds(time));
            Verdict::Passed
        }
        Err(error) => {
            // On standard output like the rest, so that a log keeps the order.
            println!("── {} failed after {}: {error:#}", step.name, seconds(time));
            Verdict::Failed
        }
    };
    Outcome {
        name: step.name,
        verdict,
        time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[Step] = &[
        Step {
            name: "first",
            about: "passes",
            extra: false,
            run: || Ok(()),
        },
        Step {
            name: "second",
            about: "fails",
            extra: false,
            run: || bail!("on purpose"),
        },
        Step {
            name: "third",
            about: "passes",
            extra: false,
            run: || Ok(()),
        },
        Step {
            name: "fourth",
            about: "passes, where it is asked for",
            extra: true,
            run: || Ok(()),
        },
    ];

    fn plan(arguments: &[&str]) -> Plan<'static> {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        match parse(&arguments, STEPS).unwrap() {
            Request::Run(plan) => plan,
            Request::Help | Request::List => panic!("a run was asked for"),
        }
    }

    fn verdicts(plan: &Plan<'_>) -> Vec<Verdict> {
        plan.execute()
            .iter()
            .map(|outcome| outcome.verdict)
            .collect()
    }

    #[test]
    fn a_failure_stops_the_run() {
        assert_eq!(
            verdicts(&plan(&[])),
            [Verdict::Passed, Verdict::Failed, Verdict::NotRun]
        );
    }

    #[test]
    fn keep_going_runs_what_follows_a_failure() {
        let plan = plan(&["--keep-going"]);
        assert_eq!(
            verdicts(&plan),
            [Verdict::Passed, Verdict::Failed, Verdict::Passed]
        );
    }

    #[test]
    fn named_steps_run_in_the_order_of_the_list() {
        let names = plan(&["third", "first"])
            .steps
            .iter()
            .map(|step| step.name)
            .collect::<Vec<_>>();
        assert_eq!(names, ["first", "third"]);
    }

    #[test]
    fn what_is_not_for_every_day_runs_where_it_is_asked_for() {
        let names = |arguments: &[&str]| {
            let steps = plan(arguments).steps;
            steps.iter().map(|step| step.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["first", "second", "third"]);
        assert_eq!(names(&["--with-model", "first"]), ["first", "fourth"]);
        assert_eq!(names(&["fourth"]), ["fourth"]);
    }

    #[test]
    fn an_unknown_step_is_answered_with_the_known_ones() {
        let Err(error) = parse(&["frist".to_owned()], STEPS) else {
            panic!("must be refused")
        };
        assert!(
            error.to_string().ends_with("first, second, third, fourth"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_option_is_refused() {
        assert!(parse(&["--fast".to_owned()], STEPS).is_err());
    }
}
