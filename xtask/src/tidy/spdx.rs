//! Licence expressions, as far as manifests use them: `AND`, `OR`, `WITH` and parentheses.

use std::iter::Peekable;
use std::vec::IntoIter;

type Tokens = Peekable<IntoIter<String>>;

/// Whether the allowed licences satisfy an expression; an error says what is wrong with it.
///
/// A licence `WITH` an exception is a licence of its own: it must be allowed in those words.
pub(super) fn is_satisfied(
    expression: &str,
    is_allowed: &dyn Fn(&str) -> bool,
) -> Result<bool, String> {
    let mut tokens = tokens(expression).into_iter().peekable();
    let satisfied = any(&mut tokens, is_allowed)?;
    match tokens.next() {
        None => Ok(satisfied),
        Some(token) => Err(format!("`{token}` is out of place")),
    }
}

/// `OR` binds weakest.
fn any(tokens: &mut Tokens, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut satisfied = all(tokens, is_allowed)?;
    while tokens.next_if_eq("OR").is_some() {
        satisfied |= all(tokens, is_allowed)?;
    }
    Ok(satisfied)
}

fn all(tokens: &mut Tokens, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut satisfied = term(tokens, is_allowed)?;
    while tokens.next_if_eq("AND").is_some() {
        satisfied &= term(tokens, is_allowed)?;
    }
    Ok(satisfied)
}

fn term(tokens: &mut Tokens, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let first = tokens.next().ok_or("it ends too early")?;
    if first == "(" {
        let satisfied = any(tokens, is_allowed)?;
        tokens
            .next_if_eq(")")
            .ok_or("a parenthesis is not closed")?;
        return Ok(satisfied);
    }
    if is_reserved(&first) {
        return Err(format!("`{first}` is out of place"));
    }
    if tokens.next_if_eq("WITH").is_none() {
        return Ok(is_allowed(&first));
    }
    let exception = tokens.next().filter(|token| !is_reserved(token));
    let exception = exception.ok_or("`WITH` names no exception")?;
    Ok(is_allowed(&format!("{first} WITH {exception}")))
}

fn is_reserved(token: &str) -> bool {
    matches!(token, "AND" | "OR" | "WITH" | "(" | ")")
}

/// A slash is the old way to write `OR`, still found in manifests.
fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str) -> Result<bool, String> {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        is_satisfied(expression, &|licence| allowed.contains(&licence))
    }

    #[test]
    fn one_side_of_an_or_is_enough() {
        assert_eq!(check("MIT OR GPL-3.0-only"), Ok(true));
        assert_eq!(check("GPL-3.0-only/MIT"), Ok(true));
        assert_eq!(check("GPL-3.0-only OR LGPL-2.1-or-later"), Ok(false));
    }

    #[test]
    fn an_and_needs_both_sides() {
        assert_eq!(check("MIT AND Unicode-3.0"), Ok(true));
        assert_eq!(check("MIT AND GPL-3.0-only"), Ok(false));
    }

    #[test]
    fn and_binds_stronger_than_or() {
        assert_eq!(check("MIT OR Apache-2.0 AND GPL-3.0-only"), Ok(true));
        assert_eq!(check("(MIT OR Apache-2.0) AND GPL-3.0-only"), Ok(false));
        assert_eq!(check("((MIT OR GPL-3.0-only)) AND Unicode-3.0"), Ok(true));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        assert_eq!(check("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(check("MIT WITH LLVM-exception"), Ok(false));
    }

    #[test]
    fn nonsense_is_an_error() {
        for nonsense in [
            "",
            "MIT OR",
            "AND MIT",
            "(MIT",
            "MIT)",
            "MIT Apache-2.0",
            "MIT WITH OR",
            "MIT or ISC",
        ] {
            assert!(check(nonsense).is_err(), "{nonsense}");
        }
    }
}
