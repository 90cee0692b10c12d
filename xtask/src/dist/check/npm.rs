//! The npm packages, installed into a new prefix from a registry on this machine.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::{PACKAGE, VERSION, platform, write};
use super::{Bench, expect, installed, run, run_failing};

pub(super) fn check(bench: &Bench) -> Result<()> {
    let platform = platform::host()?.npm_package();
    for name in [PACKAGE, &platform] {
        publish(bench, name)?;
    }
    let prefix = bench.path("npm");
    run(bench
        .command("npm")
        .args([
            "install",
            "--global",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .args(["--registry", &bench.site.url("npm/")])
        .arg("--prefix")
        .arg(&prefix)
        .arg("--cache")
        .arg(bench.path("npm-cache"))
        .arg(PACKAGE))?;
    installed::check(bench, "npm", &prefix.join("bin/dodona"))?;

    let launcher = prefix
        .join("lib/node_modules")
        .join(PACKAGE)
        .join("bin/dodona.js");
    let unsupported = format!(
        "Object.defineProperty(process, 'platform', {{ value: 'sunos' }}); require({launcher:?})"
    );
    let message = run_failing(bench.command("node").arg("-e").arg(unsupported))?;
    expect(&message, "error: dodona-agent does not support sunos x64\n")?;

    // Without its optional dependencies.
    let alone = bench.path("alone/bin/dodona.js");
    super::super::copy(&launcher, &alone)?;
    let message = run_failing(bench.command("node").arg(&alone))?;
    expect(
        &message,
        &format!("error: the package {platform} is not installed\n"),
    )
}

/// Adds a package to the registry: a document with its manifest and the address of its archive.
fn publish(bench: &Bench, name: &str) -> Result<()> {
    let file = format!("{name}-{VERSION}.tgz");
    let mut manifest = manifest(bench, &bench.packages().join(&file))?;
    manifest["dist"] = json!({ "tarball": bench.site.url(&format!("files/{file}")) });
    let document = json!({
        "name": name,
        "dist-tags": { "latest": VERSION },
        "versions": { VERSION: manifest },
    });
    write(&bench.path("site/npm").join(name), &document.to_string())
}

fn manifest(bench: &Bench, archive: &Path) -> Result<Value> {
    let folder = bench.path("manifest");
    fs::create_dir_all(&folder)?;
    let mut tar = bench.command("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&folder);
    run(tar.arg("package/package.json"))?;
    let text = fs::read_to_string(folder.join("package/package.json"))?;
    serde_json::from_str(&text).with_context(|| format!("bad manifest in {}", archive.display()))
}
