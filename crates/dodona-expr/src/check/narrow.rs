//! What a test tells about `None` in the terms after it.

use std::sync::Arc;

use super::Checker;
use crate::ir::{CompareOp, Id, Op};
use crate::schema::Slot;
use crate::value::Value;

/// Something that two terms can both name.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Slot(Slot),
    Local(u16, Vec<Arc<str>>),
}

impl Checker<'_> {
    pub(super) fn is_there(&self, id: Id) -> bool {
        self.place(id)
            .is_some_and(|place| self.there.contains(&place))
    }

    fn place(&self, id: Id) -> Option<Place> {
        match self.program.op(id) {
            Op::Field(slot) => Some(Place::Slot(*slot)),
            Op::Local(at) => Some(Place::Local(*at, Vec::new())),
            Op::Attribute(value, name) => match self.place(*value)? {
                Place::Local(at, mut names) => {
                    names.push(name.clone());
                    Some(Place::Local(at, names))
                }
                Place::Slot(_) => None,
            },
            _ => None,
        }
    }

    /// Remembers what is not `None` if the node is true, or false.
    pub(super) fn assume(&mut self, id: Id, truth: bool) {
        match (self.program.op(id), truth) {
            (Op::Not(inner), _) => self.assume(*inner, !truth),
            (Op::And(terms), true) | (Op::Or(terms), false) => {
                for &term in &terms.written {
                    self.assume(term, truth);
                }
            }
            (Op::Compare(CompareOp::IsNot | CompareOp::NotEqual, left, right), true)
            | (Op::Compare(CompareOp::Is | CompareOp::Equal, left, right), false) => {
                if self.is_none(*right) {
                    self.remember(*left);
                } else if self.is_none(*left) {
                    self.remember(*right);
                }
            }
            // Equal to what is not None, it is not None either.
            (Op::Compare(CompareOp::Equal, left, right), true) => {
                let known = |id: Id| {
                    let value = self.program.known(id);
                    value.is_some_and(|value| !matches!(value, Value::None))
                };
                match (known(*left), known(*right)) {
                    (_, true) => self.remember(*left),
                    (true, _) => self.remember(*right),
                    _ => {}
                }
            }
            // What is true is not None.
            (_, true) => self.remember(id),
            _ => {}
        }
    }

    fn is_none(&self, id: Id) -> bool {
        matches!(self.program.known(id), Some(Value::None))
    }

    fn remember(&mut self, id: Id) {
        if let Some(place) = self.place(id) {
            // A field that was read has owners that are there.
            let mut owner = match &place {
                Place::Slot(slot) => self.schema.parent(*slot),
                Place::Local(..) => None,
            };
            while let Some(slot) = owner {
                self.there.push(Place::Slot(slot));
                owner = self.schema.parent(slot);
            }
            self.there.push(place);
        }
    }
}
