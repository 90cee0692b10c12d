//! Types, before anything runs: what can never work is an error where it is always reached, and a
//! warning elsewhere; so is what may be `None`.

mod calls;
mod narrow;
mod terms;

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Fault, Span, Warning};
use crate::ir::{Id, Program};
use crate::schema::{Kind, Schema, Type};

use narrow::Place;

/// What the check found out.
pub(crate) struct Checked {
    pub(crate) warnings: Vec<Warning>,
    /// The type of each node.
    pub(crate) types: Vec<Type>,
}

pub(crate) fn check(
    program: &Program,
    source: &Arc<str>,
    schema: &Schema,
) -> Result<Checked, Error> {
    let mut checker = Checker {
        program,
        source,
        schema,
        types: vec![Type::any(); program.ops.len()],
        locals: vec![Type::any(); program.locals],
        there: Vec::new(),
        certain: true,
        warnings: Vec::new(),
    };
    checker.infer(program.root)?;
    Ok(Checked {
        warnings: checker.warnings,
        types: checker.types,
    })
}

struct Checker<'p> {
    program: &'p Program,
    source: &'p Arc<str>,
    schema: &'p Schema,
    types: Vec<Type>,
    locals: Vec<Type>,
    /// What is known not to be `None` at this place.
    there: Vec<Place>,
    /// Whether this place is reached by every evaluation.
    certain: bool,
    warnings: Vec<Warning>,
}

impl Checker<'_> {
    /// The type of a node, and of all nodes below it.
    fn infer(&mut self, id: Id) -> Result<Type, Error> {
        let mut ty = self.term(id)?;
        if ty.nullable && self.is_there(id) {
            ty.nullable = false;
        }
        self.types[id as usize] = ty.clone();
        Ok(ty)
    }

    /// As [`infer`](Self::infer), for a node that not every evaluation reaches.
    fn infer_maybe(&mut self, id: Id) -> Result<Type, Error> {
        let certain = std::mem::replace(&mut self.certain, false);
        let ty = self.infer(id);
        self.certain = certain;
        ty
    }

    /// The type of a node that must not be `None`: if it may be, that is worth a warning.
    fn value(&mut self, id: Id) -> Result<Type, Error> {
        let ty = self.infer(id)?;
        self.needs_value(&ty, id);
        Ok(ty)
    }

    fn needs_value(&mut self, ty: &Type, id: Id) {
        if ty.nullable {
            self.warn_none(self.program.span(id));
        }
    }

    fn warn_none(&mut self, span: Span) {
        let message = format!("`{}` may be None here", self.text(span));
        self.warn(message, span);
    }

    fn warn(&mut self, message: String, span: Span) {
        let warning = Warning { message, span };
        // The same place may be looked at from two sides.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// What never works: an error if it is always reached.
    fn never_works(&mut self, message: String, id: Id) -> Result<Type, Error> {
        let span = self.program.span(id);
        if self.certain {
            return Err(Error::new(Fault::type_error(message), span, self.source));
        }
        self.warn(message, span);
        Ok(Type::any())
    }

    fn unknown(&self, fault: Fault, id: Id) -> Error {
        Error::new(fault, self.program.span(id), self.source)
    }

    /// `None` in a place that needs a value.
    fn none_here(&mut self, id: Id) -> Result<Type, Error> {
        let span = self.program.span(id);
        let message = format!("`{}` is None here", self.text(span));
        if self.certain {
            let fault = Fault::new(ErrorKind::None, message);
            return Err(Error::new(fault, span, self.source));
        }
        self.warn(message, span);
        Ok(Type::any())
    }

    fn text(&self, span: Span) -> String {
        const SHOWN: usize = 60;
        let text = span.of(self.source);
        if text.chars().count() <= SHOWN {
            return text.to_owned();
        }
        text.chars().take(SHOWN).chain(['…']).collect()
    }

    fn text_of(&self, id: Id) -> String {
        self.text(self.program.span(id))
    }
}

/// What is true of both.
fn common(one: &Type, two: &Type) -> Type {
    let nullable = one.nullable || two.nullable;
    let kind = match (&one.kind, &two.kind) {
        (Kind::None, other) | (other, Kind::None) => {
            return Type {
                kind: other.clone(),
                nullable: true,
            };
        }
        (one, two) if one == two => one.clone(),
        _ => Kind::Any,
    };
    Type { kind, nullable }
}

fn is_number(kind: &Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Int | Kind::Float)
}
