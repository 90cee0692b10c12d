//! Many expressions over the same scope: what they have in common is evaluated once.

use std::collections::HashMap;

use crate::error::Error;
use crate::eval::Machine;
use crate::expr::Expr;
use crate::guard::Guards;
use crate::ir::{Id, Op, Program};
use crate::limits::Limits;
use crate::optimise::cost;
use crate::plain::Plain;
use crate::scope::Scope;
use crate::value::Value;

/// What costs less than this is not worth remembering.
const WORTH_KEEPING: u32 = 2;

/// Expressions that are evaluated together, such as all conditions of one trigger.
///
/// ```
/// use dodona_expr::{Expr, ExprSet, JsonScope, Schema};
/// use serde_json::json;
///
/// let schema = Schema::parse("n: int")?;
/// let exprs = ["n % 7 == 3 and n > 5", "n % 7 == 3 and n > 50"];
/// let exprs = exprs.map(|source| Expr::compile(source, &schema)).into_iter();
/// let set = ExprSet::new(exprs.collect::<Result<_, _>>()?);
///
/// let document = json!({"n": 10});
/// let scope = JsonScope::new(&schema, &document);
/// let mut run = set.run(&scope);
/// assert!(run.test(0)?);
/// assert!(!run.test(1)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ExprSet {
    exprs: Vec<Expr>,
    program: Program,
    roots: Vec<Id>,
    shared: usize,
    guards: Guards,
    plain: Plain,
}

impl ExprSet {
    /// Puts the expressions together. All must have been compiled with schemas that number slots
    /// and functions alike.
    pub fn new(exprs: Vec<Expr>) -> Self {
        let mut merge = Merge::default();
        let roots: Vec<Id> = exprs.iter().map(|expr| merge.add(&expr.program)).collect();
        let (program, roots, shared) = merge.finish(&roots);
        Self {
            guards: Guards::new(exprs.iter().map(|expr| &expr.program)),
            plain: Plain::new(exprs.iter().map(|expr| &expr.program)),
            exprs,
            program,
            roots,
            shared,
        }
    }

    /// How many expressions.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// One of the expressions.
    pub fn get(&self, index: usize) -> Option<&Expr> {
        self.exprs.get(index)
    }

    /// How many terms are evaluated once for several expressions.
    pub fn shared_terms(&self) -> usize {
        self.shared
    }

    /// Begins the evaluation in a scope. Expressions are evaluated as they are asked for.
    pub fn run<'a>(&'a self, scope: &'a dyn Scope) -> Run<'a> {
        let machine = Machine::new(&self.program, scope, Limits::default());
        Run {
            set: self,
            scope,
            machine: machine.sharing(self.shared),
            fields: None,
        }
    }
}

/// The evaluation of a set in one scope.
pub struct Run<'a> {
    set: &'a ExprSet,
    scope: &'a dyn Scope,
    machine: Machine<'a>,
    /// What the plain conditions read, once one of them is asked.
    fields: Option<Vec<Option<Value<'a>>>>,
}

impl<'a> Run<'a> {
    /// Tells the number of every condition that may hold or fail, in no order. Of the others it is
    /// known without a look at them that they do not hold: they ask first for a field that is not
    /// as they want it.
    pub fn open(&self, mut tell: impl FnMut(usize)) {
        let mut tell = |index: u32| tell(index as usize);
        self.set.guards.open(self.scope, &mut tell);
    }

    /// Whether the condition with this number holds, if it is one that only compares fields with
    /// constants: such a one neither fails nor takes long.
    ///
    /// # Panics
    ///
    /// If there is no expression with this number.
    #[inline]
    pub fn test_plain(&mut self, index: usize) -> Option<bool> {
        let plain = &self.set.plain;
        let fields = self.fields.get_or_insert_with(|| plain.fields(self.scope));
        plain.test(index, fields)
    }

    /// Whether the condition with this number holds.
    ///
    /// # Errors
    ///
    /// As [`Expr::test`].
    ///
    /// # Panics
    ///
    /// If there is no expression with this number.
    pub fn test(&mut self, index: usize) -> Result<bool, Error> {
        match self.test_plain(index) {
            Some(answer) => Ok(answer),
            None => self.test_in_full(index),
        }
    }

    fn test_in_full(&mut self, index: usize) -> Result<bool, Error> {
        let expr = &self.set.exprs[index];
        self.machine.refill(expr.limits());
        match self.machine.truth(self.set.roots[index]) {
            Ok(answer) => Ok(answer),
            // Terms that are shared have no place of their own; the expression alone knows it.
            Err(_) => expr.test(self.scope),
        }
    }

    /// The value of the expression with this number.
    ///
    /// # Errors
    ///
    /// As [`Expr::eval`].
    ///
    /// # Panics
    ///
    /// If there is no expression with this number.
    pub fn eval(&mut self, index: usize) -> Result<Value<'a>, Error> {
        let expr = &self.set.exprs[index];
        self.machine.refill(expr.limits());
        match self.machine.eval(self.set.roots[index]) {
            Ok(value) => Ok(value),
            Err(_) => expr.eval(self.scope),
        }
    }
}

/// Finds equal nodes while programs are put together.
#[derive(Default)]
struct Merge {
    program: Program,
    known: HashMap<Op, Id>,
    constants: HashMap<String, u32>,
    /// How many nodes and roots use each node.
    uses: Vec<u32>,
    /// Whether a node depends on variables of a comprehension around it.
    open: Vec<bool>,
}

impl Merge {
    fn add(&mut self, program: &Program) -> Id {
        let mut places: Vec<Id> = Vec::with_capacity(program.ops.len());
        for (at, op) in program.ops.iter().enumerate() {
            let op = match op {
                Op::Constant(constant) => Op::Constant(self.constant(program, *constant)),
                other => other.map(&mut |child| places[child as usize]),
            };
            places.push(self.node(op, program.spans[at]));
        }
        self.program.locals = self.program.locals.max(program.locals);
        let root = places[program.root as usize];
        self.uses[root as usize] += 1;
        root
    }

    /// Constants are the same if they have the same type and are written the same.
    fn constant(&mut self, program: &Program, at: u32) -> u32 {
        let value = &program.constants[at as usize];
        let key = format!("{value:?}");
        if let Some(&known) = self.constants.get(&key) {
            return known;
        }
        let at = self.program.constant(value.clone());
        self.constants.insert(key, at);
        at
    }

    fn node(&mut self, op: Op, span: crate::Span) -> Id {
        if let Some(&known) = self.known.get(&op) {
            return known;
        }
        let children = op.children();
        let open = match &op {
            Op::Local(_) => true,
            // It binds what its own terms need. What it needs from outside is rare, and then it
            // is only shared less than it could be.
            Op::ListComp(_) | Op::DictComp(_) | Op::AnyOf(_) | Op::AllOf(_) => {
                lowest_local(&self.program, &op) < first_bound(&op)
            }
            _ => children.iter().any(|&child| self.open[child as usize]),
        };
        for child in children {
            self.uses[child as usize] += 1;
        }
        let id = self.program.push(op.clone(), span);
        self.known.insert(op, id);
        self.uses.push(0);
        self.open.push(open);
        id
    }

    /// Whether looking for a value costs less than finding it out. A field against a constant does
    /// not, and a set of thousands would make room for all of them at every event.
    fn is_worth_keeping(&self, id: Id) -> bool {
        let is_plain = |id: Id| matches!(self.program.op(id), Op::Field(_) | Op::Constant(_));
        match self.program.op(id) {
            Op::Compare(_, left, right) if is_plain(*left) && is_plain(*right) => false,
            _ => cost(&self.program, id) >= WORTH_KEEPING,
        }
    }

    /// Puts a memory in front of every node that is used more than once and worth it.
    fn finish(self, roots: &[Id]) -> (Program, Vec<Id>, usize) {
        let mut program = Program {
            constants: self.program.constants.clone(),
            locals: self.program.locals,
            ..Program::default()
        };
        let mut places: Vec<Id> = Vec::with_capacity(self.program.ops.len());
        let mut shared = 0;
        for (at, op) in self.program.ops.iter().enumerate() {
            let id = u32::try_from(at).unwrap_or(u32::MAX);
            let span = self.program.spans[at];
            let op = op.map(&mut |child| places[child as usize]);
            let mut place = program.push(op, span);
            let keep = self.uses[at] > 1 && !self.open[at] && self.is_worth_keeping(id);
            if keep {
                place = program.push(Op::Shared(shared, place), span);
                shared += 1;
            }
            places.push(place);
        }
        let roots = roots.iter().map(|&root| places[root as usize]).collect();
        (program, roots, shared as usize)
    }
}

/// The lowest variable that is read in these terms.
fn lowest_local(program: &Program, op: &Op) -> u16 {
    let mut lowest = match op {
        Op::Local(at) => *at,
        _ => u16::MAX,
    };
    for child in op.children() {
        lowest = lowest.min(lowest_local(program, program.op(child)));
    }
    lowest
}

/// The first variable that a comprehension binds.
fn first_bound(op: &Op) -> u16 {
    use crate::ir::Target;
    fn of(target: &Target) -> u16 {
        match target {
            Target::Local(at) => *at,
            Target::Unpack(targets) => targets.iter().map(of).min().unwrap_or(u16::MAX),
        }
    }
    match op {
        Op::ListComp(comp) | Op::DictComp(comp) | Op::AnyOf(comp) | Op::AllOf(comp) => {
            let targets = comp.loops.iter().map(|one| of(&one.target));
            targets.min().unwrap_or(u16::MAX)
        }
        _ => u16::MAX,
    }
}
