//! Faults of a text, shown in the text.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use dodona_plugin::reading::Problem;

use crate::paint::{Paint, harmless};

/// Something wrong in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, in bytes.
    pub(crate) span: Range<usize>,
    /// What.
    pub(crate) message: String,
    /// The next thing to try.
    pub(crate) hint: Option<String>,
}

/// Draws each fault with the lines it is in, and its hint on a line of its own.
pub(crate) fn draw(origin: &str, text: &str, faults: &[Fault], paint: Paint) -> String {
    let renderer = if paint.colours() {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let drawn = faults.iter().map(|fault| {
        let annotation = AnnotationKind::Primary.span(within(text, &fault.span));
        let message = harmless(&fault.message);
        let snippet = Snippet::source(text).path(origin).annotation(annotation);
        let group = Level::ERROR.primary_title(message).element(snippet);
        with_hint(renderer.render(&[group]), fault.hint.as_deref(), paint)
    });
    drawn.collect::<Vec<_>>().join("\n\n")
}

/// Draws a problem of a file with the line it is in, and its hint on a line of its own.
pub(crate) fn draw_problem(problem: &Problem, paint: Paint) -> String {
    let Some(place) = &problem.place else {
        let line = format!("{}: {}", problem.path, problem.message);
        let told = format!("{} {}", paint.bad("error:"), harmless(&line));
        return with_hint(told, problem.hint.as_deref(), paint);
    };
    let renderer = if paint.colours() {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let before = place.text.chars().take(place.column.saturating_sub(1));
    let start: usize = before.map(char::len_utf8).sum();
    let span = within(&place.text, &(start..start + place.width));
    let snippet = Snippet::source(place.text.as_str())
        .line_start(place.line)
        .path(problem.path.as_str())
        .annotation(AnnotationKind::Primary.span(span));
    let title = harmless(&problem.message);
    let group = Level::ERROR.primary_title(title).element(snippet);
    with_hint(renderer.render(&[group]), problem.hint.as_deref(), paint)
}

fn with_hint(text: String, hint: Option<&str>, paint: Paint) -> String {
    match hint {
        Some(hint) => format!("{text}\n{} {}", paint.code("hint:"), harmless(hint)),
        None => text,
    }
}

/// A span that lies in the text, on the borders of its characters.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    start..text.ceil_char_boundary(span.end).max(start)
}

/// Line and column of a place, counted from 1, the column in characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The place of a line and a column in bytes, both counted from 1, as `serde_json` tells it.
pub(crate) fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    // Column 0 is what it says of the end of the line before.
    match column {
        0 => start.saturating_sub(1),
        _ => (start + column - 1).min(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_both_ways() {
        let text = "a\nbü = 1\n";
        let place = text.find('=').unwrap();
        assert_eq!(line_and_column(text, place), (2, 4));
        assert_eq!(offset(text, 2, 5), place);
        assert_eq!(offset(text, 9, 9), text.len());
        assert_eq!(offset(text, 2, 0), 1);
    }

    #[test]
    fn a_span_inside_a_character_is_widened() {
        assert_eq!(within("aü", &(2..2)), 1..3);
        assert_eq!(within("a", &(7..9)), 1..1);
    }
}
