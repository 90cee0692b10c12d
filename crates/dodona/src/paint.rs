//! Colours, where there is somebody to see them, and text that cannot play tricks on a terminal.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use anstream::stream::RawStream;
use anstyle::{AnsiColor, Style};

/// How to paint for one output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    colours: bool,
}

/// A text with a style.
pub(crate) struct Painted<T> {
    text: T,
    style: Style,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, style } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

impl Paint {
    /// As the output, `NO_COLOR` and `--color` have it.
    pub(crate) fn of(output: &impl RawStream) -> Self {
        let colours = AutoStream::choice(output) != anstream::ColorChoice::Never;
        Self { colours }
    }

    /// Without colours, whatever the output.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colours: false }
    }

    /// Whether there are colours.
    pub(crate) fn colours(self) -> bool {
        self.colours
    }

    fn paint<T: Display>(self, style: Style, text: T) -> Painted<T> {
        let style = if self.colours { style } else { Style::new() };
        Painted { text, style }
    }

    /// What is not looked for.
    pub(crate) fn dim<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().dimmed(), text)
    }

    /// What is looked for first.
    pub(crate) fn bold<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().bold(), text)
    }

    pub(crate) fn emphasis<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().italic(), text)
    }

    /// A heading.
    pub(crate) fn heading<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().bold().underline(), text)
    }

    /// What went wrong.
    pub(crate) fn bad<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// What is as it should be.
    pub(crate) fn good<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// What needs a look.
    pub(crate) fn note<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// What can be typed.
    pub(crate) fn code<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }
}

/// Whether texts are printed unchanged, as `--raw` says.
static RAW: AtomicBool = AtomicBool::new(false);

/// Prints texts unchanged from now on.
pub(crate) fn print_raw() {
    RAW.store(true, Ordering::Relaxed);
}

/// Whether texts are wanted unchanged.
pub(crate) fn is_raw() -> bool {
    RAW.load(Ordering::Relaxed)
}

/// How a character of untrusted text is printed.
enum Fate {
    Shown,
    /// It would steer a terminal or change the direction of what follows: a mark takes its place.
    Replaced,
    /// It is not seen at all, and could hide a difference.
    Removed,
}

fn fate(c: char) -> Fate {
    match c {
        '\n' | '\t' => Fate::Shown,
        _ if c.is_control() => Fate::Replaced,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Fate::Replaced
        }
        '\u{ad}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}' => Fate::Removed,
        _ => Fate::Shown,
    }
}

/// A text without characters that steer a terminal, change the direction of text or are not seen,
/// except the ends of lines and tabs. It applies to pipes as well: what a program reads from them
/// often ends on a terminal. `--raw` switches it off.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(fate(c), Fate::Shown);
    if is_raw() || text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match fate(c) {
        Fate::Shown => Some(c),
        Fate::Replaced => Some(char::REPLACEMENT_CHARACTER),
        Fate::Removed => None,
    };
    Cow::Owned(text.chars().filter_map(shown).collect())
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    harmless(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\n\tb"), "a\n\tb");
        assert_eq!(harmless("\u{1b}[31mred\u{9b}2J\r"), "�[31mred�2J�");
        assert_eq!(harmless("a\u{202e}b\u{200b}c\u{feff}"), "a�bc");
        assert_eq!(one_line("a\n b\u{7}  c"), "a b� c");
    }

    #[test]
    fn without_colours_there_is_only_the_text() {
        let plain = Paint::plain();
        assert_eq!(plain.bad("x").to_string(), "x");
        let colourful = Paint { colours: true };
        assert_eq!(colourful.dim("x").to_string(), "\u{1b}[2mx\u{1b}[0m");
    }
}
