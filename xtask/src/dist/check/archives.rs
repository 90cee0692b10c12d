//! The archives: what they contain, and that the source builds the page without Node.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::super::archive::name;
use super::super::{VERSION, listing, pack, platform, source};
use super::{Bench, expect, run};
use crate::process;

pub(super) fn check(bench: &Bench) -> Result<()> {
    check_sums(bench)?;
    let archive = bench.find(&name(platform::host()?.target), ".tar.gz")?;
    let listed = run(bench.command("tar").arg("-tzf").arg(&archive))?;
    for file in [
        "/dodona\n",
        "/LICENSE-MIT\n",
        "/LICENSE-APACHE\n",
        "/README.md\n",
        "/completions/dodona.bash\n",
        "/completions/_dodona\n",
        "/man/man1/dodona.1\n",
        "/man/man1/dodona-ask.1\n",
    ] {
        expect(&listed, file)?;
    }
    match bench.find("dodona-", "-source.tar.gz") {
        Ok(source) => check_source(bench, &source),
        Err(_) if !bench.has_page || !source::is_checkout() => Ok(()),
        Err(error) => Err(error),
    }
}

/// `SHA256SUMS` has a line for every other file.
fn check_sums(bench: &Bench) -> Result<()> {
    let files = listing(&bench.packages())?;
    let names = files.into_iter().map(|(name, _)| name);
    let names: Vec<String> = names.filter(|name| name != "SHA256SUMS").collect();
    let sums = fs::read_to_string(bench.packages().join("SHA256SUMS"))?;
    if sums != pack::sums(&bench.packages(), &names)? {
        bail!("SHA256SUMS does not match the packages:\n{sums}");
    }
    Ok(())
}

/// Builds the crate with the page from the source archive. `node` and `npm` fail if they are called.
fn check_source(bench: &Bench, archive: &PathBuf) -> Result<()> {
    println!("building the page from the source archive without Node");
    let mut tar = bench.command("tar");
    run(tar.arg("-xzf").arg(archive).arg("-C").arg(bench.path("")))?;
    let tools = bench.path("no-node");
    for name in ["node", "npm"] {
        super::script::fake(&tools, name, "echo 'Node was called' >&2; exit 1")?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cargo = process::cargo(&[
        "test",
        "--offline",
        "--locked",
        "--package",
        "dodona-web",
        "--lib",
    ]);
    cargo
        .current_dir(bench.path(&format!("dodona-{VERSION}-source")))
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("CARGO_TARGET_DIR", bench.path("source-target"))
        .env("DODONA_WEB", "require");
    run(&mut cargo).map(drop)
}
