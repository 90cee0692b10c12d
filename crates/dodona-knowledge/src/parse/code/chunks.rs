//! Chunks along symbols.
//!
//! Every line gets one owner: the innermost symbol that is cut out on its own, or nobody. Runs
//! of lines with the same owner are the chunks, so that they cover the file and cannot overlap
//! by construction.

use super::extract::Definition;
use crate::parse::Chunk;
use crate::parse::lines::{Lines, Span};
use crate::parse::window::{self, Limit};

/// A symbol up to this length stays whole.
const MAX_SYMBOL_LINES: usize = 120;

/// What is cut (long symbols, the rest of a container, lines outside of symbols) is cut to this.
const WINDOW: Limit = Limit {
    lines: 60,
    chars: 8_000,
};

/// A shorter constant stays with its neighbours: a list of constants is read as one.
const MIN_CONSTANT_LINES: usize = 4;

/// A definition with its place among the others.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) definition: &'a Definition,
    /// `None` for a scope.
    pub(super) kind: Option<&'static str>,
    pub(super) parent: Option<usize>,
    /// The names of what it is inside of, joined.
    pub(super) path: String,
}

impl Part<'_> {
    /// Whether its members are cut out of it. A function is one thing, whatever it defines.
    fn is_container(&self) -> bool {
        !matches!(self.kind, Some("function" | "method" | "macro"))
    }

    /// Whether it is worth a chunk. A line alone (a getter, an alias, a prototype without a
    /// comment) says more among its neighbours.
    fn stands_alone(&self) -> bool {
        let least = match self.kind {
            Some("constant") => MIN_CONSTANT_LINES,
            _ => 2,
        };
        self.definition.lines.len() >= least
    }
}

/// Consecutive lines of one owner.
#[derive(Debug, Clone, Copy)]
struct Run {
    span: Span,
    owner: Option<usize>,
}

/// The chunks of a file, in order.
pub(super) fn chunks(lines: &Lines<'_>, parts: &[Part<'_>]) -> Vec<Chunk> {
    let owners = owners(lines.len(), parts);
    let runs = absorb_closers(lines, runs(lines, &owners));
    let runs = absorb_scope_headers(lines, parts, runs);
    let mut chunks = Vec::new();
    for run in runs {
        let part = run.owner.and_then(|owner| parts.get(owner));
        let (heading, symbol) = part.map_or(("", ""), |part| {
            (part.path.as_str(), part.definition.name.as_str())
        });
        let whole = run.span.len() <= MAX_SYMBOL_LINES
            && part.is_some_and(|part| !part.is_container() || part.definition.lines == run.span);
        let windows = if whole {
            vec![run.span]
        } else {
            window::cut(lines, run.span, WINDOW, |_| true)
        };
        let windows = windows.into_iter();
        chunks.extend(windows.map(|span| window::chunk(lines, span, heading, symbol)));
    }
    chunks
}

/// The owner of each line. Parts come outermost first, so that an inner one takes its lines from
/// its container, and from nobody else: two symbols on one line leave it to the first.
fn owners(len: usize, parts: &[Part<'_>]) -> Vec<Option<usize>> {
    let mut owners = vec![None; len];
    // The nearest part around each that owns lines, if that lets its members be cut out.
    let mut cut_from: Vec<Option<Option<usize>>> = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let around = match part.parent {
            None => Some(None),
            Some(parent) => cut_from[parent],
        };
        let Some(around) = around else {
            cut_from.push(None);
            continue;
        };
        if !part.stands_alone() {
            // Its lines stay with whoever is around, and so do those of its members.
            cut_from.push(part.is_container().then_some(around));
            continue;
        }
        let span = part.definition.lines;
        for owner in owners.iter_mut().take(span.end).skip(span.start) {
            if *owner == around {
                *owner = Some(index);
            }
        }
        cut_from.push(part.is_container().then_some(Some(index)));
    }
    owners
}

/// Consecutive lines of one owner, without the blank ones at the ends.
fn runs(lines: &Lines<'_>, owners: &[Option<usize>]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = 0;
    for group in owners.chunk_by(|a, b| a == b) {
        let end = start + group.len();
        let owner = group.first().copied().flatten();
        let span = lines.trim(Span { start, end });
        runs.extend(span.map(|span| Run { span, owner }));
        start = end;
    }
    runs
}

/// Gives lines that only close something to the run before them: nobody looks for a bracket.
fn absorb_closers(lines: &Lines<'_>, runs: Vec<Run>) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    for run in runs {
        let closes = (run.span.start..run.span.end).all(|line| is_closer(lines.get(line)));
        match kept.last_mut() {
            Some(before) if closes => before.span.end = run.span.end,
            _ => kept.push(run),
        }
    }
    kept
}

/// Whether a line has no word, or none before what it closes: `}`, `} // namespace a`, `#endif`.
fn is_closer(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['}', ')', ']'])
        || line.starts_with("#endif")
        || !line.contains(char::is_alphanumeric)
}

/// Gives a line alone such as `impl Type {` or `mod tests {` to the first member below it, which
/// gains by the context. The header of a class stays a chunk: the class is found by it.
fn absorb_scope_headers(lines: &Lines<'_>, parts: &[Part<'_>], runs: Vec<Run>) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    let mut header: Option<Run> = None;
    for mut run in runs {
        if let Some(before) = header.take() {
            let part = run.owner.and_then(|owner| parts.get(owner));
            if part.is_some_and(|part| part.parent == before.owner) {
                run.span.start = before.span.start;
            } else {
                kept.push(before);
            }
        }
        let scope = run
            .owner
            .and_then(|owner| parts.get(owner))
            .is_some_and(|part| matches!(part.kind, None | Some("module")));
        let texts = (run.span.start..run.span.end).filter(|&line| !lines.is_blank(line));
        if scope && texts.count() == 1 {
            header = Some(run);
        } else {
            kept.push(run);
        }
    }
    kept.extend(header);
    kept
}
