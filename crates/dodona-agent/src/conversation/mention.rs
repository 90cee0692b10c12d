//! Files and symbols that a text mentions.

use serde_json::{Map, Value};

/// How much of a text is looked at, in bytes.
const LOOKED_AT: usize = 64 * 1024;

/// The most mentions of each kind that one exchange keeps.
const PER_EXCHANGE: usize = 32;

/// The longest mention, in bytes.
const LONGEST: usize = 200;

/// Endings that make a name without a folder a file: `auth.py` is one, `vault.search` is not.
const ENDINGS: &[&str] = &[
    "bash", "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "dart", "ex", "exs", "go", "gql",
    "graphql", "h", "hpp", "hs", "htm", "html", "ini", "ipynb", "java", "jinja", "js", "json",
    "jsonl", "jsx", "kt", "less", "lock", "lua", "luau", "md", "mdx", "mjs", "ml", "php", "pl",
    "proto", "py", "pyi", "r", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "svelte", "swift",
    "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// What a text mentions, each once, in the order it does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    pub(super) files: Vec<String>,
    pub(super) symbols: Vec<String>,
}

impl Mentions {
    /// Looks through a text.
    pub(super) fn add_text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        for (index, piece) in text.split('`').enumerate() {
            // Between single backticks stands one name; a fence makes empty pieces and then code,
            // whose names are found like those of any text.
            let quoted = index % 2 == 1 && !piece.contains('\n');
            if !(quoted && self.add_quoted(piece)) {
                self.add_plain(piece);
            }
        }
    }

    /// Looks through the texts of a tool's arguments.
    pub(super) fn add_arguments(&mut self, arguments: &Map<String, Value>) {
        arguments.values().for_each(|value| self.add_value(value));
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(values) => values.iter().for_each(|value| self.add_value(value)),
            Value::Object(fields) => fields.values().for_each(|value| self.add_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A name between backticks, whatever its form. Answers whether it was one.
    fn add_quoted(&mut self, piece: &str) -> bool {
        let name = piece.trim();
        if let Some(file) = file(name) {
            keep(&mut self.files, file);
            return true;
        }
        let name = name.strip_suffix("()").unwrap_or(name);
        if is_path_of_identifiers(name) {
            keep(&mut self.symbols, name);
            return true;
        }
        false
    }

    fn add_plain(&mut self, piece: &str) {
        for word in piece.split(is_separator) {
            let word = word
                .trim_start_matches(['*', '#', ':'])
                .trim_end_matches(['.', ':', '*', '!', '?']);
            if let Some(file) = file(word) {
                keep(&mut self.files, file);
            } else if is_symbol(word) {
                keep(&mut self.symbols, word);
            }
        }
    }
}

fn keep(list: &mut Vec<String>, name: &str) {
    let known = list.iter().any(|known| known == name);
    if !known && list.len() < PER_EXCHANGE && name.len() <= LONGEST {
        list.push(name.to_owned());
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | ','
                | ';'
                | '|'
                | '='
                | '\\'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '«'
                | '»'
        )
}

/// The path in a word that names a file of a project, without the line that may follow it.
fn file(word: &str) -> Option<&str> {
    if word.contains("://") || word.starts_with(['/', '~']) {
        return None;
    }
    let path = without_line(word);
    let path = path.strip_prefix("./").unwrap_or(path);
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+');
    let leaves = path.split('/').any(|part| part.is_empty() || part == "..");
    if leaves || !path.chars().all(allowed) {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.')?;
    let like_an_ending = (1..=8).contains(&ending.len())
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && ending.bytes().all(|b| b.is_ascii_alphanumeric());
    let known = ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    let fits = !stem.is_empty() && like_an_ending && (known || path.contains('/'));
    fits.then_some(path)
}

/// Takes `:12`, `:12:3` and `:12-20` from the end.
fn without_line(word: &str) -> &str {
    let mut path = word;
    for _ in 0..2 {
        match path.rsplit_once(':') {
            Some((before, line)) if is_line(line) => path = before,
            _ => break,
        }
    }
    path
}

fn is_line(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('-') {
        Some((from, to)) => digits(from) && digits(to),
        None => digits(text),
    }
}

/// A word that can hardly be anything but a symbol: `a::b` or `CamelCase`.
fn is_symbol(word: &str) -> bool {
    let word = word.strip_suffix("::").unwrap_or(word);
    (word.contains("::") && is_path_of_identifiers(word)) || is_camel_case(word)
}

/// Identifiers, joined by `::` or dots; a single letter is too little to be worth a mention.
fn is_path_of_identifiers(word: &str) -> bool {
    word.len() > 1
        && word
            .split("::")
            .flat_map(|part| part.split('.'))
            .all(is_identifier)
}

fn is_identifier(part: &str) -> bool {
    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && part.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `AuthService`, `JWTHandler`; neither `Login` nor `JWT` nor `McDonald`'s `iPhone`.
fn is_camel_case(word: &str) -> bool {
    let humps = word
        .as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        .count();
    let acronym_first = word.as_bytes().windows(3).any(|t| {
        t[0].is_ascii_uppercase() && t[1].is_ascii_uppercase() && t[2].is_ascii_lowercase()
    });
    word.len() > 4
        && word.bytes().all(|b| b.is_ascii_alphanumeric())
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (humps > 0 || acronym_first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(text: &str) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.add_text(text);
        mentions
    }

    #[test]
    fn files_are_found_with_and_without_a_line() {
        let found = of(
            "See src/auth/jwt.rs:41-67, ./notes/auth.md, (auth.py:3:1) and `Cargo.toml`; \
             also templates/page.jinja2.",
        );
        assert_eq!(
            found.files,
            [
                "src/auth/jwt.rs",
                "notes/auth.md",
                "auth.py",
                "Cargo.toml",
                "templates/page.jinja2"
            ]
        );
        assert!(found.symbols.is_empty(), "{:?}", found.symbols);
    }

    #[test]
    fn what_only_looks_like_a_file_is_none() {
        let found = of(
            "e.g. 3.14, v1.2.3, example.com, vault.search, https://a.b/c.html, \
                        /etc/passwd.txt, ../secret.md, a/../b.rs, .gitignore, i.e.",
        );
        assert_eq!(found, Mentions::default());
    }

    #[test]
    fn symbols_are_found_by_their_form_or_between_backticks() {
        let found = of(
            "`issue_token` calls AuthService, JWTHandler and jwt::sign(), `Db::write()`; \
                        Login and JWT are words, `vault.search` is a name.",
        );
        assert_eq!(
            found.symbols,
            [
                "issue_token",
                "AuthService",
                "JWTHandler",
                "jwt::sign",
                "Db::write",
                "vault.search"
            ]
        );
    }

    #[test]
    fn arguments_are_looked_through_at_any_depth() {
        let mut mentions = Mentions::default();
        let arguments = json!({ "path": "src/lib.rs", "deep": [{ "q": "`parse_it`" }], "n": 5 });
        mentions.add_arguments(arguments.as_object().unwrap());
        assert_eq!(mentions.files, ["src/lib.rs"]);
        assert_eq!(mentions.symbols, ["parse_it"]);
    }

    #[test]
    fn there_is_a_bound_and_nothing_comes_twice() {
        let many: String = (0..1_000)
            .map(|n| format!("src/f{n}.rs src/f0.rs "))
            .collect();
        let found = of(&many);
        assert_eq!(found.files.len(), PER_EXCHANGE);
        assert_eq!(found.files[..2], ["src/f0.rs", "src/f1.rs"]);
        assert!(of(&format!("{}.rs", "x".repeat(LONGEST))).files.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(13), ..ProptestConfig::default() })]
        #[test]
        fn no_text_is_too_strange(text in "\\PC*", ticks in "[`\\n:./A-Za-z_ü]{0,80}") {
            for text in [text, ticks] {
                let found = of(&text);
                for name in found.files.iter().chain(&found.symbols) {
                    prop_assert!(text.contains(name.as_str()));
                }
            }
        }
    }
}
