//! A map of the code.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::types::RepoMap;
use crate::library::Definition;

/// How many bytes a token of code has, roughly; the map's bound need not be exact.
const BYTES_PER_TOKEN: usize = 4;

/// Chooses the symbols that most other files use until the map is full, and draws them in the
/// order of the files.
pub(super) fn draw(mut symbols: Vec<(Definition, u64)>, max_tokens: u32) -> RepoMap {
    let room = max_tokens as usize * BYTES_PER_TOKEN;
    symbols.sort_by(|(a, a_uses), (b, b_uses)| {
        (b_uses, &a.path, a.line_start).cmp(&(a_uses, &b.path, b.line_start))
    });
    let mut files: BTreeMap<&str, Vec<&Definition>> = BTreeMap::new();
    let (mut used, mut left_out) = (0, 0);
    for (symbol, _) in &symbols {
        let heading = if files.contains_key(symbol.path.as_str()) {
            0
        } else {
            symbol.path.len() + 1
        };
        let size = heading + line(symbol).len();
        if used + size > room {
            left_out += 1;
            continue;
        }
        used += size;
        files.entry(&symbol.path).or_default().push(symbol);
    }
    let mut text = String::with_capacity(used);
    for (path, mut symbols) in files {
        let _ = writeln!(text, "{path}");
        symbols.sort_by_key(|symbol| symbol.line_start);
        symbols
            .iter()
            .for_each(|symbol| text.push_str(&line(symbol)));
    }
    RepoMap { text, left_out }
}

fn line(symbol: &Definition) -> String {
    let depth = if symbol.container.is_empty() { 1 } else { 2 };
    format!(
        "{:indent$}{}: {}\n",
        "",
        symbol.line_start,
        symbol.signature,
        indent = depth * 2
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(path: &str, name: &str, line_start: u32, uses: u64) -> (Definition, u64) {
        let signature = format!("fn {name}()");
        let (kind, container) = ("function".to_owned(), String::new());
        let (path, name) = (path.to_owned(), name.to_owned());
        (
            Definition {
                path,
                name,
                kind,
                container,
                line_start,
                line_end: line_start,
                signature,
            },
            uses,
        )
    }

    #[test]
    fn what_is_used_most_is_drawn_first_and_shown_in_order() {
        let symbols = vec![
            symbol("b.rs", "rare", 9, 0),
            symbol("b.rs", "common", 1, 7),
            symbol("a.rs", "some", 3, 2),
        ];
        let map = draw(symbols.clone(), 500);
        assert_eq!(
            map.text,
            "a.rs\n  3: fn some()\nb.rs\n  1: fn common()\n  9: fn rare()\n"
        );
        let map = draw(symbols, 6);
        assert_eq!(
            map,
            RepoMap {
                text: "b.rs\n  1: fn common()\n".to_owned(),
                left_out: 2
            }
        );
    }
}
