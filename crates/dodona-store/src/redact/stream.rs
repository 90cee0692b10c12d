//! A text that arrives in pieces.

use super::find::{self, KINDS, Kind};
use super::{REDACTED, Redactor};

/// The most characters that are held back.
const MOST_HELD: usize = 200;

/// How many bytes of a known secret must have arrived before it counts as one although the rest is
/// missing.
const SURE: usize = 8;

/// Cleans a text that arrives in pieces. A piece is held back only while its end could be the start
/// of a secret, and no more than 200 characters. The caller releases what is held when no piece
/// arrives for a while.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// The end of what arrived.
    held: String,
    /// How many bytes of it were released before it was decided.
    released: usize,
    inside: Inside,
}

/// What the next characters belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Text,
    /// A key whose beginning was redacted.
    Key,
    /// A private key whose first line was redacted.
    Block,
    /// A known secret whose beginning was redacted: which, and how much of it has arrived.
    Known {
        secret: usize,
        arrived: usize,
    },
}

impl StreamRedactor {
    /// A text that has not begun.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            held: String::new(),
            released: 0,
            inside: Inside::Text,
        }
    }

    /// Whether something is held back.
    pub fn is_holding(&self) -> bool {
        self.held.len() > self.released
    }

    /// Takes the next piece and returns what can be shown.
    pub fn push(&mut self, more: &str) -> String {
        self.held.push_str(more);
        let mut shown = String::new();
        while !self.held.is_empty() {
            let before = (self.held.len(), self.inside);
            self.step(&mut shown);
            if before == (self.held.len(), self.inside) {
                break;
            }
        }
        shown
    }

    /// Returns what is held back, because nothing arrived for a while. It stays in mind: if it turns
    /// out to be the start of a secret, the rest of that is not shown. The start of a known secret is
    /// redacted.
    pub fn release(&mut self) -> String {
        if let Some((start, inside)) = self.known_start() {
            let mut shown = self.held[self.released.min(start)..start].to_owned();
            self.replace(&mut shown);
            self.inside = inside;
            return shown;
        }
        let shown = self.held[self.released..].to_owned();
        self.released = self.held.len();
        shown
    }

    /// Returns what is held back when the text has ended.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        if self.inside == Inside::Text {
            self.show(self.held.len(), &mut shown);
        }
        self.held.clear();
        self.released = 0;
        self.inside = Inside::Text;
        shown
    }

    fn step(&mut self, shown: &mut String) {
        match self.inside {
            Inside::Key => {
                let length = find::key_length(&self.held);
                self.held.drain(..length);
                if !self.held.is_empty() {
                    self.inside = Inside::Text;
                }
            }
            Inside::Block => match find::block_end(&self.held, 0) {
                Some(end) => {
                    self.held.drain(..end);
                    self.inside = Inside::Text;
                }
                // The last line may have begun.
                None => {
                    let kept = self.held.len().saturating_sub(MOST_HELD);
                    let kept = self.held.ceil_char_boundary(kept);
                    self.held.drain(..kept);
                }
            },
            Inside::Known { secret, arrived } => {
                let rest = self.redactor.secrets[secret].as_bytes()[arrived..].iter();
                let same = rest.zip(self.held.bytes()).take_while(|(a, b)| *a == b);
                let same = same.count();
                self.held.drain(..self.held.floor_char_boundary(same));
                let arrived = arrived + same;
                let is_whole = arrived == self.redactor.secrets[secret].len();
                self.inside = if is_whole || !self.held.is_empty() {
                    Inside::Text
                } else {
                    Inside::Known { secret, arrived }
                };
            }
            Inside::Text => self.step_text(shown),
        }
    }

    /// Where the end of what is held is surely the start of a known secret.
    fn known_start(&self) -> Option<(usize, Inside)> {
        if self.inside != Inside::Text {
            return None;
        }
        let mut starts = self.held.char_indices().map(|(at, _)| at);
        starts.find_map(|at| {
            let rest = &self.held[at..];
            if rest.len() < SURE {
                return None;
            }
            let mut secrets = self.redactor.secrets.iter();
            let secret = secrets.position(|secret| secret.starts_with(rest))?;
            let arrived = rest.len();
            Some((at, Inside::Known { secret, arrived }))
        })
    }

    fn step_text(&mut self, shown: &mut String) {
        let open = self.open_start();
        // The end of a whole secret can look like the start of another one.
        let secrets = self.redactor.find(&self.held);
        let around = secrets
            .iter()
            .find(|secret| secret.start < open && open < secret.end);
        let open = around.map_or(open, |secret| secret.end);
        if open > 0 {
            self.show(open, shown);
            return;
        }
        // Everything that is held may be a secret. Where it is one already, the rest of it need not
        // be waited for.
        let kind = KINDS
            .iter()
            .filter(|(needle, _)| self.held.starts_with(needle))
            .max_by_key(|(needle, _)| needle.len());
        let found = kind.and_then(|(needle, kind)| {
            let range = kind.find(&self.held, 0, needle.len())?;
            Some((*kind, range))
        });
        match found {
            Some((Kind::Key(_) | Kind::Jwt, _)) => {
                self.replace(shown);
                self.inside = Inside::Key;
            }
            Some((Kind::Block, _)) => {
                // The last line may be there in part, so only the first one is dropped.
                let line = self.held.find('\n').unwrap_or(self.held.len());
                let rest = self.held.split_off(line);
                self.replace(shown);
                self.held = rest;
                self.inside = Inside::Block;
            }
            _ if self.held.chars().count() > MOST_HELD => self.show(self.held.len(), shown),
            _ => {}
        }
    }

    /// Shows a mark in the place of what is held, and forgets it.
    fn replace(&mut self, shown: &mut String) {
        shown.push_str(REDACTED);
        self.held.clear();
        self.released = 0;
    }

    /// Shows the beginning of what is held, without what was released already.
    fn show(&mut self, length: usize, shown: &mut String) {
        let clean = self.redactor.clean(&self.held[..length]);
        let before = &self.held[..self.released.min(length)];
        match clean.strip_prefix(before) {
            Some(rest) => shown.push_str(rest),
            // A part of a secret was released; the rest of it is not shown.
            None => shown.push_str(&clean),
        }
        self.held.drain(..length);
        self.released = self.released.saturating_sub(length);
    }

    /// Offset in the held text from which on it could be the start of a secret. The length of the held
    /// text if no part of it could.
    fn open_start(&self) -> usize {
        let text = self.held.as_str();
        let starts = text.char_indices().map(|(at, _)| at);
        starts
            .into_iter()
            .find(|at| self.could_be_secret(text, *at))
            .unwrap_or(text.len())
    }

    fn could_be_secret(&self, text: &str, at: usize) -> bool {
        let rest = &text[at..];
        let of_kind = |(needle, kind): &(&str, Kind)| {
            let must_start_a_word = matches!(kind, Kind::Key(_) | Kind::Jwt);
            if must_start_a_word && find::is_in_word(text, at) {
                return false;
            }
            match rest.strip_prefix(needle) {
                Some(tail) => kind.is_open(tail),
                None => needle.starts_with(rest),
            }
        };
        let is_known = |secret: &String| secret.len() > rest.len() && secret.starts_with(rest);
        KINDS.iter().any(of_kind) || self.redactor.secrets.iter().any(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: [&str; 7] = [
        "sk-abcdefghijklmnop1234",
        "AKIAIOSFODNN7EXAMPLE",
        "known-by-heart-42",
        "http://user:hunter2pass@host/x",
        "password=correcthorse",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQE\n-----END PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh123",
    ];

    fn stream(pieces: &[&str]) -> String {
        let redactor = Redactor::new(["known-by-heart-42".to_owned()]);
        let mut stream = StreamRedactor::new(redactor);
        let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
        shown.push_str(&stream.finish());
        shown
    }

    fn pieces(text: &str, size: usize) -> Vec<&str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.ceil_char_boundary(size.min(rest.len()));
            let (piece, after) = rest.split_at(end);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    #[test]
    fn a_secret_in_pieces_is_redacted_as_a_whole_one_is() {
        let redactor = Redactor::new(["known-by-heart-42".to_owned()]);
        for secret in SECRETS {
            let text = format!("Grüße, the key is {secret} and that is all, task-force.");
            let whole = redactor.clean(&text);
            assert_ne!(whole, text);
            for size in 1..text.len() {
                assert_eq!(stream(&pieces(&text, size)), whole, "{secret} by {size}");
            }
            let at_end = format!("key {secret}");
            for size in 1..at_end.len() {
                assert_eq!(
                    stream(&pieces(&at_end, size)),
                    redactor.clean(&at_end),
                    "{size}"
                );
            }
        }
    }

    #[test]
    fn plain_text_is_hardly_held_back() {
        let text = "The journal is written by one pump; tasks end in `s`, and https://docs.rs/x is a link. ";
        let mut stream = StreamRedactor::new(Redactor::default());
        let mut shown = String::new();
        for piece in pieces(text, 3) {
            shown.push_str(&stream.push(piece));
            assert!(stream.held.len() < 40, "{:?}", stream.held);
        }
        shown.push_str(&stream.finish());
        assert_eq!(shown, text);
    }

    #[test]
    fn what_was_released_is_not_shown_twice_and_the_rest_of_a_secret_not_at_all() {
        let mut stream = StreamRedactor::new(Redactor::default());
        assert_eq!(stream.push("key sk-ab"), "key ");
        assert!(stream.is_holding());
        assert_eq!(stream.release(), "sk-ab");
        assert!(!stream.is_holding());
        assert_eq!(stream.push("cdefghijklmnop end"), "[redacted] end");
        assert_eq!(stream.push("a sk"), "a ");
        assert_eq!(stream.release(), "sk");
        assert_eq!(stream.push("y is blue"), "y is blue");
    }

    /// A pause after every piece, at every place: what is shown of a secret is its beginning, and not
    /// more than was needed to recognise it.
    #[test]
    fn after_pauses_the_rest_of_a_secret_is_not_shown() {
        let keys = [
            "sk-abcdefghijklmnop1234QRSTUVWXYZ56789",
            "AKIAIOSFODNN7EXAMPLE",
        ];
        let known = "known-by-heart-42-and-rather-long";
        let redactor = Redactor::new([known.to_owned()]);
        for secret in keys.into_iter().chain([known]) {
            let text = format!("Grüße, the key is {secret} and that is all.");
            for size in 1..text.len() {
                let mut stream = StreamRedactor::new(redactor.clone());
                let mut shown = String::new();
                for piece in pieces(&text, size) {
                    shown.push_str(&stream.push(piece));
                    shown.push_str(&stream.release());
                }
                shown.push_str(&stream.finish());
                let parts = (1..=secret.len()).map(|length| &secret[..length]);
                let seen = parts.rev().find(|part| shown.contains(*part));
                let seen = seen.map_or(0, str::len);
                let most = if secret == known { SURE + size } else { 30 };
                assert!(seen < most.min(secret.len()), "{size}: {shown}");
                let end = &secret[secret.len() - 4..];
                assert!(!shown.contains(end), "{size}: {shown}");
                assert!(shown.starts_with("Grüße, the key is "), "{size}: {shown}");
                assert!(shown.ends_with(" and that is all."), "{size}: {shown}");
            }
        }
    }

    #[test]
    fn what_only_begins_like_a_known_secret_goes_on_as_text() {
        let redactor = Redactor::new(["known-by-heart-42".to_owned()]);
        let mut stream = StreamRedactor::new(redactor);
        assert_eq!(stream.push("it is known-by-h"), "it is ");
        assert_eq!(stream.release(), "[redacted]");
        assert_eq!(stream.push("umans ünd"), "umans ünd");
        assert_eq!(stream.finish(), "");
    }
}
