//! Regular expressions of schemas, which are written in ECMAScript's dialect.

use regex::{Regex, RegexBuilder};

/// Bound for the compiled size of one expression in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A `pattern` of a schema.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    /// Absent where the engine does not support the expression.
    regex: Option<Regex>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(&translate(source))
            .size_limit(MAX_COMPILED_BYTES)
            .build();
        let regex = match regex {
            Ok(regex) => Some(regex),
            Err(error) if is_unsupported(&error) => None,
            Err(error) => return Err(error.to_string()),
        };
        Ok(Self {
            source: source.to_owned(),
            regex,
        })
    }

    pub(crate) fn is_checked(&self) -> bool {
        self.regex.is_some()
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// Valid in ECMAScript, but not in an engine with linear time.
fn is_unsupported(error: &regex::Error) -> bool {
    let text = error.to_string();
    text.contains("look-around") || text.contains("backreferences")
}

/// Rewrites what means something else in the `regex` crate: `\d` and `\w` are ASCII classes, and
/// `[`, `&` and `~` have no meaning inside a class.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut in_class = false;
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[A-Za-z0-9_]"),
                Some('W') => out.push_str("[^A-Za-z0-9_]"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(text)
    }

    #[test]
    fn digits_and_words_are_ascii() {
        assert!(matches(r"^\d+$", "42") && !matches(r"^\d+$", "٤٢"));
        assert!(matches(r"^\w+$", "a_1") && !matches(r"^\w+$", "ä"));
        assert!(matches(r"^[\d\-a]+$", "1-a") && !matches(r"^[\w]$", "é"));
        assert!(matches(r"^\W$", "é") && matches(r"^\D$", "x"));
    }

    #[test]
    fn brackets_and_operators_in_classes_are_literal() {
        assert!(matches("^[[]$", "["));
        assert!(matches("^[a&&b]+$", "&"));
        assert!(matches("^[~~]+$", "~"));
        assert!(matches(r"^\/a\/$", "/a/"));
    }

    #[test]
    fn look_around_is_accepted_and_not_checked() {
        let pattern = Pattern::new(r"^(?!\.)a$").unwrap();
        assert!(!pattern.is_checked() && pattern.matches("anything"));
        assert!(!Pattern::new(r"(a)\1").unwrap().is_checked());
    }

    #[test]
    fn broken_and_huge_expressions_are_errors() {
        assert!(Pattern::new("(").is_err());
        assert!(Pattern::new(r"(x{1000}){1000}").is_err());
    }
}
