//! The type of each operation.

use std::sync::Arc;

use super::{Checker, common, is_number};
use crate::error::Error;
use crate::ir::{
    BinaryOp, CompareOp, Comprehension, Element, Entry, Id, Op, Part, Target, Terms, UnaryOp,
};
use crate::schema::{Kind, Slot, Type};
use crate::suggest;
use crate::value::Value;

impl Checker<'_> {
    pub(super) fn term(&mut self, id: Id) -> Result<Type, Error> {
        let program = self.program;
        match program.op(id) {
            Op::Constant(at) => Ok(type_of(&program.constants[*at as usize])),
            Op::Field(slot) => Ok(self.field(*slot, id)),
            Op::Local(at) => Ok(self.locals[usize::from(*at)].clone()),
            Op::Not(inner) => {
                self.infer(*inner)?;
                Ok(Type::of(Kind::Bool))
            }
            Op::Unary(op, inner) => self.unary(*op, *inner, id),
            Op::Binary(op, left, right) => self.binary(*op, *left, *right, id),
            Op::Compare(op, left, right) => {
                let left_type = self.infer(*left)?;
                let right_type = self.infer(*right)?;
                self.compare(*op, (*left, &left_type), (*right, &right_type), id)
            }
            Op::Chain(first, rest) => self.chain(*first, rest, id),
            Op::And(terms) => self.bool_op(terms, true),
            Op::Or(terms) => self.bool_op(terms, false),
            Op::If { test, then, other } => self.ternary(*test, *then, *other),
            Op::Attribute(value, name) => self.attribute(*value, name, id),
            Op::Index(value, index) => self.index(*value, *index, id),
            Op::Slice {
                value,
                lower,
                upper,
                step,
            } => {
                for bound in [lower, upper, step].into_iter().flatten() {
                    self.infer(*bound)?;
                }
                self.slice(*value, id)
            }
            Op::List(elements) => self.list(elements),
            Op::Tuple(items) => {
                self.each(items)?;
                Ok(Type::of(Kind::Tuple))
            }
            Op::Set(items) => {
                self.each(items)?;
                Ok(Type::of(Kind::Set))
            }
            Op::Dict(entries) => self.dict(entries),
            Op::ListComp(comp) => {
                let element = self.comprehension(comp)?;
                Ok(Type::of(Kind::List(Arc::new(element))))
            }
            Op::DictComp(comp) => {
                self.comprehension(comp)?;
                Ok(Type::of(Kind::Dict(Arc::new(Type::any()))))
            }
            Op::AnyOf(comp) | Op::AllOf(comp) => {
                self.comprehension(comp)?;
                Ok(Type::of(Kind::Bool))
            }
            Op::Call(call) => self.call(call, id),
            Op::Method(call) => self.method(call, id),
            Op::Host(function, arguments) => self.host(*function, arguments),
            Op::Format(parts) => {
                self.parts(parts)?;
                Ok(Type::of(Kind::Str))
            }
            Op::Shared(_, inner) => self.infer(*inner),
        }
    }

    pub(super) fn each(&mut self, items: &[Id]) -> Result<(), Error> {
        for &item in items {
            self.infer(item)?;
        }
        Ok(())
    }

    /// A field below something that may be `None` is worth a warning.
    fn field(&mut self, slot: Slot, id: Id) -> Type {
        let mut owner = self.schema.parent(slot);
        while let Some(above) = owner {
            let nullable = self.schema.slot_type(above).is_some_and(|ty| ty.nullable);
            if nullable && !self.there.contains(&super::Place::Slot(above)) {
                let path = self.schema.slot_path(above).unwrap_or_default();
                let message = format!("`{path}` may be None here");
                self.warn(message, self.program.span(id));
            }
            owner = self.schema.parent(above);
        }
        let ty = self.schema.slot_type(slot).cloned();
        ty.unwrap_or_else(Type::any)
    }

    fn unary(&mut self, op: UnaryOp, inner: Id, id: Id) -> Result<Type, Error> {
        let ty = self.value(inner)?;
        match (&ty.kind, op) {
            (Kind::Any, _) => Ok(Type::any()),
            (Kind::None, _) => self.none_here(inner),
            (Kind::Float, UnaryOp::Minus | UnaryOp::Plus) => Ok(Type::of(Kind::Float)),
            (Kind::Bool | Kind::Int, _) => Ok(Type::of(Kind::Int)),
            _ => {
                let message = format!(
                    "`{}` does not apply to {a_ty}",
                    op.symbol(),
                    a_ty = ty.a_type()
                );
                self.never_works(message, id)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, left: Id, right: Id, id: Id) -> Result<Type, Error> {
        let one = self.value(left)?;
        let two = self.value(right)?;
        if one.kind == Kind::None {
            return self.none_here(left);
        }
        // Anything can be written into a text.
        if op == BinaryOp::Modulo && one.kind == Kind::Str {
            return Ok(Type::of(Kind::Str));
        }
        if two.kind == Kind::None {
            return self.none_here(right);
        }
        if matches!(one.kind, Kind::Any) || matches!(two.kind, Kind::Any) {
            return Ok(Type::any());
        }
        match result(op, &one.kind, &two.kind) {
            Some(kind) => Ok(Type::of(kind)),
            None => {
                let message = format!("`{}` does not apply to {one} and {two}", op.symbol());
                self.never_works(message, id)
            }
        }
    }

    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        (left, one): (Id, &Type),
        (right, two): (Id, &Type),
        id: Id,
    ) -> Result<Type, Error> {
        match op {
            CompareOp::Order(asked) => {
                self.needs_value(one, left);
                self.needs_value(two, right);
                for (ty, side) in [(one, left), (two, right)] {
                    if ty.kind == Kind::None {
                        return self.none_here(side);
                    }
                }
                if !are_ordered(&one.kind, &two.kind) {
                    let symbol = asked.symbol();
                    let message = format!("`{symbol}` does not compare {one} with {two}");
                    return self.never_works(message, id);
                }
            }
            CompareOp::Equal | CompareOp::NotEqual => {
                if are_never_equal(one, two) {
                    let answer = if op == CompareOp::Equal {
                        "False"
                    } else {
                        "True"
                    };
                    let text = self.text_of(id);
                    let message = format!("`{text}` is always {answer}: {one} against {two}");
                    self.warn(message, self.program.span(id));
                }
            }
            CompareOp::In | CompareOp::NotIn => {
                self.needs_value(two, right);
                self.container(one, (right, two), id)?;
            }
            CompareOp::Is | CompareOp::IsNot => {}
        }
        Ok(Type::of(Kind::Bool))
    }

    fn container(&mut self, item: &Type, (right, ty): (Id, &Type), id: Id) -> Result<(), Error> {
        match &ty.kind {
            Kind::None => {
                self.none_here(right)?;
            }
            Kind::Str if !matches!(item.kind, Kind::Str | Kind::Any) => {
                let message = format!(
                    "`in` looks for a text in a text, not for {a_item}",
                    a_item = item.a_type()
                );
                self.never_works(message, id)?;
            }
            Kind::Bool | Kind::Int | Kind::Float => {
                let message = format!(
                    "`in` looks into {a_ty}, which has no elements",
                    a_ty = ty.a_type()
                );
                self.never_works(message, id)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn chain(&mut self, first: Id, rest: &[(CompareOp, Id)], id: Id) -> Result<Type, Error> {
        let mut left = (first, self.infer(first)?);
        for (index, (op, term)) in rest.iter().enumerate() {
            let right = if index == 0 {
                self.infer(*term)?
            } else {
                self.infer_maybe(*term)?
            };
            let certain = self.certain;
            self.certain = certain && index == 0;
            let compared = self.compare(*op, (left.0, &left.1), (*term, &right), id);
            self.certain = certain;
            compared?;
            left = (*term, right);
        }
        Ok(Type::of(Kind::Bool))
    }

    /// `and` (`truth`) or `or`: later terms know what earlier ones told.
    fn bool_op(&mut self, terms: &Terms, truth: bool) -> Result<Type, Error> {
        let known = self.there.len();
        let mut result: Option<Type> = None;
        for (index, &term) in terms.written.iter().enumerate() {
            let ty = if index == 0 {
                self.infer(term)?
            } else {
                self.infer_maybe(term)?
            };
            self.assume(term, truth);
            result = Some(match result {
                None => ty,
                Some(before) => common(&before, &ty),
            });
        }
        self.there.truncate(known);
        Ok(result.unwrap_or_else(Type::any))
    }

    fn ternary(&mut self, test: Id, then: Id, other: Id) -> Result<Type, Error> {
        self.infer(test)?;
        let known = self.there.len();
        self.assume(test, true);
        let one = self.infer_maybe(then)?;
        self.there.truncate(known);
        self.assume(test, false);
        let two = self.infer_maybe(other)?;
        self.there.truncate(known);
        Ok(common(&one, &two))
    }

    fn attribute(&mut self, value: Id, name: &str, id: Id) -> Result<Type, Error> {
        let ty = self.value(value)?;
        match &ty.kind {
            Kind::Any => Ok(Type::any()),
            Kind::Dict(inner) => Ok(Type::clone(inner)),
            Kind::None => self.none_here(value),
            Kind::Record(record) => match record.field(name) {
                Some(field) => Ok(field.ty.clone()),
                None => {
                    let fault = suggest::field(record, &self.text_of(value), name);
                    Err(self.unknown(fault, id))
                }
            },
            _ => self.never_works(
                format!("{a_ty} has no field `{name}`", a_ty = ty.a_type()),
                id,
            ),
        }
    }

    fn index(&mut self, value: Id, index: Id, id: Id) -> Result<Type, Error> {
        let ty = self.value(value)?;
        let index_type = self.infer(index)?;
        let by_place = matches!(index_type.kind, Kind::Int | Kind::Bool | Kind::Any);
        match &ty.kind {
            Kind::Any => Ok(Type::any()),
            Kind::Dict(inner) => Ok(Type::clone(inner)),
            Kind::None => self.none_here(value),
            Kind::List(inner) if by_place => Ok(Type::clone(inner)),
            Kind::Str if by_place => Ok(Type::of(Kind::Str)),
            Kind::Tuple if by_place => Ok(Type::any()),
            Kind::Record(record) => {
                let name = self.program.known(index).and_then(Value::as_str);
                match name.map(|name| (record.field(name), name)) {
                    Some((Some(field), _)) => Ok(field.ty.clone()),
                    Some((None, name)) => {
                        let fault = suggest::field(record, &self.text_of(value), name);
                        Err(self.unknown(fault, id))
                    }
                    None => Ok(Type::any()),
                }
            }
            _ => self.never_works(
                format!(
                    "{a_ty} is not indexed by {a_index_type}",
                    a_ty = ty.a_type(),
                    a_index_type = index_type.a_type()
                ),
                id,
            ),
        }
    }

    fn slice(&mut self, value: Id, id: Id) -> Result<Type, Error> {
        let ty = self.value(value)?;
        match &ty.kind {
            Kind::Any => Ok(Type::any()),
            Kind::None => self.none_here(value),
            Kind::List(_) | Kind::Tuple | Kind::Str => Ok(Type::of(ty.kind)),
            _ => self.never_works(format!("{a_ty} cannot be sliced", a_ty = ty.a_type()), id),
        }
    }

    fn list(&mut self, elements: &[Element]) -> Result<Type, Error> {
        let mut inner: Option<Type> = None;
        for element in elements {
            let ty = match element {
                Element::One(item) => self.infer(*item)?,
                Element::Spread(items) => {
                    let ty = self.value(*items)?;
                    self.element_of(&ty, *items)?
                }
            };
            inner = Some(match inner {
                None => ty,
                Some(before) => common(&before, &ty),
            });
        }
        let inner = inner.unwrap_or_else(Type::any);
        Ok(Type::of(Kind::List(Arc::new(inner))))
    }

    fn dict(&mut self, entries: &[Entry]) -> Result<Type, Error> {
        for entry in entries {
            match entry {
                Entry::Pair(key, value) => {
                    self.infer(*key)?;
                    self.infer(*value)?;
                }
                Entry::Spread(inner) => {
                    self.value(*inner)?;
                }
            }
        }
        Ok(Type::of(Kind::Dict(Arc::new(Type::any()))))
    }

    fn parts(&mut self, parts: &[Part]) -> Result<(), Error> {
        for part in parts {
            if let Part::Value { id, spec, .. } = part {
                self.infer(*id)?;
                self.parts(spec.as_deref().unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// What a loop over this finds.
    pub(super) fn element_of(&mut self, ty: &Type, id: Id) -> Result<Type, Error> {
        match &ty.kind {
            Kind::List(inner) => Ok(Type::clone(inner)),
            Kind::Str | Kind::Dict(_) => Ok(Type::of(Kind::Str)),
            Kind::None => self.none_here(id),
            Kind::Bool | Kind::Int | Kind::Float => {
                self.never_works(format!("{a_ty} has no elements", a_ty = ty.a_type()), id)
            }
            Kind::Record(_) => {
                let message = format!("`{}` has fields, not elements", self.text_of(id));
                self.never_works(message, id)
            }
            _ => Ok(Type::any()),
        }
    }

    /// The type of the elements that a comprehension makes.
    fn comprehension(&mut self, comp: &Comprehension) -> Result<Type, Error> {
        let known = self.there.len();
        let certain = self.certain;
        for one in &comp.loops {
            let ty = self.value(one.iterable)?;
            let element = self.element_of(&ty, one.iterable)?;
            self.bind(&one.target, element);
            self.certain = false;
            for &condition in &one.conditions {
                self.infer(condition)?;
                self.assume(condition, true);
            }
        }
        let element = self.infer(comp.element)?;
        if let Some(value) = comp.value {
            self.infer(value)?;
        }
        self.certain = certain;
        self.there.truncate(known);
        Ok(element)
    }

    fn bind(&mut self, target: &Target, ty: Type) {
        match target {
            Target::Local(at) => {
                // Another loop may have had the same place for another variable.
                let at = *at;
                self.there.retain(
                    |place| !matches!(place, super::Place::Local(other, _) if *other == at),
                );
                self.locals[usize::from(at)] = ty;
            }
            Target::Unpack(targets) => {
                let inner = match ty.kind {
                    Kind::List(inner) => Type::clone(&inner),
                    _ => Type::any(),
                };
                for target in targets {
                    self.bind(target, inner.clone());
                }
            }
        }
    }
}

fn type_of(value: &Value<'_>) -> Type {
    Type::of(match value {
        Value::None => Kind::None,
        Value::Bool(_) => Kind::Bool,
        Value::Int(_) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Str(_) => Kind::Str,
        Value::List(_) => Kind::List(Arc::new(Type::any())),
        Value::Tuple(_) => Kind::Tuple,
        Value::Set(_) => Kind::Set,
        Value::Dict(_) => Kind::Dict(Arc::new(Type::any())),
    })
}

/// What an operator makes of two known kinds; none if it cannot.
fn result(op: BinaryOp, one: &Kind, two: &Kind) -> Option<Kind> {
    if is_number(one) && is_number(two) {
        return numbers(op, one, two);
    }
    let is_int = |kind: &Kind| matches!(kind, Kind::Bool | Kind::Int);
    let repeats = |kind: &Kind| matches!(kind, Kind::Str | Kind::List(_) | Kind::Tuple);
    match (op, one, two) {
        (BinaryOp::Add, Kind::Str, Kind::Str) => Some(Kind::Str),
        (BinaryOp::Add, Kind::Tuple, Kind::Tuple) => Some(Kind::Tuple),
        (BinaryOp::Add, Kind::List(one), Kind::List(two)) => {
            Some(Kind::List(Arc::new(common(one, two))))
        }
        (BinaryOp::Multiply, kind, times) if repeats(kind) && is_int(times) => Some(kind.clone()),
        (BinaryOp::Multiply, times, kind) if repeats(kind) && is_int(times) => Some(kind.clone()),
        (BinaryOp::BitOr, Kind::Dict(_), Kind::Dict(_)) => Some(Kind::Dict(Arc::new(Type::any()))),
        (
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Subtract,
            Kind::Set,
            Kind::Set,
        ) => Some(Kind::Set),
        _ => None,
    }
}

fn numbers(op: BinaryOp, one: &Kind, two: &Kind) -> Option<Kind> {
    let has_float = *one == Kind::Float || *two == Kind::Float;
    match op {
        BinaryOp::Divide => Some(Kind::Float),
        BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor => (!has_float).then_some(Kind::Int),
        // A negative exponent makes a float of integers.
        BinaryOp::Power if !has_float => Some(Kind::Any),
        _ if has_float => Some(Kind::Float),
        _ => Some(Kind::Int),
    }
}

fn are_ordered(one: &Kind, two: &Kind) -> bool {
    match (one, two) {
        (Kind::Any, _) | (_, Kind::Any) => true,
        (one, two) if is_number(one) && is_number(two) => true,
        (Kind::Str, Kind::Str)
        | (Kind::List(_), Kind::List(_))
        | (Kind::Tuple, Kind::Tuple)
        | (Kind::Set, Kind::Set) => true,
        _ => false,
    }
}

/// Whether values of these types can never be equal.
fn are_never_equal(one: &Type, two: &Type) -> bool {
    let class = |ty: &Type| match &ty.kind {
        Kind::Any | Kind::Record(_) => None,
        Kind::Bool | Kind::Int | Kind::Float => Some(0),
        Kind::Str => Some(1),
        Kind::List(_) => Some(2),
        Kind::Tuple => Some(3),
        Kind::Set => Some(4),
        Kind::Dict(_) => Some(5),
        Kind::None => Some(6),
    };
    let (Some(left), Some(right)) = (class(one), class(two)) else {
        return false;
    };
    let may_be_none =
        |ty: &Type, other: &Type| ty.nullable && (other.nullable || other.kind == Kind::None);
    left != right && !may_be_none(one, two) && !may_be_none(two, one)
}
