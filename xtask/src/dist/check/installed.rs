//! What every installed program must do: print its version, answer with a citation, serve the page.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::{VERSION, write};
use super::{Bench, expect, run, site, wait_for};

const NOTE: &str =
    "# Brewing tea\n\nGreen tea is brewed for two minutes with water of 75 degrees.\n";

/// Checks one program. `name` is the package it comes from.
pub(super) fn check(bench: &Bench, name: &str, program: &Path) -> Result<()> {
    println!("checking `dodona` from {name}");
    let printed = run(bench.command(program).arg("--version"))?;
    expect(&printed, &format!("dodona {VERSION}"))?;

    let project = bench.path(&format!("project-{name}"));
    write(&project.join(".dodona/config.toml"), "")?;
    write(&project.join("notes/brewing.md"), NOTE)?;
    let home = bench.path(&format!("home-{name}"));
    let dodona = |arguments: &[&str]| {
        let mut command = bench.command(program);
        command.args(arguments).env("DODONA_HOME", &home);
        command.current_dir(&project);
        command
    };
    let answer = run(&mut dodona(&["ask", "How long is green tea brewed?"]))?;
    expect(&answer, "two minutes")?;
    expect(&answer, "[1] notes/brewing.md:")?;

    let ready = bench.path(&format!("ready-{name}.json"));
    let mut command = dodona(&["serve", "--listen", "127.0.0.1:0", "--ready-file"]);
    let log = fs::File::create(bench.path(&format!("serve-{name}.log")))?;
    command.arg(&ready).stdout(Stdio::null()).stderr(log);
    let mut server = command.spawn().context("cannot start the server")?;
    let checked = load_page(bench, &ready, &mut server);
    let stopped = stop(&mut server);
    checked.and(stopped)
}

fn load_page(bench: &Bench, ready: &Path, server: &mut Child) -> Result<()> {
    wait_for("the server to be ready", || {
        if let Some(status) = server.try_wait()? {
            bail!("the server ended with {status}");
        }
        Ok(fs::read_to_string(ready).is_ok_and(|text| text.contains('}')))
    })?;
    let text = fs::read_to_string(ready)?;
    let json: Value = serde_json::from_str(&text).context("the ready file is not JSON")?;
    let url = json["url"].as_str().context("the ready file has no URL")?;
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let (status, page) = site::get(address, "/")?;
    expect(&status, "200")?;
    if !bench.has_page {
        println!("the program was built without the page; it serves the explanation instead");
        return expect(&page, "running without its page");
    }
    expect(&page, "<div id=\"app\">")?;
    let script = page.split('"').find(|part| part.starts_with("/assets/"));
    let script = script.context("the page loads no script")?;
    let (status, body) = site::get(address, script)?;
    expect(&status, "200")?;
    if body.is_empty() {
        bail!("{script} is empty");
    }
    Ok(())
}

/// Stops the server with a signal, which a launcher must pass on.
fn stop(server: &mut Child) -> Result<()> {
    run(Command::new("kill").args(["-TERM", &server.id().to_string()]))?;
    let ended = wait_for("the server to stop", || Ok(server.try_wait()?.is_some()));
    if ended.is_err() {
        server.kill().ok();
        server.wait().ok();
    }
    ended
}
