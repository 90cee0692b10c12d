//! The evaluator: walks the nodes, and pays for every step.

mod access;
mod calls;
mod loops;
pub(crate) mod operators;
pub(crate) mod quick;
mod trace;

use crate::error::{ErrorKind, Fault};
use crate::ir::{CompareOp, Element, Entry, Id, Op, Program, Terms};
use crate::limits::{Limits, Meter};
use crate::scope::Scope;
use crate::value::{Dict, Map, Set, Value, equals, identical, order};

pub(crate) use trace::{Outcome, Trace};

use std::sync::Arc;

/// One evaluation of one program.
pub(crate) struct Machine<'a> {
    program: &'a Program,
    scope: &'a dyn Scope,
    locals: Vec<Value<'a>>,
    meter: Meter,
    /// What each node was, for those who want to know.
    trace: Option<Box<Trace<'a>>>,
    /// The values of terms that several expressions have.
    shared: Vec<Option<Value<'a>>>,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(program: &'a Program, scope: &'a dyn Scope, limits: Limits) -> Self {
        Self {
            program,
            scope,
            locals: Vec::new(),
            meter: Meter::new(limits),
            trace: None,
            shared: Vec::new(),
        }
    }

    /// Remembers what each node was.
    pub(crate) fn traced(mut self) -> Self {
        self.trace = Some(Box::new(Trace::new(self.program.ops.len())));
        self
    }

    /// With room for so many terms that several expressions have.
    pub(crate) fn sharing(mut self, terms: usize) -> Self {
        self.shared = vec![None; terms];
        self
    }

    pub(crate) fn into_trace(self) -> Option<Box<Trace<'a>>> {
        self.trace
    }

    /// Starts counting anew, for the next expression of a set.
    pub(crate) fn refill(&mut self, limits: Limits) {
        self.meter = Meter::new(limits);
    }

    /// The value of a node.
    #[inline]
    pub(crate) fn eval(&mut self, id: Id) -> Result<Value<'a>, Fault> {
        let answer = match self.meter.work(1) {
            Ok(()) => self.step(id),
            Err(fault) => Err(fault),
        };
        if let Some(trace) = &mut self.trace {
            trace.record(id, &answer);
        }
        answer.map_err(|fault| fault.at(id))
    }

    /// Whether a node is true, which is often cheaper than its value.
    #[inline]
    pub(crate) fn truth(&mut self, id: Id) -> Result<bool, Fault> {
        if self.trace.is_some() {
            return Ok(self.eval(id)?.is_truthy());
        }
        match self.program.op(id) {
            Op::Compare(op, left, right) => {
                let answer = self.compare_nodes(*op, *left, *right);
                answer.map_err(|fault| fault.at(id))
            }
            Op::Not(inner) => Ok(!self.truth(*inner)?),
            Op::And(terms) => self.truth_of(terms, false),
            Op::Or(terms) => self.truth_of(terms, true),
            Op::Shared(at, inner) => match self.shared.get(*at as usize) {
                Some(Some(value)) => Ok(value.is_truthy()),
                _ => Ok(self.shared(*at, *inner)?.is_truthy()),
            },
            _ => Ok(self.eval(id)?.is_truthy()),
        }
    }

    /// Stops at the first term that is `decisive`.
    fn truth_of(&mut self, terms: &'a Terms, decisive: bool) -> Result<bool, Fault> {
        for &term in terms.in_order() {
            if self.truth(term)? == decisive {
                return Ok(decisive);
            }
        }
        Ok(!decisive)
    }

    fn step(&mut self, id: Id) -> Result<Value<'a>, Fault> {
        let program: &'a Program = self.program;
        match program.op(id) {
            Op::Constant(at) => Ok(program.constants[*at as usize].borrowed()),
            Op::Field(slot) => self.scope.field(*slot).ok_or_else(no_owner),
            Op::Local(at) => Ok(self.local(*at)),
            Op::Not(inner) => Ok(Value::Bool(!self.truth(*inner)?)),
            Op::Unary(op, inner) => operators::unary(*op, &self.eval(*inner)?),
            Op::Binary(op, left, right) => {
                let left = self.eval(*left)?;
                let right = self.eval(*right)?;
                operators::binary(*op, &left, &right, &mut self.meter)
            }
            Op::Compare(op, left, right) => self.compare_nodes(*op, *left, *right).map(Value::Bool),
            Op::Chain(first, rest) => self.chain(*first, rest),
            Op::And(terms) => self.decide(terms, false),
            Op::Or(terms) => self.decide(terms, true),
            Op::If { test, then, other } => {
                let chosen = if self.truth(*test)? { then } else { other };
                self.eval(*chosen)
            }
            Op::Attribute(value, name) => self.attribute(*value, name),
            Op::Index(value, index) => self.index(*value, *index),
            Op::Slice {
                value,
                lower,
                upper,
                step,
            } => self.slice(*value, [*lower, *upper, *step]),
            Op::List(elements) => self.list(elements),
            Op::Tuple(items) => self.items(items).map(Value::tuple),
            Op::Set(items) => {
                let items = self.items(items)?;
                Ok(Value::Set(Arc::new(Set::of(items)?)))
            }
            Op::Dict(entries) => self.dict(entries),
            Op::ListComp(comprehension) => self.list_comp(comprehension),
            Op::DictComp(comprehension) => self.dict_comp(comprehension),
            Op::AnyOf(comprehension) => self.quantify(comprehension, true),
            Op::AllOf(comprehension) => self.quantify(comprehension, false),
            Op::Call(call) => self.call(call),
            Op::Method(call) => self.method(call),
            Op::Host(function, arguments) => self.host(*function, arguments),
            Op::Format(parts) => self.format(parts).map(Value::text),
            Op::Shared(at, inner) => self.shared(*at, *inner),
        }
    }

    fn local(&self, at: u16) -> Value<'a> {
        self.locals
            .get(usize::from(at))
            .cloned()
            .unwrap_or_default()
    }

    /// A term that was evaluated for another expression has kept its value.
    fn shared(&mut self, at: u32, inner: Id) -> Result<Value<'a>, Fault> {
        if let Some(Some(value)) = self.shared.get(at as usize) {
            return Ok(value.clone());
        }
        let value = self.eval(inner)?;
        if let Some(place) = self.shared.get_mut(at as usize) {
            *place = Some(value.clone());
        }
        Ok(value)
    }

    /// `and` and `or`: the term that decided, or the last.
    fn decide(&mut self, terms: &'a Terms, decisive: bool) -> Result<Value<'a>, Fault> {
        let mut value = Value::None;
        for &term in &terms.written {
            value = self.eval(term)?;
            if value.is_truthy() == decisive {
                break;
            }
        }
        Ok(value)
    }

    fn compare_nodes(&mut self, op: CompareOp, left: Id, right: Id) -> Result<bool, Fault> {
        let program: &'a Program = self.program;
        // Most comparisons are with a constant, which need not be taken out of its place.
        let constant = match program.op(right) {
            Op::Constant(at) if self.trace.is_none() => &program.constants[*at as usize],
            _ => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                return self.compare(op, &left, &right);
            }
        };
        if let Op::Field(slot) = program.op(left)
            && let Some(answer) = quick::field_with(self.scope, *slot, op, constant)
        {
            self.meter.work(1)?;
            return Ok(answer);
        }
        let left = self.eval(left)?;
        self.compare(op, &left, constant)
    }

    #[inline]
    fn compare(
        &mut self,
        op: CompareOp,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<bool, Fault> {
        match op {
            CompareOp::Order(asked) => order(asked, left, right, &mut self.meter),
            CompareOp::Equal => equals(left, right, &mut self.meter),
            CompareOp::NotEqual => Ok(!equals(left, right, &mut self.meter)?),
            CompareOp::In => self.contains(right, left),
            CompareOp::NotIn => Ok(!self.contains(right, left)?),
            CompareOp::Is => Ok(identical(left, right)),
            CompareOp::IsNot => Ok(!identical(left, right)),
        }
    }

    /// `a < b < c`: each term once, and no further than the first pair that fails.
    fn chain(&mut self, first: Id, rest: &'a [(CompareOp, Id)]) -> Result<Value<'a>, Fault> {
        let mut left = self.eval(first)?;
        for (op, term) in rest {
            let right = self.eval(*term)?;
            if !self.compare(*op, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn items(&mut self, items: &[Id]) -> Result<Vec<Value<'a>>, Fault> {
        self.meter.elements(items.len())?;
        items.iter().map(|&item| self.eval(item)).collect()
    }

    fn list(&mut self, elements: &[Element]) -> Result<Value<'a>, Fault> {
        self.meter.elements(elements.len())?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match element {
                Element::One(item) => items.push(self.eval(*item)?),
                Element::Spread(inner) => {
                    let inner = self.eval(*inner)?;
                    items.extend(crate::builtins::functions::collect(
                        &inner,
                        &mut self.meter,
                    )?);
                    self.meter.length(items.len())?;
                }
            }
        }
        Ok(Value::list(items))
    }

    fn dict(&mut self, entries: &[Entry]) -> Result<Value<'a>, Fault> {
        self.meter.elements(entries.len().saturating_mul(2))?;
        let mut map = Map::default();
        for entry in entries {
            match entry {
                Entry::Pair(key, value) => {
                    let key = self.eval(*key)?;
                    let value = self.eval(*value)?;
                    map.insert(key, value)?;
                }
                Entry::Spread(inner) => {
                    let Value::Dict(inner) = self.eval(*inner)? else {
                        return Err(Fault::type_error("`**` wants a dict"));
                    };
                    self.meter.elements(inner.len())?;
                    for (key, value) in inner.entries() {
                        map.insert(key, value)?;
                    }
                }
            }
        }
        Ok(Value::Dict(Dict::Shared(Arc::new(map))))
    }
}

/// The fault of a field whose owner is `None`; the message gets its names later.
#[cold]
fn no_owner() -> Fault {
    Fault::new(ErrorKind::None, "what this is a field of is None")
}
