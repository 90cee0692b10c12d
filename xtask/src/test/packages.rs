//! The first step: the tools that builds and tests call, installed where we may.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process;

/// A tool and where it comes from.
#[derive(Debug, PartialEq)]
struct Tool {
    /// What is looked up on the `PATH`.
    program: &'static str,
    /// With these arguments it must succeed; without any, being there is enough.
    proof: &'static [&'static str],
    /// The Debian package that brings it.
    package: &'static str,
}

const TOOLS: &[Tool] = &[
    // Compiles the bundled SQLite.
    Tool {
        program: "cc",
        proof: &[],
        package: "build-essential",
    },
    // Tells tidy which files belong to the repository.
    Tool {
        program: "git",
        proof: &[],
        package: "git",
    },
    // Makes the n-th write fail in the fault sweeps of the store.
    #[cfg(target_os = "linux")]
    Tool {
        program: "strace",
        proof: &[],
        package: "strace",
    },
    // Shows a program another time, in the tests of a wrong clock.
    #[cfg(target_os = "linux")]
    Tool {
        program: "faketime",
        proof: &[],
        package: "faketime",
    },
    // Runs the libraries that we compare ourselves with.
    Tool {
        program: "python3",
        proof: &[],
        package: "python3",
    },
    // They are installed apart from the system's; Debian has a package of its own for that.
    Tool {
        program: "python3",
        proof: &["-c", "import ensurepip, venv"],
        package: "python3-venv",
    },
    // Runs the model servers that ours is compared with, which npm brings.
    Tool {
        program: "node",
        proof: &["--version"],
        package: "nodejs",
    },
    Tool {
        program: "npm",
        proof: &["--version"],
        package: "npm",
    },
    // Downloads packages in the test of `install.sh`.
    Tool {
        program: "curl",
        proof: &[],
        package: "curl",
    },
    // Shows the page, in its tests.
    Tool {
        program: "chromium",
        proof: &[],
        package: "chromium",
    },
];

pub(super) fn run() -> Result<()> {
    let missing = missing(is_there);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.iter().map(|tool| tool.package).collect::<Vec<_>>();
    if !(on_path("apt-get") && is_root()) {
        bail!("{}", complaint(&packages));
    }
    install(&packages).with_context(|| complaint(&packages))
}

fn missing(present: impl Fn(&Tool) -> bool) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !present(tool)).collect()
}

fn is_there(tool: &Tool) -> bool {
    let proven = || process::succeeds(process::command(tool.program).args(tool.proof));
    on_path(tool.program) && (tool.proof.is_empty() || proven())
}

fn complaint(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    format!(
        "missing system packages: {packages}\n\
         hint: install them, on Debian and Ubuntu with\n\
         \x20     sudo apt-get update && sudo apt-get install --yes {packages}"
    )
}

fn install(packages: &[&str]) -> Result<()> {
    // A stale or partly unreachable package list is no reason to give up: what counts is whether
    // the packages can be installed, and the next command tells.
    if let Err(error) = process::run(&mut apt_get(&["update"])) {
        println!("{error:#}; going on with the package lists at hand");
    }
    process::run(apt_get(&["install", "--yes", "--no-install-recommends"]).args(packages))
}

fn apt_get(arguments: &[&str]) -> std::process::Command {
    let mut command = process::command("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    process::output(process::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_file(&folder.join(program)))
}

fn is_file(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_there_is_not_missing() {
        assert_eq!(missing(|_| true), Vec::<&Tool>::new());
    }

    #[test]
    fn a_missing_tool_is_named_by_its_package() {
        let missing = missing(|tool| tool.program != "cc");
        assert_eq!(
            missing,
            [&Tool {
                program: "cc",
                proof: &[],
                package: "build-essential"
            }]
        );
    }

    #[test]
    fn a_tool_that_does_not_do_its_work_is_missing() {
        let tool = |proof| Tool {
            program: "cargo",
            proof,
            package: "cargo",
        };
        assert!(is_there(&tool(&[])));
        assert!(is_there(&tool(&["--version"])));
        assert!(!is_there(&tool(&["no-such-command"])));
    }

    #[test]
    fn the_complaint_says_what_to_type() {
        let complaint = complaint(&["git", "strace"]);
        assert!(
            complaint.starts_with("missing system packages: git strace\n"),
            "{complaint}"
        );
        assert!(
            complaint.ends_with("apt-get install --yes git strace"),
            "{complaint}"
        );
    }

    #[test]
    fn cargo_is_found_on_the_path() {
        assert!(on_path("cargo"));
        assert!(!on_path("no-such-program-here"));
    }
}
