//! What many templates say of one context is made once.
//!
//! Messages of rules differ in their words and read the same few numbers. A template of texts and
//! simple expressions knows each of these by a key: two with the same key have the same text in the
//! same context.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::Limits;
use crate::program::{Expr, ExprKind, Program, Stmt};

/// How many texts are remembered. Looking for one must cost less than making it.
const MOST: usize = 16;

/// The longest text that is.
const LONGEST: usize = 256;

/// The most expressions of a template that is put together from them.
const MOST_PARTS: usize = 8;

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

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&str> {
        let found = self.known.iter().find(|(known, _)| *known == key);
        found.map(|(_, text)| &**text)
    }

    pub(crate) fn add(&mut self, key: Key, text: &str) {
        if self.known.len() < MOST && text.len() <= LONGEST {
            self.known.push((key, text.into()));
        }
    }
}

/// An expression, whichever template it stands in: a hash of it that is long enough to be the only
/// one, so that no template has to be read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64, u64);

impl Key {
    fn of(text: &str) -> Self {
        let half = |number: u8| {
            let mut hasher = DefaultHasher::new();
            (number, text).hash(&mut hasher);
            hasher.finish()
        };
        Self(half(0), half(1))
    }
}

/// A template in which nothing depends on what was before: texts, and expressions with keys. It is
/// laid out to be put together from a memo without a look at the program.
#[derive(Debug)]
pub(crate) struct Outline {
    /// Each expression, and the text before it.
    parts: Box<[(Box<str>, Key)]>,
    /// The text after the last.
    end: Box<str>,
    /// How long all texts are.
    length: usize,
}

impl Outline {
    /// Of a program, if it is one, and short.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        let (mut parts, mut length, mut text) = (Vec::new(), 0, String::new());
        for statement in &program.body {
            match statement {
                Stmt::Raw(more) => text.push_str(more),
                Stmt::Emit(expr) => {
                    length += text.len();
                    parts.push((std::mem::take(&mut text).into(), key(program, expr)?));
                }
                _ => return None,
            }
        }
        (!parts.is_empty() && parts.len() <= MOST_PARTS).then(|| Self {
            length: length + text.len(),
            parts: parts.into(),
            end: text.into(),
        })
    }

    /// The keys of the expressions, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.parts.iter().map(|(_, key)| *key)
    }

    /// The whole text, if every part of it is known; nothing where one is missing, or where only a
    /// rendering can tell what limit it reaches. (A box goes back in registers, a string does not.)
    pub(crate) fn fill(&self, limits: &Limits, memo: &Memo) -> Option<Box<str>> {
        let mut known = [""; MOST_PARTS];
        let mut length = self.length;
        for (known, (_, key)) in known.iter_mut().zip(&self.parts) {
            *known = memo.get(*key)?;
            length += known.len();
        }
        // A rendering pays one step for each statement, and one for some bytes.
        let steps = length + 2 * MOST_PARTS + 1;
        if length > limits.output_bytes || steps as u64 > limits.steps {
            return None;
        }
        let mut text = String::with_capacity(length);
        for ((before, _), known) in self.parts.iter().zip(known) {
            text.push_str(before);
            text.push_str(known);
        }
        text.push_str(&self.end);
        Some(text.into_boxed_str())
    }
}

fn key(program: &Program, expr: &Expr) -> Option<Key> {
    let mut text = String::new();
    write(program, expr, &mut text)?;
    Some(Key::of(&text))
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
