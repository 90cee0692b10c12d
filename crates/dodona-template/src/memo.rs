//! What many templates say of one context is made once.
//!
//! Messages of rules differ in their words and read the same few numbers. A template of texts and
//! simple expressions knows each of these by a key: two with the same key have the same text in the
//! same context.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::program::{Expr, ExprKind, Program, Stmt};

/// How many texts are remembered. Looking for one must cost less than making it.
const MOST: usize = 16;

/// The longest text that is.
const LONGEST: usize = 256;

/// Texts that were made of one context, for the next template.
#[derive(Debug, Default)]
pub struct Memo {
    known: Vec<(Key, Box<str>)>,
}

impl Memo {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&str> {
        let found = self.known.iter().find(|(known, _)| known == key);
        found.map(|(_, text)| &**text)
    }

    pub(crate) fn add(&mut self, key: &Key, text: &str) {
        if self.known.len() < MOST && text.len() <= LONGEST {
            self.known.push((key.clone(), text.into()));
        }
    }
}

/// An expression, whichever template it stands in.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    hash: u64,
    text: Arc<str>,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

/// For each statement of a template its key, if it has one. Nothing where statements depend on each
/// other.
pub(crate) fn keys(program: &Program) -> Box<[Option<Key>]> {
    let is_flat = |statement: &Stmt| matches!(statement, Stmt::Raw(_) | Stmt::Emit(_));
    if !program.body.iter().all(is_flat) {
        return Box::default();
    }
    let key = |statement: &Stmt| match statement {
        Stmt::Emit(expr) => key(program, expr),
        _ => None,
    };
    program.body.iter().map(key).collect()
}

fn key(program: &Program, expr: &Expr) -> Option<Key> {
    let mut text = String::new();
    write(program, expr, &mut text)?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Some(Key {
        hash: hasher.finish(),
        text: text.into(),
    })
}

/// Writes an expression so that different ones are different texts; nothing for those that are not
/// as simple as what messages usually have.
fn write(program: &Program, expr: &Expr, out: &mut String) -> Option<()> {
    match &expr.kind {
        ExprKind::Int(value) => write!(out, "i{value}").ok(),
        ExprKind::Float(value) => write!(out, "f{}", value.to_bits()).ok(),
        ExprKind::Str(text) => write!(out, "{text:?}").ok(),
        ExprKind::Var(name) => write!(out, "${}", program.names[*name]).ok(),
        ExprKind::Attribute(value, name) => {
            write(program, value, out)?;
            write!(out, ".{name}").ok()
        }
        ExprKind::Binary(op, pair) => {
            write!(out, "({op:?} ").ok()?;
            write(program, &pair.0, out)?;
            out.push(' ');
            write(program, &pair.1, out)?;
            out.push(')');
            Some(())
        }
        ExprKind::Filter(value, apply) if apply.arguments.by_name.is_empty() => {
            write!(out, "({:?} ", apply.filter).ok()?;
            write(program, value, out)?;
            for argument in &apply.arguments.positional {
                out.push(' ');
                write(program, argument, out)?;
            }
            out.push(')');
            Some(())
        }
        _ => None,
    }
}
