//! Refuses sources whose syntax tree would be too deep, before there is one.
//!
//! The parser builds `a + b + c + …` in a loop, and the tree is as deep as the chain is long:
//! walking it, even dropping it, would overflow the stack. So the tokens are counted first. The
//! count is an upper bound: what stands between two commas of the same bracket is taken as nested.
//! A bracket and a tag weigh more than an operator, because the parser calls itself through more
//! functions for them; the weights keep it within a quarter of a thread's usual stack.

use minijinja::machinery::{Span as TokenSpan, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::error::{Result, Span};
use crate::limits::Limits;
use crate::lower::syntax_fault;
use crate::meter::too_deep;

/// Levels of an open bracket.
const BRACKET: u32 = 4;
/// Levels of an open tag.
const TAG: u32 = 2;

pub(crate) fn check(source: &str, limits: &Limits) -> Result<()> {
    let mut scan = Scan::default();
    for token in tokenize(source, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| syntax_fault(&error))?;
        scan.token(&token);
        if scan.depth() > limits.depth {
            return Err(too_deep(limits.depth).at(place(span)));
        }
    }
    Ok(())
}

fn place(span: TokenSpan) -> Span {
    Span {
        start: span.start_offset,
        end: span.end_offset,
    }
}

#[derive(Default)]
struct Scan {
    /// Tags that are open around here; an `elif` nests like an `if`.
    tags: u32,
    /// For each `if` that is open, how many levels its end closes.
    ifs: Vec<u32>,
    /// Levels within the brackets that are closed by the end of each.
    brackets: Vec<u32>,
    /// Levels since the last comma.
    chain: u32,
    /// The sum of `brackets`.
    outside: u32,
    at_tag_name: bool,
    /// In a `set` that has no `=`: one with an end.
    opens_set: bool,
}

impl Scan {
    fn depth(&self) -> u32 {
        self.tags + self.outside + self.chain
    }

    fn token(&mut self, token: &Token<'_>) {
        let at_tag_name = std::mem::take(&mut self.at_tag_name);
        match token {
            Token::TemplateData(_) => {}
            Token::VariableStart | Token::BlockStart | Token::VariableEnd | Token::BlockEnd => {
                self.at_tag_name = matches!(token, Token::BlockStart);
                if std::mem::take(&mut self.opens_set) {
                    self.tags += TAG;
                }
                self.brackets.clear();
                (self.outside, self.chain) = (0, 0);
            }
            Token::Ident(name) if at_tag_name => self.tag(name),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                self.brackets.push(self.chain + BRACKET);
                self.outside += self.chain + BRACKET;
                self.chain = 0;
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                let Some(level) = self.brackets.pop() else {
                    return;
                };
                self.outside -= level;
                // What follows the bracket may hang on it: `f(x)(y)`, `a[0][1]`.
                self.chain = level + 1 - BRACKET;
            }
            Token::Comma => self.chain = 0,
            Token::Assign if self.brackets.is_empty() => self.opens_set = false,
            Token::Ident("not" | "and" | "or" | "if" | "else" | "is" | "in") => self.chain += 1,
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Colon
            | Token::Assign => {}
            // Every other token is an operator.
            _ => self.chain += 1,
        }
    }

    fn tag(&mut self, name: &str) {
        match name {
            "if" => {
                self.tags += TAG;
                self.ifs.push(TAG);
            }
            "elif" => {
                self.tags += TAG;
                if let Some(levels) = self.ifs.last_mut() {
                    *levels += TAG;
                }
            }
            "set" => self.opens_set = true,
            "endif" => self.tags = self.tags.saturating_sub(self.ifs.pop().unwrap_or(0)),
            "for" | "with" | "macro" | "call" | "filter" | "autoescape" => self.tags += TAG,
            _ if name.starts_with("end") => self.tags = self.tags.saturating_sub(TAG),
            _ => {}
        }
    }
}
