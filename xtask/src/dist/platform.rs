//! The platforms that packages exist for, and how each package format names them.

use anyhow::{Context, Result};

use crate::process;

/// One supported platform.
#[derive(Debug)]
pub(super) struct Platform {
    /// Rust's name.
    pub(super) target: &'static str,
    /// Node's `process.platform` and `process.arch`.
    pub(super) node: (&'static str, &'static str),
    /// Platform tag of the wheel. On Linux the glibc version of the build comes before the machine.
    pub(super) wheel: WheelTag,
}

/// Platform tag of a wheel.
#[derive(Debug)]
pub(super) enum WheelTag {
    /// `manylinux_<glibc>_<machine>`.
    Manylinux {
        /// The machine's name.
        machine: &'static str,
    },
    /// The tag as it is.
    Fixed(&'static str),
}

/// The minimum macOS versions are those of the Rust targets.
pub(super) const PLATFORMS: &[Platform] = &[
    Platform {
        target: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        wheel: WheelTag::Manylinux { machine: "x86_64" },
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        node: ("linux", "arm64"),
        wheel: WheelTag::Manylinux { machine: "aarch64" },
    },
    Platform {
        target: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        wheel: WheelTag::Fixed("macosx_10_12_x86_64"),
    },
    Platform {
        target: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        wheel: WheelTag::Fixed("macosx_11_0_arm64"),
    },
    Platform {
        target: "x86_64-pc-windows-msvc",
        node: ("win32", "x64"),
        wheel: WheelTag::Fixed("win_amd64"),
    },
];

impl Platform {
    /// File name of the program.
    pub(super) fn program(&self) -> &'static str {
        match self.is_windows() {
            true => "dodona.exe",
            false => "dodona",
        }
    }

    pub(super) fn is_windows(&self) -> bool {
        self.node.0 == "win32"
    }

    /// Name of the npm package with the program.
    pub(super) fn npm_package(&self) -> String {
        let (system, machine) = self.node;
        format!("{}-{system}-{machine}", super::PACKAGE)
    }
}

/// The platform of this machine's compiler.
pub(super) fn host() -> Result<&'static Platform> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let printed = process::output(process::command(&rustc).arg("-vV"))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` printed no host")?;
    find(host)
}

fn find(target: &str) -> Result<&'static Platform> {
    let known = PLATFORMS.iter().find(|platform| platform.target == target);
    known.with_context(|| {
        let all: Vec<&str> = PLATFORMS.iter().map(|platform| platform.target).collect();
        format!("no packages for `{target}`; supported: {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_target_is_reported_with_the_supported_ones() {
        let error = find("riscv64gc-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.contains("x86_64-unknown-linux-gnu"), "{error}");
    }

    #[test]
    fn npm_packages_are_named_by_node() {
        let platform = find("aarch64-apple-darwin").unwrap();
        assert_eq!(platform.npm_package(), "dodona-agent-darwin-arm64");
    }
}
