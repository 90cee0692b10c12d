//! Comprehensions.

use std::sync::Arc;

use super::Machine;
use crate::builtins::functions::Items;
use crate::error::Fault;
use crate::ir::{Comprehension, Target};
use crate::value::{Dict, Map, Value};

/// Where a comprehension puts what it makes.
enum Sink<'a> {
    List(Vec<Value<'a>>),
    Dict(Map<'a>),
    /// Waits for an element that is true, or false.
    Quantifier {
        wanted: bool,
        found: bool,
    },
}

/// Whether the loops go on.
#[derive(PartialEq)]
enum Next {
    More,
    Enough,
}

impl<'a> Machine<'a> {
    pub(super) fn list_comp(&mut self, comp: &'a Comprehension) -> Result<Value<'a>, Fault> {
        let mut sink = Sink::List(Vec::new());
        self.run(comp, 0, &mut sink)?;
        match sink {
            Sink::List(items) => Ok(Value::list(items)),
            _ => Ok(Value::None),
        }
    }

    pub(super) fn dict_comp(&mut self, comp: &'a Comprehension) -> Result<Value<'a>, Fault> {
        let mut sink = Sink::Dict(Map::default());
        self.run(comp, 0, &mut sink)?;
        match sink {
            Sink::Dict(map) => Ok(Value::Dict(Dict::Shared(Arc::new(map)))),
            _ => Ok(Value::None),
        }
    }

    pub(super) fn quantify(
        &mut self,
        comp: &'a Comprehension,
        wanted: bool,
    ) -> Result<Value<'a>, Fault> {
        let mut sink = Sink::Quantifier {
            wanted,
            found: false,
        };
        self.run(comp, 0, &mut sink)?;
        let found = matches!(sink, Sink::Quantifier { found: true, .. });
        Ok(Value::Bool(found == wanted))
    }

    /// Runs the loop number `at`, and those inside it.
    fn run(
        &mut self,
        comp: &'a Comprehension,
        at: usize,
        sink: &mut Sink<'a>,
    ) -> Result<Next, Fault> {
        let Some(this) = comp.loops.get(at) else {
            return self.emit(comp, sink);
        };
        let iterable = self.eval(this.iterable)?;
        'elements: for item in Items::of(&iterable)? {
            self.meter.iteration()?;
            self.bind(&this.target, item)?;
            for &condition in &this.conditions {
                if !self.truth(condition)? {
                    continue 'elements;
                }
            }
            if self.run(comp, at + 1, sink)? == Next::Enough {
                return Ok(Next::Enough);
            }
        }
        Ok(Next::More)
    }

    fn bind(&mut self, target: &Target, value: Value<'a>) -> Result<(), Fault> {
        match target {
            Target::Local(at) => {
                let at = usize::from(*at);
                if self.locals.len() <= at {
                    self.locals.resize(at + 1, Value::None);
                }
                self.locals[at] = value;
                Ok(())
            }
            Target::Unpack(targets) => {
                let mut items = Items::of(&value)?;
                for target in targets {
                    let Some(item) = items.next() else {
                        return Err(unpacking(targets.len(), &value));
                    };
                    self.bind(target, item)?;
                }
                match items.next() {
                    None => Ok(()),
                    Some(_) => Err(unpacking(targets.len(), &value)),
                }
            }
        }
    }

    fn emit(&mut self, comp: &'a Comprehension, sink: &mut Sink<'a>) -> Result<Next, Fault> {
        match sink {
            Sink::List(items) => {
                self.meter.elements(1)?;
                items.push(self.eval(comp.element)?);
                Ok(Next::More)
            }
            Sink::Dict(map) => {
                self.meter.elements(2)?;
                let key = self.eval(comp.element)?;
                let value = match comp.value {
                    Some(value) => self.eval(value)?,
                    None => Value::None,
                };
                map.insert(key, value)?;
                Ok(Next::More)
            }
            Sink::Quantifier { wanted, found } => {
                *found = self.truth(comp.element)? == *wanted;
                Ok(if *found { Next::Enough } else { Next::More })
            }
        }
    }
}

#[cold]
fn unpacking(wanted: usize, value: &Value<'_>) -> Fault {
    Fault::value_error(format!(
        "{} does not unpack into {wanted} names",
        value.short_repr()
    ))
}
