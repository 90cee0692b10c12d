//! What `cargo metadata` says about the workspace, reduced to the facts our tasks ask for.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// How far to look.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// Our own crates only, which needs no network.
    Members,
    /// Also every package they pull in, on any platform and with every feature.
    Graph,
}

/// A workspace and what it is built from.
#[derive(Default)]
pub(crate) struct Metadata {
    /// Our own crates.
    pub(crate) members: Vec<Member>,
    /// Every package in reach, our own included.
    pub(crate) packages: Vec<Package>,
}

/// A crate of this workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Its `Cargo.toml`, relative to the workspace root.
    pub(crate) manifest: String,
    pub(crate) targets: Vec<Target>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Something cargo builds from a crate.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: TargetKind,
    /// Its first file, relative to the workspace root.
    pub(crate) root: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    Library,
    Binary,
    Bench,
    /// An integration test.
    Test,
    /// Examples and build scripts.
    Other,
}

/// A line of a manifest's dependency tables.
pub(crate) struct Dependency {
    /// The package's own name, also where the manifest renames it.
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// A package as the licence check sees it.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression, if the manifest has one.
    pub(crate) licence: Option<String>,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load(reach: Reach) -> Result<Self> {
        let mut command = process::cargo(&["metadata", "--format-version", "1", "--all-features"]);
        if let Reach::Members = reach {
            command.arg("--no-deps");
        }
        let text = process::output(&mut command)?;
        let json: Value = serde_json::from_str(&text).context("cargo metadata printed bad JSON")?;
        Self::from_json(&json).context("cargo metadata has an unexpected form")
    }

    fn from_json(json: &Value) -> Option<Self> {
        let root = Path::new(json["workspace_root"].as_str()?);
        let ours = json["workspace_members"].as_array()?;
        let mut metadata = Self::default();
        for package in json["packages"].as_array()? {
            if ours.contains(&package["id"]) {
                metadata.members.push(member(package, root)?);
            }
            metadata.packages.push(Package {
                name: text(&package["name"])?,
                version: text(&package["version"])?,
                licence: text(&package["license"]),
            });
        }
        Some(metadata)
    }
}

fn member(package: &Value, root: &Path) -> Option<Member> {
    let targets = package["targets"].as_array()?.iter().map(|target| {
        Some(Target {
            name: text(&target["name"])?,
            kind: target_kind(&target["kind"]),
            root: relative(&target["src_path"], root)?,
        })
    });
    let dependencies = package["dependencies"]
        .as_array()?
        .iter()
        .map(|dependency| {
            Some(Dependency {
                name: text(&dependency["name"])?,
                kind: dependency_kind(&dependency["kind"]),
            })
        });
    Some(Member {
        name: text(&package["name"])?,
        manifest: relative(&package["manifest_path"], root)?,
        targets: targets.collect::<Option<_>>()?,
        dependencies: dependencies.collect::<Option<_>>()?,
    })
}

fn target_kind(kinds: &Value) -> TargetKind {
    match kinds[0].as_str() {
        Some("lib" | "proc-macro") => TargetKind::Library,
        Some("bin") => TargetKind::Binary,
        Some("bench") => TargetKind::Bench,
        Some("test") => TargetKind::Test,
        _ => TargetKind::Other,
    }
}

fn dependency_kind(kind: &Value) -> DependencyKind {
    match kind.as_str() {
        Some("dev") => DependencyKind::Dev,
        Some("build") => DependencyKind::Build,
        _ => DependencyKind::Normal,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn relative(value: &Value, root: &Path) -> Option<String> {
    let path = Path::new(value.as_str()?);
    Some(
        path.strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .replace('\\', "/"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_told_from_what_they_use() {
        let json = json!({
            "workspace_root": "/there",
            "workspace_members": ["ours"],
            "packages": [
                {
                    "id": "ours", "name": "dodona-hub", "version": "0.1.0", "license": "MIT",
                    "manifest_path": "/there/crates/dodona-hub/Cargo.toml",
                    "targets": [
                        {"name": "dodona_hub", "kind": ["lib"], "src_path": "/there/crates/dodona-hub/src/lib.rs"},
                        {"name": "calls", "kind": ["bench"], "src_path": "/there/crates/dodona-hub/benches/calls.rs"},
                    ],
                    "dependencies": [{"name": "serde", "kind": null}, {"name": "insta", "kind": "dev"}],
                },
                {"id": "theirs", "name": "serde", "version": "1.0.0", "license": null},
            ],
        });
        let metadata = Metadata::from_json(&json).unwrap();
        let [hub] = metadata.members.as_slice() else {
            panic!("one member expected")
        };
        assert_eq!(hub.manifest, "crates/dodona-hub/Cargo.toml");
        assert_eq!(hub.targets[0].root, "crates/dodona-hub/src/lib.rs");
        assert_eq!(hub.targets[1].kind, TargetKind::Bench);
        assert_eq!(hub.dependencies[0].kind, DependencyKind::Normal);
        assert_eq!(hub.dependencies[1].kind, DependencyKind::Dev);
        assert_eq!(metadata.packages[1].licence, None);
    }

    #[test]
    fn a_form_we_do_not_know_is_not_guessed_at() {
        assert!(Metadata::from_json(&json!({"packages": []})).is_none());
    }
}
