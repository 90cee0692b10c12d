//! Rule: `deny.toml` allows every licence we build from, on any platform.

use toml::{Table, Value};

use crate::metadata::Package;

use super::Problem;
use super::spdx;
use super::tree::Tree;

const LIST: &str = "deny.toml";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(text) = tree.files.get(LIST) else {
        return vec![Problem::of(
            LIST,
            "is missing, and with it the list of allowed licences",
        )];
    };
    match allowed(text) {
        Err(message) => vec![Problem::of(LIST, message)],
        Ok(allowed) => {
            let packages = tree.metadata.packages.iter();
            packages
                .filter_map(|package| complaint(package, &allowed))
                .collect()
        }
    }
}

fn allowed(text: &str) -> Result<Vec<String>, String> {
    let table = text
        .parse::<Table>()
        .map_err(|error| format!("is not TOML: {}", error.message()))?;
    let list = table
        .get("licenses")
        .and_then(|licenses| licenses.get("allow"));
    let list = list
        .and_then(Value::as_array)
        .ok_or("has no list `allow` under `[licenses]`")?;
    Ok(list
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect())
}

fn complaint(package: &Package, allowed: &[String]) -> Option<Problem> {
    let Package {
        name,
        version,
        licence,
    } = package;
    let problem = match licence {
        None => "names no licence".to_owned(),
        Some(licence) => {
            let is_allowed = |licence: &str| allowed.iter().any(|allowed| allowed == licence);
            match spdx::is_satisfied(licence, &is_allowed) {
                Ok(true) => return None,
                Ok(false) => format!("needs `{licence}`, which the list does not allow"),
                Err(error) => format!("has a licence we cannot read, `{licence}`: {error}"),
            }
        }
    };
    Some(Problem::of(
        LIST,
        format!("the package {name} {version} {problem}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(licence: Option<&str>) -> Vec<String> {
        let mut tree = Tree::of(&[(LIST, "[licenses]\nallow = [\"MIT\", \"ISC\"]\n")]);
        tree.metadata.packages.push(Package {
            name: "leaf".to_owned(),
            version: "1.2.3".to_owned(),
            licence: licence.map(str::to_owned),
        });
        check(&tree).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn an_allowed_licence_is_fine() {
        assert!(messages(Some("GPL-3.0-only OR ISC")).is_empty());
    }

    #[test]
    fn any_other_is_named_with_its_package() {
        let expected =
            "deny.toml: the package leaf 1.2.3 needs `GPL-3.0-only`, which the list does not allow";
        assert_eq!(messages(Some("GPL-3.0-only")), [expected]);
    }

    #[test]
    fn none_at_all_and_nonsense_are_problems_too() {
        assert_eq!(
            messages(None),
            ["deny.toml: the package leaf 1.2.3 names no licence"]
        );
        assert_eq!(messages(Some("MIT OR")).len(), 1);
    }

    #[test]
    fn a_list_that_is_not_there_is_a_problem() {
        assert_eq!(check(&Tree::default()).len(), 1);
        assert_eq!(check(&Tree::of(&[(LIST, "[bans]\n")])).len(), 1);
    }
}
