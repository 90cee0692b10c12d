//! `cargo xtask bench`: the speed tables, with what one needs to know before believing them.

use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Result, bail};

use crate::metadata::{Metadata, Reach, TargetKind};
use crate::process;

/// The crate that holds every bench, so that one build serves them all.
const PACKAGE: &str = "dodona-testkit";

const HELP: &str = "\
Runs the speed tables. Numbers are ratios between peers of the same run; the load of the machine
is printed around them because a busy machine makes even ratios drift.

Usage: cargo xtask bench [--profile PROFILE] [NAME…] [-- ARGUMENTS…]

  NAME…          only these benches
  --profile      build with this profile, default `dist`: what packages contain
  -- ARGUMENTS…  passed on to each bench
  --list         name the benches
  --help         this text";

#[derive(Debug, PartialEq)]
enum Request {
    Help,
    List,
    Run {
        profile: String,
        names: Vec<String>,
        passed_on: Vec<String>,
    },
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match parse(arguments)? {
        Request::Help => println!("{HELP}"),
        Request::List => benches()?.iter().for_each(|name| println!("{name}")),
        Request::Run {
            profile,
            names,
            passed_on,
        } => measure(&profile, &chosen(benches()?, names)?, &passed_on)?,
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Request> {
    let mut names = Vec::new();
    let mut profile = "dist".to_owned();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--list" => return Ok(Request::List),
            "--profile" => match rest.next() {
                Some(name) => profile = name.clone(),
                None => bail!("`--profile` needs a name, for example `--profile release`"),
            },
            "--" => break,
            option if option.starts_with('-') => {
                bail!("unknown option `{option}`; options for the benches go after `--`")
            }
            name => names.push(name.to_owned()),
        }
    }
    Ok(Request::Run {
        profile,
        names,
        passed_on: rest.cloned().collect(),
    })
}

/// The bench targets, asked of cargo so that a new one needs no registration here.
fn benches() -> Result<Vec<String>> {
    let metadata = Metadata::load(Reach::Members)?;
    let targets = metadata
        .members
        .into_iter()
        .filter(|member| member.name == PACKAGE)
        .flat_map(|member| member.targets)
        .filter(|target| target.kind == TargetKind::Bench)
        .map(|target| target.name)
        .collect::<Vec<_>>();
    if targets.is_empty() {
        bail!("{PACKAGE} has no bench target");
    }
    Ok(targets)
}

fn chosen(all: Vec<String>, names: Vec<String>) -> Result<Vec<String>> {
    if names.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!(
            "no bench is called `{unknown}`; there are: {}",
            all.join(", ")
        );
    }
    Ok(names)
}

fn measure(profile: &str, names: &[String], passed_on: &[String]) -> Result<()> {
    // Built first, so that the load printed below is not our own compiler's alone.
    process::run(bench_command(profile, names).arg("--no-run"))?;
    let cores = available_parallelism().map_or("unknown".to_owned(), |cores| cores.to_string());
    println!(
        "{}",
        process::output(process::command("rustc").arg("--version"))?.trim()
    );
    println!("profile {profile}, cores {cores}, load before {}", load());
    process::run(bench_command(profile, names).arg("--").args(passed_on))?;
    println!("load after {}", load());
    Ok(())
}

/// Each bench is named: a bare `cargo bench` would also run the unit tests of the crate.
fn bench_command(profile: &str, names: &[String]) -> Command {
    let mut command = process::cargo(&["bench", "--profile", profile, "--package", PACKAGE]);
    for name in names {
        command.args(["--bench", name]);
    }
    command
}

/// The load averages over one, five and fifteen minutes.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages = text.split_whitespace().take(3).collect::<Vec<_>>();
    if averages.is_empty() {
        "unknown".to_owned()
    } else {
        averages.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_follows_two_dashes_is_for_the_benches() {
        let request = parse(&strings(&["journal", "--", "--list", "quick"])).unwrap();
        let expected = Request::Run {
            profile: "dist".to_owned(),
            names: strings(&["journal"]),
            passed_on: strings(&["--list", "quick"]),
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn an_unknown_option_is_refused() {
        assert!(parse(&strings(&["--quick"])).is_err());
    }

    #[test]
    fn an_unknown_bench_is_answered_with_the_known_ones() {
        let error = chosen(strings(&["calls", "journal"]), strings(&["call"])).unwrap_err();
        assert!(error.to_string().ends_with("calls, journal"), "{error}");
    }
}
