//! Rule: every crate inherits the workspace's lints, `unsafe_code = "forbid"` among them.

use toml::Table;
use toml::Value;

use super::Problem;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = tree
        .metadata
        .members
        .iter()
        .map(|member| member.manifest.as_str());
    manifests
        .filter_map(|path| complaint(path, tree.files.get(path)?))
        .collect()
}

fn complaint(path: &str, manifest: &str) -> Option<Problem> {
    let inherits = match manifest.parse::<Table>() {
        Ok(table) => {
            table.get("lints").and_then(|lints| lints.get("workspace"))
                == Some(&Value::Boolean(true))
        }
        Err(error) => {
            return Some(Problem::of(
                path,
                format!("is not TOML: {}", error.message()),
            ));
        }
    };
    (!inherits).then(|| Problem::of(path, "needs `[lints]` with `workspace = true`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_inherits_is_fine() {
        assert_eq!(complaint("Cargo.toml", "[lints]\nworkspace = true\n"), None);
    }

    #[test]
    fn a_manifest_with_its_own_lints_or_none_is_not() {
        for manifest in [
            "",
            "[lints.rust]\nunsafe_code = \"allow\"\n",
            "[lints]\nworkspace = false\n",
        ] {
            let message = complaint("Cargo.toml", manifest).unwrap().to_string();
            assert_eq!(
                message,
                "Cargo.toml: needs `[lints]` with `workspace = true`"
            );
        }
    }

    #[test]
    fn the_manifests_of_members_are_read() {
        let manifest = ("crates/dodona-hub/Cargo.toml", "[package]\n");
        let tree = Tree::of(&[manifest]).with_members(&[("dodona-hub", &[])]);
        assert_eq!(check(&tree).len(), 1);
    }
}
