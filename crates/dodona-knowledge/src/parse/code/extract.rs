//! From a syntax tree to definitions and references.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{
    Node, ParseOptions, Parser, QueryCursor, QueryCursorOptions, StreamingIterator, Tree,
};

use super::language::{Grammar, Role, Tags};
use crate::parse::Reference;
use crate::parse::lines::{Lines, Span, number};

/// How long one file may take. Hostile or broken input can make error recovery crawl, and an
/// index that waits for one file is worse than one that has that file as windows.
const BUDGET: Duration = Duration::from_secs(2);

/// A text above this size is not parsed: its tree would take some hundred megabytes.
const MAX_BYTES: usize = 4 << 20;

/// Nobody writes brackets this deep, and the time for a tree grows with the square of its depth.
const MAX_DEPTH: usize = 1_000;

/// Something that has a name and lines, before it has containers.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// `None` for a scope, which contains definitions and is none.
    pub(super) kind: Option<&'static str>,
    /// The container that the text names explicitly, as a Go receiver does.
    pub(super) receiver: Option<String>,
    /// In bytes: what decides who contains whom.
    pub(super) bytes: (usize, usize),
    /// With the documentation above it.
    pub(super) lines: Span,
    /// The line that its name is on.
    pub(super) name_line: usize,
    /// Declared like a variable, as C declares functions.
    declared: bool,
}

/// What the tree of a file says.
#[derive(Debug, Default)]
pub(super) struct Extract {
    /// By position, a container before what it contains.
    pub(super) definitions: Vec<Definition>,
    pub(super) references: Vec<Reference>,
}

/// Parses and queries a text; `None` where that fails or takes too long.
pub(super) fn extract(grammar: &Grammar, text: &str, lines: &Lines<'_>) -> Option<Extract> {
    if text.len() > MAX_BYTES || depth(text) > MAX_DEPTH {
        return None;
    }
    // Compiled before the clock starts: the first file of a language does not pay for it.
    let tags = grammar.tags()?;
    let deadline = Instant::now() + BUDGET;
    let tree = parse(grammar, text, deadline)?;
    let found = query(tags, &tree, text, deadline)?;
    Some(found.finish(text, lines))
}

/// How many brackets are open at once at most. Those in strings and comments count too: what
/// matters is that a text of some hundred nested ones is never refused.
fn depth(text: &str) -> usize {
    let mut open = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

fn parse(grammar: &Grammar, text: &str, deadline: Instant) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language()).ok()?;
    let bytes = text.as_bytes();
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    let mut check = |_: &tree_sitter::ParseState| until(deadline);
    let options = ParseOptions::new().progress_callback(&mut check);
    parser.parse_with_options(&mut read, None, Some(options))
}

fn until(deadline: Instant) -> ControlFlow<()> {
    if Instant::now() < deadline {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// A match of a definition pattern.
struct Hit<'tree> {
    pattern: usize,
    kind: Option<&'static str>,
    node: Node<'tree>,
    name: Node<'tree>,
    receiver: Option<Node<'tree>>,
}

/// The raw captures of a file.
#[derive(Default)]
struct Found<'tree> {
    hits: Vec<Hit<'tree>>,
    docs: Vec<Node<'tree>>,
    outers: Vec<Node<'tree>>,
    references: Vec<Node<'tree>>,
}

fn query<'tree>(
    tags: &Tags,
    tree: &'tree Tree,
    text: &str,
    deadline: Instant,
) -> Option<Found<'tree>> {
    let mut found = Found::default();
    let mut cursor = QueryCursor::new();
    let mut check = |_: &tree_sitter::QueryCursorState| until(deadline);
    let options = QueryCursorOptions::new().progress_callback(&mut check);
    let root = tree.root_node();
    let mut matches = cursor.matches_with_options(&tags.query, root, text.as_bytes(), options);
    while let Some(found_match) = matches.next() {
        let mut definition = None;
        let mut name = None;
        let mut receiver = None;
        for capture in found_match.captures() {
            match tags.roles.get(capture.index as usize) {
                Some(Role::Definition(kind)) => definition = Some((Some(*kind), capture.node)),
                Some(Role::Scope) => definition = Some((None, capture.node)),
                Some(Role::Name) => name = Some(capture.node),
                Some(Role::Container) => receiver = Some(capture.node),
                Some(Role::Doc) => found.docs.push(capture.node),
                Some(Role::Outer) => found.outers.push(capture.node),
                Some(Role::Reference) => found.references.push(capture.node),
                None => {}
            }
        }
        if let (Some((kind, node)), Some(name)) = (definition, name) {
            found.hits.push(Hit {
                pattern: found_match.pattern_index,
                kind,
                node,
                name,
                receiver,
            });
        }
    }
    // A query that was stopped ends like one that is complete: the clock tells them apart.
    until(deadline).is_continue().then_some(found)
}

impl Found<'_> {
    fn finish(mut self, text: &str, lines: &Lines<'_>) -> Extract {
        let content = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default();
        let docs = self.doc_lines(text, lines);
        let outers = self.outer_lines();

        // One name is one definition: the earliest pattern that has it decides.
        self.hits
            .sort_by_key(|hit| (hit.name.start_byte(), hit.pattern));
        self.hits.dedup_by_key(|hit| hit.name.start_byte());
        let named: HashSet<usize> = self
            .hits
            .iter()
            .filter(|hit| hit.kind.is_some())
            .map(|hit| hit.name.start_byte())
            .collect();

        let mut definitions: Vec<_> = self
            .hits
            .iter()
            .map(|hit| {
                let mut span = rows(hit.node);
                if let Some(&start) = outers.get(&span.end) {
                    span.start = span.start.min(start);
                }
                span.start = with_docs(&docs, span.start);
                Definition {
                    name: content(hit.name).to_owned(),
                    kind: hit.kind,
                    receiver: hit.receiver.map(|node| content(node).to_owned()),
                    bytes: (hit.node.start_byte(), hit.node.end_byte()),
                    lines: span,
                    name_line: hit.name.start_position().row,
                    declared: hit.node.kind() == "declaration",
                }
            })
            // Error recovery invents tokens that are missing: they have no text.
            .filter(|definition| !definition.name.is_empty())
            .collect();
        definitions.sort_by_key(|d| (d.bytes.0, Reverse(d.bytes.1)));
        drop_local_prototypes(&mut definitions);

        let mut references: Vec<_> = self
            .references
            .iter()
            .filter(|node| !named.contains(&node.start_byte()))
            .map(|node| Reference {
                name: last_segment(content(*node)).to_owned(),
                line: number(node.start_position().row),
            })
            .filter(|reference| reference.name.contains(char::is_alphanumeric))
            .collect();
        references.sort_by(|a, b| (a.line, &a.name).cmp(&(b.line, &b.name)));
        references.dedup();
        Extract {
            definitions,
            references,
        }
    }

    /// The comments, attributes and decorators that have their lines to themselves, from the
    /// line after them to their first line. One behind a statement speaks of that statement,
    /// and one that documents the file itself (`//!`) belongs to nothing below it.
    fn doc_lines(&self, text: &str, lines: &Lines<'_>) -> HashMap<usize, usize> {
        let own_line = |node: &&Node<'_>| {
            let start = node.start_position();
            let before = lines.get(start.row).get(..start.column);
            let content = text.get(node.byte_range()).unwrap_or_default();
            before.is_some_and(|before| before.trim().is_empty())
                && !content.starts_with("//!")
                && !content.starts_with("/*!")
        };
        self.docs
            .iter()
            .filter(own_line)
            .map(|node| rows(*node))
            .map(|span| (span.end, span.start))
            .collect()
    }

    /// What wraps a definition, from its end to its first line: the two end together.
    fn outer_lines(&self) -> HashMap<usize, usize> {
        let mut outers = HashMap::new();
        for span in self.outers.iter().map(|node| rows(*node)) {
            let start = outers.entry(span.end).or_insert(span.start);
            *start = span.start.min(*start);
        }
        outers
    }
}

/// Drops what C and C++ call a function declaration inside of a function: `T x(y)` makes a
/// variable there.
fn drop_local_prototypes(definitions: &mut Vec<Definition>) {
    let mut body_end = 0;
    definitions.retain(|definition| {
        let local = definition.bytes.0 < body_end;
        let function = matches!(definition.kind, Some("function" | "method"));
        if function && !definition.declared {
            body_end = body_end.max(definition.bytes.1);
        }
        !(local && function && definition.declared)
    });
}

/// Climbs from the first line of a definition over the documentation directly above it.
fn with_docs(docs: &HashMap<usize, usize>, mut start: usize) -> usize {
    while let Some(&above) = docs.get(&start) {
        if above >= start {
            break;
        }
        start = above;
    }
    start
}

/// The lines of a node. Some end at the start of the next line, which they have nothing of.
fn rows(node: Node<'_>) -> Span {
    let (start, end) = (node.start_position(), node.end_position());
    let past = end.column == 0 && end.row > start.row;
    Span {
        start: start.row,
        end: if past { end.row } else { end.row + 1 },
    }
}

/// The part of an import path that the code goes on to use.
fn last_segment(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
