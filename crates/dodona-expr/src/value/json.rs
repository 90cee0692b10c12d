//! JSON as the host's values, and values as JSON.

use serde_json::Value as Json;

use super::{Dict, List, Mapping, Sequence, Value};
use crate::limits::MAX_NESTING;

impl<'a> From<&'a Json> for Value<'a> {
    /// An integer that does not fit 64 bits becomes a float, as in most readers of JSON.
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::str(text),
            Json::Array(items) => Self::sequence(items),
            Json::Object(map) => Self::mapping(map),
        }
    }
}

impl Sequence for Vec<Json> {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.as_slice().get(index).map(Value::from)
    }
}

impl Mapping for serde_json::Map<String, Json> {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.get(key).map(Value::from)
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_> {
        Box::new(
            self.iter()
                .map(|(key, value)| (key.as_str(), Value::from(value))),
        )
    }
}

impl Value<'_> {
    /// This value as JSON: tuples and sets become arrays, keys become texts, and what JSON has
    /// not (nan, infinities, nesting without end) becomes null.
    pub fn to_json(&self) -> Json {
        to_json(self, 0)
    }
}

fn to_json(value: &Value<'_>, depth: usize) -> Json {
    if depth > MAX_NESTING {
        return Json::Null;
    }
    let array = |list: &List<'_>| {
        let items = list.iter().map(|item| to_json(&item, depth + 1));
        Json::Array(items.collect())
    };
    match value {
        Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(value) => Json::from(*value),
        Value::Str(text) => Json::from(&**text),
        Value::List(list) | Value::Tuple(list) => array(list),
        Value::Set(set) => set.iter().map(|item| to_json(item, depth + 1)).collect(),
        Value::Dict(dict) => object(dict, depth),
    }
}

fn object(dict: &Dict<'_>, depth: usize) -> Json {
    let entries = dict.entries().map(|(key, value)| {
        let key = match key.as_str() {
            Some(text) => text.to_owned(),
            None => key.to_string(),
        };
        (key, to_json(&value, depth + 1))
    });
    Json::Object(entries.collect())
}
