//! The text form of a schema.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use super::{Field, Function, FunctionId, Kind, Parameter, Record, Type};

/// Records in records, at most.
const MAX_DEPTH: usize = 16;

/// A text that is no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// Counted from 1.
    pub line: usize,
    /// What was expected.
    pub message: String,
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for SchemaError {}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Mark(&'static str),
}

const MARKS: [&str; 13] = [
    "->", "{", "}", "[", "]", "(", ")", ":", ",", "?", "@", "=", ".",
];

pub(super) fn parse(text: &str) -> Result<Record, SchemaError> {
    let mut reader = Reader {
        tokens: tokens(text)?.into_iter().peekable(),
        line: 1,
    };
    let record = reader.members(0)?;
    match reader.next() {
        None => Ok(record),
        Some(token) => Err(reader.complain(&format!("unexpected {token:?}"))),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, SchemaError> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.split('#').next().unwrap_or_default().trim_start();
        while !rest.is_empty() {
            let name_end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let (token, length) = if name_end > 0 {
                (Token::Name(rest[..name_end].to_owned()), name_end)
            } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                (Token::Mark(mark), mark.len())
            } else {
                return Err(SchemaError {
                    line: index + 1,
                    message: format!("cannot read `{rest}`"),
                });
            };
            tokens.push((index + 1, token));
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

struct Reader {
    tokens: Peekable<IntoIter<(usize, Token)>>,
    line: usize,
}

impl Reader {
    fn next(&mut self) -> Option<Token> {
        let (line, token) = self.tokens.next()?;
        self.line = line;
        Some(token)
    }

    fn complain(&self, message: &str) -> SchemaError {
        SchemaError {
            line: self.line,
            message: message.to_owned(),
        }
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = matches!(self.tokens.peek(), Some((_, Token::Mark(next))) if *next == mark);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), SchemaError> {
        if self.eat(mark) {
            return Ok(());
        }
        self.next();
        Err(self.complain(&format!("expected `{mark}`")))
    }

    fn name(&mut self) -> Result<Box<str>, SchemaError> {
        match self.next() {
            Some(Token::Name(name)) => Ok(name.into()),
            _ => Err(self.complain("expected a name")),
        }
    }

    /// Fields and functions up to a closing brace or the end; commas between them are optional.
    fn members(&mut self, depth: usize) -> Result<Record, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(self.complain("records nest too deep"));
        }
        let mut record = Record::default();
        while let Some((_, Token::Name(_))) = self.tokens.peek() {
            let name = self.name()?;
            if record.field(&name).is_some() || record.method(&name).is_some() {
                return Err(self.complain(&format!("`{name}` is there twice")));
            }
            if self.eat("(") {
                record.methods.push(self.function(name, depth)?);
            } else {
                record.fields.push(self.field(name, depth)?);
            }
            self.eat(",");
        }
        Ok(record)
    }

    fn field(&mut self, name: Box<str>, depth: usize) -> Result<Field, SchemaError> {
        self.expect(":")?;
        let ty = self.ty(depth)?;
        let mut tags = Vec::new();
        while self.eat("@") {
            tags.push(self.name()?);
        }
        Ok(Field {
            name,
            ty,
            slot: None,
            tags,
        })
    }

    fn function(&mut self, name: Box<str>, depth: usize) -> Result<Function, SchemaError> {
        let mut parameters = Vec::new();
        while !self.eat(")") {
            let name = self.name()?;
            self.expect(":")?;
            let ty = self.ty(depth)?;
            let optional = self.eat("=");
            if optional {
                // The host knows its default; the word stands there for readers.
                self.name()?;
            }
            parameters.push(Parameter { name, ty, optional });
            self.eat(",");
        }
        self.expect("->")?;
        let returns = self.ty(depth)?;
        Ok(Function {
            name,
            id: FunctionId(0),
            parameters,
            returns,
        })
    }

    fn ty(&mut self, depth: usize) -> Result<Type, SchemaError> {
        let kind = if self.eat("{") {
            let record = self.members(depth + 1)?;
            self.expect("}")?;
            Kind::Record(Arc::new(record))
        } else {
            self.named_kind(depth)?
        };
        let nullable = self.eat("?");
        Ok(Type { kind, nullable })
    }

    fn named_kind(&mut self, depth: usize) -> Result<Kind, SchemaError> {
        let name = self.name()?;
        Ok(match &*name {
            "any" => Kind::Any,
            "bool" => Kind::Bool,
            "int" => Kind::Int,
            "float" => Kind::Float,
            "str" => Kind::Str,
            "list" => Kind::List(Arc::new(self.inner(depth)?)),
            "dict" => Kind::Dict(Arc::new(self.inner(depth)?)),
            other => return Err(self.complain(&format!("there is no type `{other}`"))),
        })
    }

    /// What stands in brackets; without them it can be anything.
    fn inner(&mut self, depth: usize) -> Result<Type, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(self.complain("types nest too deep"));
        }
        if !self.eat("[") {
            return Ok(Type::any());
        }
        let ty = self.ty(depth + 1)?;
        self.expect("]")?;
        Ok(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, line) in [
            ("a: int\nb: number", 2),
            ("a int", 1),
            ("a: {\n b: int\n", 2),
            ("a: int\na: str", 2),
            ("f(x: int)", 1),
            ("a: list[", 1),
            ("é: int", 1),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }

    #[test]
    fn types_nest_only_so_deep() {
        assert!(parse(&format!("a: {}", "list[".repeat(10_000))).is_err());
        assert!(parse(&"a: {".repeat(10_000)).is_err());
    }
}
