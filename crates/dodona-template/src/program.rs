//! A compiled template: the tree that runs.

use crate::checks::Check;
use crate::error::Span;
use crate::filters::Filter;
use crate::ops::{BinOp, CompareOp};

/// A name, as an index into [`Program::names`].
pub(crate) type Name = usize;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) names: Vec<Box<str>>,
    pub(crate) macros: Vec<Macro>,
    pub(crate) body: Block,
}

pub(crate) type Block = Vec<Stmt>;

#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) name: Name,
    pub(crate) parameters: Vec<(Name, Option<Expr>)>,
    pub(crate) body: Block,
}

#[derive(Debug)]
pub(crate) enum Stmt {
    Raw(Box<str>),
    Emit(Expr),
    If(Box<If>),
    For(Box<For>),
    With(Vec<(Target, Expr)>, Block),
    Set(Target, Expr),
    SetBlock(Box<SetBlock>),
    FilterBlock(Vec<Apply>, Block),
    /// Makes the macro known under its name.
    Macro(usize),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct If {
    pub(crate) condition: Expr,
    pub(crate) then: Block,
    pub(crate) otherwise: Block,
}

#[derive(Debug)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iterable: Expr,
    pub(crate) condition: Option<Expr>,
    pub(crate) body: Block,
    pub(crate) otherwise: Block,
}

#[derive(Debug)]
pub(crate) struct SetBlock {
    pub(crate) target: Target,
    pub(crate) filters: Vec<Apply>,
    pub(crate) body: Block,
}

/// What an assignment gives its value to.
#[derive(Debug)]
pub(crate) enum Target {
    Name(Name),
    Unpack(Vec<Target>),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Box<str>),
    Var(Name),
    Loop(LoopField),
    LoopCall(LoopMethod, Arguments),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Attribute(Box<Expr>, Box<str>),
    Item(Box<(Expr, Expr)>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinOp, Box<(Expr, Expr)>),
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    /// Condition, value if so, value if not.
    Choose(Box<(Expr, Expr, Option<Expr>)>),
    Filter(Box<Expr>, Box<Apply>),
    Test(Box<Expr>, Check, Arguments),
    Call(Name, Arguments),
    Method(Box<Expr>, Box<str>, Arguments),
}

/// A filter with its arguments.
#[derive(Debug)]
pub(crate) struct Apply {
    pub(crate) filter: Filter,
    pub(crate) arguments: Arguments,
    pub(crate) span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Expr>,
    pub(crate) by_name: Vec<(Box<str>, Expr)>,
}

/// What `loop.…` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopField {
    Index,
    Index0,
    RevIndex,
    RevIndex0,
    First,
    Last,
    Length,
    Depth,
    Depth0,
    PrevItem,
    NextItem,
}

impl LoopField {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "index" => Self::Index,
            "index0" => Self::Index0,
            "revindex" => Self::RevIndex,
            "revindex0" => Self::RevIndex0,
            "first" => Self::First,
            "last" => Self::Last,
            "length" => Self::Length,
            "depth" => Self::Depth,
            "depth0" => Self::Depth0,
            "previtem" => Self::PrevItem,
            "nextitem" => Self::NextItem,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopMethod {
    Cycle,
    Changed,
}

impl LoopMethod {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "cycle" => Some(Self::Cycle),
            "changed" => Some(Self::Changed),
            _ => None,
        }
    }
}
