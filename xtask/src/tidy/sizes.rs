//! Rule: long files and functions say why they are one piece; tests are exempt.
//!
//! Functions are found by their indentation, which the formatter guarantees: one ends at the first
//! closing brace that stands as far left as its `fn`. That needs no parser, and where it errs (such
//! a brace inside a raw string) it sees a function shorter than it is.

use super::Problem;
use super::tree::Tree;

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 100;

/// The words that excuse a length, in the docs of the file or the comment above the function.
const EXCUSE: &str = "One piece because";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !holds_tests(path)) {
        let lines = without_tests(text);
        problems.extend(long_file(path, &lines));
        problems.extend(long_functions(path, &lines));
    }
    problems
}

fn holds_tests(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
}

/// The lines before the module of unit tests, which stands at the end of a file.
fn without_tests(text: &str) -> Vec<&str> {
    let lines = text.lines().collect::<Vec<_>>();
    let tests = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    lines[..tests.unwrap_or(lines.len())].to_vec()
}

fn long_file(path: &str, lines: &[&str]) -> Option<Problem> {
    let excused = lines
        .iter()
        .take_while(|line| line.starts_with("//!"))
        .any(|line| line.contains(EXCUSE));
    (lines.len() > FILE_LINES && !excused).then(|| {
        let message = format!(
            "{} lines; split it along a noun, or say `//! {EXCUSE} …` in its docs",
            lines.len()
        );
        Problem::of(path, message)
    })
}

fn long_functions(path: &str, lines: &[&str]) -> Vec<Problem> {
    let starts = (0..lines.len()).filter(|&start| starts_function(lines[start]));
    let long = starts.filter_map(|start| {
        let length = length(&lines[start..])?;
        let needs_excuse = length > FUNCTION_LINES && !is_excused(&lines[..start]);
        needs_excuse.then(|| {
            let message = format!(
                "a function of {length} lines; name its steps, or say `// {EXCUSE} …` above it"
            );
            Problem::at(path, start + 1, message)
        })
    });
    long.collect()
}

fn starts_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.find(|word| {
        !(word.starts_with("pub")
            || matches!(*word, "async" | "const" | "unsafe" | "extern" | "\"C\""))
    });
    first == Some("fn")
}

/// How many lines the function at the start of these takes; none if it has no body.
fn length(lines: &[&str]) -> Option<usize> {
    let indent = indentation(lines[0]);
    for (index, line) in lines.iter().enumerate() {
        if indentation(line) != indent || line.trim().is_empty() {
            continue;
        }
        if line.ends_with(';') {
            return None;
        }
        if line.trim() == "}" {
            return Some(index + 1);
        }
    }
    None
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Looks through the comments and attributes that stand directly above.
fn is_excused(above: &[&str]) -> bool {
    let directly = above.iter().rev().map(|line| line.trim());
    let mut comments = directly.take_while(|line| line.starts_with("//") || line.starts_with("#["));
    comments.any(|line| line.starts_with("//") && line.contains(EXCUSE))
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

    fn function(lines: usize) -> String {
        format!(
            "    pub(crate) async fn run(\n    ) {{\n{}    }}\n",
            "        step();\n".repeat(lines - 3)
        )
    }

    #[test]
    fn a_short_file_of_short_functions_is_fine() {
        assert!(messages("src/a.rs", &function(100)).is_empty());
    }

    #[test]
    fn a_long_file_says_why() {
        let long = "const A: u8 = 0;\n".repeat(801);
        let expected = "src/a.rs: 801 lines; split it along a noun, or say `//! One piece because …` in its docs";
        assert_eq!(messages("src/a.rs", &long), [expected]);
        let excused = format!("//! A table.\n//! One piece because it is flat.\n{long}");
        assert!(messages("src/a.rs", &excused).is_empty());
    }

    #[test]
    fn a_long_function_says_why() {
        let long = function(101);
        let expected = "src/a.rs:1: a function of 101 lines; name its steps, \
                        or say `// One piece because …` above it";
        assert_eq!(messages("src/a.rs", &long), [expected]);
        let excused = format!("// One piece because it is one flat match.\n#[must_use]\n{long}");
        assert!(messages("src/a.rs", &excused).is_empty());
    }

    #[test]
    fn a_signature_without_a_body_has_no_length() {
        let text = format!(
            "trait A {{\n    fn a(\n    );\n{}}}\n",
            "    const B: u8;\n".repeat(200)
        );
        assert!(messages("src/a.rs", &text).is_empty());
    }

    #[test]
    fn tests_may_be_long() {
        assert!(messages("tests/a.rs", &function(200)).is_empty());
        assert!(messages("src/router/tests.rs", &function(200)).is_empty());
        let inline = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(900));
        assert!(messages("src/a.rs", &inline).is_empty());
    }
}
