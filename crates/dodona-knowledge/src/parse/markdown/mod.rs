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

/// The extensions of notes, in lower case.
pub(super) const EXTENSIONS: [&str; 4] = ["md", "markdown", "mdown", "mkd"];

/// Reads a note; the stem of its file name is the title where it has no other.
pub(super) fn parse(stem: &str, text: &str) -> Parsed {
    let lines = Lines::new(text);
    let front = frontmatter::read(&lines);
    let blocks = Blocks::scan(&lines, front.lines);
    let mut tags = front.tags;
    let mut links = Vec::new();
    for paragraph in blocks.paragraphs(&lines) {
        inline::scan(&lines, paragraph, &mut links, &mut tags);
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

/// Without repetitions, in the order of the first use.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names
        .into_iter()
        .filter(|name| seen.insert(name.clone()))
        .collect()
}
