//! The wheel, installed with pip into a new virtual environment from an index on this machine.

use anyhow::{Context, Result};

use super::super::{PACKAGE, VERSION, write};
use super::{Bench, expect, installed, run};

pub(super) fn check(bench: &Bench) -> Result<()> {
    let wheel = bench.find("dodona_agent-", ".whl")?;
    let name = wheel
        .file_name()
        .context("a wheel has a name")?
        .to_string_lossy();
    let index = format!("<a href=\"/files/{name}\">{name}</a>\n");
    let page = bench.path("site/simple").join(PACKAGE).join("index.html");
    write(&page, &index)?;

    let environment = bench.path("venv");
    run(bench
        .command("python3")
        .args(["-m", "venv"])
        .arg(&environment))?;
    let bin = environment.join("bin");
    run(bench.command(bin.join("python")).args([
        "-m",
        "pip",
        "install",
        "--isolated",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--index-url",
        &bench.site.url("simple/"),
        PACKAGE,
    ]))?;
    installed::check(bench, "wheel", &bin.join("dodona"))?;

    // `uvx dodona-agent` and `python -m dodona_agent` start the same program.
    let version = format!("dodona {VERSION}");
    expect(
        &run(bench.command(bin.join(PACKAGE)).arg("--version"))?,
        &version,
    )?;
    let module = ["-m", "dodona_agent", "--version"];
    expect(
        &run(bench.command(bin.join("python")).args(module))?,
        &version,
    )?;

    let pip = ["-m", "pip", "uninstall", "--yes", "--quiet", PACKAGE];
    run(bench.command(bin.join("python")).args(pip))?;
    super::expect_absent(&bin.join("dodona"))
}
