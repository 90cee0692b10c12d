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
    match Allowed::read(text) {
        Err(message) => vec![Problem::of(LIST, message)],
        Ok(allowed) => {
            let packages = tree.metadata.packages.iter();
            packages
                .filter_map(|package| complaint(package, &allowed))
                .collect()
        }
    }
}

/// What `deny.toml` allows, in the form that cargo-deny reads.
struct Allowed {
    to_all: Vec<String>,
    /// A package and what it alone may have.
    exceptions: Vec<(String, Vec<String>)>,
}

impl Allowed {
    fn read(text: &str) -> Result<Self, String> {
        let table = text
            .parse::<Table>()
            .map_err(|error| format!("is not TOML: {}", error.message()))?;
        let licenses = table.get("licenses");
        let list = licenses.and_then(|licenses| licenses.get("allow"));
        let to_all = list
            .and_then(names)
            .ok_or("has no list `allow` under `[licenses]`")?;
        let exceptions = licenses
            .and_then(|licenses| licenses.get("exceptions")?.as_array())
            .map_or(&[][..], Vec::as_slice);
        let exceptions = exceptions.iter().map(|exception| {
            let package = exception.get("crate").and_then(Value::as_str);
            let licences = exception.get("allow").and_then(names);
            Some((package?.to_owned(), licences?))
        });
        Ok(Self {
            to_all,
            exceptions: exceptions
                .collect::<Option<_>>()
                .ok_or("has an exception without `crate` or `allow`")?,
        })
    }

    fn admits(&self, package: &str, licence: &str) -> bool {
        // "Or later" is met by the version itself.
        let plain = licence.strip_suffix('+').unwrap_or(licence);
        let has = |list: &[String]| list.iter().any(|one| one == licence || one == plain);
        let own = self.exceptions.iter().filter(|(name, _)| name == package);
        has(&self.to_all) || own.into_iter().any(|(_, list)| has(list))
    }
}

fn names(list: &Value) -> Option<Vec<String>> {
    let names = list.as_array()?.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}

fn complaint(package: &Package, allowed: &Allowed) -> Option<Problem> {
    let Package {
        name,
        version,
        licence,
    } = package;
    let problem = match licence {
        None => "names no licence".to_owned(),
        Some(licence) => {
            let is_allowed = |licence: &str| allowed.admits(name, licence);
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

    const TEXT: &str = r#"
        [licenses]
        allow = ["MIT", "ISC"]
        exceptions = [{ crate = "only", allow = ["MPL-2.0"] }]
    "#;

    fn messages(licence: Option<&str>) -> Vec<String> {
        messages_of("leaf", licence)
    }

    fn messages_of(package: &str, licence: Option<&str>) -> Vec<String> {
        let mut tree = Tree::of(&[(LIST, TEXT)]);
        tree.metadata.packages.push(Package {
            name: package.to_owned(),
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
    fn an_exception_is_for_one_package() {
        assert!(messages_of("only", Some("MPL-2.0+")).is_empty());
        assert_eq!(messages_of("leaf", Some("MPL-2.0+")).len(), 1);
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
