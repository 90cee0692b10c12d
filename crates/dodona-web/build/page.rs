//! Running npm and Vite.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Builds the page into a folder; an error says in a sentence why that was not possible.
pub(crate) fn build(web: &Path, folder: &Path) -> Result<PathBuf, String> {
    if env::var_os("DOCS_RS").is_some() {
        return Err("builds of docs have no network".to_owned());
    }
    if !web.join("package.json").exists() {
        return Err("its source is not beside the crates".to_owned());
    }
    if !is_installed(web) {
        install(web)?;
    }
    let vite = web.join("node_modules/vite/bin/vite.js");
    let mut command = Command::new("node");
    command
        .arg(vite)
        .args(["build", "--logLevel", "error", "--emptyOutDir", "--outDir"])
        .arg(folder);
    run(&mut command, web)?;
    Ok(folder.to_owned())
}

/// Whether the packages are those of the lock file. npm writes down what it has installed, so that
/// one is older where the lock file has changed since.
fn is_installed(web: &Path) -> bool {
    let time = |path: &str| fs::metadata(web.join(path)).and_then(|file| file.modified());
    match (
        time("node_modules/.package-lock.json"),
        time("package-lock.json"),
    ) {
        (Ok(installed), Ok(locked)) => installed >= locked,
        _ => false,
    }
}

fn install(web: &Path) -> Result<(), String> {
    // On Windows it is a script, and scripts are found only by their whole name.
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    command.args(["ci", "--no-audit", "--no-fund", "--prefer-offline"]);
    // Somebody without a network should not wait for minutes to learn that.
    command.env("npm_config_fetch_retries", "1");
    command.env("NODE_ENV", "development");
    run(&mut command, web)
}

fn run(command: &mut Command, web: &Path) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(web)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            format!("`{name}` could not be run ({error}); Node 20.19 or newer has it")
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    for line in said.lines().filter(|line| !line.trim().is_empty()).take(20) {
        println!("cargo::warning={name}: {line}");
    }
    Err(format!("`{name}` failed; its first words are above"))
}
