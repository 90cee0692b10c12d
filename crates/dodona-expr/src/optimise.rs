//! What can be done once instead of at every evaluation: constants, and the order of terms.

use std::sync::Arc;

use crate::eval::Machine;
use crate::ir::{CompareOp, Id, Op, Program, Terms};
use crate::limits::Limits;
use crate::schema::{Kind, Schema, Slot, Type};
use crate::scope::Empty;
use crate::value::{Dict, List, Map, Set, Value};

/// A constant that is larger than this is computed when it is needed.
const CONSTANT: Limits = Limits {
    steps: 1_000,
    elements: 256,
    iterations: 0,
    memory: 16 << 10,
};

/// `types` has what the check found out about each node.
pub(crate) fn optimise(program: &mut Program, types: &[Type], schema: &Schema) {
    // Children come before their parents, so one pass folds whole trees.
    for at in 0..program.ops.len() {
        let id = u32::try_from(at).unwrap_or(u32::MAX);
        if let Some(value) = folded(program, id) {
            let constant = program.constant(value);
            program.ops[at] = Op::Constant(constant);
        } else if let Op::And(terms) | Op::Or(terms) = &program.ops[at] {
            let order = cheap_first(program, terms, types, schema);
            if let Op::And(terms) | Op::Or(terms) = &mut program.ops[at] {
                terms.cheap_first = order;
            }
        }
    }
}

fn folded(program: &Program, id: Id) -> Option<Value<'static>> {
    let foldable = match program.op(id) {
        Op::Constant(_) | Op::Field(_) | Op::Local(_) | Op::Host(..) | Op::Shared(..) => false,
        // These have variables; what is constant in them is folded by itself.
        Op::ListComp(_) | Op::DictComp(_) | Op::AnyOf(_) | Op::AllOf(_) => false,
        Op::Call(call) => !matches!(call.key, Some(crate::ir::Callee::Host(_))),
        _ => true,
    };
    let children = program.op(id).children();
    let constant = children.iter().all(|&child| program.known(child).is_some());
    if !(foldable && constant) {
        return None;
    }
    let mut machine = Machine::new(program, &Empty, CONSTANT);
    // What fails is left to fail when it is reached.
    machine.eval(id).ok().map(|value| owned(&value))
}

/// A value that borrows nothing. What is folded is small and nests as deep as its source.
fn owned(value: &Value<'_>) -> Value<'static> {
    let list = |list: &List<'_>| List::Shared(list.iter().map(|item| owned(&item)).collect());
    match value {
        Value::None => Value::None,
        Value::Bool(value) => Value::Bool(*value),
        Value::Int(value) => Value::Int(*value),
        Value::Float(value) => Value::Float(*value),
        Value::Str(text) => Value::text(&**text),
        Value::List(items) => Value::List(list(items)),
        Value::Tuple(items) => Value::Tuple(list(items)),
        Value::Set(set) => {
            let items = set.iter().map(owned);
            Value::Set(Arc::new(Set::of(items).unwrap_or_default()))
        }
        Value::Dict(dict) => {
            let mut map = Map::default();
            for (key, value) in dict.entries() {
                // Its keys were keys before.
                let _ = map.insert(owned(&key), owned(&value));
            }
            Value::Dict(Dict::Shared(Arc::new(map)))
        }
    }
}

/// Another order of the terms, if one is cheaper and nobody can tell the difference: only
/// neighbours that cannot fail change places.
fn cheap_first(
    program: &Program,
    terms: &Terms,
    types: &[Type],
    schema: &Schema,
) -> Option<Box<[Id]>> {
    let sure = Sure {
        program,
        types,
        schema,
    };
    let mut order = terms.written.to_vec();
    for run in order.chunk_by_mut(|&one, &two| sure.term(one) && sure.term(two)) {
        run.sort_by_key(|&id| cost(program, id));
    }
    (*order != *terms.written).then(|| order.into())
}

/// What a node costs, roughly, in comparisons of numbers.
pub(crate) fn cost(program: &Program, id: Id) -> u32 {
    let own = match program.op(id) {
        Op::Constant(_) => 0,
        Op::Field(_) | Op::Local(_) | Op::Not(_) | Op::Compare(..) | Op::Unary(..) => 1,
        Op::Binary(..) | Op::Index(..) => 2,
        Op::Chain(..) | Op::And(_) | Op::Or(_) | Op::If { .. } | Op::Shared(..) => 1,
        Op::Attribute(..) | Op::Slice { .. } => 4,
        Op::Call(_) | Op::Method(_) => 8,
        Op::List(_) | Op::Tuple(_) | Op::Set(_) | Op::Dict(_) => 16,
        Op::Format(_) | Op::Host(..) => 32,
        Op::ListComp(_) | Op::DictComp(_) | Op::AnyOf(_) | Op::AllOf(_) => 256,
    };
    let children = program.op(id).children().into_iter();
    children.fold(own, |sum, child| sum.saturating_add(cost(program, child)))
}

/// Knows which nodes cannot fail.
struct Sure<'p> {
    program: &'p Program,
    types: &'p [Type],
    schema: &'p Schema,
}

impl Sure<'_> {
    fn term(&self, id: Id) -> bool {
        match self.program.op(id) {
            Op::Constant(_) => true,
            Op::Field(slot) => self.field(*slot),
            Op::Not(inner) => self.term(*inner),
            Op::And(terms) | Op::Or(terms) => terms.written.iter().all(|&term| self.term(term)),
            Op::Compare(op, left, right) => {
                self.term(*left) && self.term(*right) && self.comparison(*op, *left, *right)
            }
            _ => false,
        }
    }

    /// A field whose owners are all there.
    fn field(&self, slot: Slot) -> bool {
        let mut owner = self.schema.parent(slot);
        while let Some(slot) = owner {
            let nullable = self.schema.slot_type(slot).is_none_or(|ty| ty.nullable);
            if nullable {
                return false;
            }
            owner = self.schema.parent(slot);
        }
        true
    }

    fn comparison(&self, op: CompareOp, left: Id, right: Id) -> bool {
        let (left, right) = (self.ty(left), self.ty(right));
        match op {
            CompareOp::Is | CompareOp::IsNot => true,
            CompareOp::Equal | CompareOp::NotEqual => is_scalar(left) || is_scalar(right),
            CompareOp::Order(_) => {
                let there = !left.nullable && !right.nullable;
                let texts = left.kind == Kind::Str && right.kind == Kind::Str;
                there && (texts || (is_number(left) && is_number(right)))
            }
            CompareOp::In | CompareOp::NotIn => false,
        }
    }

    fn ty(&self, id: Id) -> &Type {
        &self.types[id as usize]
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty.kind, Kind::Bool | Kind::Int | Kind::Float)
}

fn is_scalar(ty: &Type) -> bool {
    is_number(ty) || matches!(ty.kind, Kind::Str | Kind::None)
}
