//! Conditions of a set that only compare fields with constants, laid out for being asked one after
//! the other: their terms stand side by side, and a field that many of them read is read once.
//!
//! Whatever is not as plain as that is left to the evaluator.

use crate::eval::quick;
use crate::ir::{CompareOp, Id, Op, Program};
use crate::schema::Slot;
use crate::scope::Scope;
use crate::value::Value;

/// The plain ones of a set.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// The fields that they read.
    slots: Vec<Slot>,
    terms: Vec<Term>,
    /// For each expression of the set, where its terms begin and end; without terms, it is not
    /// plain.
    parts: Vec<(u32, u32)>,
}

/// A field against a constant.
#[derive(Debug)]
struct Term {
    /// Which of the fields.
    field: usize,
    op: CompareOp,
    constant: Value<'static>,
}

impl Plain {
    /// Of programs, by their numbers.
    pub(crate) fn new<'p>(programs: impl Iterator<Item = &'p Program>) -> Self {
        let mut plain = Self::default();
        for program in programs {
            let begin = plain.terms.len();
            if plain.add(program).is_none() {
                plain.terms.truncate(begin);
            }
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let part = (place(begin), place(plain.terms.len()));
            plain.parts.push(part);
        }
        plain
    }

    fn add(&mut self, program: &Program) -> Option<()> {
        match program.op(program.root) {
            Op::And(terms) => {
                let mut terms = terms.in_order().iter();
                terms.try_for_each(|term| self.add_term(program, *term))
            }
            _ => self.add_term(program, program.root),
        }
    }

    fn add_term(&mut self, program: &Program, id: Id) -> Option<()> {
        let Op::Compare(op, left, right) = program.op(id) else {
            return None;
        };
        let Op::Field(slot) = program.op(*left) else {
            return None;
        };
        let constant = program.known(*right)?.clone();
        let known = self.slots.iter().position(|known| known == slot);
        let field = known.unwrap_or_else(|| {
            self.slots.push(*slot);
            self.slots.len() - 1
        });
        self.terms.push(Term {
            field,
            op: *op,
            constant,
        });
        Some(())
    }

    /// What a scope has in the fields that are read.
    pub(crate) fn fields<'a>(&self, scope: &'a dyn Scope) -> Vec<Option<Value<'a>>> {
        self.slots.iter().map(|slot| scope.field(*slot)).collect()
    }

    /// Whether a condition holds in such fields, if that can be told at once.
    #[inline]
    pub(crate) fn test(&self, index: usize, fields: &[Option<Value<'_>>]) -> Option<bool> {
        let (begin, end) = self.parts[index];
        if begin == end {
            return None;
        }
        for term in &self.terms[begin as usize..end as usize] {
            let field = fields[term.field].as_ref()?;
            if !quick::compare_with(field, term.op, &term.constant)? {
                return Some(false);
            }
        }
        Some(true)
    }
}
