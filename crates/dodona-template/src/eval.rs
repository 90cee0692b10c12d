//! Rendering: the value of an expression.

use crate::access;
use crate::args::Args;
use crate::error::{ErrorKind, Fault, Result};
use crate::functions;
use crate::json::to_json;
use crate::methods;
use crate::ops;
use crate::program::{Apply, Arguments, Expr, ExprKind, LoopField, LoopMethod, Macro, Name};
use crate::run::{Loop, Run};
use crate::value::{Dict, Text, Value};

impl<'v> Run<'v> {
    pub(crate) fn eval(&mut self, expr: &'v Expr) -> Result<Value<'v>> {
        self.meter.steps(1)?;
        self.meter.enter().map_err(|fault| fault.at(expr.span))?;
        let value = self.kind(&expr.kind).map_err(|fault| fault.at(expr.span))?;
        self.meter.leave();
        Ok(value)
    }

    fn kind(&mut self, kind: &'v ExprKind) -> Result<Value<'v>> {
        match kind {
            ExprKind::None => Ok(Value::None),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Str(text) => Ok(Value::Str(Text::Borrowed(text))),
            ExprKind::Var(name) => self.variable(*name),
            ExprKind::Loop(field) => Ok(self.current_loop()?.field(*field)),
            ExprKind::LoopCall(method, arguments) => self.loop_call(*method, arguments),
            ExprKind::List(items) => {
                let items = self.all(items)?;
                Value::list(&mut self.meter, items)
            }
            ExprKind::Tuple(items) => {
                let items = self.all(items)?;
                Value::tuple(&mut self.meter, items)
            }
            ExprKind::Dict(pairs) => self.dict(pairs),
            ExprKind::Attribute(value, name) => {
                let value = self.eval(value)?;
                access::attribute(&mut self.meter, &value, name)
            }
            ExprKind::Item(pair) => {
                let value = self.eval(&pair.0)?;
                let key = self.eval(&pair.1)?;
                access::item(&mut self.meter, &value, &key)
            }
            ExprKind::Slice(value, bounds) => {
                let value = self.eval(value)?;
                let mut evaluated = [None, None, None];
                for (slot, bound) in evaluated.iter_mut().zip(bounds) {
                    *slot = bound.as_ref().map(|bound| self.eval(bound)).transpose()?;
                }
                access::slice(&mut self.meter, &value, evaluated)
            }
            ExprKind::Not(value) => Ok(Value::Bool(!self.eval(value)?.is_true())),
            ExprKind::Negate(value) => ops::negate(&self.eval(value)?),
            ExprKind::Binary(op, pair) => {
                let left = self.eval(&pair.0)?;
                let right = self.eval(&pair.1)?;
                ops::binary(&mut self.meter, *op, &left, &right)
            }
            ExprKind::Compare(first, rest) => self.compare(first, rest),
            ExprKind::And(pair) => match self.eval(&pair.0)? {
                left if left.is_true() => self.eval(&pair.1),
                left => Ok(left),
            },
            ExprKind::Or(pair) => match self.eval(&pair.0)? {
                left if left.is_true() => Ok(left),
                _ => self.eval(&pair.1),
            },
            ExprKind::Choose(choice) => match (self.eval(&choice.0)?.is_true(), &choice.2) {
                (true, _) => self.eval(&choice.1),
                (false, Some(otherwise)) => self.eval(otherwise),
                (false, None) => Ok(Value::NO_NAME),
            },
            ExprKind::Filter(value, apply) => {
                let value = self.eval(value)?;
                self.apply(apply, value)
            }
            ExprKind::Test(value, check, arguments) => {
                let value = self.eval(value)?;
                let args = self.arguments(arguments)?;
                Ok(Value::Bool(check.run(&mut self.meter, &value, args)?))
            }
            ExprKind::Call(name, arguments) => self.call(*name, arguments),
            ExprKind::Method(value, name, arguments) => self.method(value, name, arguments),
        }
    }

    fn variable(&mut self, name: Name) -> Result<Value<'v>> {
        if let Some(value) = self.get(name)? {
            return Ok(value);
        }
        let name: &'v str = &self.program.names[name];
        Ok(match self.root.field(name) {
            Some(field) => Value::from_field(field),
            None => Value::Undefined(name),
        })
    }

    fn all(&mut self, exprs: &'v [Expr]) -> Result<Vec<Value<'v>>> {
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    /// A later key replaces an equal earlier one, and keeps its place.
    fn dict(&mut self, pairs: &'v [(Expr, Expr)]) -> Result<Value<'v>> {
        let mut dict: Vec<(Value<'v>, Value<'v>)> = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            functions::check_key(&key)?;
            functions::insert(&mut self.meter, &mut dict, key, value)?;
        }
        Value::dict(&mut self.meter, dict)
    }

    fn compare(
        &mut self,
        first: &'v Expr,
        rest: &'v [(ops::CompareOp, Expr)],
    ) -> Result<Value<'v>> {
        let mut left = self.eval(first)?;
        for (op, right) in rest {
            let right = self.eval(right)?;
            if !ops::compare(&mut self.meter, *op, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(crate) fn apply(&mut self, apply: &'v Apply, value: Value<'v>) -> Result<Value<'v>> {
        let args = self.arguments(&apply.arguments)?;
        let applied = apply.filter.run(&mut self.meter, value, args);
        applied.map_err(|fault| fault.at(apply.span))
    }

    fn arguments(&mut self, arguments: &'v Arguments) -> Result<Args<'v>> {
        let positional = self.all(&arguments.positional)?;
        let mut by_name = Vec::with_capacity(arguments.by_name.len());
        for (name, value) in &arguments.by_name {
            by_name.push((&**name, self.eval(value)?));
        }
        Ok(Args::new(positional, by_name))
    }

    fn call(&mut self, name: Name, arguments: &'v Arguments) -> Result<Value<'v>> {
        let args = self.arguments(arguments)?;
        let text: &'v str = &self.program.names[name];
        match self.get(name)? {
            Some(Value::Macro(index)) => {
                let called = &self.program.macros[index];
                let given = bind_macro(called, &self.program.names, args)?;
                return self.call_macro(called, given);
            }
            Some(_) => return Err(Fault::operation(format!("`{text}` cannot be called"))),
            None => {}
        }
        match text {
            "range" => functions::range(&mut self.meter, args),
            "dict" => functions::dict(&mut self.meter, args),
            _ => {
                let missing = || {
                    let message = format!("there is no function `{text}`");
                    Fault::new(ErrorKind::Undefined, message)
                };
                self.host_call(self.root_ref(), text, args)?
                    .ok_or_else(missing)
            }
        }
    }

    fn root_ref(&self) -> &'v dyn crate::Object {
        self.root
    }

    fn method(
        &mut self,
        value: &'v Expr,
        name: &'v str,
        arguments: &'v Arguments,
    ) -> Result<Value<'v>> {
        let value = self.eval(value)?;
        value.defined()?;
        let args = self.arguments(arguments)?;
        if let Value::Dict(Dict::Host(object)) = &value {
            let copy = Args::new(args.positional().to_vec(), args.names().cloned().collect());
            if let Some(result) = self.host_call(*object, name, copy)? {
                return Ok(result);
            }
        }
        methods::call(&mut self.meter, &value, name, args)
    }

    /// Asks the program around; `None` if it has no such function.
    fn host_call(
        &mut self,
        object: &'v dyn crate::Object,
        name: &str,
        args: Args<'v>,
    ) -> Result<Option<Value<'v>>> {
        if args.names().next().is_some() {
            return Err(Fault::operation(format!(
                "`{name}` takes no named arguments"
            )));
        }
        let mut json = Vec::with_capacity(args.positional().len());
        for argument in args.positional() {
            json.push(to_json(&mut self.meter, argument)?);
        }
        match object.call(name, &json) {
            None => Ok(None),
            Some(Err(message)) => Err(Fault::operation(message)),
            Some(Ok(result)) => Value::from_owned(&mut self.meter, result).map(Some),
        }
    }

    fn current_loop(&mut self) -> Result<&mut Loop<'v>> {
        let current = self.loops.last_mut();
        current.ok_or_else(|| Fault::new(ErrorKind::Undefined, "`loop` is undefined"))
    }

    fn loop_call(&mut self, method: LoopMethod, arguments: &'v Arguments) -> Result<Value<'v>> {
        let args = self.arguments(arguments)?;
        let values = args.positional();
        match method {
            LoopMethod::Cycle => {
                let index = self.current_loop()?.index;
                let picked = index
                    .checked_rem(values.len())
                    .and_then(|at| values.get(at));
                picked
                    .cloned()
                    .ok_or_else(|| Fault::operation("`loop.cycle` needs values"))
            }
            LoopMethod::Changed => {
                let seen = self.current_loop()?.seen.take();
                let same = match &seen {
                    Some(seen) if seen.len() == values.len() => self.all_equal(seen, values)?,
                    _ => false,
                };
                self.current_loop()?.seen = Some(values.to_vec());
                Ok(Value::Bool(!same))
            }
        }
    }

    fn all_equal(&mut self, left: &[Value<'v>], right: &[Value<'v>]) -> Result<bool> {
        for (left, right) in left.iter().zip(right) {
            if !ops::equal(&mut self.meter, left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<'v> Loop<'v> {
    fn field(&self, field: LoopField) -> Value<'v> {
        let (index, length) = (self.index, self.items.len());
        let int = |value: usize| Value::Int(value as i128);
        match field {
            LoopField::Index => int(index + 1),
            LoopField::Index0 => int(index),
            LoopField::RevIndex => int(length - index),
            LoopField::RevIndex0 => int(length - index - 1),
            LoopField::First => Value::Bool(index == 0),
            LoopField::Last => Value::Bool(index + 1 == length),
            LoopField::Length => int(length),
            LoopField::Depth => int(1),
            LoopField::Depth0 => int(0),
            LoopField::PrevItem => {
                let previous = index.checked_sub(1).and_then(|index| self.items.get(index));
                previous.unwrap_or(Value::Undefined("loop.previtem"))
            }
            LoopField::NextItem => self
                .items
                .get(index + 1)
                .unwrap_or(Value::Undefined("loop.nextitem")),
        }
    }
}

/// Gives each parameter of a macro its argument.
fn bind_macro<'v>(
    called: &Macro,
    names: &[Box<str>],
    args: Args<'v>,
) -> Result<Vec<Option<Value<'v>>>> {
    let mut given: Vec<_> = args.positional().iter().cloned().map(Some).collect();
    if given.len() > called.parameters.len() {
        let (takes, found) = (called.parameters.len(), given.len());
        return Err(Fault::operation(format!(
            "takes at most {takes} arguments, and got {found}"
        )));
    }
    given.resize(called.parameters.len(), None);
    for (name, value) in args.names() {
        let is_it = |(parameter, _): &(Name, _)| *names[*parameter] == **name;
        match called.parameters.iter().position(is_it) {
            Some(index) if given[index].is_none() => given[index] = Some(value.clone()),
            Some(_) => return Err(Fault::operation(format!("got two arguments `{name}`"))),
            None => return Err(Fault::operation(format!("takes no argument `{name}`"))),
        }
    }
    Ok(given)
}
