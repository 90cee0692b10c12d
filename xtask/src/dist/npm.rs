//! The npm packages: one with the program for each platform, and a wrapper that depends on all of them.
//!
//! npm installs only the optional dependency whose `os` and `cpu` match. The wrapper's launcher starts
//! the program in it.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::platform::PLATFORMS;
use super::{Contents, PACKAGE, SUMMARY, VERSION, copy, copy_documents, pack, write as write_text};

/// Marks where the launcher's table of packages is.
const TABLE: &str = "/* @PACKAGES@ */ {}";

/// Writes `NAME-VERSION.tgz` for both packages.
pub(super) fn write(contents: &Contents) -> Result<()> {
    let platform = contents.platform;
    let name = platform.npm_package();
    let folder = contents.work.join(&name);
    let program = folder.join("bin").join(platform.program());
    copy(&contents.binary, &program)?;
    let (system, machine) = platform.node;
    let mut manifest = json!({
        "name": name,
        "version": VERSION,
        "description": format!("The program of {PACKAGE} for {system} {machine}"),
        "license": "MIT OR Apache-2.0",
        "os": [system],
        "cpu": [machine],
        "files": ["bin"],
        "preferUnplugged": true,
    });
    if system == "linux" {
        manifest["libc"] = json!(["glibc"]);
    }
    finish(contents, &name, &manifest)?;

    let launcher = include_str!("files/launcher.js").replace(TABLE, &json!(packages()).to_string());
    let folder = contents.work.join(PACKAGE);
    write_text(&folder.join("bin/dodona.js"), &launcher)?;
    let optional = PLATFORMS
        .iter()
        .map(|platform| (platform.npm_package(), json!(VERSION)));
    let manifest = json!({
        "name": PACKAGE,
        "version": VERSION,
        "description": SUMMARY,
        "license": "MIT OR Apache-2.0",
        "keywords": ["agent", "search", "notes", "mcp", "llm"],
        "bin": { "dodona": "bin/dodona.js" },
        "files": ["bin"],
        "engines": { "node": ">=18" },
        "optionalDependencies": optional.collect::<Map<String, Value>>(),
    });
    finish(contents, PACKAGE, &manifest)
}

/// `"linux x64": "dodona-agent-linux-x64"`, for all platforms.
fn packages() -> Map<String, Value> {
    let entries = PLATFORMS.iter().map(|platform| {
        let (system, machine) = platform.node;
        (format!("{system} {machine}"), json!(platform.npm_package()))
    });
    entries.collect()
}

/// Adds manifest and documents, and packs the folder as npm does.
fn finish(contents: &Contents, name: &str, manifest: &Value) -> Result<()> {
    let folder = contents.work.join(name);
    let manifest = serde_json::to_string_pretty(manifest)?;
    write_text(&folder.join("package.json"), &format!("{manifest}\n"))?;
    copy_documents(&folder)?;
    let out = contents.out.join(format!("{name}-{VERSION}.tgz"));
    pack::tar(&out, &folder, "package", contents.effort)
}
