//! Calls, and the parts of f-strings.

use super::Machine;
use crate::builtins::format;
use crate::builtins::functions::{self, candidates, collect, extreme_of};
use crate::builtins::{Builtin, methods};
use crate::error::{ErrorKind, Fault};
use crate::ir::{Call, Callee, Conversion, Id, MethodCall, Part};
use crate::schema::FunctionId;
use crate::value::{Asked, Value, ascii, display, repr};

/// Calls have so many arguments without needing a vector.
const FEW: usize = 3;

impl<'a> Machine<'a> {
    pub(super) fn call(&mut self, call: &'a Call) -> Result<Value<'a>, Fault> {
        match (call.function, &*call.arguments) {
            (Builtin::Len, [value]) => {
                let value = self.eval(*value)?;
                functions::len(&value, &mut self.meter)
            }
            (Builtin::Sorted, [items]) => self.sorted(*items, call),
            (Builtin::Min, _) => self.extreme(call, Asked::Less),
            (Builtin::Max, _) => self.extreme(call, Asked::Greater),
            (function, arguments) => self.with_arguments(arguments, |machine, values| {
                functions::call(function, values, &mut machine.meter)
            }),
        }
    }

    /// Evaluates the arguments and hands them on, on the stack if they are few.
    fn with_arguments<T>(
        &mut self,
        arguments: &[Id],
        then: impl FnOnce(&mut Self, &[Value<'a>]) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut few: [Value<'a>; FEW] = Default::default();
        if let Some(places) = few.get_mut(..arguments.len()) {
            for (place, &argument) in places.iter_mut().zip(arguments) {
                *place = self.eval(argument)?;
            }
            return then(self, &few[..arguments.len()]);
        }
        let values: Vec<Value<'a>> = self.items(arguments)?;
        then(self, &values)
    }

    fn sorted(&mut self, items: Id, call: &'a Call) -> Result<Value<'a>, Fault> {
        let items = self.eval(items)?;
        let reverse = match call.option {
            Some(option) => self.truth(option)?,
            None => false,
        };
        let keys = match call.key {
            None => None,
            Some(callee) => {
                let items = collect(&items, &mut self.meter)?;
                Some(self.keys(callee, &items)?)
            }
        };
        functions::sorted(&items, keys, reverse, &mut self.meter)
    }

    fn extreme(&mut self, call: &'a Call, asked: Asked) -> Result<Value<'a>, Fault> {
        let values = self.items(&call.arguments)?;
        let default = match call.option {
            Some(option) if values.len() == 1 => Some(self.eval(option)?),
            Some(_) => {
                return Err(Fault::type_error("`default` goes with one argument only"));
            }
            None => None,
        };
        let candidates = candidates(&values, &mut self.meter)?;
        let best = match call.key {
            None => extreme_of(&candidates, asked, &mut self.meter)?,
            Some(callee) => {
                let keys = self.keys(callee, &candidates)?;
                extreme_of(&keys, asked, &mut self.meter)?
            }
        };
        best.and_then(|at| candidates.get(at).cloned())
            .or(default)
            .ok_or_else(|| Fault::value_error("there is nothing to choose from"))
    }

    fn keys(&mut self, callee: Callee, items: &[Value<'a>]) -> Result<Vec<Value<'a>>, Fault> {
        let mut keys = Vec::with_capacity(items.len());
        for item in items {
            self.meter.work(1)?;
            let arguments = std::slice::from_ref(item);
            keys.push(match callee {
                Callee::Builtin(function) => functions::call(function, arguments, &mut self.meter)?,
                Callee::Host(function) => self.ask(function, arguments)?,
            });
        }
        Ok(keys)
    }

    pub(super) fn method(&mut self, call: &'a MethodCall) -> Result<Value<'a>, Fault> {
        let receiver = self.eval(call.receiver)?;
        let mut few: [Option<Value<'a>>; FEW] = Default::default();
        let count = call.arguments.len();
        if let Some(places) = few.get_mut(..count) {
            for (place, argument) in places.iter_mut().zip(&call.arguments) {
                *place = argument.map(|argument| self.eval(argument)).transpose()?;
            }
            return methods::call(call.method, &receiver, &few[..count], &mut self.meter);
        }
        let mut values = Vec::with_capacity(count);
        for argument in &call.arguments {
            values.push(argument.map(|argument| self.eval(argument)).transpose()?);
        }
        methods::call(call.method, &receiver, &values, &mut self.meter)
    }

    pub(super) fn host(
        &mut self,
        function: FunctionId,
        arguments: &[Id],
    ) -> Result<Value<'a>, Fault> {
        self.with_arguments(arguments, |machine, values| machine.ask(function, values))
    }

    fn ask(&mut self, function: FunctionId, values: &[Value<'a>]) -> Result<Value<'a>, Fault> {
        // What a host does costs more than a step, and is not ours to count.
        self.meter.work(10)?;
        self.scope
            .call(function, values)
            .map_err(|error| Fault::new(ErrorKind::Host, error.to_string()))
    }

    pub(super) fn format(&mut self, parts: &'a [Part]) -> Result<String, Fault> {
        let mut out = String::new();
        let mut length = 0;
        for part in parts {
            let text = match part {
                Part::Text(text) => text.to_string(),
                Part::Value {
                    id,
                    conversion,
                    spec,
                } => self.part(*id, *conversion, spec.as_deref())?,
            };
            length += text.chars().count();
            self.meter.length(length)?;
            self.meter.text(text.len())?;
            out.push_str(&text);
        }
        Ok(out)
    }

    fn part(
        &mut self,
        id: Id,
        conversion: Option<Conversion>,
        spec: Option<&'a [Part]>,
    ) -> Result<String, Fault> {
        let value = self.eval(id)?;
        let value = match conversion {
            None => value,
            Some(Conversion::Str) => Value::text(display(&value, &mut self.meter)?),
            Some(Conversion::Repr) => Value::text(repr(&value, &mut self.meter)?),
            Some(Conversion::Ascii) => Value::text(ascii(&value, &mut self.meter)?),
        };
        let spec = match spec {
            None => String::new(),
            Some(parts) => self.format(parts)?,
        };
        format::format(&value, &spec, &mut self.meter)
    }
}
