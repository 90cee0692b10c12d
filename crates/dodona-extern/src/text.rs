//! Text that a server wrote, made fit to be shown and to be given to a model.

/// A text without what is not meant to be seen, and no longer than so many bytes. Control
/// characters could steer a terminal; marks of direction, of zero width, and tags can hide words
/// from a person that a model still reads.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most.saturating_mul(4));
    let mut clean: String = text[..end].chars().filter(|c| is_shown(*c)).collect();
    if clean.len() > most || end < text.len() {
        clean.truncate(clean.floor_char_boundary(most));
        clean.push('…');
    }
    clean
}

/// The same on one line.
pub(crate) fn line(text: &str, most: usize) -> String {
    let spaced: String = text
        .chars()
        .take(most.saturating_mul(4))
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    clean(spaced.trim(), most)
}

fn is_shown(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{feff}' | '\u{e0000}'..='\u{e0fff}' => false,
        c => !c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_taken_out_and_what_is_too_long_is_cut() {
        let hidden = "a\u{1b}[31mb\u{202e}c\u{200b}d\u{e0041}e\r\n\tf";
        assert_eq!(clean(hidden, 100), "a[31mbcde\n\tf");
        assert_eq!(clean("ééé", 4), "éé…");
        assert_eq!(clean("abc", 3), "abc");
        assert!(clean(&"\u{200b}".repeat(1000), 10).len() < 16);
        assert_eq!(line(" a\nb\tc ", 100), "a b c");
    }
}
