//! The context as scripts read it.

use dodona_script::{Field, Host, Object};
use serde_json::Value;

use super::RuleContext;
use super::facts::{CallFacts, EventFacts, History, Party, ResultFacts, Turn};
use super::functions::Function;
use super::record::{Cell, Record};

/// The functions of the vocabulary, for one run.
pub(crate) fn host(context: &RuleContext) -> Host {
    Function::GLOBAL
        .iter()
        .fold(Host::new(), |host, &(name, function)| {
            let context = context.clone();
            host.function(name, move |call| {
                let answer = function.run(&context.facts, &call.arguments);
                answer.map(Value::from)
            })
        })
}

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

            fn names(&self) -> Vec<String> {
                Record::fields(self).iter().map(|name| (*name).to_owned()).collect()
            }

            fn methods(&self) -> &[&'static str] {
                Record::verbs(self)
            }

            fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
                self.invoke(name, arguments)
                    .unwrap_or_else(|| Err(format!("there is no `{name}`")))
            }
        }
    )+};
}

objects!(Turn, History, Party, EventFacts, CallFacts, ResultFacts);

/// What a script calls `context`; the settings are in it.
impl Object for RuleContext {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        match name {
            "settings" => Some(Field::Json(&self.settings)),
            _ => self.cell(name).map(field),
        }
    }

    fn names(&self) -> Vec<String> {
        let names = Record::fields(self).iter().copied();
        names.chain(["settings"]).map(str::to_owned).collect()
    }

    fn methods(&self) -> &[&'static str] {
        Record::verbs(self)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        self.invoke(name, arguments)
            .unwrap_or_else(|| Err(format!("there is no `{name}`")))
    }
}
