//! JSON from a script's values.

use mlua::{Error as LuaError, Table, Value};
use serde_json::{Map, Number, Value as Json};

use crate::node::Node;

/// Deeper than any sensible result, and an end for tables that contain themselves.
const DEPTH: usize = 64;

/// Elements that a short list may lack.
const MOST_HOLES: usize = 16;

/// Turns values of a script into JSON, up to a size.
pub(crate) struct Reader {
    bytes_left: usize,
    /// The metatable of tables that are lists, also when they are empty.
    list: Option<Table>,
}

impl Reader {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes_left: bytes,
            list: None,
        }
    }

    /// One that knows lists by their metatable.
    pub(crate) fn with_lists(bytes: usize, list: Table) -> Self {
        Self {
            bytes_left: bytes,
            list: Some(list),
        }
    }

    pub(crate) fn read(&mut self, value: &Value) -> Result<Json, LuaError> {
        self.value(value, 0)
    }

    fn pay(&mut self, bytes: usize) -> Result<(), LuaError> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(LuaError::runtime("the value is too large")),
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<Json, LuaError> {
        if depth > DEPTH {
            return Err(LuaError::runtime(
                "the value is nested too deeply, or in itself",
            ));
        }
        self.pay(8)?;
        match value {
            Value::Nil => Ok(Json::Null),
            Value::LightUserData(data) if data.0.is_null() => Ok(Json::Null),
            Value::Boolean(value) => Ok(Json::Bool(*value)),
            Value::Integer(value) => Ok((*value).into()),
            Value::Number(value) => number(*value),
            Value::String(text) => self.text(text).map(Json::String),
            Value::Table(table) => self.table(table, depth),
            Value::UserData(data) => match data.borrow::<Node>() {
                Ok(node) => {
                    let json = node.to_json()?;
                    self.pay(json.to_string().len())?;
                    Ok(json)
                }
                Err(_) => Err(no_json(value)),
            },
            other => Err(no_json(other)),
        }
    }

    fn text(&mut self, text: &mlua::LuaString) -> Result<String, LuaError> {
        let bytes = text.as_bytes();
        self.pay(bytes.len())?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(LuaError::runtime("a text is not UTF-8")),
        }
    }

    /// A table with the keys 1, 2, … is a list, with `null` where one is missing; an empty one is an
    /// object.
    fn table(&mut self, table: &Table, depth: usize) -> Result<Json, LuaError> {
        let (mut keys, mut indices, mut last) = (0, 0, 0);
        table.for_each(|key: Value, _: Value| {
            keys += 1;
            if let Some(index) = key.as_usize().filter(|index| *index > 0) {
                indices += 1;
                last = last.max(index);
            }
            Ok(())
        })?;
        match (indices, last) {
            (0, _) if keys == 0 && self.is_list(table) => Ok(Json::Array(Vec::new())),
            (0, _) => self.object(table, depth),
            _ if indices < keys => Err(LuaError::runtime(
                "a table is either a list or has names, not both",
            )),
            _ if last > MOST_HOLES + 2 * keys => Err(LuaError::runtime("a list is mostly holes")),
            _ => self.list(table, last, depth),
        }
    }

    fn is_list(&self, table: &Table) -> bool {
        match (&self.list, table.metatable()) {
            (Some(list), Some(its)) => its == *list,
            _ => false,
        }
    }

    fn list(&mut self, table: &Table, length: usize, depth: usize) -> Result<Json, LuaError> {
        let mut items = Vec::new();
        for index in 1..=length {
            let item: Value = table.raw_get(index)?;
            items.push(self.value(&item, depth + 1)?);
        }
        Ok(Json::Array(items))
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<Json, LuaError> {
        let mut map = Map::new();
        table.for_each(|key: Value, value: Value| {
            let Value::String(key) = &key else {
                return Err(LuaError::runtime(
                    "the keys of a table are neither 1, 2, … nor names",
                ));
            };
            let key = self.text(key)?;
            map.insert(key, self.value(&value, depth + 1)?);
            Ok(())
        })?;
        // Tables have no order; results are the same every time.
        map.sort_keys();
        Ok(Json::Object(map))
    }
}

/// Whole numbers are written as such.
fn number(value: f64) -> Result<Json, LuaError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok((value as i64).into());
    }
    match Number::from_f64(value) {
        Some(number) => Ok(Json::Number(number)),
        None => Err(LuaError::runtime("the number is infinite or none")),
    }
}

fn no_json(value: &Value) -> LuaError {
    LuaError::runtime(format!("a value of type {} is no JSON", value.type_name()))
}
