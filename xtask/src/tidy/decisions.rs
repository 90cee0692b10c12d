//! Rule: decisions are numbered without a gap, and fit on a page.

use super::Problem;
use super::tree::Tree;

const FOLDER: &str = "docs/decisions/";

/// What fits on a printed page.
const WORDS: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut expected = 1;
    for (path, text) in tree
        .files
        .iter()
        .filter(|(path, _)| path.starts_with(FOLDER))
    {
        let Some(number) = number(&path[FOLDER.len()..]) else {
            problems.push(Problem::of(path, "must be called `NNNN-title.md`"));
            continue;
        };
        if number != expected {
            problems.push(Problem::of(path, format!("must be number {expected:04}")));
        }
        expected += 1;
        let words = text.split_whitespace().count();
        if words > WORDS {
            problems.push(Problem::of(
                path,
                format!("{words} words; a decision fits on a page of {WORDS}"),
            ));
        }
    }
    problems
}

fn number(name: &str) -> Option<u32> {
    let (number, title) = name.strip_suffix(".md")?.split_once('-')?;
    let is_title = title
        .chars()
        .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    let is_number = number.len() == 4 && number.chars().all(|c| c.is_ascii_digit());
    if is_title && is_number {
        number.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn decisions_in_a_row_are_fine() {
        let files = [
            ("docs/decisions/0001-one.md", "# One"),
            ("docs/decisions/0002-two-2.md", "# Two"),
        ];
        assert!(messages(&files).is_empty());
    }

    #[test]
    fn a_gap_and_a_repetition_are_found() {
        let gap = [
            ("docs/decisions/0001-one.md", ""),
            ("docs/decisions/0003-three.md", ""),
        ];
        assert_eq!(
            messages(&gap),
            ["docs/decisions/0003-three.md: must be number 0002"]
        );
        let twice = [
            ("docs/decisions/0001-one.md", ""),
            ("docs/decisions/0001-uno.md", ""),
        ];
        assert_eq!(
            messages(&twice),
            ["docs/decisions/0001-uno.md: must be number 0002"]
        );
    }

    #[test]
    fn a_name_without_number_or_title_is_found() {
        for name in [
            "docs/decisions/one.md",
            "docs/decisions/1-one.md",
            "docs/decisions/0001-One.md",
        ] {
            assert_eq!(
                messages(&[(name, "")]),
                [format!("{name}: must be called `NNNN-title.md`")]
            );
        }
    }

    #[test]
    fn a_decision_fits_on_a_page() {
        let text = "word ".repeat(501);
        let expected = "docs/decisions/0001-one.md: 501 words; a decision fits on a page of 500";
        assert_eq!(
            messages(&[("docs/decisions/0001-one.md", &text)]),
            [expected]
        );
    }
}
