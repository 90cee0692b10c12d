//! A key that shows itself to nobody but the provider.

use std::fmt;

use http::HeaderValue;

/// A provider's key. It prints as dots, and the headers that carry it are marked as sensitive.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// Nothing but space.
    #[error("it is empty")]
    Empty,
    /// A line break, a letter with an accent, a byte that is no text.
    #[error("it holds characters that no key has")]
    Characters,
}

impl ApiKey {
    /// Takes a key, and the space around it off.
    pub fn new(text: &str) -> Result<Self, ApiKeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ApiKeyError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ApiKeyError::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// The value of a header: what comes before the key, and the key.
    pub(crate) fn header(&self, before: &str) -> HeaderValue {
        let mut value = HeaderValue::try_from(format!("{before}{}", self.0))
            .expect("a key holds visible ASCII characters only");
        value.set_sensitive(true);
        value
    }

    /// A text without the key: a provider may quote what it was sent.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_and_never_printed() {
        let key = ApiKey::new("  sk-secret\n").unwrap();
        assert_eq!(key.header("Bearer ").to_str().unwrap(), "Bearer sk-secret");
        let printed = format!("{key:?} {:?}", key.header("Bearer "));
        assert!(!printed.contains("secret"), "{printed}");
        assert_eq!(key.hidden_in("no `sk-secret` here"), "no `…` here");
    }

    #[test]
    fn what_no_header_can_carry_is_no_key() {
        assert_eq!(ApiKey::new(" \n"), Err(ApiKeyError::Empty));
        for text in ["two\nlines", "two words", "ключ"] {
            assert_eq!(ApiKey::new(text), Err(ApiKeyError::Characters), "{text}");
        }
    }
}
