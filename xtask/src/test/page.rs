//! The tests of the page: a browser, and the program it talks to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{cargo, command, output, run, workspace_root};

/// Builds the program as the other tests have, so that nothing is compiled twice, and lets npm do the rest.
pub(super) fn run_tests() -> Result<()> {
    run(&mut cargo(&[
        "test",
        "--workspace",
        "--no-run",
        "--test",
        "cli",
    ]))?;
    if !is_installed(&workspace_root().join("web")) {
        run(&mut npm(&[
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ]))?;
    }
    let program = program()?;
    if !program.is_file() {
        bail!("the build left no {}", program.display());
    }
    run(npm(&["test"]).env("DODONA_BIN", program))
}

fn npm(arguments: &[&str]) -> Command {
    let mut npm = command("npm");
    npm.args(["--prefix", "web"]).args(arguments);
    npm
}

/// As the build script of `dodona-web` decides it.
fn is_installed(web: &Path) -> bool {
    let time = |path: &str| std::fs::metadata(web.join(path)).and_then(|file| file.modified());
    let installed = time("node_modules/.package-lock.json");
    let locked = time("package-lock.json");
    matches!((installed, locked), (Ok(installed), Ok(locked)) if installed >= locked)
}

fn program() -> Result<PathBuf> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let told = output(&mut cargo(&arguments))?;
    let told: serde_json::Value = serde_json::from_str(&told).context("cargo's metadata")?;
    let target = told["target_directory"]
        .as_str()
        .context("cargo's metadata names the target folder")?;
    let name = format!("dodona{}", std::env::consts::EXE_SUFFIX);
    Ok(Path::new(target).join("debug").join(name))
}
