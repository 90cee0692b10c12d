//! Rule: some dependencies belong to some crates only.
//!
//! The invariants of ARCHITECTURE.md that a manifest can break are here as a table.

use crate::metadata::{DependencyKind, Member};

use super::Problem;
use super::tree::Tree;

/// A dependency that is not everybody's.
struct Fence {
    dependency: &'static str,
    belongs: Belongs,
    reason: &'static str,
}

enum Belongs {
    /// To these crates only, their tests included.
    OnlyTo(&'static [&'static str]),
    /// To these crates, and to the tests of all.
    OnlyToOrTests(&'static [&'static str]),
    /// To any crate but these.
    NeverTo(&'static [&'static str]),
}

use Belongs::{NeverTo, OnlyTo, OnlyToOrTests};

const FENCES: &[Fence] = &[
    Fence {
        dependency: "rusqlite",
        // The testkit measures the store against the raw database.
        belongs: OnlyTo(&["dodona-store", "dodona-testkit"]),
        reason: "only the store opens a database",
    },
    Fence {
        dependency: "tokio",
        belongs: NeverTo(&["dodona-proto", "dodona-macros"]),
        reason: "names and descriptors need no runtime",
    },
    Fence {
        dependency: "anyhow",
        belongs: OnlyToOrTests(&["dodona", "dodona-testkit", "xtask"]),
        reason: "a library's errors are types that callers can tell apart",
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.metadata.members.iter().flat_map(crossings).collect()
}

fn crossings(member: &Member) -> Vec<Problem> {
    let mut problems = Vec::new();
    for used in &member.dependencies {
        for fence in FENCES.iter().filter(|fence| fence.dependency == used.name) {
            if !fence.belongs.admits(&member.name, used.kind) {
                let message = format!(
                    "`{}` may not use `{}`: {}",
                    member.name, used.name, fence.reason
                );
                problems.push(Problem::of(&member.manifest, message));
            }
        }
    }
    problems
}

impl Belongs {
    fn admits(&self, member: &str, kind: DependencyKind) -> bool {
        match self {
            OnlyTo(members) => members.contains(&member),
            OnlyToOrTests(members) => kind == DependencyKind::Dev || members.contains(&member),
            NeverTo(members) => !members.contains(&member),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{Dev, Normal};

    fn messages(name: &str, used: &str, kind: DependencyKind) -> Vec<String> {
        let tree = Tree::default().with_members(&[(name, &[(used, kind)])]);
        check(&tree).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn the_store_opens_databases() {
        assert!(messages("dodona-store", "rusqlite", Normal).is_empty());
    }

    #[test]
    fn nobody_else_does_and_not_in_tests_either() {
        let expected = "crates/dodona-hub/Cargo.toml: `dodona-hub` may not use `rusqlite`: \
                        only the store opens a database";
        assert_eq!(messages("dodona-hub", "rusqlite", Dev), [expected]);
    }

    #[test]
    fn proto_has_no_runtime() {
        assert_eq!(messages("dodona-proto", "tokio", Normal).len(), 1);
        assert!(messages("dodona-hub", "tokio", Normal).is_empty());
    }

    #[test]
    fn a_library_may_use_anyhow_in_tests_only() {
        assert!(messages("dodona-hub", "anyhow", Dev).is_empty());
        assert_eq!(messages("dodona-hub", "anyhow", Normal).len(), 1);
    }
}
