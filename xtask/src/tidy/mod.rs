//! `cargo xtask tidy`: the house rules that no compiler checks.
//!
//! A rule is a function from the [`Tree`] to the problems it finds. Rules read nothing else, so each
//! is tested on a few strings; and none stops at its first fault, so one run shows all there is to
//! repair.

mod crate_docs;
mod decisions;
mod fences;
mod layers;
mod licences;
mod links;
mod lints;
mod outside;
mod places;
mod prose;
mod shortcuts;
mod sizes;
mod spdx;
mod tree;
mod workflows;

use std::fmt;

use anyhow::{Result, bail};

use crate::process;
use tree::Tree;

const HELP: &str = "\
Checks the house rules that no compiler checks, and prints every problem it finds.

Usage: cargo xtask tidy [--prose | --write-prose]

  --prose        list every text that should be worded differently
  --write-prose  lower the numbers in xtask/prose.toml to what is left

Rules:";

/// Something to repair, and where.
#[derive(Debug, PartialEq)]
struct Problem {
    file: String,
    /// Counted from 1; a problem of the whole file has none.
    line: Option<usize>,
    message: String,
}

/// One rule of the house.
struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Tree) -> Vec<Problem>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        about: "crates use only what ARCHITECTURE.md lets them",
        check: layers::check,
    },
    Rule {
        name: "fences",
        about: "some dependencies belong to some crates only",
        check: fences::check,
    },
    Rule {
        name: "lints",
        about: "every crate inherits the workspace's lints",
        check: lints::check,
    },
    Rule {
        name: "crate-docs",
        about: "every crate says what it is, and what it is not",
        check: crate_docs::check,
    },
    Rule {
        name: "sizes",
        about: "long files and functions say why they are one piece",
        check: sizes::check,
    },
    Rule {
        name: "shortcuts",
        about: "no parked tests, no loose ends, no silenced lints",
        check: shortcuts::check,
    },
    Rule {
        name: "places",
        about: "no path or host of somebody's machine",
        check: places::check,
    },
    Rule {
        name: "licences",
        about: "deny.toml allows every licence we build from",
        check: licences::check,
    },
    Rule {
        name: "links",
        about: "links between documents lead somewhere",
        check: links::check,
    },
    Rule {
        name: "outside",
        about: "no text refers to a file outside the repository",
        check: outside::check,
    },
    Rule {
        name: "decisions",
        about: "decisions are numbered, and short",
        check: decisions::check,
    },
    Rule {
        name: "prose",
        about: "texts are plain: no more hard phrases and empty comments than xtask/prose.toml allows",
        check: prose::check,
    },
    Rule {
        name: "workflows",
        about: "workflows run the commands that contributors run",
        check: workflows::check,
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => check(),
        [help] if help == "-h" || help == "--help" => {
            println!("{HELP}");
            RULES
                .iter()
                .for_each(|rule| println!("  {:<10} {}", rule.name, rule.about));
            Ok(())
        }
        [list] if list == "--prose" => prose::list(),
        [write] if write == "--write-prose" => prose::write(),
        [unknown, ..] => bail!("tidy takes no `{unknown}`; see `cargo xtask tidy --help`"),
    }
}

/// Applies every rule; fails if one found something.
pub(crate) fn check() -> Result<()> {
    let tree = Tree::load()?;
    let mut count = 0;
    for rule in RULES {
        for problem in (rule.check)(&tree) {
            println!("{problem} [{}]", rule.name);
            count += 1;
        }
    }
    if let Err(error) = cargo_deny() {
        println!("{error:#} [deny]");
        count += 1;
    }
    match count {
        0 => Ok(()),
        1 => bail!("1 problem"),
        count => bail!("{count} problems"),
    }
}

/// Where cargo-deny is installed it has the last word on `deny.toml`; our own rule sees licences
/// only, but needs nothing installed.
fn cargo_deny() -> Result<()> {
    if !process::succeeds(&mut process::cargo(&["deny", "--version"])) {
        return Ok(());
    }
    process::run(&mut process::cargo(&[
        "deny", "check", "bans", "licenses", "sources",
    ]))
}

impl Problem {
    /// A problem of one line.
    fn at(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: Some(line),
            message: message.into(),
        }
    }

    /// A problem of a file as a whole.
    fn of(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_prints_in_the_form_that_editors_follow() {
        assert_eq!(
            Problem::at("a.rs", 7, "too long").to_string(),
            "a.rs:7: too long"
        );
        assert_eq!(
            Problem::of("a.rs", "too long").to_string(),
            "a.rs: too long"
        );
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        assert!(run(&["--fix".to_owned()]).is_err());
    }
}
