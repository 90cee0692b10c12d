//! The values of a running template.
//!
//! They live as long as one rendering, borrow from the template and from what it is rendered with,
//! and never change. A list or mapping of our own knows how deeply it is nested, so that none can
//! be built whose destruction would overflow the stack.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use crate::error::{ErrorKind, Fault, Result};
use crate::meter::{Meter, too_deep};
use crate::object::{Field, Object};

#[derive(Clone)]
pub(crate) enum Value<'v> {
    /// Not there; with the name under which it was looked for.
    Undefined(&'v str),
    None,
    Bool(bool),
    /// Wide enough for every JSON integer; results of arithmetic stay within 64 bits.
    Int(i128),
    Float(f64),
    Str(Text<'v>),
    List(Seq<'v>),
    Tuple(Seq<'v>),
    Dict(Dict<'v>),
    /// A macro of the template, by number.
    Macro(usize),
}

#[derive(Clone)]
pub(crate) enum Text<'v> {
    Borrowed(&'v str),
    Shared(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// Elements in order.
#[derive(Clone)]
pub(crate) enum Seq<'v> {
    Json(&'v [Json]),
    Own(Rc<Items<'v>>),
}

pub(crate) struct Items<'v> {
    pub(crate) values: Vec<Value<'v>>,
    /// Names of the elements, as a named tuple has them.
    names: &'static [&'static str],
    depth: u32,
}

/// Keys with values, in order.
#[derive(Clone)]
pub(crate) enum Dict<'v> {
    Json(&'v Map<String, Json>),
    Host(&'v dyn Object),
    Own(Rc<Pairs<'v>>),
}

pub(crate) struct Pairs<'v> {
    pub(crate) pairs: Vec<(Value<'v>, Value<'v>)>,
    depth: u32,
}

const VALUE_BYTES: usize = size_of::<Value<'static>>();

impl<'v> Value<'v> {
    pub(crate) const NO_NAME: Value<'static> = Value::Undefined("");

    pub(crate) fn from_json(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => from_number(number),
            Json::String(text) => Self::Str(Text::Borrowed(text)),
            Json::Array(items) => Self::List(Seq::Json(items)),
            Json::Object(map) => Self::Dict(Dict::Json(map)),
        }
    }

    pub(crate) fn from_field(field: Field<'v>) -> Self {
        match field {
            Field::Null => Self::None,
            Field::Bool(value) => Self::Bool(value),
            Field::Int(value) => Self::Int(value.into()),
            Field::Float(value) => Self::Float(value),
            Field::Str(text) => Self::Str(Text::Borrowed(text)),
            Field::Json(json) => Self::from_json(json),
            Field::Object(object) => Self::Dict(Dict::Host(object)),
        }
    }

    /// Takes over JSON that nobody else keeps.
    pub(crate) fn from_owned(meter: &mut Meter, json: Json) -> Result<Self> {
        meter.steps(1)?;
        meter.enter()?;
        let value = Self::from_owned_inner(meter, json);
        meter.leave();
        value
    }

    fn from_owned_inner(meter: &mut Meter, json: Json) -> Result<Self> {
        Ok(match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => from_number(&number),
            Json::String(text) => Self::text(meter, text)?,
            Json::Array(items) => {
                let items = items.into_iter().map(|item| Self::from_owned(meter, item));
                let items = items.collect::<Result<Vec<_>>>()?;
                Self::list(meter, items)?
            }
            Json::Object(map) => {
                let mut pairs = Vec::with_capacity(map.len());
                for (key, value) in map {
                    let key = Self::text(meter, key)?;
                    pairs.push((key, Self::from_owned(meter, value)?));
                }
                Self::dict(meter, pairs)?
            }
        })
    }

    /// A text that is already paid for.
    pub(crate) fn made(text: String) -> Self {
        Self::Str(Text::Shared(text.into()))
    }

    pub(crate) fn text(meter: &mut Meter, text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        meter.memory(text.len())?;
        Ok(Self::Str(Text::Shared(text.into())))
    }

    pub(crate) fn list(meter: &mut Meter, values: Vec<Self>) -> Result<Self> {
        Ok(Self::List(Seq::own(meter, values, &[])?))
    }

    pub(crate) fn tuple(meter: &mut Meter, values: Vec<Self>) -> Result<Self> {
        Ok(Self::Tuple(Seq::own(meter, values, &[])?))
    }

    pub(crate) fn named_tuple(
        meter: &mut Meter,
        names: &'static [&'static str],
        values: Vec<Self>,
    ) -> Result<Self> {
        Ok(Self::Tuple(Seq::own(meter, values, names)?))
    }

    pub(crate) fn dict(meter: &mut Meter, pairs: Vec<(Self, Self)>) -> Result<Self> {
        meter.memory(pairs.len() * 2 * VALUE_BYTES)?;
        let depth = 1 + pairs
            .iter()
            .map(|(_, value)| value.depth())
            .max()
            .unwrap_or(0);
        check_depth(meter, depth)?;
        Ok(Self::Dict(Dict::Own(Rc::new(Pairs { pairs, depth }))))
    }

    fn depth(&self) -> u32 {
        match self {
            Self::List(Seq::Own(items)) | Self::Tuple(Seq::Own(items)) => items.depth,
            Self::Dict(Dict::Own(pairs)) => pairs.depth,
            _ => 0,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(seq) | Self::Tuple(seq) => !seq.is_empty(),
            Self::Dict(Dict::Json(map)) => !map.is_empty(),
            Self::Dict(Dict::Own(pairs)) => !pairs.pairs.is_empty(),
            Self::Dict(Dict::Host(_)) | Self::Macro(_) => true,
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The name of its type, as Python calls it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "undefined",
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Macro(_) => "macro",
        }
    }

    /// Refuses what is not there; Jinja2 lets it be printed, tested and gone through, no more.
    pub(crate) fn defined(&self) -> Result<()> {
        match self {
            Self::Undefined("") => Err(Fault::new(ErrorKind::Undefined, "the value is undefined")),
            Self::Undefined(name) => {
                let message = format!("`{name}` is undefined");
                Err(Fault::new(ErrorKind::Undefined, message))
            }
            _ => Ok(()),
        }
    }

    /// The elements, as a loop sees them: characters of a text, keys of a mapping.
    pub(crate) fn elements(&self, meter: &mut Meter) -> Result<Seq<'v>> {
        match self {
            Self::List(seq) | Self::Tuple(seq) => Ok(seq.clone()),
            Self::Undefined(_) => Ok(Seq::Json(&[])),
            Self::Str(text) => {
                meter.memory(text.len() * VALUE_BYTES)?;
                let mut buffer = [0; 4];
                let values = text
                    .chars()
                    .map(|c| Self::made(c.encode_utf8(&mut buffer).into()));
                let values = values.collect();
                Seq::own(meter, values, &[])
            }
            Self::Dict(dict) => {
                let pairs = dict.pairs(meter)?;
                let keys = pairs.into_iter().map(|(key, _)| key).collect();
                Seq::own(meter, keys, &[])
            }
            other => {
                let message = format!("cannot go through a value of type {}", other.type_name());
                Err(Fault::operation(message))
            }
        }
    }

    /// All elements at once.
    pub(crate) fn to_vec(&self, meter: &mut Meter) -> Result<Vec<Self>> {
        let seq = self.elements(meter)?;
        meter.memory(seq.len() * VALUE_BYTES)?;
        meter.steps(seq.len())?;
        Ok(seq.iter().collect())
    }
}

fn from_number<'v>(number: &serde_json::Number) -> Value<'v> {
    match number.as_i128() {
        Some(int) => Value::Int(int),
        None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn check_depth(meter: &Meter, depth: u32) -> Result<()> {
    match depth <= meter.limits().depth {
        true => Ok(()),
        false => Err(too_deep(meter.limits().depth)),
    }
}

impl<'v> Seq<'v> {
    fn own(
        meter: &mut Meter,
        values: Vec<Value<'v>>,
        names: &'static [&'static str],
    ) -> Result<Self> {
        meter.memory(values.len() * VALUE_BYTES)?;
        let depth = 1 + values.iter().map(Value::depth).max().unwrap_or(0);
        check_depth(meter, depth)?;
        Ok(Self::Own(Rc::new(Items {
            values,
            names,
            depth,
        })))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Own(items) => items.values.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'v>> {
        match self {
            Self::Json(items) => items.get(index).map(Value::from_json),
            Self::Own(items) => items.values.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'v>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The element that a named tuple has under this name.
    pub(crate) fn named(&self, name: &str) -> Option<Value<'v>> {
        match self {
            Self::Json(_) => None,
            Self::Own(items) => {
                let index = items.names.iter().position(|known| *known == name)?;
                self.get(index)
            }
        }
    }
}

impl<'v> Dict<'v> {
    pub(crate) fn pairs(&self, meter: &mut Meter) -> Result<Vec<(Value<'v>, Value<'v>)>> {
        match self {
            Self::Json(map) => {
                meter.steps(map.len())?;
                meter.memory(map.len() * 2 * VALUE_BYTES)?;
                let pair = |(key, value): (&'v String, &'v Json)| {
                    (Value::Str(Text::Borrowed(key)), Value::from_json(value))
                };
                Ok(map.iter().map(pair).collect())
            }
            Self::Own(own) => {
                meter.steps(own.pairs.len())?;
                meter.memory(own.pairs.len() * 2 * VALUE_BYTES)?;
                Ok(own.pairs.clone())
            }
            Self::Host(object) => match Value::from_owned(meter, object.to_json())? {
                Value::Dict(dict @ Self::Own(_)) => dict.pairs(meter),
                _ => Err(Fault::operation("the object has no fields")),
            },
        }
    }

    pub(crate) fn len(&self, meter: &mut Meter) -> Result<usize> {
        match self {
            Self::Json(map) => Ok(map.len()),
            Self::Own(own) => Ok(own.pairs.len()),
            Self::Host(_) => Ok(self.pairs(meter)?.len()),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<Value<'v>> {
        match self {
            Self::Json(map) => map.get(name).map(Value::from_json),
            Self::Host(object) => object.field(name).map(Value::from_field),
            Self::Own(own) => {
                let named = |(key, _): &&(Value<'v>, Value<'v>)| key.as_str() == Some(name);
                own.pairs.iter().find(named).map(|(_, value)| value.clone())
            }
        }
    }
}
