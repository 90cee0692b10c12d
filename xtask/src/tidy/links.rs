//! Rule: links between documents lead somewhere.

use super::Problem;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in links(text) {
            if let Some(message) = complaint(tree, path, &target) {
                problems.push(Problem::at(path, line, message));
            }
        }
    }
    problems
}

fn complaint(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        resolve(from, file)
    };
    let folder = format!("{}/", path.trim_end_matches('/'));
    let text = match tree.files.get(&path) {
        Some(text) => text,
        None if tree.files.keys().any(|path| path.starts_with(&folder)) => return None,
        None => return Some(format!("the link `{target}` leads to no file")),
    };
    // Fragments of other files, such as a line in a source file, are not ours to read.
    let known = fragment.is_empty()
        || !path.ends_with(".md")
        || anchors(text).contains(&fragment.to_owned());
    (!known).then(|| format!("the link `{target}` leads to no heading of {path}"))
}

/// The path a link means when it stands in this file.
fn resolve(from: &str, link: &str) -> String {
    let mut parts = from.split('/').collect::<Vec<_>>();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines of a document that are not inside a fenced block, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// The targets of inline links, images and link definitions.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let inline = line
            .match_indices("](")
            .map(|(at, _)| until_closed(&line[at + 2..]));
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        for target in inline.chain(definition.map(|(_, target)| target)) {
            // A title may follow the target, and pointed brackets may hold it.
            let target = target.split_whitespace().next().unwrap_or_default();
            found.push((number, target.trim_matches(['<', '>']).to_owned()));
        }
    }
    found
}

/// A line without its code spans, in which brackets are no links.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The text up to the parenthesis that closes a link; a target may contain pairs of its own.
fn until_closed(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return &text[..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// The fragments of a document's headings, formed as GitHub does.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let same = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if same == 0 {
            anchor
        } else {
            format!("{anchor}-{same}")
        });
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let other = "# Title\n\n## Add a `method`, now\n";
        let files = [
            ("docs/a.md", text),
            ("docs/how-to/b.md", other),
            ("src/lib.rs", ""),
        ];
        check(&Tree::of(&files))
            .iter()
            .map(Problem::to_string)
            .collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "# Here\n\
            [a](how-to/b.md) [b](how-to/b.md#add-a-method-now) [c](../src/lib.rs#L7 \"title\")\n\
            [d](#here) [e](https://example.org/(x)) [f](how-to/) ![g](<../src/lib.rs>)\n\n\
            [h]: ./how-to/b.md\n";
        assert_eq!(messages(text), Vec::<String>::new());
    }

    #[test]
    fn code_is_not_a_link() {
        assert!(messages("`[a](nowhere.md)`\n```\n[a](nowhere.md)\n```\n").is_empty());
    }

    #[test]
    fn a_link_to_no_file_is_found() {
        let text = "fine\n[a](nowhere.md)\n[b]: ../how-to/b.md\n";
        let expected = [
            "docs/a.md:2: the link `nowhere.md` leads to no file",
            "docs/a.md:3: the link `../how-to/b.md` leads to no file",
        ];
        assert_eq!(messages(text), expected);
    }

    #[test]
    fn a_link_to_no_heading_is_found() {
        let expected = [
            "docs/a.md:1: the link `#there` leads to no heading of docs/a.md",
            "docs/a.md:1: the link `how-to/b.md#here` leads to no heading of docs/how-to/b.md",
        ];
        assert_eq!(messages("[a](#there) [b](how-to/b.md#here)\n"), expected);
    }

    #[test]
    fn repeated_headings_are_numbered() {
        assert_eq!(anchors("# A b\n## A b\n#hash\n"), ["a-b", "a-b-1"]);
    }
}
