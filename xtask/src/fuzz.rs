//! `cargo xtask fuzz`: texts that nobody thought of, for the parsers and the small languages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process;

const HELP: &str = "\
Runs the fuzz targets in `fuzz/`, one after the other, from the inputs of our own tests. What is found
is kept below `fuzz/artifacts`, and is no finding before a test has it.

Usage: cargo xtask fuzz [TARGET…] [--seconds N]

  TARGET…      only these
  --seconds N  how long each runs [default: 60]
  --list       name the targets
  --help       this text";

/// Divides the seeds of a target.
const DIVIDER: &str = "\n====\n";

/// An input after which the program still runs is one that does not end, in seconds. Far above any
/// limit that is tested here, because a machine may be busy.
const HANGS_AFTER: u32 = 30;

#[derive(Debug, PartialEq)]
enum Request {
    Help,
    List,
    Run { names: Vec<String>, seconds: u32 },
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match parse(arguments)? {
        Request::Help => println!("{HELP}"),
        Request::List => targets()?.iter().for_each(|name| println!("{name}")),
        Request::Run { names, seconds } => {
            let names = chosen(targets()?, names)?;
            install()?;
            for name in names {
                fuzz(&name, seconds)?;
            }
        }
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Request> {
    let (mut names, mut seconds) = (Vec::new(), 60);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--list" => return Ok(Request::List),
            "--seconds" => {
                let given = rest.next().context("`--seconds` needs a number")?;
                seconds = given
                    .parse()
                    .with_context(|| format!("`{given}` is no number of seconds"))?;
            }
            option if option.starts_with('-') => {
                bail!("unknown option `{option}`; see `cargo xtask fuzz --help`")
            }
            name => names.push(name.to_owned()),
        }
    }
    Ok(Request::Run { names, seconds })
}

fn folder() -> PathBuf {
    process::workspace_root().join("fuzz")
}

/// The targets are the files: a new one needs no registration here.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(folder().join("fuzz_targets"))? {
        let path = file?.path();
        if let Some(stem) = path.file_stem().filter(|_| is_rust(&path)) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "rs")
}

fn chosen(all: Vec<String>, names: Vec<String>) -> Result<Vec<String>> {
    if names.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        let all = all.join(", ");
        bail!("no target is called `{unknown}`; there are: {all}");
    }
    Ok(names)
}

fn install() -> Result<()> {
    if process::succeeds(&mut process::cargo(&["fuzz", "--version"])) {
        return Ok(());
    }
    process::run(&mut process::cargo(&["install", "--locked", "cargo-fuzz"]))
}

fn fuzz(name: &str, seconds: u32) -> Result<()> {
    let corpus = folder().join("corpus").join(name);
    sow(name, &corpus)?;
    let mut command = process::cargo(&["fuzz", "run", "--fuzz-dir", "fuzz"]);
    // Sanitizers need an unreleased compiler, and look for what safe code cannot do wrong.
    command.args(["--sanitizer", "none", name]).arg(&corpus);
    command.arg("--").args([
        format!("-max_total_time={seconds}"),
        format!("-timeout={HANGS_AFTER}"),
        "-rss_limit_mb=2048".to_owned(),
        "-max_len=4096".to_owned(),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ]);
    process::run(&mut command)
}

/// Puts the seeds of a target into its corpus, one file each, as the fuzzer wants them.
fn sow(name: &str, corpus: &Path) -> Result<()> {
    fs::create_dir_all(corpus)?;
    let seeds = folder().join("seeds").join(format!("{name}.txt"));
    let text = fs::read_to_string(&seeds)
        .with_context(|| format!("the target `{name}` has no seeds: {}", seeds.display()))?;
    for (number, seed) in text.trim_end_matches('\n').split(DIVIDER).enumerate() {
        fs::write(corpus.join(format!("seed-{number:04}")), seed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_target_and_its_time_can_be_chosen() {
        let request = parse(&strings(&["expr", "--seconds", "5"])).unwrap();
        let expected = Request::Run {
            names: strings(&["expr"]),
            seconds: 5,
        };
        assert_eq!(request, expected);
        assert!(parse(&strings(&["--seconds", "soon"])).is_err());
        assert!(parse(&strings(&["--forever"])).is_err());
    }

    #[test]
    fn every_target_is_built_and_has_seeds() {
        let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
        for name in targets().unwrap() {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            let corpus = tempfile::tempdir().unwrap();
            sow(&name, corpus.path()).unwrap();
            assert!(corpus.path().join("seed-0000").exists(), "{name}");
        }
    }

    #[test]
    fn an_unknown_target_is_answered_with_the_known_ones() {
        let error = chosen(strings(&["expr", "script"]), strings(&["exp"])).unwrap_err();
        assert!(error.to_string().ends_with("expr, script"), "{error}");
    }
}
