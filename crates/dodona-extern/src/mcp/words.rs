//! A command as it is written in one line, split into its words.

/// Why a line cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WordsError {
    /// A quotation mark without its partner.
    #[error("a quotation mark is not closed")]
    Open,
    /// A backslash with nothing behind it.
    #[error("it ends with a backslash")]
    Backslash,
}

/// Splits a line at its spaces. Quotation marks of both kinds and backslashes keep spaces, as in a
/// shell; nothing else has a meaning, because no shell runs: `$HOME` and `|` are plain text.
pub(crate) fn split(line: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => quoted(&mut chars, c, word.get_or_insert_default())?,
            '\\' => {
                let next = chars.next().ok_or(WordsError::Backslash)?;
                word.get_or_insert_default().push(next);
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing mark.
fn quoted(
    chars: &mut std::str::Chars<'_>,
    mark: char,
    word: &mut String,
) -> Result<(), WordsError> {
    loop {
        match chars.next().ok_or(WordsError::Open)? {
            c if c == mark => return Ok(()),
            '\\' if mark == '"' => word.push(chars.next().ok_or(WordsError::Open)?),
            c => word.push(c),
        }
    }
}

/// The words as one line that [`split`] takes apart again.
pub(crate) fn join<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted = words.into_iter().map(|word| {
        let is_plain = |c: char| c.is_alphanumeric() || "@%_-+=:,./".contains(c);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.to_owned(),
            false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_would_and_nothing_is_expanded() {
        for (line, words) in [
            ("npx -y server /a", vec!["npx", "-y", "server", "/a"]),
            ("  a   b  ", vec!["a", "b"]),
            (
                r#"a "b c" 'd "e"' f\ g"#,
                vec!["a", "b c", "d \"e\"", "f g"],
            ),
            (r#"a"b c"d "" "\"""#, vec!["ab cd", "", "\""]),
            (
                "echo $HOME | cat; ls",
                vec!["echo", "$HOME", "|", "cat;", "ls"],
            ),
            ("", vec![]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        assert_eq!(split("a 'b"), Err(WordsError::Open));
        assert_eq!(split("a \\"), Err(WordsError::Backslash));
    }

    #[test]
    fn what_is_joined_is_split_into_the_same_words() {
        let words = [
            "npx",
            "-y",
            "@scope/server",
            "/with space",
            "",
            "q\"\\'q",
            "$x",
        ];
        assert_eq!(split(&join(words)).unwrap(), words);
        assert_eq!(join(words).split(' ').next(), Some("npx"));
    }
}
