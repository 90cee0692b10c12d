//! The YAML between two `---` lines at the top of a note, or the TOML between two `+++` lines.
//!
//! A tolerant reader of three keys instead of a YAML parser: frontmatter is written by hand and
//! by many tools, and one odd line must not cost the title.

use crate::parse::lines::Lines;

/// What we use of a note's frontmatter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frontmatter {
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) aliases: Vec<String>,
    /// How many lines it takes, fences included; 0 where there is none.
    pub(super) lines: usize,
}

/// Reads the frontmatter of a note.
pub(super) fn read(lines: &Lines<'_>) -> Frontmatter {
    let Some((syntax, end)) = closing_line(lines) else {
        return Frontmatter::default();
    };
    let mut front = Frontmatter {
        lines: end + 1,
        ..Frontmatter::default()
    };
    let mut index = 1;
    while index < end {
        let entry = syntax.key_and_value(lines.get(index));
        index += 1;
        let Some((key, value)) = entry else { continue };
        // What belongs to a key is indented, or a list item, which YAML lets stand at the margin.
        let block: Vec<&str> = (index..end)
            .map(|line| lines.get(line))
            .take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t', '-', '#']))
            .collect();
        index += block.len();
        match key.to_lowercase().as_str() {
            "title" => front.title = scalar_or_block(value, &block),
            "tags" | "tag" | "keywords" => {
                let tags = list(value, &block, [',', ' ']);
                front
                    .tags
                    .extend(tags.iter().filter_map(|tag| plain_tag(tag)));
            }
            "aliases" | "alias" => front.aliases.extend(list(value, &block, [',', ','])),
            _ => {}
        }
    }
    front
}

/// What frontmatter is written in.
#[derive(Clone, Copy)]
enum Syntax {
    Yaml,
    Toml,
}

impl Syntax {
    /// What the first line of a note begins, if that is frontmatter.
    fn begun_by(line: &str) -> Option<Self> {
        match line.trim_start_matches('\u{feff}').trim_end() {
            "---" => Some(Self::Yaml),
            "+++" => Some(Self::Toml),
            _ => None,
        }
    }

    fn closes(self, line: &str) -> bool {
        match self {
            Self::Yaml => matches!(line.trim_end(), "---" | "..."),
            Self::Toml => line.trim_end() == "+++",
        }
    }

    /// `key: value` or `key = value` at the margin.
    fn key_and_value(self, line: &str) -> Option<(&str, &str)> {
        if line.starts_with([' ', '\t', '-', '#']) {
            return None;
        }
        let (key, value) = match self {
            Self::Yaml => line.split_once(':')?,
            Self::Toml => line.split_once('=')?,
        };
        let key = key.trim().trim_matches(['"', '\'']);
        let separated = match self {
            Self::Yaml => value.is_empty() || value.starts_with([' ', '\t']),
            Self::Toml => true,
        };
        (separated && !key.is_empty()).then_some((key, value.trim()))
    }
}

/// What the frontmatter is written in and the line that closes it, where there is one. A `---` at
/// the top may also be a rule above prose: then no line between the two looks like a key.
fn closing_line(lines: &Lines<'_>) -> Option<(Syntax, usize)> {
    let syntax = Syntax::begun_by(lines.get(0))?;
    let end = (1..lines.len()).find(|&line| syntax.closes(lines.get(line)))?;
    let mut body = (1..end).map(|line| lines.get(line));
    let empty = body.clone().all(|line| line.trim().is_empty());
    let is_front = empty || body.any(|line| syntax.key_and_value(line).is_some());
    is_front.then_some((syntax, end))
}

/// How many bytes of a text its frontmatter takes, fences and the end of the last line included.
pub(crate) fn extent(text: &str) -> usize {
    let lines = closing_line(&Lines::new(text)).map_or(0, |(_, end)| end + 1);
    text.split_inclusive('\n').take(lines).map(str::len).sum()
}

/// A title: a scalar on its line, or folded (`>`) or literal (`|`) below it.
fn scalar_or_block(value: &str, block: &[&str]) -> Option<String> {
    let text = if value.is_empty() || value.starts_with(['>', '|']) {
        let words = block.iter().map(|line| line.trim());
        words
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        scalar(value)
    };
    (!text.is_empty()).then_some(text)
}

/// A list in any of the forms that people use: `[a, b]` (also over several lines), `- a` lines,
/// or values on one line with separators between.
fn list(value: &str, block: &[&str], separators: [char; 2]) -> Vec<String> {
    let value = uncomment(value);
    if value.starts_with('[') {
        let mut all = value.to_owned();
        for line in block {
            all.push(' ');
            all.push_str(line.trim());
        }
        let inner = all.trim_start_matches('[');
        let inner = inner.split_once(']').map_or(inner, |(inner, _)| inner);
        return quoted_split(inner, [',', ',']);
    }
    if !value.is_empty() {
        if value.starts_with(['"', '\'']) {
            return vec![scalar(value)];
        }
        return quoted_split(value, separators);
    }
    block
        .iter()
        .filter_map(|line| line.trim().strip_prefix('-'))
        .map(scalar)
        .filter(|item| !item.is_empty())
        .collect()
}

/// Splits at separators that are not inside quotes.
fn quoted_split(text: &str, separators: [char; 2]) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        let fresh = items.last().is_some_and(|item| item.trim().is_empty());
        match quote {
            Some(open) if c == open => quote = None,
            None if fresh && matches!(c, '"' | '\'') => quote = Some(c),
            None if separators.contains(&c) => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    let items = items.iter().map(|item| scalar(item));
    items.filter(|item| !item.is_empty()).collect()
}

/// A scalar without quotes and without the comment behind it.
fn scalar(value: &str) -> String {
    let value = value.trim();
    if let Some(rest) = value.strip_prefix('"') {
        let mut text = String::new();
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => return text,
                '\\' => match chars.next() {
                    Some('n' | 't') => text.push(' '),
                    Some(escaped) => text.push(escaped),
                    None => {}
                },
                _ => text.push(c),
            }
        }
        return text;
    }
    if let Some(rest) = value.strip_prefix('\'') {
        // A quote inside single quotes is written twice.
        let text = rest.replace("''", "\u{0}");
        let text = text.split('\'').next().unwrap_or_default();
        return text.replace('\u{0}', "'");
    }
    uncomment(value).to_owned()
}

/// Without a comment, which starts at a `#` after a space. A `#tag` alone would be one in YAML,
/// but whoever writes it means the tag.
fn uncomment(value: &str) -> &str {
    let value = value.trim();
    if value == "#" || value.starts_with("# ") {
        return "";
    }
    if value.starts_with(['"', '\'', '[']) {
        return value;
    }
    value
        .split_once(" #")
        .map_or(value, |(value, _)| value)
        .trim_end()
}

/// A tag without its `#`; quoted ones often have it.
fn plain_tag(tag: &str) -> Option<String> {
    let tag = tag.trim().trim_start_matches('#').trim_end_matches('/');
    (!tag.is_empty()).then(|| tag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(yaml: &str) -> Frontmatter {
        read(&Lines::new(&format!("---\n{yaml}\n---\nbody")))
    }

    #[test]
    fn titles_in_every_form() {
        for (yaml, title) in [
            ("title: Plain words", Some("Plain words")),
            ("title: With # not: a comment", Some("With")),
            ("title: \"Quoted: \\\"yes\\\"\"", Some("Quoted: \"yes\"")),
            ("title: 'It''s'  # comment", Some("It's")),
            ("Title: Überschrift – 日本", Some("Überschrift – 日本")),
            ("title: >\n  folded\n  text\nx: y", Some("folded text")),
            ("title:", None),
            ("other: x\n  title: nested", None),
        ] {
            assert_eq!(front(yaml).title.as_deref(), title, "{yaml}");
        }
        let toml = "+++\ntitle = \"A = b\" # why\ntags = [\"x\",\n  'y']\n+++\nbody";
        let front = read(&Lines::new(toml));
        assert_eq!(front.title.as_deref(), Some("A = b"));
        assert_eq!(
            (front.tags, front.lines),
            (vec!["x".to_owned(), "y".to_owned()], 5)
        );
    }

    #[test]
    fn lists_in_every_form() {
        for (yaml, tags) in [
            ("tags: [a, b/c, \"d, e\"]", vec!["a", "b/c", "d, e"]),
            ("tags: [a,\n  b,\n]\nx: y", vec!["a", "b"]),
            ("tags:\n  - a\n  - '#b'\n  - # nothing\n", vec!["a", "b"]),
            ("tags:\n- a\n- b\nx: y", vec!["a", "b"]),
            ("tags: a, b c", vec!["a", "b", "c"]),
            ("tags: []", vec![]),
            ("tag: größe # why", vec!["größe"]),
        ] {
            assert_eq!(front(yaml).tags, tags, "{yaml}");
        }
        assert_eq!(front("aliases: One name, Two").aliases, ["One name", "Two"]);
    }

    #[test]
    fn what_is_no_frontmatter_stays_text() {
        for text in [
            "",
            "---",
            "---\ntitle: open",
            "---\nprose only\n---\n",
            " ---\na: b\n---",
        ] {
            assert_eq!(read(&Lines::new(text)), Frontmatter::default(), "{text}");
        }
        assert_eq!(read(&Lines::new("\u{feff}---\r\na: b\r\n---\r\n")).lines, 3);
        assert_eq!(read(&Lines::new("---\n---\n")).lines, 2);
    }

    #[test]
    fn frontmatter_has_an_end() {
        for (front, body) in [
            ("", "# no\n---\n"),
            ("---\na: b\n---\n", "\nbody\n---\n"),
            ("\u{feff}---\r\na: b\r\n---\r\n", "body\r\n"),
            ("+++\na = 1\n+++\n", "+++\n"),
            ("---\na: b\n...", ""),
            ("---\ntext: |\n  ---\n# ---\n---\n", "---\n"),
        ] {
            assert_eq!(extent(&format!("{front}{body}")), front.len(), "{front}");
        }
    }
}
