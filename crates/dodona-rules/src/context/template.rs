//! The context as templates read it.

use dodona_template::{Field, Object};
use serde_json::{Value, json};

use super::RuleContext;
use super::facts::{CallFacts, EventFacts, History, Party, ResultFacts, Turn};
use super::functions::Function;
use super::record::{self, Cell, Record};

fn field(cell: Cell<'_>) -> Field<'_> {
    match cell {
        Cell::None => Field::Null,
        Cell::Bool(value) => Field::Bool(value),
        Cell::Int(value) => Field::Int(value),
        Cell::Float(value) => Field::Float(value),
        Cell::Str(text) => Field::Str(text),
        Cell::Json(json) => Field::Json(json),
        Cell::Record(record) => Field::Object(record),
        Cell::State(state) => Field::Object(state),
    }
}

macro_rules! objects {
    ($($type:ty),+) => {$(
        impl Object for $type {
            fn field(&self, name: &str) -> Option<Field<'_>> {
                self.cell(name).map(field)
            }

            fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
                self.invoke(name, arguments)
            }

            fn to_json(&self) -> Value {
                record::to_json(self)
            }
        }
    )+};
}

objects!(
    Turn,
    History,
    Party,
    EventFacts,
    CallFacts,
    ResultFacts,
    RuleContext
);

/// What a template can name outermost: `context`, `settings` and the functions.
pub(crate) struct Page<'c>(pub(crate) &'c RuleContext);

impl Object for Page<'_> {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        match name {
            "context" => Some(Field::Object(self.0)),
            "settings" => Some(Field::Json(&self.0.settings)),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let found = Function::GLOBAL.iter().find(|(known, _)| *known == name);
        found.map(|(_, function)| {
            let answer = function.run(&self.0.facts, &arguments);
            answer.map(Value::from)
        })
    }

    fn to_json(&self) -> Value {
        json!({ "context": record::to_json(self.0), "settings": self.0.settings() })
    }
}
