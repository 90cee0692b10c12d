//! From text to terms: one way for prose and code, so that their scores compare.
//!
//! A word is split where an identifier is (`camelCase`, `snake_case`, `kebab-case`, `HTTPServer2`).
//! The parts take successive positions, and the whole, without its separators, stands at the
//! position of the first: the phrase "http server" then finds `HTTPServer`, and `http_server`
//! finds it as one rare term.

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, Stemmer, TextAnalyzer, Token, TokenStream, Tokenizer,
};

/// A term is cut here: the head of a hash still finds it, and the dictionary stays small.
const MAX_TERM_BYTES: usize = 64;
/// A run longer than this is data (base64, minified code), whose parts mean nothing.
const MAX_SPLIT_BYTES: usize = 128;

/// The analyzer of every text field, and of every question.
pub(super) fn stemming() -> TextAnalyzer {
    TextAnalyzer::builder(Words)
        .filter(AsciiFoldingFilter)
        .filter(LowerCaser)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The same without stemming: for stop words, prefixes and names.
pub(super) fn plain() -> TextAnalyzer {
    TextAnalyzer::builder(Words)
        .filter(AsciiFoldingFilter)
        .filter(LowerCaser)
        .build()
}

/// The terms of a text. A whole identifier has a `position_length` above one.
pub(super) fn terms(analyzer: &mut TextAnalyzer, text: &str, limit: usize) -> Vec<Token> {
    let mut stream = analyzer.token_stream(text);
    let mut found = Vec::new();
    while found.len() < limit && stream.advance() {
        found.push(stream.token().clone());
    }
    found
}

/// A name as it is compared: lower-case, folded, without separators.
pub(super) fn squash(analyzer: &mut TextAnalyzer, name: &str) -> String {
    let mut out = String::new();
    for token in terms(analyzer, name, 64) {
        if token.position_length == 1 {
            out.push_str(&token.text);
        }
    }
    out.truncate(floor(&out, MAX_TERM_BYTES));
    out
}

/// Splits text into words, and words into parts.
#[derive(Clone)]
struct Words;

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        WordStream {
            text,
            at: 0,
            position: 0,
            ready: Vec::new(),
            token: Token::default(),
        }
    }
}

struct WordStream<'a> {
    text: &'a str,
    /// The byte from which to read on.
    at: usize,
    position: usize,
    /// The tokens of the current word, last first.
    ready: Vec<Token>,
    token: Token,
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while self.ready.is_empty() {
            if !self.next_word() {
                return false;
            }
        }
        match self.ready.pop() {
            Some(token) => {
                self.token = token;
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

impl WordStream<'_> {
    /// Reads one word or one run of an unspaced script. False at the end of the text.
    fn next_word(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some((skip, first)) = rest.char_indices().find(|(_, c)| c.is_alphanumeric()) else {
            return false;
        };
        let start = self.at + skip;
        if is_unspaced(first) {
            let end = self.run_end(start, is_unspaced);
            self.at = end;
            self.push_unspaced(start, end);
        } else {
            let end = self.word_end(start);
            self.at = end + clitic(&self.text[end..]);
            self.push_word(start, end);
        }
        self.ready.reverse();
        true
    }

    fn run_end(&self, start: usize, belongs: impl Fn(char) -> bool) -> usize {
        let run = &self.text[start..];
        run.find(|c| !belongs(c))
            .map_or(self.text.len(), |len| start + len)
    }

    /// The end of an identifier: separators belong to it only between letters or digits.
    fn word_end(&self, start: usize) -> usize {
        let mut end = start;
        let mut chars = self.text[start..].char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            let inside = match c {
                '_' => chars.peek().is_some_and(|(_, n)| in_word(*n) || *n == '_'),
                '-' => chars.peek().is_some_and(|(_, n)| in_word(*n)),
                _ => in_word(c) || is_mark(c),
            };
            if !inside {
                break;
            }
            end = start + i + c.len_utf8();
        }
        end
    }

    fn push_word(&mut self, start: usize, end: usize) {
        let word = &self.text[start..end];
        let mut parts = if word.len() > MAX_SPLIT_BYTES {
            Vec::new()
        } else {
            parts(word)
        };
        if parts.len() <= 1 {
            parts = vec![(0, word.len())];
        } else {
            self.push(start, end, parts.len());
        }
        for (from, to) in parts {
            self.push(start + from, start + to, 1);
            self.position += 1;
        }
    }

    /// Chinese, Japanese, Korean, Thai: every character, and every two together, because there
    /// are no spaces that would tell the words.
    fn push_unspaced(&mut self, start: usize, end: usize) {
        let text = self.text;
        let mut chars = text[start..end].char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            let here = start + i;
            let after = here + c.len_utf8();
            if let Some((_, next)) = chars.peek() {
                self.push(here, after + next.len_utf8(), 2);
            }
            self.push(here, after, 1);
            self.position += 1;
        }
    }

    /// Queues a token, without the separators and marks inside it.
    fn push(&mut self, from: usize, to: usize, length: usize) {
        let mut text: String = self.text[from..to]
            .chars()
            .filter(|c| c.is_alphanumeric())
            .collect();
        text.truncate(floor(&text, MAX_TERM_BYTES));
        self.ready.push(Token {
            offset_from: from,
            offset_to: to,
            position: self.position,
            text,
            position_length: length,
        });
    }
}

/// Where the parts of an identifier are, as byte ranges.
fn parts(word: &str) -> Vec<(usize, usize)> {
    let chars: Vec<(usize, char)> = word.char_indices().filter(|(_, c)| !is_mark(*c)).collect();
    let mut out = Vec::new();
    let mut start: Option<usize> = None;
    for (n, &(i, c)) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            out.extend(start.take().map(|from| (from, i)));
            continue;
        }
        let before = n.checked_sub(1).map(|p| chars[p].1);
        let after = chars.get(n + 1).map(|next| next.1);
        if start.is_some() && before.is_some_and(|b| breaks(b, c, after)) {
            out.extend(start.take().map(|from| (from, i)));
        }
        start.get_or_insert(i);
    }
    out.extend(start.map(|from| (from, word.len())));
    out
}

/// Whether a part begins at `c`.
fn breaks(before: char, c: char, after: Option<char>) -> bool {
    if before.is_numeric() != c.is_numeric() {
        return true;
    }
    c.is_uppercase()
        && (before.is_lowercase()
            || (before.is_uppercase() && after.is_some_and(char::is_lowercase)))
}

/// The length of a `'s`, `'t`, `'re` that follows a word: it says nothing, and is skipped.
fn clitic(rest: &str) -> usize {
    let Some(mark) = rest.chars().next().filter(|c| matches!(c, '\'' | '’')) else {
        return 0;
    };
    let tail = &rest[mark.len_utf8()..];
    let letters = tail.find(|c: char| !c.is_alphanumeric());
    let letters = letters.unwrap_or(tail.len());
    match &tail[..letters] {
        "s" | "t" | "d" | "m" | "re" | "ve" | "ll" => mark.len_utf8() + letters,
        _ => 0,
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// The combining marks of decomposed Latin text.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Scripts written without spaces, or where a bigram finds better than a word.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The last character boundary at or before `max`.
fn floor(text: &str, max: usize) -> usize {
    let mut at = max.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        let tokens = terms(&mut stemming(), text, 100);
        let shown = tokens.iter().map(|t| format!("{}{}", t.text, t.position));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_and_identifiers_become_terms() {
        for (text, expected) in [
            ("", ""),
            (" .,;!? \0 ", ""),
            ("Rules are evaluated", "rule0 are1 evalu2"),
            ("camelCase", "camelcas0 camel0 case1"),
            ("PascalCase", "pascalcas0 pascal0 case1"),
            ("snake_case", "snakecas0 snake0 case1"),
            ("kebab-case", "kebabcas0 kebab0 case1"),
            ("__init__", "init0"),
            ("HTTPServer2", "httpserver20 http0 server1 22"),
            ("a - b", "a0 b1"),
            ("--dry-run", "dryrun0 dri0 run1"),
            ("std::fs::read", "std0 fs1 read2"),
            ("user's don't", "user0 don1"),
            ("naïve Ærø Straße", "naiv0 aero1 strass2"),
            ("cafe\u{301}s", "cafe0"),
            ("東京都", "東京0 東0 京都1 京1 都2"),
            ("日x本", "日0 x1 本2"),
            ("🦀 crab 🦀", "crab0"),
        ] {
            assert_eq!(seen(text), expected, "{text:?}");
        }
    }

    #[test]
    fn terms_have_a_bound() {
        let long = "aB".repeat(100_000);
        let tokens = terms(&mut stemming(), &long, 100);
        assert_eq!(tokens.len(), 1);
        assert_eq!(tokens[0].text.len(), MAX_TERM_BYTES);
        let wide = "é".repeat(500);
        assert!(terms(&mut plain(), &wide, 9)[0].text.len() <= MAX_TERM_BYTES);
    }

    #[test]
    fn a_squashed_name_has_no_separators() {
        for name in ["parse_query", "parseQuery", "Parse-Query", "parse query"] {
            assert_eq!(squash(&mut plain(), name), "parsequery");
        }
    }
}
