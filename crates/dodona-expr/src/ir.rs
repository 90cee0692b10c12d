//! The compiled form: nodes in one vector, children by number.

use std::sync::Arc;

use crate::builtins::{Builtin, Method};
use crate::error::Span;
use crate::schema::{FunctionId, Slot};
use crate::value::{Asked, Value};

/// The number of a node.
pub(crate) type Id = u32;

/// An expression, ready to be evaluated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    /// For each node, its place in the source.
    pub(crate) spans: Vec<Span>,
    pub(crate) constants: Vec<Value<'static>>,
    pub(crate) root: Id,
    /// How many variables comprehensions need at once.
    pub(crate) locals: usize,
}

impl Program {
    pub(crate) fn push(&mut self, op: Op, span: Span) -> Id {
        let id = u32::try_from(self.ops.len()).unwrap_or(u32::MAX);
        self.ops.push(op);
        self.spans.push(span);
        id
    }

    pub(crate) fn constant(&mut self, value: Value<'static>) -> u32 {
        let at = u32::try_from(self.constants.len()).unwrap_or(u32::MAX);
        self.constants.push(value);
        at
    }

    #[inline]
    pub(crate) fn op(&self, id: Id) -> &Op {
        &self.ops[id as usize]
    }

    pub(crate) fn span(&self, id: Id) -> Span {
        self.spans[id as usize]
    }

    /// The value of a node, if that is known without a scope.
    pub(crate) fn known(&self, id: Id) -> Option<&Value<'static>> {
        match self.op(id) {
            Op::Constant(at) => self.constants.get(*at as usize),
            _ => None,
        }
    }
}

/// One operation. Names are those of the Python grammar where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Constant(u32),
    /// A field of the schema.
    Field(Slot),
    /// A variable of a comprehension.
    Local(u16),
    Not(Id),
    Unary(UnaryOp, Id),
    Binary(BinaryOp, Id, Id),
    Compare(CompareOp, Id, Id),
    /// `a < b < c`: the first term, and each further one with its operator.
    Chain(Id, Box<[(CompareOp, Id)]>),
    And(Terms),
    Or(Terms),
    If {
        test: Id,
        then: Id,
        other: Id,
    },
    Attribute(Id, Arc<str>),
    Index(Id, Id),
    Slice {
        value: Id,
        lower: Option<Id>,
        upper: Option<Id>,
        step: Option<Id>,
    },
    List(Box<[Element]>),
    Tuple(Box<[Id]>),
    Set(Box<[Id]>),
    Dict(Box<[Entry]>),
    ListComp(Box<Comprehension>),
    DictComp(Box<Comprehension>),
    /// `any(… for …)`, which stops at the first that holds.
    AnyOf(Box<Comprehension>),
    /// `all(… for …)`, which stops at the first that does not.
    AllOf(Box<Comprehension>),
    Call(Box<Call>),
    Method(Box<MethodCall>),
    /// A function or method of the host.
    Host(FunctionId, Box<[Id]>),
    Format(Box<[Part]>),
    /// A term that other expressions of a set have too: its value is kept for them.
    Shared(u32, Id),
}

/// The terms of `and` or `or`, as they stand in the source and in the order of their cost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    pub(crate) written: Box<[Id]>,
    /// Where the meaning allows another order: the cheap ones first, for when only truth counts.
    pub(crate) cheap_first: Option<Box<[Id]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UnaryOp {
    Minus,
    Plus,
    Invert,
}

impl UnaryOp {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Minus => "-",
            Self::Plus => "+",
            Self::Invert => "~",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
}

impl BinaryOp {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Modulo => "%",
            Self::Power => "**",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CompareOp {
    Equal,
    NotEqual,
    Order(Asked),
    In,
    NotIn,
    Is,
    IsNot,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    One(Id),
    Spread(Id),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Pair(Id, Id),
    Spread(Id),
}

/// `element for … in … if …`, with a value beside the element for dicts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Comprehension {
    pub(crate) element: Id,
    pub(crate) value: Option<Id>,
    pub(crate) loops: Box<[Loop]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Loop {
    pub(crate) target: Target,
    pub(crate) iterable: Id,
    pub(crate) conditions: Box<[Id]>,
}

/// Where a loop puts its element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Local(u16),
    Unpack(Box<[Target]>),
}

/// A call of a built-in function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) function: Builtin,
    pub(crate) arguments: Box<[Id]>,
    /// `key=` of `sorted`, `min` and `max`: a function by its name.
    pub(crate) key: Option<Callee>,
    /// `default=` of `min` and `max`, `reverse=` of `sorted`.
    pub(crate) option: Option<Id>,
}

/// A function that is named, not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Callee {
    Builtin(Builtin),
    Host(FunctionId),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MethodCall {
    pub(crate) method: Method,
    pub(crate) receiver: Id,
    /// By position; none for one that was left out.
    pub(crate) arguments: Box<[Option<Id>]>,
}

/// A part of an f-string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Text(Arc<str>),
    Value {
        id: Id,
        conversion: Option<Conversion>,
        spec: Option<Box<[Part]>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Conversion {
    Str,
    Repr,
    Ascii,
}

impl Op {
    /// The same operation on other nodes.
    pub(crate) fn map(&self, f: &mut dyn FnMut(Id) -> Id) -> Self {
        match self {
            Self::Constant(_) | Self::Field(_) | Self::Local(_) => self.clone(),
            Self::Not(inner) => Self::Not(f(*inner)),
            Self::Unary(op, inner) => Self::Unary(*op, f(*inner)),
            Self::Binary(op, left, right) => Self::Binary(*op, f(*left), f(*right)),
            Self::Compare(op, left, right) => Self::Compare(*op, f(*left), f(*right)),
            Self::Chain(first, rest) => {
                let first = f(*first);
                Self::Chain(first, rest.iter().map(|(op, id)| (*op, f(*id))).collect())
            }
            Self::And(terms) => Self::And(terms.map(f)),
            Self::Or(terms) => Self::Or(terms.map(f)),
            Self::If { test, then, other } => Self::If {
                test: f(*test),
                then: f(*then),
                other: f(*other),
            },
            Self::Attribute(value, name) => Self::Attribute(f(*value), name.clone()),
            Self::Index(value, index) => Self::Index(f(*value), f(*index)),
            Self::Slice {
                value,
                lower,
                upper,
                step,
            } => Self::Slice {
                value: f(*value),
                lower: lower.map(&mut *f),
                upper: upper.map(&mut *f),
                step: step.map(&mut *f),
            },
            Self::List(elements) => Self::List(map_elements(elements, f)),
            Self::Tuple(items) => Self::Tuple(map_all(items, f)),
            Self::Set(items) => Self::Set(map_all(items, f)),
            Self::Dict(entries) => Self::Dict(map_entries(entries, f)),
            Self::ListComp(comp) => Self::ListComp(Box::new(comp.map(f))),
            Self::DictComp(comp) => Self::DictComp(Box::new(comp.map(f))),
            Self::AnyOf(comp) => Self::AnyOf(Box::new(comp.map(f))),
            Self::AllOf(comp) => Self::AllOf(Box::new(comp.map(f))),
            Self::Call(call) => Self::Call(Box::new(Call {
                function: call.function,
                arguments: map_all(&call.arguments, f),
                key: call.key,
                option: call.option.map(f),
            })),
            Self::Method(call) => Self::Method(Box::new(MethodCall {
                method: call.method,
                receiver: f(call.receiver),
                arguments: call.arguments.iter().map(|id| id.map(&mut *f)).collect(),
            })),
            Self::Host(function, arguments) => Self::Host(*function, map_all(arguments, f)),
            Self::Format(parts) => Self::Format(map_parts(parts, f)),
            Self::Shared(at, inner) => Self::Shared(*at, f(*inner)),
        }
    }

    /// The nodes that this one is made of, in the order of the source.
    pub(crate) fn children(&self) -> Vec<Id> {
        let mut children = Vec::new();
        match self {
            Self::And(terms) | Self::Or(terms) => children.extend_from_slice(&terms.written),
            other => {
                other.map(&mut |id| {
                    children.push(id);
                    id
                });
            }
        }
        children
    }
}

impl Terms {
    /// The order for when only truth counts.
    #[inline]
    pub(crate) fn in_order(&self) -> &[Id] {
        self.cheap_first.as_deref().unwrap_or(&self.written)
    }

    fn map(&self, f: &mut dyn FnMut(Id) -> Id) -> Self {
        Self {
            written: self.written.iter().map(|&id| f(id)).collect(),
            cheap_first: self
                .cheap_first
                .as_ref()
                .map(|ids| ids.iter().map(|&id| f(id)).collect()),
        }
    }
}

impl Comprehension {
    fn map(&self, f: &mut dyn FnMut(Id) -> Id) -> Self {
        let loops = self.loops.iter().map(|one| Loop {
            target: one.target.clone(),
            iterable: f(one.iterable),
            conditions: one.conditions.iter().map(|&id| f(id)).collect(),
        });
        let loops = loops.collect();
        Self {
            loops,
            element: f(self.element),
            value: self.value.map(f),
        }
    }
}

fn map_all(ids: &[Id], f: &mut dyn FnMut(Id) -> Id) -> Box<[Id]> {
    ids.iter().map(|&id| f(id)).collect()
}

fn map_elements(elements: &[Element], f: &mut dyn FnMut(Id) -> Id) -> Box<[Element]> {
    let elements = elements.iter().map(|element| match element {
        Element::One(id) => Element::One(f(*id)),
        Element::Spread(id) => Element::Spread(f(*id)),
    });
    elements.collect()
}

fn map_entries(entries: &[Entry], f: &mut dyn FnMut(Id) -> Id) -> Box<[Entry]> {
    let entries = entries.iter().map(|entry| match entry {
        Entry::Pair(key, value) => Entry::Pair(f(*key), f(*value)),
        Entry::Spread(id) => Entry::Spread(f(*id)),
    });
    entries.collect()
}

fn map_parts(parts: &[Part], f: &mut dyn FnMut(Id) -> Id) -> Box<[Part]> {
    let mut mapped = Vec::with_capacity(parts.len());
    for part in parts {
        mapped.push(match part {
            Part::Text(text) => Part::Text(text.clone()),
            Part::Value {
                id,
                conversion,
                spec,
            } => Part::Value {
                id: f(*id),
                conversion: *conversion,
                spec: spec.as_deref().map(|parts| map_parts(parts, f)),
            },
        });
    }
    mapped.into()
}
