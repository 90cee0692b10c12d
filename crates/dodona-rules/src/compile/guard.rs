//! The guard of a script: its first condition, as an expression.
//!
//! Many scripts start with an early exit, such as
//! `if context.result.tool_name ~= "vault_search" then return false end`, or consist of
//! `return context.turn.token_usage > 0.8 and …`. If that first comparison is false, the script returns false
//! and runs nothing else. Extracted as an expression, the comparison is evaluated together with those of
//! other rules, and the script runs only if it is true. A script that consists only of such comparisons does
//! not run at all.
//!
//! This is done only where the result is certainly the same: a comparison of a known number with a constant
//! number, or of a known string with a constant string, at the start of the script. A script of any other
//! form has no guard and always runs.

use dodona_expr::{Expr, Kind};

use crate::context::schema;
use crate::format::Trigger;

/// Integers below this are exact in both languages.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What is known about a script without running it.
#[derive(Debug)]
pub(super) struct Guard {
    /// If this is false, the script returns false.
    pub(super) expr: Expr,
    /// Whether the expression is the whole script: if it is true, the script returns true.
    pub(super) is_whole: bool,
}

/// Extracts the guard of a script.
pub(super) fn of_script(source: &str, trigger: Trigger) -> Option<Guard> {
    let mut words = Words(source);
    let (expression, is_whole) = match words.next()? {
        Word::Name("return") => match terms(words, trigger) {
            Some(terms) => (terms.join(" and "), true),
            None => {
                let first = comparison(&mut words)?;
                ends_in_and(words)?;
                (first.expression(trigger)?, false)
            }
        },
        Word::Name("if") => {
            let mut first = comparison(&mut words)?;
            is_early_exit(&mut words)?;
            first.op = opposite(first.op)?;
            (first.expression(trigger)?, false)
        }
        _ => return None,
    };
    let expr = Expr::compile(&expression, schema(trigger)).ok()?;
    Some(Guard { expr, is_whole })
}

/// Comparisons joined by `and` up to the end of the script.
fn terms(mut words: Words<'_>, trigger: Trigger) -> Option<Vec<String>> {
    let mut terms = Vec::new();
    loop {
        terms.push(comparison(&mut words)?.expression(trigger)?);
        match words.next() {
            Some(Word::Name("and")) => {}
            None | Some(Word::Sign(";")) => return words.is_at_end().map(|()| terms),
            Some(_) => return None,
        }
    }
}

struct Comparison<'s> {
    path: String,
    op: &'s str,
    right: Word<'s>,
}

fn comparison<'s>(words: &mut Words<'s>) -> Option<Comparison<'s>> {
    let Word::Name("context") = words.next()? else {
        return None;
    };
    let mut path = "context".to_owned();
    loop {
        match words.next()? {
            Word::Sign(".") => {
                let Word::Name(name) = words.next()? else {
                    return None;
                };
                path.push('.');
                path.push_str(name);
            }
            Word::Sign(op) => {
                let right = words.next()?;
                return Some(Comparison { path, op, right });
            }
            _ => return None,
        }
    }
}

impl Comparison<'_> {
    /// The comparison as an expression, if it means the same and cannot fail.
    fn expression(&self, trigger: Trigger) -> Option<String> {
        let schema = schema(trigger);
        let Self { path, op, right } = self;
        let kind = &schema.slot_type(schema.slot(path)?)?.kind;
        match (kind, *op, *right) {
            (Kind::Int | Kind::Float, "<" | "<=" | ">" | ">=", Word::Number(number)) => {
                let value: f64 = number.parse().ok()?;
                (value.abs() < EXACT).then(|| format!("{path} {op} {number}"))
            }
            (Kind::Str, "==", Word::Text(text)) => Some(format!("{path} == '{text}'")),
            _ => None,
        }
    }
}

/// Whether nothing follows, or an `and` to the end of the script. An `or` could make the result true, and a
/// second return value would be a different result.
fn ends_in_and(mut words: Words<'_>) -> Option<()> {
    match words.next() {
        None | Some(Word::Sign(";")) => return words.is_at_end(),
        Some(Word::Name("and")) => {}
        Some(_) => return None,
    }
    let mut depth = 0_u32;
    loop {
        match words.next() {
            Some(Word::Sign("(" | "[" | "{")) => depth += 1,
            Some(Word::Sign(")" | "]" | "}")) => depth = depth.checked_sub(1)?,
            Some(Word::Name("or") | Word::Sign(",")) if depth == 0 => return None,
            Some(_) => {}
            None => return words.is_at_end(),
        }
    }
}

/// `then return false end`.
fn is_early_exit(words: &mut Words<'_>) -> Option<()> {
    let mut expected = |name: &str| (words.next()? == Word::Name(name)).then_some(());
    expected("then")?;
    expected("return")?;
    match words.next()? {
        Word::Name("end") => return Some(()),
        Word::Name("false" | "nil") => {}
        _ => return None,
    }
    match words.next()? {
        Word::Sign(";") => (words.next()? == Word::Name("end")).then_some(()),
        Word::Name("end") => Some(()),
        _ => None,
    }
}

/// The negated comparison. (For NaN neither is true; such rules are always evaluated.)
fn opposite(op: &str) -> Option<&'static str> {
    Some(match op {
        "<" => ">=",
        "<=" => ">",
        ">" => "<=",
        ">=" => "<",
        "~=" => "==",
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word<'s> {
    Name(&'s str),
    Number(&'s str),
    Text(&'s str),
    Sign(&'s str),
}

/// The tokens of a source, without comments. Stops early at what it does not support: long brackets,
/// strings with escapes or interpolation, other number notations.
#[derive(Clone, Copy)]
struct Words<'s>(&'s str);

impl<'s> Words<'s> {
    /// Whether all tokens were understood.
    fn is_at_end(&mut self) -> Option<()> {
        self.skip();
        self.0.is_empty().then_some(())
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            self.0 = self.0.trim_start();
            match self.0.strip_prefix("--") {
                Some(comment) if !comment.starts_with('[') => {
                    let end = comment.find('\n').unwrap_or(comment.len());
                    self.0 = &comment[end..];
                }
                _ => return,
            }
        }
    }

    fn take(&mut self, length: usize) -> &'s str {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn next(&mut self) -> Option<Word<'s>> {
        self.skip();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let run = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
        let first = self.0.chars().next()?;
        match first {
            'a'..='z' | 'A'..='Z' | '_' => Some(Word::Name(self.take(run(self.0)))),
            '0'..='9' => {
                let is_digit = |c: char| c.is_ascii_digit() || c == '.';
                let length = self.0.find(|c| !is_digit(c)).unwrap_or(self.0.len());
                let is_whole = !self.0[length..].starts_with(is_part);
                is_whole.then(|| Word::Number(self.take(length)))
            }
            '"' | '\'' => {
                let length = self.0[1..].find(['"', '\'', '\\', '\n'])?;
                let is_plain = self.0[1 + length..].starts_with(first);
                is_plain.then(|| Word::Text(&self.take(length + 2)[1..=length]))
            }
            '=' | '~' | '<' | '>' if self.0[1..].starts_with('=') => Some(Word::Sign(self.take(2))),
            '[' if self.0[1..].starts_with(['[', '=']) => None,
            '-' if self.0[1..].starts_with('-') => None,
            '`' => None,
            other if other.is_ascii() => Some(Word::Sign(self.take(1))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(source: &str) -> Option<(String, bool)> {
        let guard = of_script(source, Trigger::OnToolComplete)?;
        Some((guard.expr.source().to_owned(), guard.is_whole))
    }

    #[test]
    fn an_early_exit_and_a_first_term_are_taken_out() {
        for (source, expected) in [
            (
                "return context.turn.number >= 3 and (a or b) ;",
                "context.turn.number >= 3",
            ),
            (
                "-- why\nif context.turn.number < 3 then return false end\nreturn x or y",
                "context.turn.number >= 3",
            ),
            (
                "if context.result.tool_name ~= 'a_b' then return end",
                "context.result.tool_name == 'a_b'",
            ),
            (
                "if context.result.duration_ms<=1.5 then return nil; end",
                "context.result.duration_ms > 1.5",
            ),
            (
                "return context.result.tool_name == \"x\"\n\tand f{1, 2}\n-- end",
                "context.result.tool_name == 'x'",
            ),
        ] {
            assert_eq!(
                guard(source),
                Some((expected.to_owned(), false)),
                "{source}"
            );
        }
    }

    #[test]
    fn a_script_of_plain_comparisons_need_not_run() {
        for (source, expected) in [
            (
                "return context.turn.token_usage > 0.8",
                "context.turn.token_usage > 0.8",
            ),
            (
                "-- why\nreturn context.turn.number >= 3 and context.result.tool_name == 'a' ;",
                "context.turn.number >= 3 and context.result.tool_name == 'a'",
            ),
        ] {
            assert_eq!(guard(source), Some((expected.to_owned(), true)), "{source}");
        }
        for source in [
            "return context.turn.number > 3 and context.turn.token_usage",
            "return context.turn.number > 3 and context.result.success == true",
            "return context.turn.number > 3 and context.turn.token_usage > 0.8 == true",
            "return context.turn.number > 3 and context.turn.nmber > 3",
            "return context.turn.number > 3 and context.turn.number < 9 context.log()",
        ] {
            let is_whole = guard(source).is_some_and(|(_, is_whole)| is_whole);
            assert!(!is_whole, "{source}");
        }
    }

    #[test]
    fn whatever_could_be_told_apart_is_left_alone() {
        for source in [
            "",
            "return true",
            "local n = 1 return context.turn.number > n",
            // Another term may make up for it, or there is more than one value.
            "return context.turn.number > 3 or true",
            "return context.turn.number > 3 and x or y",
            "return context.turn.number > 3, 4",
            "return context.turn.number > 3 and x, 4",
            // More is compared than it seems.
            "return context.turn.number > 3 + x",
            "return context.turn.number > 3 == true",
            "return context.turn.number > 0x10",
            "return context.turn.number > 1e9",
            "return context.turn.number > -1",
            "return context.turn.number > 9007199254740993",
            // Not an early exit, or one that returns a value.
            "if context.turn.number < 3 then return true end",
            "if context.turn.number < 3 then x() return false end",
            "if context.turn.number < 3 or y then return false end",
            "if context.turn.number < 3 then return false else return true end",
            "if context.result.tool_name == 'a' then return false end",
            "if context.turn.number ~= 3 then return false end",
            // Not in the vocabulary, or of another type: the script fails, and says so.
            "return context.turn.nmber > 3",
            "return context.result.success > 0",
            "return context.turn > 3",
            "return context.result.tool_name > 3",
            "return context.turn['number'] > 3",
            // Texts that the two languages write differently, and code in texts.
            "return context.result.tool_name == 'a\\n'",
            "return context.result.tool_name == \"it's\"",
            "return context.result.tool_name == [[a]]",
            "return context.turn.number > 3 and `{x}` == '1'",
            "return context.turn.number > 3 --[[ and ]] or true",
        ] {
            assert_eq!(guard(source), None, "{source}");
        }
    }
}
