//! Finding the expressions of a set that may hold, without looking at the others.
//!
//! What an expression asks first is its guard, if that is a field against a constant, such as
//! `context.turn.token_usage > 0.8` or `context.call.tool_name == 'vault_write'`. Where the guard
//! is false the expression is false, and nothing else of it would have been evaluated. Guards of
//! one field are kept in order, so that an event costs as much as the expressions whose guards
//! hold.

use std::collections::HashMap;

use crate::ir::{CompareOp, Id, Op, Program};
use crate::schema::Slot;
use crate::scope::Scope;
use crate::value::{Asked, Value};

/// Whole numbers up to here are exact as floats.
const EXACT: i64 = 1 << 53;

/// The guards of a set.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    fields: Vec<FieldGuards>,
    /// Expressions without a guard.
    always: Vec<u32>,
}

/// The guards on one field.
#[derive(Debug)]
struct FieldGuards {
    slot: Slot,
    /// Of `field > constant` and `field >= constant`, the lowest constant first.
    above: Vec<(f64, u32)>,
    /// Of `field < constant` and `field <= constant`, the highest constant first.
    below: Vec<(f64, u32)>,
    /// Of `field == text`.
    texts: HashMap<Box<str>, Vec<u32>>,
    /// All of them, for a value that is neither number nor text.
    all: Vec<u32>,
}

/// What an expression asks first.
enum Guard {
    Above(Slot, f64),
    Below(Slot, f64),
    Text(Slot, Box<str>),
}

impl Guards {
    /// Of programs, by their numbers.
    pub(crate) fn new<'p>(programs: impl Iterator<Item = &'p Program>) -> Self {
        let mut guards = Self::default();
        for (index, program) in programs.enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            match guard(program, program.root) {
                Some(guard) => guards.add(guard, index),
                None => guards.always.push(index),
            }
        }
        for field in &mut guards.fields {
            field.above.sort_by(|one, two| one.0.total_cmp(&two.0));
            field.below.sort_by(|one, two| two.0.total_cmp(&one.0));
        }
        guards
    }

    fn add(&mut self, guard: Guard, index: u32) {
        let (Guard::Above(slot, _) | Guard::Below(slot, _) | Guard::Text(slot, _)) = &guard;
        let at = self.fields.iter().position(|field| field.slot == *slot);
        let at = at.unwrap_or_else(|| {
            self.fields.push(FieldGuards::new(*slot));
            self.fields.len() - 1
        });
        let field = &mut self.fields[at];
        field.all.push(index);
        match guard {
            Guard::Above(_, constant) => field.above.push((constant, index)),
            Guard::Below(_, constant) => field.below.push((constant, index)),
            Guard::Text(_, text) => field.texts.entry(text).or_default().push(index),
        }
    }

    /// Tells the numbers of all expressions that may hold or fail, in no order.
    pub(crate) fn open(&self, scope: &dyn Scope, tell: &mut dyn FnMut(u32)) {
        self.always.iter().copied().for_each(&mut *tell);
        for field in &self.fields {
            field.open(scope, tell);
        }
    }
}

impl FieldGuards {
    fn new(slot: Slot) -> Self {
        Self {
            slot,
            above: Vec::new(),
            below: Vec::new(),
            texts: HashMap::new(),
            all: Vec::new(),
        }
    }

    fn open(&self, scope: &dyn Scope, tell: &mut dyn FnMut(u32)) {
        let value = match scope.field(self.slot) {
            Some(Value::Float(value)) if !value.is_nan() => value,
            #[expect(clippy::cast_precision_loss, reason = "it was just made sure of")]
            Some(Value::Int(value)) if (-EXACT..=EXACT).contains(&value) => value as f64,
            // An order of a text and a number is a fault, which the expression must have.
            Some(Value::Str(text)) if self.above.is_empty() && self.below.is_empty() => {
                let found = self.texts.get(&*text).into_iter().flatten();
                return found.copied().for_each(tell);
            }
            _ => return self.all.iter().copied().for_each(tell),
        };
        let above = self.above.iter().take_while(|(low, _)| *low <= value);
        above.for_each(|(_, index)| tell(*index));
        let below = self.below.iter().take_while(|(high, _)| *high >= value);
        below.for_each(|(_, index)| tell(*index));
    }
}

/// The first thing that is asked for the truth of a node.
fn guard(program: &Program, id: Id) -> Option<Guard> {
    match program.op(id) {
        Op::And(terms) => guard(program, *terms.in_order().first()?),
        Op::Compare(op, left, right) => {
            let Op::Field(slot) = program.op(*left) else {
                return None;
            };
            of_comparison(*op, *slot, program.known(*right)?)
        }
        _ => None,
    }
}

fn of_comparison(op: CompareOp, slot: Slot, constant: &Value<'_>) -> Option<Guard> {
    if let (CompareOp::Equal, Value::Str(text)) = (op, constant) {
        return Some(Guard::Text(slot, (**text).into()));
    }
    let CompareOp::Order(asked) = op else {
        return None;
    };
    let constant = match constant {
        Value::Float(constant) if !constant.is_nan() => *constant,
        #[expect(clippy::cast_precision_loss, reason = "it was just made sure of")]
        Value::Int(constant) if (-EXACT..=EXACT).contains(constant) => *constant as f64,
        _ => return None,
    };
    Some(match asked {
        Asked::Greater | Asked::GreaterEqual => Guard::Above(slot, constant),
        Asked::Less | Asked::LessEqual => Guard::Below(slot, constant),
    })
}
