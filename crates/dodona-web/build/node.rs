//! The versions of Node that can build the page.

use std::process::{Command, Stdio};

/// Vite's requirement, as in `engines` of `web/package.json`: 20.19 and later 20.x, or 22.12 and later.
const NEEDED: &str = "20.19 or later in the 20 series, or 22.12 or later";

/// Checks that Node is installed and recent enough. The error is a sentence for the user.
pub(crate) fn check() -> Result<(), String> {
    let output = Command::new("node")
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|_| format!("Node was not found; install Node {NEEDED}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let version = printed.trim().trim_start_matches('v');
    match parse(version) {
        Some(version) if is_supported(version) => Ok(()),
        Some(_) => Err(format!(
            "Node {version} cannot build it; install Node {NEEDED}"
        )),
        None => Err(format!("`node --version` failed; install Node {NEEDED}")),
    }
}

fn is_supported((major, minor): (u32, u32)) -> bool {
    match major {
        20 => minor >= 19,
        22 => minor >= 12,
        _ => major > 22,
    }
}

/// Major and minor number of `20.19.1`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}
