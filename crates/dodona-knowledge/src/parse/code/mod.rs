//! Code: what it defines, what it uses, and chunks along its symbols.
//!
//! Exact only about syntax: names are not resolved across files, and a macro's output is unseen.

mod chunks;
mod extract;
mod language;
#[cfg(test)]
mod tests;

use self::chunks::Part;
use self::extract::Definition;
use super::lines::{Lines, number};
use super::{PATH_SEPARATOR, Parsed, Symbol, window};

/// The longest signature that is kept, in characters: a minified file is one line.
const SIGNATURE_CHARS: usize = 200;

/// Whether an extension (in lower case) is that of a language in the table.
pub(super) fn is_code(extension: &str) -> bool {
    language::by_extension(extension).is_some()
}

/// Reads code; what the grammar cannot read in time is cut into windows.
pub(super) fn parse(extension: &str, text: &str) -> Parsed {
    let lines = Lines::new(text);
    let grammar = language::of(extension, text);
    let mut parsed = Parsed {
        language: grammar.map(|grammar| grammar.name),
        ..Parsed::default()
    };
    let Some(extract) = grammar.and_then(|grammar| extract::extract(grammar, text, &lines)) else {
        parsed.chunks = window::chunks(&lines);
        return parsed;
    };
    let parts = nest(&extract.definitions);
    parsed.chunks = chunks::chunks(&lines, &parts);
    parsed.symbols = parts
        .iter()
        .filter_map(|part| symbol(&lines, part))
        .collect();
    parsed.references = extract.references;
    parsed
}

/// Finds for each definition the ones around it, by position.
fn nest(definitions: &[Definition]) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::with_capacity(definitions.len());
    let mut open: Vec<usize> = Vec::new();
    for definition in definitions {
        while let Some(&last) = open.last() {
            if definitions[last].bytes.1 >= definition.bytes.1
                && definitions[last].bytes != definition.bytes
            {
                break;
            }
            open.pop();
        }
        let parent = open.last().copied();
        let mut path = parent.map_or_else(String::new, |parent| {
            join(&parts[parent].path, &definitions[parent].name)
        });
        if let Some(receiver) = &definition.receiver {
            path = join(&path, receiver);
        }
        open.push(parts.len());
        parts.push(Part {
            kind: kind(definition, parent.map(|parent| &definitions[parent])),
            definition,
            parent,
            path,
        });
    }
    parts
}

/// A function directly inside a type is a method, whatever the grammar calls it.
fn kind(definition: &Definition, parent: Option<&Definition>) -> Option<&'static str> {
    let in_type = parent
        .is_some_and(|parent| matches!(parent.kind, None | Some("class" | "interface" | "type")));
    match definition.kind {
        Some("function") if in_type => Some("method"),
        kind => kind,
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}{PATH_SEPARATOR}{name}")
    }
}

fn symbol(lines: &Lines<'_>, part: &Part<'_>) -> Option<Symbol> {
    let definition = part.definition;
    let signature = lines.get(definition.name_line).trim();
    Some(Symbol {
        name: definition.name.clone(),
        kind: part.kind?.to_owned(),
        container: part.path.clone(),
        line_start: number(definition.lines.start),
        line_end: number(definition.lines.end.saturating_sub(1)),
        signature: signature.chars().take(SIGNATURE_CHARS).collect(),
    })
}
