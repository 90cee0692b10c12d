//! Links and tags inside a paragraph.

use std::collections::HashMap;
use std::ops::Range;

use crate::parse::Link;
use crate::parse::lines::{Lines, Span, number};

/// The longest link text or target that is read, in bytes: an unclosed bracket must not make
/// the scan of a long paragraph quadratic.
const MAX_LINK_BYTES: usize = 2_000;

/// How a link is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `[[target]]`
    Wiki,
    /// `[label](target)` or `[label]: target`
    Markdown,
    /// `[label](<target>)`, in which spaces may stand.
    Angled,
}

/// A link, and where its target stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) link: Link,
    pub(crate) form: Form,
    /// The bytes of the target as written, without heading and alias.
    pub(crate) target: Range<usize>,
}

/// Finds the links and tags of a paragraph, places counted from its beginning.
pub(super) fn scan(lines: &Lines<'_>, span: Span, tags: &mut Vec<String>) -> Vec<Placed> {
    let text = mask_code(&lines.text(span));
    let mut links = Vec::new();
    let mut line = span.start;
    let mut at = 0;
    if let Some(path) = reference_definition(&text) {
        links.extend(markdown_link(&text, path, "", number(line)));
    }
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut step = c.len_utf8();
        match c {
            '\n' => line += 1,
            // What follows a backslash is only itself.
            '\\' => {
                let next = rest[1..].chars().next().filter(|&c| c != '\n');
                step += next.map_or(0, char::len_utf8);
            }
            '[' => {
                if let Some((link, target, len)) = wikilink(rest, number(line)) {
                    links.push(Placed {
                        link,
                        form: Form::Wiki,
                        target: place(&text, target),
                    });
                    step = len;
                } else if let Some((label, path, len)) = bracketed(rest) {
                    links.extend(markdown_link(&text, path, label, number(line)));
                    line += rest[..len].matches('\n').count();
                    step = len;
                }
            }
            '#' if starts_word(&text[..at]) => {
                let tag = tag(&rest[1..]);
                step += tag.len();
                tags.extend(worth(tag));
            }
            _ => {}
        }
        at += step;
    }
    links
}

/// A tag without what trails it. A number such as `#12` names an issue; a tag has a letter.
fn worth(tag: &str) -> Option<String> {
    let tag = tag.trim_end_matches(['/', '-']);
    let letter = |c: char| !c.is_numeric() && !matches!(c, '_' | '-' | '/');
    tag.chars().any(letter).then(|| tag.to_owned())
}

/// Where a part of a text stands in it.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Text without emphasis, code marks and link targets: what a heading says.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some((link, _, len)) = wikilink(rest, 0) {
            out.push_str(link.alias.as_ref().unwrap_or(&link.target));
            at += len;
        } else if let Some((label, _, len)) = bracketed(rest) {
            out.push_str(label);
            at += len;
        } else {
            // An image leaves its description.
            if !matches!(c, '*' | '`') && !rest.starts_with("![") {
                out.push(c);
            }
            at += c.len_utf8();
        }
    }
    out.trim().to_owned()
}

/// Overwrites code spans with spaces, byte by byte, so that positions stay.
fn mask_code(text: &str) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((start, len)) if *start + *len == at => *len += 1,
            _ => runs.push((at, 1)),
        }
    }
    // The runs of each length, last first: a span ends at the next run as long as its own.
    let mut ends: HashMap<usize, Vec<usize>> = HashMap::new();
    for &(start, len) in runs.iter().rev() {
        ends.entry(len).or_default().push(start);
    }
    let mut masked = String::with_capacity(text.len());
    for (start, len) in runs {
        if start < masked.len() || text[..start].ends_with('\\') {
            continue;
        }
        let Some(ends) = ends.get_mut(&len) else {
            continue;
        };
        while ends.last().is_some_and(|&end| end <= start) {
            ends.pop();
        }
        let Some(&end) = ends.last() else { continue };
        masked.push_str(&text[masked.len()..start]);
        let blank = |b| if b == b'\n' { '\n' } else { ' ' };
        masked.extend(text[start..end + len].bytes().map(blank));
    }
    masked.push_str(&text[masked.len()..]);
    masked
}

/// `[[target#heading|alias]]` at the start of a text, the part of it that is the target, and its
/// length.
fn wikilink(text: &str, line: u32) -> Option<(Link, &str, usize)> {
    let inner = text.strip_prefix("[[")?;
    let end = within(inner).find("]]")?;
    let inner = &inner[..end];
    // `[[1]](path)` is a Markdown link whose text has brackets.
    let label = text[end + 4..].starts_with('(');
    if label || inner.contains(['\n', '[']) {
        return None;
    }
    let (path, alias) = match inner.split_once('|') {
        // Inside a table the bar is escaped.
        Some((path, alias)) => (path.trim_end_matches('\\'), nonempty(alias)),
        None => (inner, None),
    };
    let (target, heading) = match path.split_once('#') {
        Some((target, heading)) => (target.trim(), nonempty(heading)),
        None => (path.trim(), None),
    };
    let link = Link {
        target: target.to_owned(),
        heading,
        alias,
        line,
    };
    (!link.target.is_empty() || link.heading.is_some()).then_some((link, target, end + 4))
}

/// `[label](path "title")` at the start of a text: label, path and length.
fn bracketed(text: &str) -> Option<(&str, &str, usize)> {
    let label = within(text.strip_prefix('[')?);
    let close = closing(label, '[', ']')?;
    let inner = within(label[close + 1..].strip_prefix('(')?);
    let end = closing(inner, '(', ')')?;
    let target = inner[..end].trim();
    let path = match target.strip_prefix('<') {
        Some(target) => target.split('>').next(),
        None => target.split_whitespace().next(),
    };
    // A link to nowhere is empty in its place: where a path stands is told by where its text is.
    let path = path.unwrap_or(&target[..0]);
    Some((&label[..close], path, close + end + 4))
}

/// The path of `[label]: path`; a footnote has none.
pub(super) fn reference_definition(text: &str) -> Option<&str> {
    let (label, target) = text.trim_start().strip_prefix('[')?.split_once("]:")?;
    if label.starts_with('^') || label.contains(['[', ']', '\n']) {
        return None;
    }
    target
        .split_whitespace()
        .next()
        .map(|path| path.trim_matches(['<', '>']))
}

/// Where a bracket that is open at the start closes.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == open => depth += 1,
            _ if c == close && depth == 0 => return Some(at),
            _ if c == close => depth -= 1,
            _ => {}
        }
    }
    None
}

/// As much of a text as a link may take.
fn within(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINK_BYTES)]
}

/// A link to another note of the project, if that is what a path in a text is.
fn markdown_link(text: &str, path: &str, label: &str, line: u32) -> Option<Placed> {
    let (written, heading) = match path.split_once('#') {
        Some((path, heading)) => (path, nonempty(&percent_decoded(heading))),
        None => (path, None),
    };
    let scheme = written.split(['/', '?']).next().unwrap_or_default();
    if scheme.contains(':') || written.starts_with("//") {
        return None;
    }
    let target = percent_decoded(written);
    let extension = super::super::extension(&target);
    let place = place(text, written);
    let form = match text[..place.start].ends_with('<') {
        true => Form::Angled,
        false => Form::Markdown,
    };
    super::EXTENSIONS
        .contains(&extension.as_str())
        .then(|| Placed {
            link: Link {
                target,
                heading,
                alias: nonempty(&plain(label)),
                line,
            },
            form,
            target: place,
        })
}

/// `%20` and the like; what is not UTF-8 then stays as it was.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                at += 3;
            }
            None => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn nonempty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a tag may start after this text: not inside a word, a URL or an attribute.
fn starts_word(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ',' | ';'))
}

/// The tag at the start of a text. Marks and symbols outside of ASCII count as letters, since
/// many scripts need them.
fn tag(text: &str) -> &str {
    let is_part = |c: char| match c {
        '_' | '-' | '/' => true,
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' => false,
        '\u{ff00}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' => false,
        _ => c.is_alphanumeric() || !c.is_ascii() && !c.is_whitespace(),
    };
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}
