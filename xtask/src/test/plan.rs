//! Which steps to run, and running them.

use std::time::Instant;

use anyhow::{Result, bail};

use super::report::{Outcome, Verdict, seconds};
use super::{Lane, Scope, Step};

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
    pub(super) scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    Stop,
    KeepGoing,
}

pub(super) fn parse<'a>(arguments: &[String], steps: &'a [Step]) -> Result<Request<'a>> {
    let mut after_failure = AfterFailure::Stop;
    let (mut quick, mut extra) = (false, false);
    let mut since = None;
    let mut names = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--list" => return Ok(Request::List),
            "--keep-going" => after_failure = AfterFailure::KeepGoing,
            "--with-model" => extra = true,
            "--quick" => quick = true,
            "--since" => match arguments.next() {
                Some(revision) => since = Some(revision.clone()),
                None => bail!("`--since` needs a git revision, for example `--since main`"),
            },
            option if option.starts_with('-') => {
                bail!("unknown option `{option}`; see `cargo xtask test --help`")
            }
            name if steps.iter().any(|step| step.name == name) => names.push(name),
            unknown => {
                let known = steps.iter().map(|step| step.name).collect::<Vec<_>>();
                bail!("unknown step `{unknown}`; steps: {}", known.join(", "));
            }
        }
    }
    if since.is_some() && !quick {
        bail!("`--since` needs `--quick`: a full run tests everything");
    }
    let wanted = |step: &&Step| match step.lane {
        Lane::Extra if extra => true,
        _ if !names.is_empty() => names.contains(&step.name),
        Lane::Quick => true,
        Lane::Full => !quick,
        Lane::Extra => false,
    };
    Ok(Request::Run(Plan {
        steps: steps.iter().filter(wanted).collect(),
        after_failure,
        scope: if quick {
            Scope::ChangedSince(since.unwrap_or_else(|| "HEAD".to_owned()))
        } else {
            Scope::Everything
        },
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
                execute(step, &self.scope)
            };
            let failed = outcome.verdict == Verdict::Failed;
            stopped |= failed && self.after_failure == AfterFailure::Stop;
            outcomes.push(outcome);
        }
        outcomes
    }
}

fn execute(step: &Step, scope: &Scope) -> Outcome {
    println!("\n── {}: {}", step.name, step.about);
    let start = Instant::now();
    let result = (step.run)(scope);
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
            lane: Lane::Quick,
            run: |_| Ok(()),
        },
        Step {
            name: "second",
            about: "fails",
            lane: Lane::Full,
            run: |_| bail!("on purpose"),
        },
        Step {
            name: "third",
            about: "passes",
            lane: Lane::Full,
            run: |_| Ok(()),
        },
        Step {
            name: "fourth",
            about: "passes, where it is asked for",
            lane: Lane::Extra,
            run: |_| Ok(()),
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
    fn quick_runs_the_quick_lane_for_what_changed() {
        let plan = plan(&["--quick", "--since", "main"]);
        let names: Vec<_> = plan.steps.iter().map(|step| step.name).collect();
        assert_eq!(names, ["first"]);
        assert!(matches!(plan.scope, Scope::ChangedSince(revision) if revision == "main"));
        for wrong in [&["--since", "main"][..], &["--quick", "--since"]] {
            let wrong: Vec<String> = wrong.iter().map(|word| (*word).to_owned()).collect();
            assert!(parse(&wrong, STEPS).is_err());
        }
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
