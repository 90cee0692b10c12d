//! Rule: no parked tests, no loose ends, no silenced lints, no printing that can panic.
//!
//! What is searched for is assembled here from pieces: this file is read by its own rule.

use super::Problem;
use super::tree::Tree;

const PARKED_FILE: &str = ".disabled";
const IGNORED: &str = concat!("#[", "ignore");
const IGNORED_EXAMPLE: &str = concat!("```", "ignore");
const LOOSE_END: &str = concat!("todo", "!(");
const SILENCED: [&str; 2] = [concat!("#[", "allow("), concat!("#![", "allow(")];

/// They panic where the output cannot be written: a full disk or a closed pipe ends the server.
const PRINTING: [&str; 4] = [
    concat!("e", "println!("),
    concat!("e", "print!("),
    concat!("p", "rintln!("),
    concat!("p", "rint!("),
];

/// What may print: tools, examples and tests that people run and watch, and build scripts.
const MAY_PRINT: [&str; 7] = [
    "xtask/",
    "crates/dodona-testkit/",
    "/tests/",
    "fuzz/",
    "/examples/",
    "build.rs",
    "/build/",
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let parked = tree.files.keys().filter(|path| path.contains(PARKED_FILE));
    let mut problems = parked
        .map(|path| Problem::of(path, "a parked file; repair it or delete it"))
        .collect::<Vec<_>>();
    for (path, text) in tree.ending(".rs") {
        problems.extend(in_code(path, text));
    }
    problems
}

fn in_code(path: &str, text: &str) -> Vec<Problem> {
    let lines = text.lines().collect::<Vec<_>>();
    let mut problems = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut report = |message| problems.push(Problem::at(path, index + 1, message));
        if line.contains(IGNORED_EXAMPLE) {
            report("an example that never runs; let it run, or mark it as `text`");
        }
        // A comment may talk about what code may not do.
        if line.trim_start().starts_with("//") {
            continue;
        }
        if line.contains(IGNORED) {
            report("a test that never runs; repair it or delete it");
        }
        if line.contains(LOOSE_END) {
            report("a loose end; finish it");
        }
        let prints = PRINTING.iter().any(|print| has_word(line, print));
        if prints && !MAY_PRINT.iter().any(|part| path.contains(part)) {
            report(
                "printing that panics where it cannot write; use `writeln!` and handle the error",
            );
        }
        if SILENCED.iter().any(|attribute| line.contains(attribute))
            && !gives_reason(&lines[index..])
        {
            report("a silenced lint; repair the cause, or use `#[expect(…, reason = \"…\")]`");
        }
    }
    problems
}

/// Whether a word begins in the line, and not inside another word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Whether the attribute that starts here says why; the formatter may have broken it into lines.
fn gives_reason(lines: &[&str]) -> bool {
    let end = lines
        .iter()
        .position(|line| line.contains(")]"))
        .unwrap_or(lines.len() - 1);
    lines[..=end].iter().any(|line| line.contains("reason ="))
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
    fn honest_code_is_fine() {
        let text = format!("// Nobody writes {LOOSE_END}) here.\n#[test]\nfn a() {{}}\n");
        assert!(messages("src/a.rs", &text).is_empty());
    }

    #[test]
    fn parked_tests_are_found() {
        let text = format!("#[test]\n{IGNORED} = \"flaky\"]\nfn a() {{}}\n");
        let expected = "src/a.rs:2: a test that never runs; repair it or delete it";
        assert_eq!(messages("src/a.rs", &text), [expected]);
        assert_eq!(messages("tests/a.rs.disabled", "").len(), 1);
    }

    #[test]
    fn examples_that_never_run_are_found() {
        let text = format!("//! {IGNORED_EXAMPLE}\n//! a();\n//! ```\n");
        let expected = "src/a.rs:1: an example that never runs; let it run, or mark it as `text`";
        assert_eq!(messages("src/a.rs", &text), [expected]);
    }

    #[test]
    fn loose_ends_are_found() {
        let text = format!("fn a() {{\n    {LOOSE_END})\n}}\n");
        assert_eq!(
            messages("src/a.rs", &text),
            ["src/a.rs:2: a loose end; finish it"]
        );
    }

    #[test]
    fn printing_that_panics_is_for_tools_and_tests() {
        for print in PRINTING {
            let text = format!("fn a() {{\n    {print}\"a\");\n}}\n");
            assert_eq!(
                messages("crates/dodona/src/a.rs", &text).len(),
                1,
                "{print}"
            );
            assert!(messages("crates/dodona/tests/cli/a.rs", &text).is_empty());
            assert!(messages("xtask/src/a.rs", &text).is_empty());
        }
        let other = format!("let sprint = s{}\"a\");\n", PRINTING[3]);
        assert!(messages("crates/dodona/src/a.rs", &other).is_empty());
    }

    #[test]
    fn a_lint_is_silenced_only_with_a_reason() {
        for attribute in SILENCED {
            assert_eq!(
                messages("src/a.rs", &format!("{attribute}dead_code)]\n")).len(),
                1
            );
            let broken =
                format!("{attribute}\n    dead_code,\n    reason = \"only on Windows\"\n)]\n");
            assert!(messages("src/a.rs", &broken).is_empty());
        }
    }

    #[test]
    fn the_reason_of_the_next_attribute_does_not_count() {
        let text = format!("{}dead_code)]\n#[expect(a, reason = \"b\")]\n", SILENCED[0]);
        assert_eq!(messages("src/a.rs", &text).len(), 1);
    }
}
