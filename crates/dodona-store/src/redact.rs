//! Redacting secrets in the journal, logs, approvals, errors, traces and exports.
//!
//! [`Redactor`] cleans whole texts and JSON values. [`StreamRedactor`] cleans a text that arrives in
//! pieces: it holds back the end of what arrived while that could be the start of a secret.

mod find;
mod stream;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

pub use stream::StreamRedactor;

/// Replacement of a secret.
const REDACTED: &str = "[redacted]";

/// Names of fields whose value is always a secret.
const FIELDS: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "client_secret",
    "cookie",
    "passphrase",
    "password",
    "passwd",
    "private_key",
    "secret",
    "secret_key",
    "set-cookie",
    "token",
    "access_token",
    "auth_token",
    "refresh_token",
    "x-api-key",
];

/// Finds secrets in what is written: known ones wherever they stand, fields that hold one by name,
/// and texts that look like a well-known kind.
#[derive(Debug, Clone)]
pub struct Redactor {
    needles: Arc<AhoCorasick>,
    secrets: Arc<[String]>,
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
        let secrets: Arc<[String]> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= 8)
            .collect();
        let needles = find::KINDS.iter().map(|(needle, _)| *needle);
        let needles = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(needles.chain(secrets.iter().map(String::as_str)))
            .expect("a few short needles always build");
        Self {
            needles: Arc::new(needles),
            secrets,
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

    /// A text without its secrets.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = String::new();
        let mut copied = 0;
        for secret in self.find(text) {
            clean.push_str(&text[copied..secret.start]);
            clean.push_str(REDACTED);
            copied = secret.end;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }

    /// A redactor that also knows the secrets in a value by heart, line by line: other fields may
    /// repeat a part of one without what makes it recognisable.
    #[must_use]
    pub fn knowing(&self, value: &Value) -> Self {
        let mut secrets = self.secrets.to_vec();
        self.collect(value, &mut secrets);
        Self::new(secrets)
    }

    fn collect(&self, value: &Value, secrets: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                let found = self.find(text).into_iter().map(|secret| &text[secret]);
                let words = found.flat_map(str::split_whitespace);
                // Not the words of a key's first and last line.
                let words = words.filter(|word| !word.contains("-----"));
                secrets.extend(words.map(str::to_owned));
            }
            Value::Array(values) => values.iter().for_each(|value| self.collect(value, secrets)),
            Value::Object(fields) => {
                fields
                    .values()
                    .for_each(|value| self.collect(value, secrets));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Where the secrets of a text are, in order.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for hit in self.needles.find_iter(text) {
            let kind = find::KINDS.get(hit.pattern().as_usize());
            let secret = match kind {
                Some((_, kind)) => kind.find(text, hit.start(), hit.end()),
                None => Some(hit.start()..hit.end()),
            };
            let end = found.last().map_or(0, |last| last.end);
            found.extend(secret.filter(|secret| secret.start >= end));
        }
        found
    }
}

fn is_secret_field(name: &str) -> bool {
    FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
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
            (
                "http://user:hunter2pass@host/path and http://host:80/a@b",
                "http://user:[redacted]@host/path and http://host:80/a@b",
            ),
            (
                "postgres://app:p%40ss:w0rd@db:5432/x",
                "postgres://app:[redacted]@db:5432/x",
            ),
            (
                "?api_key=abcdef123456&b=1 PASSWORD=correcthorse;",
                "?api_key=[redacted]&b=1 PASSWORD=[redacted];",
            ),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nx+/=\n-----END RSA PRIVATE KEY----- b",
                "a [redacted] b",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            ),
            (
                "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh123 x",
                "jwt [redacted] x",
            ),
            ("eyJust a word", "eyJust a word"),
        ];
        for (text, expected) in cases {
            assert_eq!(redactor.clean(text), expected);
        }
    }

    #[test]
    fn a_part_of_a_known_secret_goes_from_other_fields_too() {
        let key = "-----BEGIN PRIVATE KEY-----\nTUlJRXZRSUJB\n-----END PRIVATE KEY-----";
        let mut value = json!({ "text": key, "symbols": ["TUlJRXZRSUJB", "PRIVATE"] });
        Redactor::default().knowing(&value).value(&mut value);
        assert_eq!(
            value,
            json!({ "text": "[redacted]", "symbols": ["[redacted]", "PRIVATE"] })
        );
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
