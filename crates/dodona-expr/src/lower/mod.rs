//! Syntax tree to nodes: names become slots, and what the language lacks is refused.

mod calls;
mod literals;

use std::sync::Arc;

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;

use crate::error::{Error, ErrorKind, Fault, Span};
use crate::ir::{
    BinaryOp, CompareOp, Comprehension, Id, Loop, Op, Program, Target, Terms, UnaryOp,
};
use crate::limits::MAX_NESTING;
use crate::schema::{Kind, Record, Schema, Slot};
use crate::suggest;
use crate::value::{Asked, Value};

pub(crate) fn lower(tree: &Expr, source: &Arc<str>, schema: &Schema) -> Result<Program, Error> {
    let mut lowering = Lowering {
        program: Program::default(),
        schema,
        source,
        locals: Vec::new(),
        depth: 0,
    };
    let root = lowering.expr(tree)?;
    lowering.program.root = root;
    Ok(lowering.program)
}

struct Lowering<'s> {
    program: Program,
    schema: &'s Schema,
    source: &'s Arc<str>,
    /// The variables of the comprehensions around this place.
    locals: Vec<Arc<str>>,
    depth: usize,
}

fn span(node: &impl Ranged) -> Span {
    let range = node.range();
    Span::new(range.start().to_usize(), range.end().to_usize())
}

impl Lowering<'_> {
    fn error(&self, fault: Fault, node: &impl Ranged) -> Error {
        Error::new(fault, span(node), self.source)
    }

    fn unsupported(&self, message: impl Into<String>, node: &impl Ranged) -> Error {
        self.error(Fault::new(ErrorKind::Unsupported, message), node)
    }

    fn push(&mut self, op: Op, node: &impl Ranged) -> Id {
        self.program.push(op, span(node))
    }

    fn constant(&mut self, value: Value<'static>, node: &impl Ranged) -> Id {
        let at = self.program.constant(value);
        self.push(Op::Constant(at), node)
    }

    fn expr(&mut self, node: &Expr) -> Result<Id, Error> {
        if self.depth >= MAX_NESTING {
            let fault = Fault::limit(format!("the expression nests deeper than {MAX_NESTING}"));
            return Err(self.error(fault, node));
        }
        self.depth += 1;
        let lowered = self.any_expr(node);
        self.depth -= 1;
        lowered
    }

    fn any_expr(&mut self, node: &Expr) -> Result<Id, Error> {
        match node {
            Expr::BoolOp(node) => self.bool_op(node),
            Expr::BinOp(node) => self.bin_op(node),
            Expr::UnaryOp(node) => self.unary_op(node),
            Expr::If(node) => self.ternary(node),
            Expr::Compare(node) => self.compare(node),
            Expr::Name(node) => self.name(node),
            Expr::Attribute(node) => self.attribute(node),
            Expr::Subscript(node) => self.subscript(node),
            Expr::Call(node) => self.call(node),
            Expr::ListComp(node) => self.list_comp(node, &node.elt, &node.generators),
            Expr::Generator(node) => self.list_comp(node, &node.elt, &node.generators),
            Expr::DictComp(node) => self.dict_comp(node),
            _ => self.literal(node),
        }
    }

    fn exprs<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Expr>) -> Result<Box<[Id]>, Error> {
        nodes.into_iter().map(|node| self.expr(node)).collect()
    }

    fn bool_op(&mut self, node: &ast::ExprBoolOp) -> Result<Id, Error> {
        let terms = Terms {
            written: self.exprs(&node.values)?,
            cheap_first: None,
        };
        let op = match node.op {
            ast::BoolOp::And => Op::And(terms),
            ast::BoolOp::Or => Op::Or(terms),
        };
        Ok(self.push(op, node))
    }

    fn bin_op(&mut self, node: &ast::ExprBinOp) -> Result<Id, Error> {
        let op = match node.op {
            ast::Operator::Add => BinaryOp::Add,
            ast::Operator::Sub => BinaryOp::Subtract,
            ast::Operator::Mult => BinaryOp::Multiply,
            ast::Operator::Div => BinaryOp::Divide,
            ast::Operator::FloorDiv => BinaryOp::FloorDivide,
            ast::Operator::Mod => BinaryOp::Modulo,
            ast::Operator::Pow => BinaryOp::Power,
            ast::Operator::LShift => BinaryOp::ShiftLeft,
            ast::Operator::RShift => BinaryOp::ShiftRight,
            ast::Operator::BitAnd => BinaryOp::BitAnd,
            ast::Operator::BitOr => BinaryOp::BitOr,
            ast::Operator::BitXor => BinaryOp::BitXor,
            ast::Operator::MatMult => {
                return Err(self.unsupported("there is no `@`, as there are no matrices", node));
            }
        };
        let left = self.expr(&node.left)?;
        let right = self.expr(&node.right)?;
        Ok(self.push(Op::Binary(op, left, right), node))
    }

    fn unary_op(&mut self, node: &ast::ExprUnaryOp) -> Result<Id, Error> {
        if let Some(smallest) = literals::smallest_int(node) {
            return Ok(self.constant(smallest, node));
        }
        let operand = self.expr(&node.operand)?;
        let op = match node.op {
            ast::UnaryOp::Not => Op::Not(operand),
            ast::UnaryOp::USub => Op::Unary(UnaryOp::Minus, operand),
            ast::UnaryOp::UAdd => Op::Unary(UnaryOp::Plus, operand),
            ast::UnaryOp::Invert => Op::Unary(UnaryOp::Invert, operand),
        };
        Ok(self.push(op, node))
    }

    fn ternary(&mut self, node: &ast::ExprIf) -> Result<Id, Error> {
        let test = self.expr(&node.test)?;
        let then = self.expr(&node.body)?;
        let other = self.expr(&node.orelse)?;
        Ok(self.push(Op::If { test, then, other }, node))
    }

    fn compare(&mut self, node: &ast::ExprCompare) -> Result<Id, Error> {
        let first = self.expr(&node.left)?;
        let mut rest = Vec::with_capacity(node.ops.len());
        for (op, term) in node.ops.iter().zip(&node.comparators) {
            rest.push((compare_op(*op), self.expr(term)?));
        }
        let op = match rest.as_slice() {
            [(op, second)] => Op::Compare(*op, first, *second),
            _ => Op::Chain(first, rest.into()),
        };
        Ok(self.push(op, node))
    }

    fn name(&mut self, node: &ast::ExprName) -> Result<Id, Error> {
        let name = node.id.as_str();
        if let Some(at) = self.locals.iter().rposition(|local| &**local == name) {
            return Ok(self.push(Op::Local(u16::try_from(at).unwrap_or(u16::MAX)), node));
        }
        if let Some(slot) = self.schema.root().field(name).and_then(|field| field.slot) {
            return Ok(self.push(Op::Field(slot), node));
        }
        let fault = if calls::is_function(self.schema, name) {
            Fault::new(
                ErrorKind::Unknown,
                format!("`{name}` is a function, and no value"),
            )
            .hint(format!("call it: `{name}(…)`"))
        } else {
            suggest::name(self.schema, &self.locals, name)
        };
        Err(self.error(fault, node))
    }

    /// The record that a node is, if it is a field that is one.
    fn record(&self, id: Id) -> Option<&Record> {
        let Op::Field(slot) = self.program.op(id) else {
            return None;
        };
        match &self.schema.slot_type(*slot)?.kind {
            Kind::Record(record) => Some(record),
            _ => None,
        }
    }

    fn slot_below(&self, id: Id, name: &str) -> Option<Slot> {
        self.record(id)?.field(name)?.slot
    }

    fn attribute(&mut self, node: &ast::ExprAttribute) -> Result<Id, Error> {
        let name = node.attr.as_str();
        self.check_public(name, &node.attr)?;
        let value = self.expr(&node.value)?;
        if let Some(slot) = self.slot_below(value, name) {
            return Ok(self.push(Op::Field(slot), node));
        }
        if let Some(record) = self.record(value) {
            let owner = span(&*node.value).of(self.source);
            let fault = suggest::field(record, owner, name);
            return Err(self.error(fault, &node.attr));
        }
        Ok(self.push(Op::Attribute(value, Arc::from(name)), node))
    }

    fn check_public(&self, name: &str, node: &impl Ranged) -> Result<(), Error> {
        if name.starts_with('_') || name.starts_with("func_") {
            let message = format!("`{name}` is private, and expressions see public fields only");
            return Err(self.unsupported(message, node));
        }
        Ok(())
    }

    fn subscript(&mut self, node: &ast::ExprSubscript) -> Result<Id, Error> {
        let value = self.expr(&node.value)?;
        if let Expr::Slice(slice) = &*node.slice {
            let op = Op::Slice {
                value,
                lower: self.optional(slice.lower.as_deref())?,
                upper: self.optional(slice.upper.as_deref())?,
                step: self.optional(slice.step.as_deref())?,
            };
            return Ok(self.push(op, node));
        }
        // A record's field by its name in quotes is the same field.
        if let Expr::StringLiteral(name) = &*node.slice
            && let Some(slot) = self.slot_below(value, name.value.to_str())
        {
            return Ok(self.push(Op::Field(slot), node));
        }
        let index = self.expr(&node.slice)?;
        Ok(self.push(Op::Index(value, index), node))
    }

    fn optional(&mut self, node: Option<&Expr>) -> Result<Option<Id>, Error> {
        node.map(|node| self.expr(node)).transpose()
    }

    fn list_comp(
        &mut self,
        node: &impl Ranged,
        element: &Expr,
        generators: &[ast::Comprehension],
    ) -> Result<Id, Error> {
        let comprehension = self.comprehension(generators, element, None)?;
        Ok(self.push(Op::ListComp(Box::new(comprehension)), node))
    }

    fn dict_comp(&mut self, node: &ast::ExprDictComp) -> Result<Id, Error> {
        let Some(key) = node.key.as_deref() else {
            return Err(self.unsupported("`**` cannot stand in a dict comprehension", node));
        };
        let comprehension = self.comprehension(&node.generators, key, Some(&node.value))?;
        Ok(self.push(Op::DictComp(Box::new(comprehension)), node))
    }

    fn comprehension(
        &mut self,
        generators: &[ast::Comprehension],
        element: &Expr,
        value: Option<&Expr>,
    ) -> Result<Comprehension, Error> {
        let outer = self.locals.len();
        let mut loops = Vec::with_capacity(generators.len());
        for generator in generators {
            if generator.is_async {
                return Err(self.unsupported("`async` has no place in an expression", generator));
            }
            let iterable = self.expr(&generator.iter)?;
            let target = self.target(&generator.target)?;
            let conditions = self.exprs(&generator.ifs)?;
            loops.push(Loop {
                target,
                iterable,
                conditions,
            });
        }
        let element = self.expr(element)?;
        let value = self.optional(value)?;
        self.locals.truncate(outer);
        Ok(Comprehension {
            element,
            value,
            loops: loops.into(),
        })
    }

    fn target(&mut self, node: &Expr) -> Result<Target, Error> {
        if self.depth >= MAX_NESTING {
            return Err(self.error(Fault::limit("targets nest too deep"), node));
        }
        match node {
            Expr::Name(name) => {
                let at = self.locals.len();
                self.locals.push(Arc::from(name.id.as_str()));
                self.program.locals = self.program.locals.max(at + 1);
                Ok(Target::Local(u16::try_from(at).unwrap_or(u16::MAX)))
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                self.depth += 1;
                let targets: Result<Box<[Target]>, Error> =
                    elts.iter().map(|target| self.target(target)).collect();
                self.depth -= 1;
                Ok(Target::Unpack(targets?))
            }
            _ => Err(self.unsupported("a loop puts its elements into plain names only", node)),
        }
    }
}

fn compare_op(op: ast::CmpOp) -> CompareOp {
    match op {
        ast::CmpOp::Eq => CompareOp::Equal,
        ast::CmpOp::NotEq => CompareOp::NotEqual,
        ast::CmpOp::Lt => CompareOp::Order(Asked::Less),
        ast::CmpOp::LtE => CompareOp::Order(Asked::LessEqual),
        ast::CmpOp::Gt => CompareOp::Order(Asked::Greater),
        ast::CmpOp::GtE => CompareOp::Order(Asked::GreaterEqual),
        ast::CmpOp::In => CompareOp::In,
        ast::CmpOp::NotIn => CompareOp::NotIn,
        ast::CmpOp::Is => CompareOp::Is,
        ast::CmpOp::IsNot => CompareOp::IsNot,
    }
}
