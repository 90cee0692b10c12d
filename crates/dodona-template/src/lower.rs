//! From the parser's syntax tree to the tree that runs.
//!
//! What the language leaves out is refused here, and every filter and test gets its function, so
//! that a template with a typing error does not compile.

use std::collections::HashMap;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Spanned, UnaryOpKind};
use minijinja::machinery::{Span as TokenSpan, parse};
use minijinja::syntax::SyntaxConfig;

use crate::checks::Check;
use crate::error::{ErrorKind, Fault, Result, Span};
use crate::filters::Filter;
use crate::ops::{BinOp, CompareOp};
use crate::program::{
    Apply, Arguments, Block, Expr, ExprKind, For, If, LoopField, LoopMethod, Macro, Name, Program,
    SetBlock, Stmt, Target,
};

/// Tags of Jinja2 that belong to templates in several files.
const OTHER_FILES: [&str; 5] = ["block", "extends", "include", "import", "from"];

/// Parses and lowers a source whose shape was checked.
pub(crate) fn compile(source: &str) -> Result<Program> {
    let tree =
        parse(source, "template", SyntaxConfig::default()).map_err(|error| syntax_fault(&error))?;
    let ast::Stmt::Template(tree) = &tree else {
        return Err(Fault::new(ErrorKind::Syntax, "not a template"));
    };
    let mut lower = Lower::default();
    let body = lower.block(&tree.children)?;
    Ok(Program {
        names: lower.names,
        macros: lower.macros,
        body,
    })
}

/// The parser's error in our words.
pub(crate) fn syntax_fault(error: &minijinja::Error) -> Fault {
    let detail = error.detail().unwrap_or("not a template");
    let other_file = detail
        .strip_prefix("unknown statement ")
        .filter(|name| OTHER_FILES.contains(name));
    let fault = match other_file {
        Some(name) => Fault::unsupported(format!("`{name}`: a template is one text on its own")),
        None => Fault::new(ErrorKind::Syntax, detail),
    };
    match error.range() {
        Some(range) => fault.at(Span {
            start: u32::try_from(range.start).unwrap_or(u32::MAX),
            end: u32::try_from(range.end).unwrap_or(u32::MAX),
        }),
        None => fault,
    }
}

#[derive(Default)]
struct Lower {
    names: Vec<Box<str>>,
    /// The names again, to find them: a long source may have very many.
    known: HashMap<Box<str>, Name>,
    macros: Vec<Macro>,
    /// Whether `loop` is the loop around here.
    in_loop: bool,
    /// Whether this is outside of every scope, where macros may be.
    scopes: u32,
}

impl Lower {
    fn name(&mut self, name: &str) -> Name {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        self.names.push(name.into());
        self.known.insert(name.into(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn block(&mut self, statements: &[ast::Stmt<'_>]) -> Result<Block> {
        statements.iter().map(|stmt| self.statement(stmt)).collect()
    }

    /// A block whose assignments end with it.
    fn scope(&mut self, statements: &[ast::Stmt<'_>]) -> Result<Block> {
        self.scopes += 1;
        let block = self.block(statements);
        self.scopes -= 1;
        block
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) -> Result<Stmt> {
        Ok(match statement {
            ast::Stmt::EmitRaw(raw) => Stmt::Raw(raw.raw.into()),
            ast::Stmt::EmitExpr(emit) => Stmt::Emit(self.expr(&emit.expr)?),
            ast::Stmt::IfCond(cond) => Stmt::If(Box::new(If {
                condition: self.expr(&cond.expr)?,
                then: self.block(&cond.true_body)?,
                otherwise: self.block(&cond.false_body)?,
            })),
            ast::Stmt::ForLoop(tag) => Stmt::For(Box::new(self.for_loop(tag)?)),
            ast::Stmt::WithBlock(with) => {
                let mut assignments = Vec::with_capacity(with.assignments.len());
                for (target, value) in &with.assignments {
                    assignments.push((self.target(target)?, self.expr(value)?));
                }
                Stmt::With(assignments, self.scope(&with.body)?)
            }
            ast::Stmt::Set(set) => Stmt::Set(self.target(&set.target)?, self.expr(&set.expr)?),
            ast::Stmt::SetBlock(set) => Stmt::SetBlock(Box::new(SetBlock {
                target: self.target(&set.target)?,
                filters: self.filter_chain(set.filter.as_ref())?,
                body: self.scope(&set.body)?,
            })),
            ast::Stmt::FilterBlock(tag) => Stmt::FilterBlock(
                self.filter_chain(Some(&tag.filter))?,
                self.scope(&tag.body)?,
            ),
            ast::Stmt::Macro(tag) => Stmt::Macro(self.macro_tag(tag)?),
            ast::Stmt::Break(_) => Stmt::Break,
            ast::Stmt::Continue(_) => Stmt::Continue,
            ast::Stmt::AutoEscape(tag) => {
                return refuse("autoescape", "texts are not HTML", tag.span());
            }
            ast::Stmt::CallBlock(tag) => {
                return refuse("call", "pass the text as an argument instead", tag.span());
            }
            ast::Stmt::Do(tag) => return refuse("do", "nothing can be changed", tag.span()),
            ast::Stmt::Template(tag) => return refuse("template", "not here", tag.span()),
        })
    }

    fn for_loop(&mut self, tag: &Spanned<ast::ForLoop<'_>>) -> Result<For> {
        if tag.recursive {
            return refuse("recursive", "loops do not call themselves", tag.span());
        }
        let iterable = self.expr(&tag.iter)?;
        let target = self.target(&tag.target)?;
        let condition = tag.filter_expr.as_ref().map(|e| self.expr(e)).transpose()?;
        let outside = std::mem::replace(&mut self.in_loop, true);
        let body = self.scope(&tag.body);
        self.in_loop = outside;
        Ok(For {
            target,
            iterable,
            condition,
            body: body?,
            otherwise: self.scope(&tag.else_body)?,
        })
    }

    fn macro_tag(&mut self, tag: &Spanned<ast::Macro<'_>>) -> Result<usize> {
        if self.scopes > 0 {
            return refuse(
                "macro",
                "only outside of loops and other scopes",
                tag.span(),
            );
        }
        let mut parameters = Vec::with_capacity(tag.args.len());
        let required = tag.args.len() - tag.defaults.len().min(tag.args.len());
        for (index, parameter) in tag.args.iter().enumerate() {
            let Target::Name(name) = self.target(parameter)? else {
                return refuse("macro", "a parameter is a name", parameter.span());
            };
            let default = index
                .checked_sub(required)
                .and_then(|at| tag.defaults.get(at));
            let default = default.map(|default| self.expr(default)).transpose()?;
            parameters.push((name, default));
        }
        let outside = std::mem::replace(&mut self.in_loop, false);
        let body = self.scope(&tag.body);
        self.in_loop = outside;
        let name = self.name(tag.name);
        self.macros.push(Macro {
            name,
            parameters,
            body: body?,
        });
        Ok(self.macros.len() - 1)
    }

    fn target(&mut self, target: &ast::Expr<'_>) -> Result<Target> {
        match target {
            ast::Expr::Var(var) => Ok(Target::Name(self.name(var.id))),
            ast::Expr::List(list) => {
                let targets = list.items.iter().map(|item| self.target(item));
                Ok(Target::Unpack(targets.collect::<Result<_>>()?))
            }
            other => refuse("set", "nothing but names can be set", other.span()),
        }
    }

    /// Filters in the order in which they are applied.
    fn filter_chain(&mut self, chain: Option<&ast::Expr<'_>>) -> Result<Vec<Apply>> {
        let mut filters = Vec::new();
        let mut next = chain;
        while let Some(ast::Expr::Filter(filter)) = next {
            filters.push(self.apply(filter)?);
            next = filter.expr.as_ref();
        }
        filters.reverse();
        Ok(filters)
    }

    fn apply(&mut self, filter: &Spanned<ast::Filter<'_>>) -> Result<Apply> {
        let span = span_of(filter.span());
        Ok(Apply {
            filter: Filter::named(filter.name).map_err(|fault| fault.at(span))?,
            arguments: self.arguments(&filter.args)?,
            span,
        })
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<Arguments> {
        let mut lowered = Arguments::default();
        for argument in arguments {
            match argument {
                CallArg::Pos(value) => lowered.positional.push(self.expr(value)?),
                CallArg::Kwarg(name, value) => {
                    lowered.by_name.push(((*name).into(), self.expr(value)?));
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    return refuse("*", "write the arguments out", value.span());
                }
            }
        }
        Ok(lowered)
    }

    fn exprs(&mut self, exprs: &[ast::Expr<'_>]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &ast::Expr<'_>) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(expr)?))
    }

    fn pair(&mut self, left: &ast::Expr<'_>, right: &ast::Expr<'_>) -> Result<Box<(Expr, Expr)>> {
        Ok(Box::new((self.expr(left)?, self.expr(right)?)))
    }

    fn expr(&mut self, expr: &ast::Expr<'_>) -> Result<Expr> {
        let span = Span {
            start: start_of(expr),
            end: expr.span().end_offset,
        };
        let kind = self.kind(expr).map_err(|fault| fault.at(span))?;
        Ok(Expr { kind, span })
    }

    fn kind(&mut self, expr: &ast::Expr<'_>) -> Result<ExprKind> {
        Ok(match expr {
            ast::Expr::Var(var) if self.in_loop && var.id == "loop" => {
                return Err(Fault::unsupported("`loop` can be asked, but is no value"));
            }
            ast::Expr::Var(var) => ExprKind::Var(self.name(var.id)),
            ast::Expr::Const(constant) => constant_kind(&constant.value)?,
            ast::Expr::List(list) => ExprKind::List(self.exprs(&list.items)?),
            ast::Expr::Tuple(tuple) => ExprKind::Tuple(self.exprs(&tuple.items)?),
            ast::Expr::Map(map) => {
                let pairs = map.keys.iter().zip(&map.values);
                let pairs = pairs.map(|(key, value)| Ok((self.expr(key)?, self.expr(value)?)));
                ExprKind::Dict(pairs.collect::<Result<_>>()?)
            }
            ast::Expr::GetAttr(attr) => self.attribute(attr)?,
            ast::Expr::GetItem(item) => {
                ExprKind::Item(self.pair(&item.expr, &item.subscript_expr)?)
            }
            ast::Expr::Slice(slice) => {
                let mut bound = |bound: &Option<ast::Expr<'_>>| {
                    bound.as_ref().map(|bound| self.boxed(bound)).transpose()
                };
                let bounds = [
                    bound(&slice.start)?,
                    bound(&slice.stop)?,
                    bound(&slice.step)?,
                ];
                ExprKind::Slice(self.boxed(&slice.expr)?, bounds)
            }
            ast::Expr::UnaryOp(op) => match op.op {
                UnaryOpKind::Not => ExprKind::Not(self.boxed(&op.expr)?),
                UnaryOpKind::Neg => ExprKind::Negate(self.boxed(&op.expr)?),
            },
            ast::Expr::BinOp(op) => self.binary(op)?,
            ast::Expr::Compare(compare) => {
                let first = self.boxed(&compare.expr)?;
                let rest = compare.ops.iter();
                let rest = rest.map(|op| Ok((compare_op(op.op), self.expr(&op.expr)?)));
                ExprKind::Compare(first, rest.collect::<Result<_>>()?)
            }
            ast::Expr::IfExpr(choice) => {
                let otherwise = choice.false_expr.as_ref();
                ExprKind::Choose(Box::new((
                    self.expr(&choice.test_expr)?,
                    self.expr(&choice.true_expr)?,
                    otherwise.map(|expr| self.expr(expr)).transpose()?,
                )))
            }
            ast::Expr::Filter(filter) => {
                let Some(value) = &filter.expr else {
                    return Err(Fault::new(ErrorKind::Syntax, "a filter without a value"));
                };
                ExprKind::Filter(self.boxed(value)?, Box::new(self.apply(filter)?))
            }
            ast::Expr::Test(test) => {
                let check = Check::named(test.name);
                let check = check.map_err(|fault| fault.at(span_of(test.span())))?;
                ExprKind::Test(self.boxed(&test.expr)?, check, self.arguments(&test.args)?)
            }
            ast::Expr::Call(call) => self.call(call)?,
        })
    }

    fn attribute(&mut self, attr: &Spanned<ast::GetAttr<'_>>) -> Result<ExprKind> {
        if self.is_loop(&attr.expr) {
            return match LoopField::named(attr.name) {
                Some(field) => Ok(ExprKind::Loop(field)),
                None => Err(unknown_of_loop(attr.name)),
            };
        }
        Ok(ExprKind::Attribute(
            self.boxed(&attr.expr)?,
            attr.name.into(),
        ))
    }

    fn call(&mut self, call: &Spanned<ast::Call<'_>>) -> Result<ExprKind> {
        let arguments = self.arguments(&call.args)?;
        match &call.expr {
            ast::Expr::Var(var) if self.in_loop && var.id == "loop" => {
                Err(Fault::unsupported("loops do not call themselves"))
            }
            ast::Expr::Var(var) => match REFUSED_FUNCTIONS.iter().find(|(name, _)| *name == var.id)
            {
                Some((name, why)) => Err(Fault::unsupported(format!("`{name}`: {why}"))),
                None => Ok(ExprKind::Call(self.name(var.id), arguments)),
            },
            ast::Expr::GetAttr(attr) if self.is_loop(&attr.expr) => {
                match LoopMethod::named(attr.name) {
                    Some(method) => Ok(ExprKind::LoopCall(method, arguments)),
                    None => Err(unknown_of_loop(attr.name)),
                }
            }
            ast::Expr::GetAttr(attr) => Ok(ExprKind::Method(
                self.boxed(&attr.expr)?,
                attr.name.into(),
                arguments,
            )),
            _ => Err(Fault::unsupported("only names and methods can be called")),
        }
    }

    fn is_loop(&self, expr: &ast::Expr<'_>) -> bool {
        self.in_loop && matches!(expr, ast::Expr::Var(var) if var.id == "loop")
    }

    fn binary(&mut self, op: &Spanned<ast::BinOp<'_>>) -> Result<ExprKind> {
        let operator = match op.op {
            BinOpKind::ScAnd => return Ok(ExprKind::And(self.pair(&op.left, &op.right)?)),
            BinOpKind::ScOr => return Ok(ExprKind::Or(self.pair(&op.left, &op.right)?)),
            BinOpKind::Add => BinOp::Add,
            BinOpKind::Sub => BinOp::Sub,
            BinOpKind::Mul => BinOp::Mul,
            BinOpKind::Div => BinOp::Div,
            BinOpKind::FloorDiv => BinOp::FloorDiv,
            BinOpKind::Rem => BinOp::Rem,
            BinOpKind::Pow => BinOp::Pow,
            BinOpKind::Concat => BinOp::Concat,
            BinOpKind::Eq => return self.comparison(CompareOp::Eq, op),
            BinOpKind::Ne => return self.comparison(CompareOp::Ne, op),
            BinOpKind::Lt => return self.comparison(CompareOp::Lt, op),
            BinOpKind::Lte => return self.comparison(CompareOp::Lte, op),
            BinOpKind::Gt => return self.comparison(CompareOp::Gt, op),
            BinOpKind::Gte => return self.comparison(CompareOp::Gte, op),
            BinOpKind::In => return self.comparison(CompareOp::In, op),
        };
        Ok(ExprKind::Binary(operator, self.pair(&op.left, &op.right)?))
    }

    fn comparison(&mut self, with: CompareOp, op: &ast::BinOp<'_>) -> Result<ExprKind> {
        let first = self.boxed(&op.left)?;
        Ok(ExprKind::Compare(
            first,
            vec![(with, self.expr(&op.right)?)],
        ))
    }
}

/// Functions of Jinja2 that are not here, with the reason.
const REFUSED_FUNCTIONS: [(&str, &str); 6] = [
    (
        "namespace",
        "nothing can be changed; use a filter such as `sum` or `map`",
    ),
    ("debug", "a template cannot print everything it sees"),
    ("cycler", "nothing can be changed; use `loop.cycle(…)`"),
    ("joiner", "nothing can be changed; use the filter `join`"),
    ("lipsum", "it is text out of nothing"),
    ("super", "a template is one text on its own"),
];

fn unknown_of_loop(name: &str) -> Fault {
    Fault::new(ErrorKind::Undefined, format!("`loop` has no `{name}`"))
}

fn refuse<T>(what: &str, why: &str, span: TokenSpan) -> Result<T> {
    Err(Fault::unsupported(format!("`{what}`: {why}")).at(span_of(span)))
}

fn span_of(span: TokenSpan) -> Span {
    Span {
        start: span.start_offset,
        end: span.end_offset,
    }
}

/// Where an expression begins: the parser counts some from an operator in their middle.
fn start_of(expr: &ast::Expr<'_>) -> u32 {
    match expr {
        ast::Expr::GetAttr(attr) => start_of(&attr.expr),
        ast::Expr::GetItem(item) => start_of(&item.expr),
        ast::Expr::Slice(slice) => start_of(&slice.expr),
        ast::Expr::Call(call) => start_of(&call.expr),
        ast::Expr::BinOp(op) => start_of(&op.left),
        ast::Expr::Compare(compare) => start_of(&compare.expr),
        ast::Expr::IfExpr(choice) => start_of(&choice.true_expr),
        ast::Expr::Test(test) => start_of(&test.expr),
        ast::Expr::Filter(filter) => match &filter.expr {
            Some(value) => start_of(value),
            None => filter.span().start_offset,
        },
        other => other.span().start_offset,
    }
}

fn constant_kind(value: &minijinja::Value) -> Result<ExprKind> {
    if value.is_none() {
        return Ok(ExprKind::None);
    }
    if let Some(text) = value.as_str() {
        return Ok(ExprKind::Str(text.into()));
    }
    if let Ok(value) = bool::try_from(value.clone()) {
        return Ok(ExprKind::Bool(value));
    }
    if !value.is_integer() {
        return match f64::try_from(value.clone()) {
            Ok(value) => Ok(ExprKind::Float(value)),
            Err(_) => Err(Fault::unsupported("a constant of this kind")),
        };
    }
    match i128::try_from(value.clone()) {
        Ok(value) if i64::try_from(value).is_ok() => Ok(ExprKind::Int(value)),
        _ => Err(Fault::operation("the number does not fit in 64 bits")),
    }
}

fn compare_op(op: CompareOpKind) -> CompareOp {
    match op {
        CompareOpKind::Eq => CompareOp::Eq,
        CompareOpKind::Ne => CompareOp::Ne,
        CompareOpKind::Lt => CompareOp::Lt,
        CompareOpKind::Lte => CompareOp::Lte,
        CompareOpKind::Gt => CompareOp::Gt,
        CompareOpKind::Gte => CompareOp::Gte,
        CompareOpKind::In => CompareOp::In,
        CompareOpKind::NotIn => CompareOp::NotIn,
    }
}
