//! Rule: workflows run the commands that contributors run.
//!
//! A check that exists only in a workflow cannot be run before a change is pushed, and it breaks unnoticed.

use super::Problem;
use super::tree::Tree;

const FOLDER: &str = ".github/workflows/";

/// What a step may run. Tests have one entrance, which knows what each platform can do.
const COMMANDS: &[&str] = &["cargo xtask ", "cargo build", "sudo apt-get "];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let workflows = tree.files.iter();
    for (path, text) in workflows.filter(|(path, _)| path.starts_with(FOLDER)) {
        for (index, line) in text.lines().enumerate() {
            let mut report = |message: String| {
                problems.push(Problem::at(path, index + 1, message));
            };
            if line.contains('\t') {
                report("YAML does not allow tabs".to_owned());
            }
            let step = line.trim_start().trim_start_matches("- ");
            if let Some(command) = step.strip_prefix("run: ")
                && !COMMANDS.iter().any(|known| command.starts_with(known))
            {
                report(format!(
                    "`{command}` is not a command of this repository; add it to `cargo xtask`"
                ));
            }
        }
        if !text.contains("permissions:") {
            problems.push(Problem::of(
                path,
                "has no `permissions`; a job would get all of them",
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let path = format!("{FOLDER}ci.yml");
        check(&Tree::of(&[(&path, text)]))
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn our_commands_are_accepted() {
        let text = "permissions:\n  contents: read\n    - run: cargo xtask test\n    - name: x\n      run: cargo build --locked\n";
        assert_eq!(messages(text), Vec::<String>::new());
    }

    #[test]
    fn other_commands_tabs_and_missing_permissions_are_reported() {
        let expected = [
            ".github/workflows/ci.yml:1: `cargo test` is not a command of this repository; add it to `cargo xtask`",
            ".github/workflows/ci.yml:2: YAML does not allow tabs",
            ".github/workflows/ci.yml: has no `permissions`; a job would get all of them",
        ];
        assert_eq!(messages("    - run: cargo test\n\tname: x\n"), expected);
    }
}
