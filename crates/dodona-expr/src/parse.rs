//! Source to syntax tree, with the bounds that keep the parser and its tree within the stack.
//!
//! The parser grows its stack when it needs more, but dropping its tree does not: so nesting is
//! bounded by counting tokens before there is a tree.

use std::sync::Arc;

use ruff_python_ast::Expr;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseError, lexer, parse_expression};
use ruff_text_size::TextRange;

use crate::error::{Error, ErrorKind, Fault, Span};
use crate::limits::{MAX_NESTING, MAX_SOURCE};

/// How many operators one element of a list or call may chain. Each could be one level of the
/// tree; what really nests is counted later, by [`MAX_NESTING`].
const MAX_CHAIN: usize = 1_500;

pub(crate) fn parse(source: &Arc<str>) -> Result<Expr, Error> {
    let whole = Span::new(0, source.len());
    if source.len() > MAX_SOURCE {
        let message = format!(
            "the expression has {} bytes, and {MAX_SOURCE} are allowed",
            source.len()
        );
        return Err(Error::new(Fault::limit(message), Span::new(0, 0), source));
    }
    check_nesting(source).map_err(|fault| Error::new(fault, whole, source))?;
    // Space around an expression means nothing; before one, the parser would take it for an
    // indented block. Spaces keep their place, so that spans stay true.
    let blank_start = source.len() - source.trim_start().len();
    if blank_start == source.len() {
        let fault = Fault::new(ErrorKind::Syntax, "there is no expression");
        return Err(Error::new(fault, whole, source));
    }
    let end = source.trim_end().len();
    let range = TextRange::new(size(blank_start), size(end));
    let parsed = if blank_start == 0 && end == source.len() {
        parse_expression(source)
    } else {
        ruff_python_parser::parse_expression_range(source, range)
    };
    match parsed {
        Ok(parsed) => Ok(*parsed.into_syntax().body),
        Err(error) => Err(explained(&error, source)),
    }
}

/// Sources are far below 4 GiB here.
fn size(at: usize) -> ruff_text_size::TextSize {
    ruff_text_size::TextSize::new(u32::try_from(at).unwrap_or(u32::MAX))
}

/// Bounds how deep the tree of these tokens can be.
fn check_nesting(source: &str) -> Result<(), Fault> {
    let mut lexer = lexer::lex(source.trim(), Mode::Expression);
    let mut levels = Levels::default();
    loop {
        let kind = lexer.next_token();
        if kind == TokenKind::EndOfFile {
            return Ok(());
        }
        levels.see(kind)?;
    }
}

/// What is open at a place of the source.
#[derive(Default)]
struct Levels {
    /// For each open bracket, the chain that stood before it.
    open: Vec<usize>,
    /// Operators since the last comma of this bracket.
    chain: usize,
    /// The sum of all chains that are open.
    total: usize,
    /// Operators without an operand between them.
    prefix: usize,
}

impl Levels {
    fn see(&mut self, kind: TokenKind) -> Result<(), Fault> {
        match kind {
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => self.enter(),
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd => self.leave(),
            TokenKind::Comma => {
                self.total -= self.chain;
                self.chain = 0;
                self.prefix = 0;
            }
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::True
            | TokenKind::False
            | TokenKind::None
            | TokenKind::Ellipsis => self.prefix = 0,
            // Everything else is an operator, or a mistake that costs as much as one.
            _ => {
                self.prefix += 1;
                self.chain += 1;
                self.total += 1;
            }
        }
        let too_deep = self.open.len() > MAX_NESTING || self.prefix > MAX_NESTING;
        if too_deep || self.total > MAX_CHAIN {
            return Err(Fault::limit(format!(
                "the expression nests deeper than {MAX_NESTING}"
            )));
        }
        Ok(())
    }

    /// A bracket may also be a call or an index: one more level.
    fn enter(&mut self) {
        self.chain += 1;
        self.total += 1;
        self.open.push(self.chain);
        self.chain = 0;
        self.prefix = 0;
    }

    fn leave(&mut self) {
        self.total -= self.chain;
        self.prefix = 0;
        // One that closes nothing is the parser's to refuse.
        self.chain = self.open.pop().unwrap_or_default();
        if self.open.is_empty() {
            self.total = self.chain;
        }
    }
}

/// The parser's complaint, and in our words where it is a trap of this language.
fn explained(error: &ParseError, source: &Arc<str>) -> Error {
    let start = error.location.start().to_usize().min(source.len());
    let end = error.location.end().to_usize().clamp(start, source.len());
    let span = Span::new(start, end);
    let found = span.of(source);
    let fault = match found {
        "=" => Fault::new(
            ErrorKind::Syntax,
            "`=` assigns, and nothing can be assigned here",
        )
        .hint("use `==` to compare"),
        "+=" | "-=" | "*=" | "/=" | "//=" | "%=" | "**=" | "&=" | "|=" | "^=" | "<<=" | ">>="
        | "@=" => Fault::new(
            ErrorKind::Syntax,
            format!("`{found}` assigns, and nothing can be assigned here"),
        ),
        ";" => second_statement(),
        _ if starts_line(source, start) => second_statement(),
        "&" | "&&" if source[..end].ends_with("&&") => {
            Fault::new(ErrorKind::Syntax, "there is no `&&`").hint("use `and`")
        }
        "|" | "||" if source[..end].ends_with("||") => {
            Fault::new(ErrorKind::Syntax, "there is no `||`").hint("use `or`")
        }
        "!" => Fault::new(ErrorKind::Syntax, "there is no `!`").hint("use `not`"),
        _ => Fault::new(ErrorKind::Syntax, lower_first(&error.error.to_string())),
    };
    Error::new(fault, span, source)
}

fn second_statement() -> Fault {
    Fault::new(
        ErrorKind::Syntax,
        "a second statement: there can be one expression only",
    )
    .hint("put parentheses around one that needs several lines")
}

/// Whether the error stands at the end of a line that others follow, or at the start of one that
/// others precede.
fn starts_line(source: &str, at: usize) -> bool {
    let blank = |c: char| c == ' ' || c == '\t';
    let before = source[..at].trim_end_matches(blank);
    let breaks_before = before.ends_with('\n') && !before.trim().is_empty();
    let after = source[at..].trim_start_matches(blank);
    let breaks_here = after.starts_with('\n') && !after.trim().is_empty();
    breaks_before || breaks_here
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(source: &str) -> Option<ErrorKind> {
        parse(&Arc::from(source)).err().map(|error| error.kind())
    }

    #[test]
    fn deep_sources_are_refused_before_they_are_parsed() {
        for source in [
            "(".repeat(5000),
            "[".repeat(5000),
            "-".repeat(8000),
            "not ".repeat(2000),
            "a+".repeat(4000) + "a",
            "lambda:".repeat(1000),
            "f'{".repeat(2000),
            "a".to_owned() + &"()".repeat(4000),
            "a".to_owned() + &".a".repeat(4000),
            "(0,".repeat(2000),
            "{0:".repeat(2000),
        ] {
            assert_eq!(kind(&source), Some(ErrorKind::Limit), "{}", &source[..20]);
        }
    }

    #[test]
    fn long_sources_are_refused() {
        assert_eq!(kind(&"-".repeat(100_000)), Some(ErrorKind::Limit));
        assert_eq!(kind(&"(".repeat(50_000)), Some(ErrorKind::Limit));
    }

    #[test]
    fn wide_is_not_deep() {
        let wide = format!("[{}1]", "1, ".repeat(2000));
        assert_eq!(kind(&wide), None);
        let calls = format!("[{}1]", "f(x)[0], ".repeat(800));
        assert_eq!(kind(&calls), None);
    }
}
