//! Keeping secrets out of the journal.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

/// Fields whose text is a secret whatever it looks like.
const FIELDS: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "client_secret",
    "cookie",
    "passphrase",
    "password",
    "private_key",
    "secret",
    "set-cookie",
    "token",
    "access_token",
    "refresh_token",
];

/// How the secrets of well-known services begin. What follows must be long enough to be one.
const PREFIXES: &[&str] = &[
    "AKIA",
    "Bearer ",
    "bearer ",
    "dod_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
];

/// The fewest characters after a prefix that make a secret.
const MIN_TAIL: usize = 12;

/// Removes secrets from what is written: known ones wherever they stand, fields that hold one by
/// name, and texts that look like a well-known kind.
///
/// A secret that a model spreads over several deltas is not seen whole and passes.
#[derive(Debug, Clone)]
pub struct Redactor {
    needles: Arc<AhoCorasick>,
    /// The first this many needles are prefixes, the rest whole secrets.
    prefixes: usize,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// A redactor that also knows these secrets by heart. Ones shorter than eight bytes are
    /// left out: they would hit by chance.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= 8)
            .collect();
        let needles = PREFIXES
            .iter()
            .copied()
            .chain(secrets.iter().map(String::as_str));
        let needles = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(needles)
            .expect("a few short needles always build");
        Self {
            needles: Arc::new(needles),
            prefixes: PREFIXES.len(),
        }
    }

    /// Removes secrets from a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    match value {
                        Value::String(text) if is_secret_field(name) => REDACTED.clone_into(text),
                        value => self.value(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes secrets from a text.
    pub fn text(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.clean(text) {
            *text = clean;
        }
    }

    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = String::new();
        let mut copied = 0;
        for hit in self.needles.find_iter(text) {
            let end = if hit.pattern().as_usize() < self.prefixes {
                match secret_end(text, hit.start(), hit.end()) {
                    Some(end) => end,
                    None => continue,
                }
            } else {
                hit.end()
            };
            if hit.start() < copied {
                continue;
            }
            clean.push_str(&text[copied..hit.start()]);
            clean.push_str(REDACTED);
            copied = end;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }
}

fn is_secret_field(name: &str) -> bool {
    FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
}

/// Where the secret that begins with a prefix ends; `None` when it is none: the prefix is part
/// of a word (`task-…`), or too little follows.
fn secret_end(text: &str, start: usize, after_prefix: usize) -> Option<usize> {
    let inside_a_word = text[..start]
        .chars()
        .next_back()
        .is_some_and(char::is_alphanumeric);
    let tail = text[after_prefix..]
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || b"-_.~+/=".contains(b))
        .count();
    (!inside_a_word && tail >= MIN_TAIL).then_some(after_prefix + tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_go_and_everything_else_stays() {
        let redactor = Redactor::new(["hunter2-hunter2".to_owned(), "short".to_owned()]);
        let cases = [
            ("key sk-abcdefghijklmnop1234, done", "key [redacted], done"),
            (
                "Authorization: Bearer abcdef0123456789",
                "Authorization: [redacted]",
            ),
            (
                "my password is hunter2-hunter2!",
                "my password is [redacted]!",
            ),
            (
                "a task-abcdefghijklmnopqrstuvw is no key",
                "a task-abcdefghijklmnopqrstuvw is no key",
            ),
            ("sk-learn is a library", "sk-learn is a library"),
            ("short words stay", "short words stay"),
            (
                "dod_0123456789abcdef und dod_fedcba9876543210",
                "[redacted] und [redacted]",
            ),
            ("grüße ghp_0123456789abcdef grüße", "grüße [redacted] grüße"),
        ];
        for (text, expected) in cases {
            let mut text = text.to_owned();
            redactor.text(&mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn fields_are_known_by_name_at_any_depth() {
        let mut value =
            json!({"a": [{"Password": "x", "token_usage": 0.5, "token": 7}], "token": "abc"});
        Redactor::default().value(&mut value);
        assert_eq!(
            value,
            json!({"a": [{"Password": "[redacted]", "token_usage": 0.5, "token": 7}], "token": "[redacted]"})
        );
    }
}
