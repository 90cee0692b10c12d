//! `context` as a script sees it: objects that are read when they are touched.
//!
//! An object is a userdata with a path; lists are frozen tables, so that `#`, `ipairs` and the
//! functions of `table` work on them, and the objects in them are userdata again.

use std::sync::Arc;

use mlua::{
    Error as LuaError, Function, IntoLua as _, Lua, MetaMethod, MultiValue, Table, UserData,
    UserDataMethods, Value,
};
use serde_json::{Map, Value as Json};

use crate::json::Reader;
use crate::object::{Field, Object};
use crate::slot::Slot;

/// How large the arguments of one call may be.
pub(crate) const ARGUMENT_BYTES: usize = 1024 * 1024;

/// One step of a path.
#[derive(Debug, Clone)]
enum Key {
    Name(Arc<str>),
    Index(usize),
}

/// An object within the context.
#[derive(Clone)]
pub(crate) struct Node {
    slot: Arc<Slot>,
    path: Vec<Key>,
}

impl Node {
    pub(crate) fn root(slot: Arc<Slot>) -> Self {
        Self {
            slot,
            path: Vec::new(),
        }
    }

    fn child(&self, key: Key) -> Self {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(key);
        Self {
            slot: self.slot.clone(),
            path,
        }
    }

    /// Works with what is at the path.
    fn with<T>(&self, work: impl FnOnce(Field<'_>) -> Result<T, LuaError>) -> Result<T, LuaError> {
        self.slot.look(|context| {
            let mut field = Field::Object(context);
            for key in &self.path {
                let gone = || LuaError::runtime(format!("{} is gone", self.shown()));
                field = step(field, key).ok_or_else(gone)?;
            }
            work(field)
        })
    }

    fn index(&self, lua: &Lua, key: &Value) -> Result<Value, LuaError> {
        let Value::String(name) = key else {
            return Ok(Value::Nil);
        };
        let Ok(name) = name.to_str() else {
            return Ok(Value::Nil);
        };
        self.with(|field| match member(field, &name) {
            Some(found) => self.member(lua, &name, found),
            None => match field {
                Field::Object(object) if object.methods().contains(&&*name) => {
                    self.method(lua, &name)?.into_lua(lua)
                }
                _ => Ok(Value::Nil),
            },
        })
    }

    /// A field of this object, for the script.
    fn member(&self, lua: &Lua, name: &str, field: Field<'_>) -> Result<Value, LuaError> {
        let child = || self.child(Key::Name(Arc::from(name)));
        match field {
            Field::Object(_) if self.path.is_empty() => {
                let made = self.slot.object(name, || lua.create_userdata(child()));
                made.map(Value::UserData)
            }
            Field::Object(_) | Field::Json(Json::Object(_) | Json::Array(_)) => {
                child().value(lua, field)
            }
            // Nothing below it is ever looked at, so it needs no path.
            _ => self.value(lua, field),
        }
    }

    /// What is at this node's path, for the script.
    fn value(&self, lua: &Lua, field: Field<'_>) -> Result<Value, LuaError> {
        match field {
            Field::Null | Field::Json(Json::Null) => Ok(Value::Nil),
            Field::Bool(value) => Ok(Value::Boolean(value)),
            Field::Int(value) => Ok(Value::Number(value as f64)),
            Field::Float(value) => Ok(Value::Number(value)),
            Field::Str(text) => lua.create_string(text).map(Value::String),
            Field::Object(_) | Field::Json(Json::Object(_)) => {
                lua.create_userdata(self.clone()).map(Value::UserData)
            }
            Field::Json(Json::Bool(value)) => Ok(Value::Boolean(*value)),
            Field::Json(Json::Number(number)) => {
                Ok(Value::Number(number.as_f64().unwrap_or(f64::NAN)))
            }
            Field::Json(Json::String(text)) => lua.create_string(text).map(Value::String),
            Field::Json(Json::Array(items)) => self.list(lua, items).map(Value::Table),
        }
    }

    fn list(&self, lua: &Lua, items: &[Json]) -> Result<Table, LuaError> {
        let table = lua.create_table_with_capacity(items.len(), 0)?;
        for (index, item) in items.iter().enumerate() {
            let value = self
                .child(Key::Index(index))
                .value(lua, Field::Json(item))?;
            table.raw_set(index + 1, value)?;
        }
        table.set_readonly(true);
        Ok(table)
    }

    /// A method, bound to this object; `context.state:get(…)` works as well.
    fn method(&self, lua: &Lua, name: &str) -> Result<Function, LuaError> {
        let node = self.clone();
        let name = name.to_owned();
        lua.create_function(move |lua, arguments: MultiValue| {
            let is_self =
                |value: &Value| matches!(value, Value::UserData(data) if data.is::<Node>());
            let skip = usize::from(arguments.front().is_some_and(is_self));
            let mut reader = Reader::new(ARGUMENT_BYTES);
            let read = arguments
                .iter()
                .skip(skip)
                .map(|argument| reader.read(argument));
            let arguments = read.collect::<Result<Vec<_>, _>>()?;
            let result = node.with(|field| match field {
                Field::Object(object) => object.call(&name, &arguments).map_err(LuaError::runtime),
                _ => Err(LuaError::runtime(format!("there is no `{name}`"))),
            })?;
            plain(lua, &result)
        })
    }

    /// The names of the fields.
    fn names(&self) -> Result<Vec<String>, LuaError> {
        self.with(|field| Ok(names(field)))
    }

    /// An iterator over names and values.
    pub(crate) fn iterate(&self, lua: &Lua) -> Result<Function, LuaError> {
        let node = self.clone();
        let mut names = self.names()?.into_iter();
        lua.create_function_mut(move |lua, _: MultiValue| {
            let Some(name) = names.next() else {
                return Ok((Value::Nil, Value::Nil));
            };
            let key = Value::String(lua.create_string(&name)?);
            let value = node.index(lua, &key)?;
            // A loop would end at nil; a field that is null is shown as false instead.
            let value = if value.is_nil() {
                Value::Boolean(false)
            } else {
                value
            };
            Ok((key, value))
        })
    }

    pub(crate) fn to_json(&self) -> Result<Json, LuaError> {
        self.with(|field| Ok(json(field)))
    }

    /// The path as a script would write it.
    fn shown(&self) -> String {
        let mut shown = "context".to_owned();
        for key in &self.path {
            match key {
                Key::Name(name) => shown.push_str(&format!(".{name}")),
                Key::Index(index) => shown.push_str(&format!("[{}]", index + 1)),
            }
        }
        shown
    }
}

fn step<'a>(field: Field<'a>, key: &Key) -> Option<Field<'a>> {
    match (field, key) {
        (field, Key::Name(name)) => member(field, name),
        (Field::Json(Json::Array(items)), Key::Index(index)) => items.get(*index).map(Field::Json),
        _ => None,
    }
}

fn member<'a>(field: Field<'a>, name: &str) -> Option<Field<'a>> {
    match field {
        Field::Object(object) => object.field(name),
        Field::Json(Json::Object(map)) => map.get(name).map(Field::Json),
        _ => None,
    }
}

fn names(field: Field<'_>) -> Vec<String> {
    match field {
        Field::Object(object) => object.names(),
        Field::Json(Json::Object(map)) => map.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn json(field: Field<'_>) -> Json {
    match field {
        Field::Null => Json::Null,
        Field::Bool(value) => Json::Bool(value),
        Field::Int(value) => value.into(),
        Field::Float(value) => value.into(),
        Field::Str(text) => text.into(),
        Field::Json(json) => json.clone(),
        Field::Object(object) => Json::Object(object_json(object)),
    }
}

fn object_json(object: &dyn Object) -> Map<String, Json> {
    let member = |name: String| {
        let value = object.field(&name).map_or(Json::Null, json);
        (name, value)
    };
    object.names().into_iter().map(member).collect()
}

/// JSON that belongs to nobody, as tables that the script may change.
pub(crate) fn plain(lua: &Lua, json: &Json) -> Result<Value, LuaError> {
    plain_with(lua, json, None)
}

/// The same; lists get a metatable by which they are known again when they are empty.
pub(crate) fn plain_with(lua: &Lua, json: &Json, list: Option<&Table>) -> Result<Value, LuaError> {
    match json {
        Json::Null => Ok(Value::Nil),
        Json::Bool(value) => Ok(Value::Boolean(*value)),
        Json::Number(number) => Ok(Value::Number(number.as_f64().unwrap_or(f64::NAN))),
        Json::String(text) => lua.create_string(text).map(Value::String),
        Json::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, plain_with(lua, item, list)?)?;
            }
            if let Some(list) = list {
                table.set_metatable(Some(list.clone()))?;
            }
            Ok(Value::Table(table))
        }
        Json::Object(map) => {
            let table = lua.create_table_with_capacity(0, map.len())?;
            for (name, value) in map {
                table.raw_set(&**name, plain_with(lua, value, list)?)?;
            }
            Ok(Value::Table(table))
        }
    }
}

impl UserData for Node {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |lua, node, key: Value| {
            node.index(lua, &key)
        });
        methods.add_meta_method(MetaMethod::NewIndex, |_, node, _: MultiValue| {
            let message = format!("{} is read-only", node.shown());
            Err::<(), _>(LuaError::runtime(message))
        });
        methods.add_meta_method(MetaMethod::Len, |_, node, ()| Ok(node.names()?.len()));
        methods.add_meta_method(MetaMethod::Iter, |lua, node, ()| node.iterate(lua));
        methods.add_meta_method(MetaMethod::ToString, |_, node, ()| Ok(node.shown()));
    }
}
