//! Notes: sections, links, tags and the few fields of the frontmatter that we use.
//!
//! A scanner of lines instead of a full CommonMark parser: what is wanted is line ranges and
//! wikilinks, and a note that breaks the rules of Markdown must still be found.

mod blocks;
mod frontmatter;
mod inline;
mod sections;
#[cfg(test)]
mod tests;

use self::blocks::Blocks;
use super::Parsed;
use super::lines::Lines;
pub(crate) use frontmatter::extent as frontmatter_extent;
pub(crate) use inline::{Form, Placed};

/// The extensions of notes, in lower case.
pub(crate) const EXTENSIONS: [&str; 4] = ["md", "markdown", "mdown", "mkd"];

/// Reads a note; the stem of its file name is the title where it has no other.
pub(super) fn parse(stem: &str, text: &str) -> Parsed {
    let lines = Lines::new(text);
    let front = frontmatter::read(&lines);
    let blocks = Blocks::scan(&lines, front.lines);
    let mut tags = front.tags;
    let mut links = Vec::new();
    for paragraph in blocks.paragraphs(&lines) {
        let placed = inline::scan(&lines, paragraph, &mut tags);
        links.extend(placed.into_iter().map(|placed| placed.link));
    }
    let first_h1 = blocks.headings.iter().find(|heading| heading.level == 1);
    let title = front
        .title
        .or_else(|| first_h1.map(|heading| heading.text.clone()))
        .filter(|title| !title.is_empty())
        .unwrap_or_else(|| stem.to_owned());
    Parsed {
        title,
        chunks: sections::chunks(&lines, front.lines, &blocks),
        links,
        tags: unique(tags),
        aliases: unique(front.aliases),
        ..Parsed::default()
    }
}

/// The title that frontmatter gives.
pub(crate) fn frontmatter_title(text: &str) -> Option<String> {
    frontmatter::read(&Lines::new(text)).title
}

/// The first paragraph of a note that is not a heading, on one line and without markup.
pub(crate) fn first_paragraph(text: &str) -> Option<String> {
    let lines = Lines::new(text);
    let blocks = Blocks::scan(&lines, frontmatter::read(&lines).lines);
    let is_heading = |start| blocks.headings.iter().any(|h| h.lines.start == start);
    let spans = blocks.paragraphs(&lines);
    let first = spans.into_iter().find(|span| !is_heading(span.start))?;
    let words = lines.text(first);
    let words = inline::plain(&words);
    Some(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The links of a note in the order they stand there, with the places of their targets in its
/// text.
pub(crate) fn links(text: &str) -> Vec<Placed> {
    let lines = Lines::new(text);
    let blocks = Blocks::scan(&lines, frontmatter::read(&lines).lines);
    let starts = line_starts(text);
    let mut links = Vec::new();
    for paragraph in blocks.paragraphs(&lines) {
        let before = lines.text(paragraph);
        for mut placed in inline::scan(&lines, paragraph, &mut Vec::new()) {
            // Lines were joined by one byte whatever ended them.
            let above = &before[..placed.target.start];
            let line = paragraph.start + above.matches('\n').count();
            let column = above.len() - above.rfind('\n').map_or(0, |end| end + 1);
            let start = starts.get(line).copied().unwrap_or_default() + column;
            placed.target = start..start + placed.target.len();
            links.push(placed);
        }
    }
    links
}

/// Where each line of a text begins.
fn line_starts(text: &str) -> Vec<usize> {
    let mut at = 0;
    let mut start = |line: &str| {
        let start = at;
        at += line.len();
        start
    };
    text.split_inclusive('\n').map(&mut start).collect()
}

/// Without repetitions, in the order of the first use.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names
        .into_iter()
        .filter(|name| seen.insert(name.clone()))
        .collect()
}
