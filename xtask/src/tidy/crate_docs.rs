//! Rule: every crate says what it is, and every library also what it deliberately is not.

use crate::metadata::{Target, TargetKind};

use super::Problem;
use super::tree::Tree;

const SECTION: &str = "# What it does not do";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let targets = tree
        .metadata
        .members
        .iter()
        .flat_map(|member| &member.targets);
    targets
        .filter_map(|target| complaint(target, tree.files.get(&target.root)?))
        .collect()
}

fn complaint(target: &Target, text: &str) -> Option<Problem> {
    let docs = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect::<Vec<_>>();
    match target.kind {
        TargetKind::Library | TargetKind::Binary if docs.is_empty() => Some(Problem::at(
            &target.root,
            1,
            "must start with `//!` docs that say what it is",
        )),
        TargetKind::Library if !docs.contains(&SECTION) => Some(Problem::at(
            &target.root,
            1,
            format!("the crate's docs need a section `{SECTION}`"),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: TargetKind, text: &str) -> Option<String> {
        let target = Target {
            name: "it".to_owned(),
            kind,
            root: "src/it.rs".to_owned(),
        };
        complaint(&target, text).map(|problem| problem.to_string())
    }

    const WHOLE: &str =
        "//! The host.\n//!\n//! # What it does not do\n//!\n//! It knows no wire.\n";

    #[test]
    fn a_library_that_says_what_it_is_and_is_not_is_fine() {
        assert_eq!(message(TargetKind::Library, WHOLE), None);
    }

    #[test]
    fn a_library_that_promises_everything_is_not() {
        let expected = "src/it.rs:1: the crate's docs need a section `# What it does not do`";
        assert_eq!(
            message(TargetKind::Library, "//! The host.\n").unwrap(),
            expected
        );
    }

    #[test]
    fn a_program_only_says_what_it_is() {
        assert_eq!(
            message(TargetKind::Binary, "//! The binary.\nfn main() {}\n"),
            None
        );
        let expected = "src/it.rs:1: must start with `//!` docs that say what it is";
        assert_eq!(
            message(TargetKind::Binary, "fn main() {}\n").unwrap(),
            expected
        );
    }

    #[test]
    fn a_build_script_needs_no_docs() {
        assert_eq!(message(TargetKind::Other, "fn main() {}\n"), None);
    }

    #[test]
    fn the_roots_of_members_are_read() {
        let root = ("crates/dodona-hub/src/lib.rs", "mod router;\n");
        let tree = Tree::of(&[root]).with_members(&[("dodona-hub", &[])]);
        assert_eq!(check(&tree).len(), 1);
    }
}
