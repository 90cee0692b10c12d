//! Rule: no path or host of somebody's machine.
//!
//! A home folder works for one person, and a registry's host works where there is no mirror; both
//! get in by accident, through a log that was pasted or a lock file that a local setting changed.
//! What is searched for is assembled here from pieces: this file is read by its own rule.

use super::Problem;
use super::tree::Tree;

/// Folders at the root of a file system that hold somebody's own files.
const FOLDERS: &[&str] = &["home", "root", "work"];

/// Hosts of package registries, without their last part.
const HOSTS: &[(&str, &str)] = &[
    ("index.crates", "io"),
    ("static.crates", "io"),
    ("registry.npmjs", "org"),
    ("registry.yarnpkg", "com"),
    ("pypi", "org"),
    ("files.pythonhosted", "org"),
    ("deb.debian", "org"),
    ("security.debian", "org"),
    ("archive.ubuntu", "com"),
    ("security.ubuntu", "com"),
];

const LOCK_FILE: &str = "Cargo.lock";

/// How cargo names its registry in a lock file, whichever mirror it came from.
const REGISTRY: &str = r#"source = "registry+https://github.com/rust-lang/crates.io-index""#;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let folders = FOLDERS
        .iter()
        .map(|folder| format!("/{folder}/"))
        .collect::<Vec<_>>();
    let hosts = HOSTS
        .iter()
        .map(|(host, end)| format!("{host}.{end}"))
        .collect::<Vec<_>>();
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            let mut report = |message| problems.push(Problem::at(path, index + 1, message));
            for folder in folders.iter().filter(|folder| starts_path(line, folder)) {
                report(format!("a path of one machine: `{folder}`"));
            }
            for host in hosts.iter().filter(|host| line.contains(host.as_str())) {
                report(format!("a registry's host: `{host}`"));
            }
            if path == LOCK_FILE && line.starts_with("source = ") && line != REGISTRY {
                report("a package from elsewhere than the standard registry".to_owned());
            }
        }
    }
    problems
}

/// Whether an absolute path with this first folder stands in the line. The same folder deeper in a
/// path, as in `~/work/` or `src/root/`, belongs to nobody's machine.
fn starts_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| {
            c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | '}' | ')' | '*')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn relative_paths_and_the_users_own_are_fine() {
        let text =
            "see ~/work/notes, $HOME/work/notes, src/root/mod.rs and https://example.org/home/x\n";
        assert!(messages("a.md", text).is_empty());
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        for folder in FOLDERS {
            let text = format!("fine\nlet path = \"/{folder}/alice/project\";\n");
            assert_eq!(
                messages("a.rs", &text),
                [format!("a.rs:2: a path of one machine: `/{folder}/`")]
            );
        }
    }

    #[test]
    fn a_registrys_host_is_found() {
        for (host, end) in HOSTS {
            let text = format!("url = \"https://{host}.{end}/simple\"\n");
            assert_eq!(
                messages("a.toml", &text),
                [format!("a.toml:1: a registry's host: `{host}.{end}`")]
            );
        }
    }

    #[test]
    fn a_lock_file_names_the_standard_registry() {
        assert!(messages(LOCK_FILE, REGISTRY).is_empty());
        let mirror = "source = \"sparse+https://mirror.example/\"\n";
        let expected = "Cargo.lock:1: a package from elsewhere than the standard registry";
        assert_eq!(messages(LOCK_FILE, mirror), [expected]);
    }
}
