//! Which crates a change affects: those it touches and those that depend on them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::metadata::{DependencyKind, Member, Metadata, Reach};
use crate::process::{command, output};

/// Files outside of crates that a crate's build or tests read.
const READ_BY: [(&str, &str); 4] = [
    ("rules/", "dodona-rules"),
    ("web/", "dodona-web"),
    ("docs/", "dodona"),
    (".github/", "xtask"),
];

/// Files that every crate depends on.
const SHARED: [&str; 4] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/"];

/// The names of the crates that a change since `revision` affects, uncommitted changes included.
pub(super) fn since(revision: &str) -> Result<BTreeSet<String>> {
    let changed = output(command("git").args(["diff", "--name-only", revision, "--"]))
        .with_context(|| format!("`{revision}` is not a revision of this repository"))?;
    let untracked = output(command("git").args(["ls-files", "--others", "--exclude-standard"]))?;
    let metadata = Metadata::load(Reach::Members)?;
    let files = changed.lines().chain(untracked.lines());
    Ok(affected(files, &metadata.members))
}

fn affected<'a>(files: impl Iterator<Item = &'a str>, members: &[Member]) -> BTreeSet<String> {
    let mut affected = BTreeSet::new();
    for file in files {
        if SHARED.iter().any(|shared| file.starts_with(shared)) {
            return members.iter().map(|member| member.name.clone()).collect();
        }
        let owner = members.iter().find(|member| {
            let folder = Path::new(&member.manifest).parent();
            folder.is_some_and(|folder| Path::new(file).starts_with(folder))
        });
        let reader = READ_BY.iter().find(|(prefix, _)| file.starts_with(prefix));
        affected.extend(owner.map(|member| member.name.clone()));
        affected.extend(reader.map(|(_, name)| (*name).to_owned()));
    }
    // Dependents of dependents too, until nothing changes.
    loop {
        let more = dependents(&affected, members, |kind| kind != DependencyKind::Dev);
        if more.is_empty() {
            break;
        }
        affected.extend(more);
    }
    // A crate that only its tests connect to the change can break in its tests, and no crate that
    // depends on it can: `dodona-testkit` has nearly all crates in its benches.
    let tested = dependents(&affected, members, |kind| kind == DependencyKind::Dev);
    affected.extend(tested);
    affected
}

/// The crates that depend directly on one of these, and are not among them.
fn dependents(
    crates: &BTreeSet<String>,
    members: &[Member],
    counts: impl Fn(DependencyKind) -> bool,
) -> Vec<String> {
    let depends = |member: &&Member| {
        let mut dependencies = member.dependencies.iter();
        !crates.contains(&member.name)
            && dependencies.any(|one| counts(one.kind) && crates.contains(&one.name))
    };
    let members = members.iter().filter(depends);
    members.map(|member| member.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn members() -> Vec<Member> {
        let member = |name: &str, uses: &[&str]| Member {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            targets: Vec::new(),
            dependencies: uses
                .iter()
                .map(|name| Dependency {
                    name: (*name).to_owned(),
                    kind: DependencyKind::Normal,
                })
                .collect(),
        };
        vec![
            member("dodona-proto", &[]),
            member("dodona-rules", &["dodona-proto"]),
            member("dodona-llm", &["dodona-proto"]),
            member("dodona", &["dodona-rules", "dodona-llm"]),
        ]
    }

    fn of(files: &[&str]) -> Vec<String> {
        let files = files.iter().copied();
        affected(files, &members()).into_iter().collect()
    }

    #[test]
    fn dependents_are_affected_and_others_are_not() {
        assert_eq!(
            of(&["crates/dodona-rules/src/lib.rs"]),
            ["dodona", "dodona-rules"]
        );
        assert_eq!(of(&["crates/dodona/src/main.rs"]), ["dodona"]);
        assert_eq!(of(&["rules/core/a.toml"]), ["dodona", "dodona-rules"]);
        assert_eq!(of(&["README.md"]), Vec::<String>::new());
    }

    #[test]
    fn a_crate_whose_name_begins_like_another_is_not_mistaken_for_it() {
        assert_eq!(
            of(&["crates/dodona-llm/src/lib.rs"]),
            ["dodona", "dodona-llm"]
        );
    }

    #[test]
    fn a_test_dependency_is_affected_and_passes_nothing_on() {
        let mut members = members();
        members[2].dependencies.push(Dependency {
            name: "dodona-rules".to_owned(),
            kind: DependencyKind::Dev,
        });
        members.push(Member {
            name: "dodona-other".to_owned(),
            manifest: "crates/dodona-other/Cargo.toml".to_owned(),
            targets: Vec::new(),
            dependencies: vec![Dependency {
                name: "dodona-llm".to_owned(),
                kind: DependencyKind::Normal,
            }],
        });
        let affected = affected(["crates/dodona-rules/src/lib.rs"].into_iter(), &members);
        let affected: Vec<_> = affected.into_iter().collect();
        assert_eq!(affected, ["dodona", "dodona-llm", "dodona-rules"]);
    }

    #[test]
    fn a_shared_manifest_affects_everything() {
        assert_eq!(of(&["Cargo.lock"]).len(), 4);
    }
}
