//! Text that fits the terminal.

use std::io::IsTerminal;

/// A column narrower than this is not worth keeping.
const NARROWEST: usize = 24;

/// How many characters fit on a line of the terminal that an output is, if it is one.
pub(crate) fn width(output: &impl Terminal) -> Option<usize> {
    if !output.is_terminal() {
        return None;
    }
    #[cfg(unix)]
    let columns = rustix::termios::tcgetwinsize(output).map_or(0, |size| size.ws_col);
    #[cfg(not(unix))]
    let columns = 0_u16;
    match columns {
        0 => Some(80),
        columns => Some(columns.into()),
    }
}

/// The part of an id that is enough to name it. The end: ids of one time begin alike.
pub(crate) fn short_id(id: &str) -> &str {
    match id.len().checked_sub(8) {
        Some(from) if id.is_char_boundary(from) => &id[from..],
        _ => id,
    }
}

/// An output that may be a terminal.
#[cfg(unix)]
pub(crate) trait Terminal: IsTerminal + std::os::fd::AsFd {}
#[cfg(unix)]
impl<T: IsTerminal + std::os::fd::AsFd> Terminal for T {}

/// An output that may be a terminal.
#[cfg(not(unix))]
pub(crate) trait Terminal: IsTerminal {}
#[cfg(not(unix))]
impl<T: IsTerminal> Terminal for T {}

/// Cuts a text that has only the rest of the line after `before` characters.
pub(crate) fn cut(text: &str, before: usize, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| {
        width.saturating_sub(before).max(NARROWEST)
    });
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Breaks a text between words so that it stays right of `before` characters.
pub(crate) fn wrap(text: &str, before: usize, width: Option<usize>) -> String {
    let Some(room) = width
        .and_then(|width| width.checked_sub(before))
        .filter(|room| *room >= NARROWEST)
    else {
        return text.to_owned();
    };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(cut("short", 10, Some(80)), "short");
        assert_eq!(cut(&"x".repeat(200), 10, None).len(), 200);
        assert_eq!(wrap("a b", 10, Some(80)), "a b");
    }

    #[test]
    fn what_does_not_is_cut_or_wrapped() {
        let text = "one two three four five six seven";
        assert_eq!(cut(text, 10, Some(34)), "one two three four five…");
        assert_eq!(
            wrap(text, 4, Some(30)),
            "one two three four five\n    six seven"
        );
        assert_eq!(wrap(text, 20, Some(30)), text, "there is no room to wrap");
    }
}
