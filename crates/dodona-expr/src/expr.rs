//! An expression, compiled.

use std::sync::Arc;

use crate::builtins::Method;
use crate::check::{self, Checked};
use crate::error::{Error, ErrorKind, Fault, Span, Warning};
use crate::eval::{Machine, quick};
use crate::ir::{CompareOp, Id, Op, Program};
use crate::limits::Limits;
use crate::schema::{FunctionId, Schema, Slot};
use crate::scope::Scope;
use crate::value::Value;
use crate::{lower, optimise, parse};

/// An expression that has been checked against a schema and can be evaluated many times, from
/// many threads.
#[derive(Debug, Clone)]
pub struct Expr {
    source: Arc<str>,
    pub(crate) program: Program,
    warnings: Vec<Warning>,
    limits: Limits,
}

/// A constant key that an expression reads of a dict field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRead {
    /// The field.
    pub slot: Slot,
    /// The key.
    pub key: String,
    /// Whether the evaluation fails where the key is missing.
    pub is_required: bool,
    /// The term that reads it.
    pub span: Span,
}

impl Expr {
    /// Parses, checks and compiles.
    ///
    /// # Errors
    ///
    /// If the source is no expression, uses what the language does not have, names what the schema
    /// does not have, or can never work for the types of what it names.
    pub fn compile(source: &str, schema: &Schema) -> Result<Self, Error> {
        let source: Arc<str> = source.into();
        let tree = parse::parse(&source)?;
        let mut program = lower::lower(&tree, &source, schema)?;
        drop(tree);
        let Checked { warnings, types } = check::check(&program, &source, schema)?;
        optimise::optimise(&mut program, &types, schema);
        Ok(Self {
            source,
            program,
            warnings,
            limits: Limits::default(),
        })
    }

    /// With other limits than the usual ones.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What may go wrong when the expression runs, as far as its types tell.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The fields that it names, some perhaps more than once.
    pub fn fields(&self) -> impl Iterator<Item = Slot> {
        self.terms().filter_map(|op| match op {
            Op::Field(slot) => Some(*slot),
            _ => None,
        })
    }

    /// The functions and methods of the host that it calls, some perhaps more than once.
    pub fn calls(&self) -> impl Iterator<Item = FunctionId> {
        self.terms().filter_map(|op| match op {
            Op::Host(function, _) => Some(*function),
            _ => None,
        })
    }

    /// The constant keys that it reads of dict fields: `field.key`, `field['key']`,
    /// `field.get('key')` and `'key' in field`.
    pub fn keys(&self) -> Vec<KeyRead> {
        let mut waiting = vec![self.program.root];
        let mut keys = Vec::new();
        while let Some(id) = waiting.pop() {
            let op = self.program.op(id);
            waiting.extend(op.children());
            keys.extend(self.key_of(id, op));
        }
        keys.sort_by_key(|read| (read.span.start, read.span.end));
        keys.dedup();
        keys
    }

    fn key_of(&self, id: Id, op: &Op) -> Option<KeyRead> {
        let constant = |id: Id| Some(self.program.known(id)?.as_str()?.to_owned());
        let (field, key, is_required) = match op {
            Op::Attribute(field, key) => (*field, key.to_string(), true),
            Op::Index(field, key) => (*field, constant(*key)?, true),
            Op::Method(call) if call.method == Method::Get => {
                let key = call.arguments.first().copied().flatten()?;
                (call.receiver, constant(key)?, false)
            }
            Op::Compare(CompareOp::In | CompareOp::NotIn, key, field) => {
                (*field, constant(*key)?, false)
            }
            _ => return None,
        };
        let Op::Field(slot) = self.program.op(field) else {
            return None;
        };
        Some(KeyRead {
            slot: *slot,
            key,
            is_required,
            span: self.program.span(id),
        })
    }

    /// What is left of it after optimisation, term by term.
    fn terms(&self) -> impl Iterator<Item = &Op> {
        let mut waiting = vec![self.program.root];
        std::iter::from_fn(move || {
            let op = self.program.op(waiting.pop()?);
            waiting.extend(op.children());
            Some(op)
        })
    }

    /// Whether it is plain that it holds in no scope, as for `1 > 2` or `False and n > 2`.
    pub fn never_holds(&self) -> bool {
        self.is_never_true(self.program.root)
    }

    fn is_never_true(&self, id: Id) -> bool {
        match self.program.op(id) {
            Op::Constant(_) => {
                let known = self.program.known(id);
                known.is_some_and(|value| !value.is_truthy())
            }
            Op::And(terms) => terms.written.iter().any(|&term| self.is_never_true(term)),
            Op::Or(terms) => terms.written.iter().all(|&term| self.is_never_true(term)),
            _ => false,
        }
    }

    /// The value in a scope.
    ///
    /// # Errors
    ///
    /// Whatever can go wrong at run time, with its place in the source.
    pub fn eval<'a>(&'a self, scope: &'a dyn Scope) -> Result<Value<'a>, Error> {
        let mut machine = Machine::new(&self.program, scope, self.limits);
        machine
            .eval(self.program.root)
            .map_err(|fault| self.located(fault))
    }

    /// Whether the condition holds in a scope.
    ///
    /// # Errors
    ///
    /// As [`eval`](Self::eval).
    pub fn test(&self, scope: &dyn Scope) -> Result<bool, Error> {
        if let Some(answer) = quick::truth(&self.program, scope, self.program.root) {
            return Ok(answer);
        }
        let mut machine = Machine::new(&self.program, scope, self.limits);
        machine
            .truth(self.program.root)
            .map_err(|fault| self.located(fault))
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Gives a fault its place in the source, and names the field that it is about.
    #[cold]
    pub(crate) fn located(&self, fault: Fault) -> Error {
        let node = fault.node().unwrap_or(self.program.root);
        let span = self.program.span(node);
        let error = Error::new(fault, span, &self.source);
        if error.kind() == ErrorKind::None && self.is_field(node) {
            return self.about_owner(span);
        }
        error
    }

    pub(crate) fn is_field(&self, node: Id) -> bool {
        matches!(self.program.op(node), Op::Field(_))
    }

    /// The fault of a field whose owner is None.
    pub(crate) fn about_owner(&self, span: Span) -> Error {
        let text = span.of(&self.source);
        let (owner, name) = text.rsplit_once('.').unwrap_or((text, ""));
        let (owner, name) = (owner.trim_end(), name.trim_start());
        let message = format!("`{owner}` is None here, so it has no `{name}`");
        let fault = Fault::new(ErrorKind::None, message)
            .hint(format!("ask `{owner} is not None and …` first"));
        Error::new(fault, span, &self.source)
    }
}
