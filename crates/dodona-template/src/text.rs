//! Work on plain text that filters and methods share. Python's rules.

use crate::error::Result;
use crate::meter::Meter;

/// The first letter large, the others small.
pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        None => String::new(),
        Some(first) => first.to_uppercase().collect::<String>() + &chars.as_str().to_lowercase(),
    }
}

/// Every word begins large; words are what stands between the separators.
pub(crate) fn words(text: &str, is_separator: impl Fn(char) -> bool) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        match begins {
            true => changed.extend(c.to_uppercase()),
            false => changed.extend(c.to_lowercase()),
        }
        begins = is_separator(c);
    }
    changed
}

/// Without the characters, or white space, at the ends.
pub(crate) fn strip<'t>(text: &'t str, chars: Option<&str>, start: bool, end: bool) -> &'t str {
    let strips = |c: char| match chars {
        Some(chars) => chars.contains(c),
        None => c.is_whitespace(),
    };
    let text = if start {
        text.trim_start_matches(strips)
    } else {
        text
    };
    if end {
        text.trim_end_matches(strips)
    } else {
        text
    }
}

/// With one text in place of the other, at most `count` times if that is not negative.
pub(crate) fn replaced(
    meter: &mut Meter,
    text: &str,
    old: &str,
    new: &str,
    count: i128,
) -> Result<String> {
    meter.read(text.len())?;
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut result = String::new();
    let mut copied = 0;
    // An empty text is found before every character and at the end.
    for (at, found) in text.match_indices(old).take(most) {
        meter.steps(1)?;
        meter.push(&mut result, &text[copied..at])?;
        meter.push(&mut result, new)?;
        copied = at + found.len();
    }
    meter.push(&mut result, &text[copied..])?;
    Ok(result)
}

/// In the middle of so many columns.
pub(crate) fn centered(meter: &mut Meter, text: &str, width: usize, fill: char) -> Result<String> {
    let missing = width.saturating_sub(text.chars().count());
    // Python puts the odd one to the left if the width is odd as well.
    let before = missing / 2 + (missing & width & 1);
    padded(meter, text, before, missing - before, fill)
}

pub(crate) fn padded(
    meter: &mut Meter,
    text: &str,
    before: usize,
    after: usize,
    fill: char,
) -> Result<String> {
    let bytes = before.saturating_add(after).saturating_mul(fill.len_utf8());
    meter.memory(bytes.saturating_add(text.len()))?;
    let fill = |count: usize| fill.to_string().repeat(count);
    Ok(format!("{}{text}{}", fill(before), fill(after)))
}

/// Lines, by every line end that Python knows.
pub(crate) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        let end = match rest[at..].starts_with("\r\n") {
            true => at + 2,
            false => at + rest[at..].chars().next().map_or(1, char::len_utf8),
        };
        lines.push(if keep_ends { &rest[..end] } else { &rest[..at] });
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}
