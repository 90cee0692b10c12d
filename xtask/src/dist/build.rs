//! Building the program, and finding what cargo built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// A built program.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Build {
    pub(super) binary: PathBuf,
    /// Folder with the built page, if it is part of the build.
    pub(super) page: Option<PathBuf>,
}

/// In the page that replaces a missing one, which is part of the program as plain text.
const WITHOUT_PAGE: &[u8] = b"Dodona is running without its page";

/// Builds the program for a release. A build without the page fails.
pub(super) fn release(profile: &str) -> Result<Build> {
    let mut command = process::cargo(&["build", "--locked", "--package", "dodona"]);
    command.args(["--profile", profile, MESSAGES]);
    command.env("DODONA_WEB", "require");
    println!("building with profile `{profile}`");
    find(&process::output(&mut command)?)
}

/// The program that the other tests have built, with the same command so that nothing is compiled twice.
pub(super) fn for_tests() -> Result<Build> {
    let command = ["test", "--workspace", "--no-run", "--test", "cli", MESSAGES];
    find(&process::output(&mut process::cargo(&command))?)
}

/// Cargo's folder for build results.
pub(super) fn target_directory() -> Result<PathBuf> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps"];
    let printed = process::output(&mut process::cargo(&arguments))?;
    let metadata: Value =
        serde_json::from_str(&printed).context("cargo metadata printed bad JSON")?;
    let target = metadata["target_directory"].as_str();
    Ok(target
        .context("cargo metadata has no target directory")?
        .into())
}

const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// Reads cargo's messages: where the program is, and where the build script of `dodona-web` wrote to.
fn find(messages: &str) -> Result<Build> {
    let mut build = Build::default();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let is_web = || {
            let package = message["package_id"].as_str().unwrap_or_default();
            package.contains("dodona-web#") || package.starts_with("dodona-web ")
        };
        match message["reason"].as_str() {
            Some("compiler-artifact")
                if message["target"]["name"] == "dodona"
                    && message["target"]["kind"][0] == "bin" =>
            {
                if let Some(executable) = message["executable"].as_str() {
                    build.binary = executable.into();
                }
            }
            Some("build-script-executed") if is_web() => {
                let out = Path::new(message["out_dir"].as_str().unwrap_or_default());
                build.page = page(out);
            }
            _ => {}
        }
    }
    if build.binary.as_os_str().is_empty() {
        anyhow::bail!("cargo reported no program `dodona`");
    }
    Ok(build)
}

/// The folder with the page that a build script used: its own or a prebuilt one.
fn page(out: &Path) -> Option<PathBuf> {
    let table = fs::read_to_string(out.join("files.rs")).ok()?;
    if !table.contains("MISSING: Option<&str> = None") {
        return None;
    }
    let mut paths = table.split("include_bytes!(\"").skip(1);
    let index = paths.find_map(|rest| rest.split('"').next()?.strip_suffix("index.html"));
    Some(PathBuf::from(index?))
}

/// Whether a program contains the real page.
pub(super) fn has_page(binary: &Path) -> Result<bool> {
    let bytes = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    Ok(!contains(&bytes, WITHOUT_PAGE))
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    let starts = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == needle[0]);
    let mut starts = starts.map(|(at, _)| &bytes[at..]);
    starts.any(|rest| rest.starts_with(needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_the_page_are_found_in_cargos_messages() {
        let folder = tempfile::tempdir().unwrap();
        let table = "File { path: \"index.html\", plain: include_bytes!(\"/built/index.html\") }\n\
                     const MISSING: Option<&str> = None;";
        fs::write(folder.path().join("files.rs"), table).unwrap();
        let messages = format!(
            r#"{{"reason":"build-script-executed","package_id":"path+file:///x/dodona-web#0.1.0","out_dir":{:?}}}
not json
{{"reason":"compiler-artifact","target":{{"name":"dodona","kind":["bin"]}},"executable":"/t/dodona"}}
{{"reason":"compiler-artifact","target":{{"name":"dodona","kind":["bin"]}},"executable":null}}"#,
            folder.path()
        );
        let expected = Build {
            binary: "/t/dodona".into(),
            page: Some("/built/".into()),
        };
        assert_eq!(find(&messages).unwrap(), expected);
    }

    #[test]
    fn no_program_is_an_error() {
        assert!(find("").is_err());
    }

    #[test]
    fn bytes_are_found_anywhere() {
        assert!(contains(b"xxab", b"ab"));
        assert!(!contains(b"xxa", b"ab"));
    }
}
