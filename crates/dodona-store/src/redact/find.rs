//! What secrets look like.

use std::ops::Range;

/// How the rest of a secret is found once its beginning was.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A key of a service: at least so many characters of a key follow.
    Key(usize),
    Jwt,
    /// The password between `user:` and `@`.
    Url,
    /// A value up to the end of a word.
    Assigned,
    /// A private key, up to its last line.
    Block,
}

use Kind::{Assigned, Block, Jwt, Key, Url};

/// Beginnings, each with what must follow.
pub(super) const KINDS: &[(&str, Kind)] = &[
    ("AGE-SECRET-KEY-1", Key(20)),
    ("AIza", Key(30)),
    ("AKIA", Key(12)),
    ("ASIA", Key(12)),
    ("Basic ", Key(12)),
    ("Bearer ", Key(12)),
    ("bearer ", Key(12)),
    ("SG.", Key(20)),
    ("dckr_pat_", Key(12)),
    ("dod_", Key(12)),
    ("dop_v1_", Key(12)),
    ("ghp_", Key(12)),
    ("gho_", Key(12)),
    ("ghr_", Key(12)),
    ("ghs_", Key(12)),
    ("ghu_", Key(12)),
    ("github_pat_", Key(12)),
    ("glpat-", Key(12)),
    ("glrt-", Key(12)),
    ("gsk_", Key(20)),
    ("hf_", Key(20)),
    ("lin_api_", Key(12)),
    ("npm_", Key(20)),
    ("pplx-", Key(20)),
    ("pypi-", Key(20)),
    ("r8_", Key(20)),
    ("rk_live_", Key(12)),
    ("shpat_", Key(12)),
    ("sk-", Key(12)),
    ("sk_live_", Key(12)),
    ("sk_test_", Key(12)),
    ("tvly-", Key(12)),
    ("whsec_", Key(12)),
    ("xai-", Key(20)),
    ("xapp-", Key(12)),
    ("xoxa-", Key(12)),
    ("xoxb-", Key(12)),
    ("xoxp-", Key(12)),
    ("xoxr-", Key(12)),
    ("xoxs-", Key(12)),
    ("ya29.", Key(12)),
    ("eyJ", Jwt),
    ("://", Url),
    ("api_key=", Assigned),
    ("API_KEY=", Assigned),
    ("apikey=", Assigned),
    ("access_token=", Assigned),
    ("client_secret=", Assigned),
    ("password=", Assigned),
    ("PASSWORD=", Assigned),
    ("passwd=", Assigned),
    ("secret=", Assigned),
    ("SECRET=", Assigned),
    ("token=", Assigned),
    ("TOKEN=", Assigned),
    ("-----BEGIN ", Block),
];

/// The fewest characters of a value that is assigned.
const MIN_VALUE: usize = 6;

/// How a private key says that it is one, and how it ends.
const PRIVATE: &str = "PRIVATE KEY-----";
const END: &str = "-----END ";
const DASHES: &str = "-----";

impl Kind {
    /// The range of the secret whose prefix is at `start..after`. `None` if the prefix is part of a
    /// word (`task-…`) or too few characters follow.
    pub(super) fn find(self, text: &str, start: usize, after: usize) -> Option<Range<usize>> {
        let rest = &text[after..];
        match self {
            Key(least) => {
                let tail = key_length(rest);
                (!is_in_word(text, start) && tail >= least).then_some(start..after + tail)
            }
            Jwt => {
                let tail = key_length(rest);
                let dots = rest[..tail].bytes().filter(|byte| *byte == b'.').count();
                let is_one = !is_in_word(text, start) && tail >= 30 && dots >= 2;
                is_one.then_some(start..after + tail)
            }
            Url => {
                let authority = &rest[..rest.find(ends_authority).unwrap_or(rest.len())];
                let (user, _) = authority.rsplit_once('@')?;
                let (name, password) = user.split_once(':')?;
                let from = after + name.len() + 1;
                (!password.is_empty()).then_some(from..from + password.len())
            }
            Assigned => {
                let length = rest.find(ends_value).unwrap_or(rest.len());
                (length >= MIN_VALUE).then_some(after..after + length)
            }
            Block => {
                let line = rest.lines().next().unwrap_or_default();
                if !line.contains(PRIVATE) {
                    return None;
                }
                Some(start..block_end(text, after).unwrap_or(text.len()))
            }
        }
    }

    /// Whether more text could make a secret of what stands at the end of a text and begins with
    /// this kind's beginning.
    pub(super) fn is_open(self, rest: &str) -> bool {
        match self {
            Key(_) | Jwt => key_length(rest) == rest.len(),
            Url => !rest.contains(ends_authority),
            Assigned => !rest.contains(ends_value),
            Block => {
                if rest.contains('\n') {
                    rest.contains(PRIVATE) && block_end(rest, 0).is_none()
                } else {
                    true
                }
            }
        }
    }
}

/// Where a private key ends whose first line begins before `from`.
pub(super) fn block_end(text: &str, from: usize) -> Option<usize> {
    let end = from + text[from..].find(END)? + END.len();
    let dashes = text[end..].find(DASHES)?;
    Some(end + dashes + DASHES.len())
}

/// How many characters of a key a text begins with.
pub(super) fn key_length(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(byte))
        .count()
}

pub(super) fn is_in_word(text: &str, start: usize) -> bool {
    let before = text[..start].chars().next_back();
    before.is_some_and(char::is_alphanumeric)
}

fn ends_authority(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`' | ')' | '\\'
        )
}

fn ends_value(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '&' | ';' | ',' | '"' | '\'' | '<' | '>' | '`' | ')' | '}'
        )
}
