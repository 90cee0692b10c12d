//! Listings: a header and rows whose columns fit the terminal.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::paint::{Paint, one_line};

/// Columns are separated by this many spaces.
const GAP: usize = 2;

/// A column is not made narrower than this to fit the terminal.
const NARROWEST: usize = 8;

/// How a cell is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Bold,
    Dim,
    Good,
    Warning,
    Bad,
}

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// A cell with untrusted text: control characters are removed, and it is put on one line.
    pub(crate) fn new(text: impl AsRef<str>, look: Look) -> Self {
        Self {
            text: one_line(text.as_ref()),
            look,
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Look::Plain)
    }
}

pub(crate) fn bold(text: impl AsRef<str>) -> Cell {
    Cell::new(text, Look::Bold)
}

pub(crate) fn dim(text: impl AsRef<str>) -> Cell {
    Cell::new(text, Look::Dim)
}

/// A table that is printed at once. Columns without any text are left out.
pub(crate) struct Table {
    header: Vec<&'static str>,
    right: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            right: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Aligns these columns, counted from 0, to the right: for numbers.
    pub(crate) fn align_right(mut self, columns: &[usize]) -> Self {
        self.right = columns.to_vec();
        self
    }

    /// Adds a row with one cell for each column of the header.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.header.len());
        self.rows.push(cells.into());
    }

    /// The table as text. With a `width`, columns are cut until a line has at most that many
    /// characters: the last column first, then the widest. A word is never broken over two lines.
    pub(crate) fn render(&self, paint: Paint, width: Option<usize>) -> String {
        let shown: Vec<usize> = (0..self.header.len())
            .filter(|column| self.rows.iter().any(|row| !row[*column].text.is_empty()))
            .collect();
        let widths = self.widths(&shown, width);
        let mut text = String::new();
        let header = |column: usize| Cell::new(self.header[column], Look::Dim);
        self.line(&mut text, &shown, &widths, paint, header);
        for row in &self.rows {
            self.line(&mut text, &shown, &widths, paint, |column| {
                row[column].clone()
            });
        }
        text
    }

    fn widths(&self, shown: &[usize], width: Option<usize>) -> Vec<usize> {
        let natural = |column: &usize| {
            let cells = self.rows.iter().map(|row| row[*column].text.width());
            cells
                .max()
                .unwrap_or_default()
                .max(self.header[*column].width())
        };
        let mut widths: Vec<usize> = shown.iter().map(natural).collect();
        let Some(width) = width else { return widths };
        let gaps = GAP * widths.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        if let Some(last) = widths.last_mut() {
            let cut = excess.min(last.saturating_sub(2 * NARROWEST));
            *last -= cut;
            excess -= cut;
        }
        while excess > 0 {
            let widest = widths.iter_mut().filter(|width| **width > NARROWEST).max();
            let Some(widest) = widest else { break };
            *widest -= 1;
            excess -= 1;
        }
        widths
    }

    fn line(
        &self,
        text: &mut String,
        shown: &[usize],
        widths: &[usize],
        paint: Paint,
        cell: impl Fn(usize) -> Cell,
    ) {
        let mut line = String::new();
        // Spaces are written before the next cell, so that no line ends with them.
        let mut spaces = 0;
        for (column, width) in shown.iter().zip(widths) {
            let Cell { text, look } = cell(*column);
            let text = cut(&text, *width);
            let padding = width.saturating_sub(text.width());
            let (before, after) = match self.right.contains(column) {
                true => (padding, 0),
                false => (0, padding),
            };
            spaces += before;
            if !text.is_empty() {
                let _ = write!(line, "{:spaces$}{}", "", painted(paint, look, &text));
                spaces = 0;
            } else {
                spaces += text.width();
            }
            spaces += after + GAP;
        }
        let _ = writeln!(text, "{line}");
    }
}

fn painted(paint: Paint, look: Look, text: &str) -> String {
    match look {
        Look::Plain => text.to_owned(),
        Look::Bold => paint.bold(text).to_string(),
        Look::Dim => paint.dim(text).to_string(),
        Look::Good => paint.good(text).to_string(),
        Look::Warning => paint.note(text).to_string(),
        Look::Bad => paint.bad(text).to_string(),
    }
}

/// The text, or as much of it as fits with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "COUNT", "EMPTY", "ABOUT"]).align_right(&[1]);
        table.row([
            "vault".into(),
            "7".into(),
            "".into(),
            "Notes of the project".into(),
        ]);
        table.row([
            "日本".into(),
            "1200".into(),
            "".into(),
            "Wide\ncharacters".into(),
        ]);
        table
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        assert_eq!(
            table().render(Paint::plain(), None),
            "NAME   COUNT  ABOUT\nvault      7  Notes of the project\n日本    1200  Wide characters\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [26, 30, 40, 60] {
            let text = table().render(Paint::plain(), Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
        let narrow = table().render(Paint::plain(), Some(30));
        assert!(narrow.contains("Notes of the pr…\n"), "{narrow}");
        // Narrower than every column needs: columns keep their least width.
        assert!(table().render(Paint::plain(), Some(5)).contains("vault"));
    }

    #[test]
    fn cells_cannot_steer_the_terminal() {
        let mut table = Table::new(&["NAME"]);
        table.row([bold("a\u{1b}[2Jb")]);
        assert_eq!(table.render(Paint::plain(), None), "NAME\na\u{fffd}[2Jb\n");
    }
}
