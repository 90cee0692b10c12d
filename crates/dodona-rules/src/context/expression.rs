//! The context for conditions, read by slots.

use std::sync::LazyLock;

use dodona_expr::{CallError, FunctionId, Mapping, Scope, Slot, Value};

use super::facts::{CallFacts, EventFacts, History, Party, ResultFacts, Turn};
use super::functions::{Answer, Arguments, Function, project_argument};
use super::record::{Cell, Record};
use super::{RuleContext, schema};
use crate::format::Trigger;

type Accessor = for<'a> fn(&'a RuleContext) -> Option<Value<'a>>;

/// Accessors by slot and functions by number, in the order of the schema.
struct Table {
    slots: Vec<Accessor>,
    functions: Vec<Callable>,
}

/// A function that an expression can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callable {
    Function(Function),
    ProjectState,
}

impl Callable {
    fn of_path(path: &str) -> Self {
        match path {
            "context.project_state" => Self::ProjectState,
            other => Self::Function(Function::of_path(other)),
        }
    }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let schema = schema(Trigger::OnTurnStart);
    Table {
        slots: schema.paths().map(accessor).collect(),
        functions: schema.functions().map(Callable::of_path).collect(),
    }
});

/// The accessor of a path. A test checks that every path of the schema has one.
fn accessor(path: &str) -> Accessor {
    match path {
        "context" => |context| Some(Value::mapping(context)),
        "context.turn" => |context| Some(Value::mapping(&context.facts.turn)),
        "context.turn.number" => |context| Some(Value::Int(context.facts.turn.number)),
        "context.turn.token_usage" => |context| Some(Value::Float(context.facts.turn.token_usage)),
        "context.turn.context_usage" => {
            |context| Some(Value::Float(context.facts.turn.context_usage))
        }
        "context.turn.iteration_count" => {
            |context| Some(Value::Int(context.facts.turn.iteration_count))
        }
        "context.turn.max_iterations" => {
            |context| Some(Value::Int(context.facts.turn.max_iterations))
        }
        "context.history" => |context| Some(Value::mapping(&context.facts.history)),
        "context.history.messages" => |context| Some(Value::from(&*context.facts.history.messages)),
        "context.history.tools" => |context| Some(Value::from(&*context.facts.history.tools)),
        "context.history.failures" => |context| Some(Value::from(&*context.facts.history.failures)),
        "context.history.total_tool_calls" => {
            |context| Some(Value::Int(context.facts.history.total_tool_calls))
        }
        "context.history.total_failures" => {
            |context| Some(Value::Int(context.facts.history.total_failures))
        }
        "context.user" => |context| Some(Value::mapping(&context.facts.user)),
        "context.user.id" => |context| Some(Value::str(&context.facts.user.id)),
        "context.user.settings" => |context| Some(Value::from(&*context.facts.user.settings)),
        "context.project" => |context| Some(Value::mapping(&context.facts.project)),
        "context.project.id" => |context| Some(Value::str(&context.facts.project.id)),
        "context.project.settings" => |context| Some(Value::from(&*context.facts.project.settings)),
        "context.state" => |context| Some(Value::from(context.state())),
        "context.event" => |context| Some(record(context.facts.event.as_ref())),
        "context.event.type" => |context| Some(Value::str(&context.facts.event.as_ref()?.kind)),
        "context.event.source" => |context| Some(Value::str(&context.facts.event.as_ref()?.source)),
        "context.event.severity" => {
            |context| Some(Value::str(&context.facts.event.as_ref()?.severity))
        }
        "context.event.payload" => {
            |context| Some(Value::from(&*context.facts.event.as_ref()?.payload))
        }
        "context.event.timestamp" => {
            |context| Some(Value::str(&context.facts.event.as_ref()?.timestamp))
        }
        "context.call" => |context| Some(record(context.facts.call.as_ref())),
        "context.call.tool_name" => {
            |context| Some(Value::str(&context.facts.call.as_ref()?.tool_name))
        }
        "context.call.arguments" => {
            |context| Some(Value::from(&*context.facts.call.as_ref()?.arguments))
        }
        "context.result" => |context| Some(record(context.facts.result.as_ref())),
        "context.result.tool_name" => {
            |context| Some(Value::str(&context.facts.result.as_ref()?.tool_name))
        }
        "context.result.success" => {
            |context| Some(Value::Bool(context.facts.result.as_ref()?.success))
        }
        "context.result.result" => {
            |context| Some(Value::from(&*context.facts.result.as_ref()?.result))
        }
        "context.result.error" => |context| {
            let error = &context.facts.result.as_ref()?.error;
            Some(error.as_deref().map_or(Value::None, Value::str))
        },
        "context.result.duration_ms" => {
            |context| Some(Value::Float(context.facts.result.as_ref()?.duration_ms))
        }
        "settings" => |context| Some(Value::from(context.settings())),
        _ => |_| None,
    }
}

fn record<T: Record>(record: Option<&T>) -> Value<'_> {
    record.map_or(Value::None, |record| Value::mapping(record))
}

impl Scope for RuleContext {
    fn field(&self, slot: Slot) -> Option<Value<'_>> {
        let accessor = TABLE.slots.get(slot.index())?;
        accessor(self)
    }

    fn call<'a>(
        &'a self,
        function: FunctionId,
        arguments: &[Value<'a>],
    ) -> Result<Value<'a>, CallError> {
        let given = Given(arguments);
        let callable = TABLE.functions.get(function.index());
        let function = match callable.copied() {
            Some(Callable::ProjectState) => {
                let project = project_argument(&given).map_err(CallError::new)?;
                return Ok(Value::from(self.project_state(project)));
            }
            Some(Callable::Function(function)) => function,
            None => Function::Unknown,
        };
        let answer = function.run(&self.facts, &given);
        match answer.map_err(CallError::new)? {
            Answer::Bool(value) => Ok(Value::Bool(value)),
            Answer::Int(value) => Ok(Value::Int(value)),
            Answer::Float(value) => Ok(Value::Float(value)),
        }
    }
}

struct Given<'g, 'a>(&'g [Value<'a>]);

impl Arguments for Given<'_, '_> {
    fn text(&self, index: usize) -> Option<&str> {
        self.0.get(index)?.as_str()
    }

    fn number(&self, index: usize) -> Option<f64> {
        self.0.get(index)?.as_float()
    }
}

fn value(cell: Cell<'_>) -> Value<'_> {
    match cell {
        Cell::None => Value::None,
        Cell::Bool(value) => Value::Bool(value),
        Cell::Int(value) => Value::Int(value),
        Cell::Float(value) => Value::Float(value),
        Cell::Str(text) => Value::str(text),
        Cell::Json(json) => Value::from(json),
        Cell::Record(record) => Value::mapping(record),
        Cell::State(state) => Value::from(state.json()),
    }
}

macro_rules! mappings {
    ($($type:ty),+) => {$(
        impl Mapping for $type {
            fn len(&self) -> usize {
                Record::fields(self).len()
            }

            fn get(&self, key: &str) -> Option<Value<'_>> {
                self.cell(key).map(value)
            }

            fn entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
                let names = Record::fields(self).iter();
                Box::new(names.map(|name| (*name, value(self.cell(name).unwrap_or(Cell::None)))))
            }

            fn is_record(&self) -> bool {
                true
            }
        }
    )+};
}

mappings!(
    Turn,
    History,
    Party,
    EventFacts,
    CallFacts,
    ResultFacts,
    RuleContext
);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dodona_expr::Expr;

    use super::super::Facts;
    use super::*;

    #[test]
    fn every_path_of_the_vocabulary_can_be_read() {
        let facts = Facts {
            event: Some(EventFacts::default()),
            call: Some(CallFacts::default()),
            result: Some(ResultFacts::default()),
            ..Facts::default()
        };
        let context = RuleContext::new(Arc::new(facts));
        let schema = schema(Trigger::OnToolCall);
        for path in schema.paths() {
            let slot = schema.slot(path).unwrap();
            assert!(context.field(slot).is_some(), "{path}");
        }
        for function in &TABLE.functions {
            assert_ne!(*function, Callable::Function(Function::Unknown));
        }
    }

    #[test]
    fn a_record_is_none_where_it_is_not_there() {
        let context = RuleContext::new(Arc::default());
        for (source, expected) in [
            ("context.result is None", true),
            ("context.event is not None", false),
            ("context.turn is not None", true),
        ] {
            let expr = Expr::compile(source, schema(Trigger::OnTurnStart)).unwrap();
            assert_eq!(expr.test(&context), Ok(expected), "{source}");
        }
    }
}
