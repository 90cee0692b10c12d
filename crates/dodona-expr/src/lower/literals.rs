//! Literals, displays and f-strings, and a refusal for each kind of syntax that is left out.

use std::sync::Arc;

use ruff_python_ast::{self as ast, ConversionFlag, Expr, InterpolatedStringElement, Number};

use super::{Lowering, span};
use crate::error::{Error, ErrorKind, Fault};
use crate::ir::{Conversion, Element, Entry, Id, Op, Part};
use crate::value::Value;

/// −2⁶³ is written as the negative of a number that does not fit.
pub(super) fn smallest_int(node: &ast::ExprUnaryOp) -> Option<Value<'static>> {
    let Expr::NumberLiteral(literal) = &*node.operand else {
        return None;
    };
    let Number::Int(int) = &literal.value else {
        return None;
    };
    let is_smallest =
        node.op == ast::UnaryOp::USub && int.as_u64() == Some(i64::MIN.unsigned_abs());
    is_smallest.then_some(Value::Int(i64::MIN))
}

impl Lowering<'_> {
    pub(super) fn literal(&mut self, node: &Expr) -> Result<Id, Error> {
        match node {
            Expr::NoneLiteral(node) => Ok(self.constant(Value::None, node)),
            Expr::BooleanLiteral(node) => Ok(self.constant(Value::Bool(node.value), node)),
            Expr::NumberLiteral(node) => self.number(node),
            Expr::StringLiteral(node) => {
                let text = Value::text(node.value.to_str());
                Ok(self.constant(text, node))
            }
            Expr::FString(node) => self.f_string(node),
            Expr::List(node) => {
                let elements = node.elts.iter().map(|item| self.element(item));
                let elements: Result<Box<[Element]>, Error> = elements.collect();
                let op = Op::List(elements?);
                Ok(self.push(op, node))
            }
            Expr::Tuple(node) => {
                let items = self.exprs(&node.elts)?;
                Ok(self.push(Op::Tuple(items), node))
            }
            Expr::Set(node) => {
                let items = self.exprs(&node.elts)?;
                Ok(self.push(Op::Set(items), node))
            }
            Expr::Dict(node) => self.dict(node),
            _ => Err(self.refuse(node)),
        }
    }

    fn refuse(&self, node: &Expr) -> Error {
        let message = match node {
            Expr::Named(_) => "`:=` assigns, and nothing can be assigned here",
            Expr::Lambda(_) => "there is no `lambda`",
            Expr::Await(_) => "`await` has no place in an expression",
            Expr::Yield(_) | Expr::YieldFrom(_) => "`yield` has no place in an expression",
            Expr::SetComp(_) => "there are no set comprehensions; use `set([… for …])`",
            Expr::Starred(_) => "`*` unpacks into a list only: `[*items]`",
            Expr::TString(_) => "there are no t-strings; use an f-string",
            Expr::BytesLiteral(_) => "there are no bytes; use a text",
            Expr::EllipsisLiteral(_) => "`...` has no meaning here",
            Expr::Slice(_) => "a slice with more than one dimension",
            _ => "this syntax has no place in an expression",
        };
        self.unsupported(message, node)
    }

    fn number(&mut self, node: &ast::ExprNumberLiteral) -> Result<Id, Error> {
        let value = match &node.value {
            Number::Int(int) => match int.as_i64() {
                Some(value) => Value::Int(value),
                None => {
                    let fault = Fault::new(
                        ErrorKind::Overflow,
                        "the number does not fit a 64-bit integer",
                    );
                    return Err(self.error(fault, node));
                }
            },
            Number::Float(value) => Value::Float(*value),
            Number::Complex { .. } => {
                return Err(self.unsupported("there are no complex numbers", node));
            }
        };
        Ok(self.constant(value, node))
    }

    fn element(&mut self, node: &Expr) -> Result<Element, Error> {
        Ok(match node {
            Expr::Starred(node) => Element::Spread(self.expr(&node.value)?),
            node => Element::One(self.expr(node)?),
        })
    }

    fn dict(&mut self, node: &ast::ExprDict) -> Result<Id, Error> {
        let mut entries = Vec::with_capacity(node.items.len());
        for item in &node.items {
            entries.push(match &item.key {
                Some(key) => Entry::Pair(self.expr(key)?, self.expr(&item.value)?),
                None => Entry::Spread(self.expr(&item.value)?),
            });
        }
        Ok(self.push(Op::Dict(entries.into()), node))
    }

    fn f_string(&mut self, node: &ast::ExprFString) -> Result<Id, Error> {
        let mut parts = Vec::new();
        for part in &node.value {
            match part {
                ast::FStringPart::Literal(literal) => {
                    parts.push(Part::Text(Arc::from(literal.as_str())));
                }
                ast::FStringPart::FString(string) => {
                    self.parts(&string.elements, &mut parts)?;
                }
            }
        }
        Ok(self.push(Op::Format(parts.into()), node))
    }

    fn parts<'n>(
        &mut self,
        elements: impl IntoIterator<Item = &'n InterpolatedStringElement>,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        for element in elements {
            match element {
                InterpolatedStringElement::Literal(literal) => {
                    parts.push(Part::Text(Arc::from(&*literal.value)));
                }
                InterpolatedStringElement::Interpolation(inner) => {
                    self.interpolation(inner, parts)?;
                }
            }
        }
        Ok(())
    }

    fn interpolation(
        &mut self,
        node: &ast::InterpolatedElement,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let mut conversion = match node.conversion {
            ConversionFlag::None => None,
            ConversionFlag::Str => Some(Conversion::Str),
            ConversionFlag::Repr => Some(Conversion::Repr),
            ConversionFlag::Ascii => Some(Conversion::Ascii),
        };
        if let Some(text) = &node.debug_text {
            parts.push(Part::Text(Arc::from(text.as_str())));
            if conversion.is_none() && node.format_spec.is_none() {
                conversion = Some(Conversion::Repr);
            }
        }
        let id = self.expr(&node.expression)?;
        let spec = match &node.format_spec {
            None => None,
            Some(spec) => {
                let mut inner = Vec::new();
                self.depth += 1;
                if self.depth > crate::limits::MAX_NESTING {
                    let fault = Fault::limit("f-strings nest too deep");
                    return Err(Error::new(fault, span(node), self.source));
                }
                let lowered = self.parts(&spec.elements, &mut inner);
                self.depth -= 1;
                lowered?;
                Some(inner.into_boxed_slice())
            }
        };
        parts.push(Part::Value {
            id,
            conversion,
            spec,
        });
        Ok(())
    }
}
