//! Sections as chunks.

use super::blocks::{Blocks, Heading};
use crate::parse::lines::{Lines, Span};
use crate::parse::window::{self, Limit};
use crate::parse::{Chunk, PATH_SEPARATOR};

/// A section up to this size is one chunk.
const SECTION: Limit = Limit {
    lines: 60,
    chars: 2_500,
};

/// A section with fewer lines of text than this is joined to the one below it, where that is
/// its child or sibling: a heading alone answers nothing.
const FEW_LINES: usize = 3;

/// What joins the headings of sections that share a chunk.
const JOINT: &str = " · ";

/// A section, or several short ones.
struct Section {
    span: Span,
    /// Of the heading; 0 above the first one.
    level: usize,
    heading: String,
    symbol: String,
    /// Lines of text besides the headings.
    texts: usize,
}

/// The chunks of a note, in order.
pub(super) fn chunks(lines: &Lines<'_>, skip: usize, blocks: &Blocks) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    for section in join(lines, sections(lines, skip, &blocks.headings)) {
        let windows = window::cut(lines, section.span, SECTION, |line| !blocks.is_opaque(line));
        for span in windows {
            chunks.push(window::chunk(
                lines,
                span,
                &section.heading,
                &section.symbol,
            ));
        }
    }
    chunks
}

/// One section per heading, and one for what is above the first.
fn sections(lines: &Lines<'_>, skip: usize, headings: &[Heading]) -> Vec<Section> {
    let first = headings.first().map_or(lines.len(), |h| h.lines.start);
    let mut sections = Vec::new();
    sections.extend(section(
        lines,
        Span {
            start: skip,
            end: first,
        },
        None,
        "",
    ));
    // The headings that the current one is below of.
    let mut above: Vec<&Heading> = Vec::new();
    for (index, heading) in headings.iter().enumerate() {
        above.retain(|outer| outer.level < heading.level);
        let names = above.iter().map(|outer| outer.text.as_str());
        let path = names
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>()
            .join(PATH_SEPARATOR);
        let next = headings.get(index + 1);
        let span = Span {
            start: heading.lines.start,
            end: next.map_or(lines.len(), |next| next.lines.start),
        };
        sections.extend(section(lines, span, Some(heading), &path));
        above.push(heading);
    }
    sections
}

fn section(
    lines: &Lines<'_>,
    span: Span,
    heading: Option<&Heading>,
    path: &str,
) -> Option<Section> {
    let span = lines.trim(span)?;
    let body = heading.map_or(span.start, |heading| heading.lines.end);
    Some(Section {
        span,
        level: heading.map_or(0, |heading| heading.level),
        heading: path.to_owned(),
        symbol: heading.map_or_else(String::new, |heading| heading.text.clone()),
        texts: (body..span.end).filter(|&l| !lines.is_blank(l)).count(),
    })
}

/// Joins short sections to the ones below them.
fn join(lines: &Lines<'_>, sections: Vec<Section>) -> Vec<Section> {
    let mut joined: Vec<Section> = Vec::with_capacity(sections.len());
    for mut section in sections {
        if let Some(before) = joined.pop_if(|before| belongs(lines, before, &section)) {
            section.span.start = before.span.start;
            section.texts += before.texts;
            if section.level == before.level {
                section.symbol = format!("{}{JOINT}{}", before.symbol, section.symbol);
            }
        }
        joined.push(section);
    }
    joined
}

/// Whether a section is short and the next is its child or sibling, and both fit one chunk.
///
/// A heading without any text goes with its child whatever the size of that: the child is cut
/// at the same places a line or two later. The path of the child names the parent, so that
/// nothing is lost there; siblings have their names joined.
fn belongs(lines: &Lines<'_>, section: &Section, next: &Section) -> bool {
    let child = next.level > section.level;
    let both = Span {
        start: section.span.start,
        end: next.span.end,
    };
    let fits = || both.len() <= SECTION.lines && lines.text(both).chars().count() <= SECTION.chars;
    section.level > 0
        && section.texts < FEW_LINES
        && next.level >= section.level
        && (child && section.texts == 0 || fits())
}
