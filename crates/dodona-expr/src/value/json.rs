//! JSON as the host's values, and values as JSON.

use serde_json::Value as Json;

use super::{Dict, Mapping, Sequence, Value};
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

/// How many elements of a value become JSON.
const ALL: usize = 200_000;

impl Value<'_> {
    /// This value as JSON: tuples and sets become arrays, keys become texts, and what JSON has
    /// not (nan, infinities, nesting without end) becomes null.
    ///
    /// Values share their parts, so that a small one may write out without end; beyond 200 000
    /// elements the rest is null.
    pub fn to_json(&self) -> Json {
        self.to_json_within(ALL)
    }

    /// As [`to_json`](Self::to_json), with another number of elements.
    pub(crate) fn to_json_within(&self, elements: usize) -> Json {
        Writer { left: elements }.value(self, 0)
    }
}

struct Writer {
    left: usize,
}

impl Writer {
    fn value(&mut self, value: &Value<'_>, depth: usize) -> Json {
        if depth > MAX_NESTING || self.left == 0 {
            return Json::Null;
        }
        self.left -= 1;
        let depth = depth + 1;
        match value {
            Value::None => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Str(text) => self.text(text),
            Value::List(list) | Value::Tuple(list) => self.array(list.iter(), depth),
            Value::Set(set) => self.array(set.iter().cloned(), depth),
            Value::Dict(dict) => self.object(dict, depth),
        }
    }

    /// A text counts by its length: a list may hold the same long one many times.
    fn text(&mut self, text: &str) -> Json {
        self.left = self.left.saturating_sub(text.len() / 32);
        Json::from(text)
    }

    fn array<'a>(&mut self, items: impl Iterator<Item = Value<'a>>, depth: usize) -> Json {
        let mut array = Vec::new();
        for item in items {
            if self.left == 0 {
                array.push(Json::Null);
                break;
            }
            array.push(self.value(&item, depth));
        }
        Json::Array(array)
    }

    fn object(&mut self, dict: &Dict<'_>, depth: usize) -> Json {
        let mut object = serde_json::Map::new();
        for (key, value) in dict.entries() {
            if self.left == 0 {
                break;
            }
            let key = match key.as_str() {
                Some(text) => text.to_owned(),
                None => key.to_string(),
            };
            self.left = self.left.saturating_sub(key.len() / 32);
            object.insert(key, self.value(&value, depth));
        }
        Json::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_shares_its_parts_is_cut() {
        let row = Value::list(vec![Value::Int(0); 1_000]);
        let rows = Value::list(vec![row; 1_000]);
        let json = rows.to_json_within(2_500);
        let rows = json.as_array().unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3], Json::Null);
    }
}
