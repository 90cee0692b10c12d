//! Building the page with npm and Vite.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use crate::node;

/// Error codes in npm's output that mean the registry was not reached.
const NETWORK_ERRORS: &[&str] = &[
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ENOTCACHED",
    "ERR_SOCKET_TIMEOUT",
];

/// Builds the page into a folder. The error is a sentence for the user without a full stop.
pub(crate) fn build(web: &Path, folder: &Path) -> Result<PathBuf, String> {
    if env::var_os("DOCS_RS").is_some() {
        return Err("builds of the documentation have no network".to_owned());
    }
    if !web.join("package.json").exists() {
        return Err("its source folder `web` is missing".to_owned());
    }
    node::check()?;
    if !is_installed(web) {
        install(web)?;
    }
    let mut vite = Command::new("node");
    vite.arg(web.join("node_modules/vite/bin/vite.js"))
        .args(["build", "--logLevel", "error", "--emptyOutDir", "--outDir"])
        .arg(folder);
    let output = output(&mut vite, web)?;
    if !output.status.success() {
        return Err(failed("vite", &output));
    }
    Ok(folder.to_owned())
}

/// Whether the installed packages are those of the lock file. npm writes a list of what it installed;
/// the list is older than the lock file if the lock file changed since.
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
    // On Windows npm is a script, and scripts are found only by their full name.
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    // No package needs an install script to build the page, and a script could run anything.
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    command.arg("--prefer-offline");
    // Without a network the build should go on after seconds, not minutes. Before the only retry npm
    // would wait for ten.
    command.env("npm_config_fetch_retries", "1");
    command.env("npm_config_fetch_retry_mintimeout", "1000");
    command.env("NODE_ENV", "development");
    let output = output(&mut command, web)?;
    if output.status.success() {
        return Ok(());
    }
    let text = text(&output);
    match NETWORK_ERRORS.iter().find(|code| text.contains(**code)) {
        Some(code) => Err(format!(
            "npm could not reach its registry ({code}); connect to the network, or set \
             DODONA_WEB_DIST to a built page"
        )),
        None => Err(failed("npm ci", &output)),
    }
}

fn output(command: &mut Command, web: &Path) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .current_dir(web)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{name}` could not be started ({error}); install Node with npm"))
}

/// Prints the beginning of a program's output as warnings, and returns the reason.
fn failed(name: &str, output: &Output) -> String {
    let text = text(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    for line in lines.take(20) {
        println!("cargo::warning={name}: {line}");
    }
    format!("`{name}` failed; the warnings before this one are its output")
}

fn text(output: &Output) -> String {
    let bytes = [output.stderr.as_slice(), &output.stdout].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}
