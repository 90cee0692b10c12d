//! The state of a plugin, with its methods.

use std::sync::Arc;

use serde_json::{Value, json};

/// What a plugin remembers, as its rules see it.
#[derive(Debug, Clone)]
pub(super) struct StateView(Arc<Value>);

impl StateView {
    pub(super) fn new(values: Arc<Value>) -> Self {
        Self(values)
    }

    pub(super) fn json(&self) -> &Value {
        &self.0
    }

    fn invoke(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let key = || {
            let key = arguments.first().and_then(Value::as_str);
            key.ok_or_else(|| format!("`{name}` needs a text as argument 1"))
        };
        Some(match name {
            "get" => key().map(|key| {
                let found = self.0.get(key).or(arguments.get(1));
                found.cloned().unwrap_or_default()
            }),
            "has" => key().map(|key| Value::from(self.0.get(key).is_some())),
            "keys" => Ok(json!(self.names())),
            _ => return None,
        })
    }

    fn names(&self) -> Vec<String> {
        dodona_script::Object::names(&*self.0)
    }
}

impl dodona_template::Object for StateView {
    fn field(&self, name: &str) -> Option<dodona_template::Field<'_>> {
        self.0.get(name).map(dodona_template::Field::Json)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        self.invoke(name, arguments)
    }

    fn to_json(&self) -> Value {
        Value::clone(&self.0)
    }
}

impl dodona_script::Object for StateView {
    fn field(&self, name: &str) -> Option<dodona_script::Field<'_>> {
        self.0.get(name).map(dodona_script::Field::Json)
    }

    fn names(&self) -> Vec<String> {
        StateView::names(self)
    }

    fn methods(&self) -> &[&'static str] {
        &["get", "has", "keys"]
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        self.invoke(name, arguments)
            .unwrap_or_else(|| Err(format!("there is no `{name}`")))
    }
}
