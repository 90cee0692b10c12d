//! Rule: no text refers to a file that is not in the repository.
//!
//! A reader of a clone cannot open such a file. Documents at the root of a repository have names
//! in capitals, so every such name must be the name of a file here; and no path may lead to the
//! folder that the authors share next to their working copies. Names in examples (`notes/a.md`)
//! are not checked. What is searched for is assembled from pieces: this file is read by its own
//! rule.

use std::collections::BTreeSet;

use super::Problem;
use super::tree::Tree;

const ENDING: &str = ".md";

/// Shorter names are not documents but test data, such as device names of Windows.
const SHORTEST: usize = 4;

/// Documents that the projects of users have, and that the program reads there.
const OF_USERS: [&str; 2] = ["AGENTS", "CLAUDE"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let known: BTreeSet<&str> = tree.files.keys().map(|path| file_name(path)).collect();
    let shared = ["..", "shared", ""].join("/");
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            let mut report = |name: &str| {
                let message = format!("refers to `{name}`, which is not in the repository");
                problems.push(Problem::at(path, index + 1, message));
            };
            let is_elsewhere = |name: &&str| {
                let stem = name.trim_end_matches(ENDING);
                !known.contains(name) && !OF_USERS.contains(&stem)
            };
            for name in documents(line).filter(is_elsewhere) {
                report(name);
            }
            if line.contains(&shared) {
                report(&shared);
            }
        }
    }
    problems
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The names of documents in a line: capital letters and `_`, then `.md`.
fn documents(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(ENDING).filter_map(|(at, _)| {
        let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
        let length = line[..at].chars().rev().take_while(|c| is_part(*c)).count();
        let start = at - length;
        let is_whole = !line[..start].ends_with(|c: char| c.is_alphanumeric() || c == '-');
        let end = at + ENDING.len();
        let is_over = !line[end..].starts_with(|c: char| c.is_alphanumeric());
        (length >= SHORTEST && is_whole && is_over).then(|| &line[start..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let files = [("README.md", ""), ("docs/a.rs", text)];
        check(&Tree::of(&files))
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn documents_of_the_repository_and_examples_may_be_named() {
        let text = "see README.md, [here](../README.md#top), notes/login.md, CON.md, LPT9.md,\n\
            Upper.md, MY-README.mdx and ./sharedREADME.md\n";
        assert_eq!(messages(text), Vec::<String>::new());
    }

    #[test]
    fn a_document_from_elsewhere_is_found() {
        let name = ["BLUEPRINT", ENDING].concat();
        let text = format!("fine\n// As {name} §3 wants, and ({name}) again.\n");
        let expected = format!("docs/a.rs:2: refers to `{name}`, which is not in the repository");
        assert_eq!(messages(&text), [expected.clone(), expected]);
    }

    #[test]
    fn a_path_to_the_shared_folder_is_found() {
        let path = ["..", "shared", "notes.txt"].join("/");
        let found = messages(&format!("see {path}\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("docs/a.rs:1: refers to"), "{found:?}");
    }
}
