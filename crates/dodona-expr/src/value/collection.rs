//! Lists, dicts and sets: the host's, and those that an evaluation makes.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Text, Value};
use crate::error::Fault;

/// A list of the host.
pub trait Sequence: Send + Sync {
    /// How many elements.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element.
    fn get(&self, index: usize) -> Option<Value<'_>>;
}

/// A dict of the host, with texts as keys; or a record, whose keys are its fields.
pub trait Mapping: Send + Sync {
    /// How many entries.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    fn get(&self, key: &str) -> Option<Value<'_>>;

    /// All entries, always in the same order.
    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Value<'_>)> + '_>;

    /// Whether this is a record: always true as a condition, and `record.field` only.
    fn is_record(&self) -> bool {
        false
    }
}

/// A list of the host's records.
impl<T: Mapping> Sequence for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        let record = self.as_slice().get(index)?;
        Some(Value::mapping(record))
    }
}

/// A list of the host's texts.
impl Sequence for Vec<String> {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.as_slice().get(index).map(|text| Value::str(text))
    }
}

/// A list, in one of its forms.
#[derive(Clone)]
pub enum List<'a> {
    /// Of the host.
    Host(&'a dyn Sequence),
    /// Of the expression.
    Borrowed(&'a [Value<'a>]),
    /// Made by the evaluation.
    Shared(Arc<[Value<'a>]>),
}

impl<'a> List<'a> {
    /// How many elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(list) => list.len(),
            Self::Borrowed(items) => items.len(),
            Self::Shared(items) => items.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Host(list) => list.get(index),
            Self::Borrowed(items) => items.get(index).cloned(),
            Self::Shared(items) => items.get(index).cloned(),
        }
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a, '_> {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Whether both are the very same list.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(one), Self::Host(two)) => {
                std::ptr::addr_eq(std::ptr::from_ref(*one), std::ptr::from_ref(*two))
            }
            (Self::Borrowed(one), Self::Borrowed(two)) => std::ptr::eq(*one, *two),
            (Self::Shared(one), Self::Shared(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A dict, in one of its forms.
#[derive(Clone)]
pub enum Dict<'a> {
    /// Of the host.
    Host(&'a dyn Mapping),
    /// Made by the evaluation.
    Shared(Arc<Map<'a>>),
}

impl<'a> Dict<'a> {
    /// How many entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Host(mapping) => mapping.len(),
            Self::Shared(map) => map.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key that is a text.
    pub fn get_str(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Host(mapping) => mapping.get(key),
            Self::Shared(map) => map.get_str(key).cloned(),
        }
    }

    pub(crate) fn get(&self, key: &Value<'a>) -> Result<Option<Value<'a>>, Fault> {
        if let Value::Str(text) = key {
            return Ok(self.get_str(text));
        }
        match self {
            // Refused or not, the key is of a kind that the host's dicts do not have.
            Self::Host(_) => Key::of(key).map(|_| None),
            Self::Shared(map) => Ok(map.get(key)?.cloned()),
        }
    }

    /// All entries, in order.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + '_> {
        match self {
            Self::Host(mapping) => {
                let mapping: &'a dyn Mapping = *mapping;
                Box::new(
                    mapping
                        .entries()
                        .map(|(key, value)| (Value::str(key), value)),
                )
            }
            Self::Shared(map) => Box::new(map.entries.iter().cloned()),
        }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(one), Self::Host(two)) => {
                std::ptr::addr_eq(std::ptr::from_ref(*one), std::ptr::from_ref(*two))
            }
            (Self::Shared(one), Self::Shared(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl fmt::Debug for Dict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

/// What a value is as a key: equal numbers of any type are the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    None,
    Int(i64),
    /// The bits of a float that is no 64-bit integer.
    Float(u64),
    Str(KeyText<'a>),
    Tuple(Vec<Key<'a>>),
}

#[derive(Clone, Debug)]
struct KeyText<'a>(Text<'a>);

impl PartialEq for KeyText<'_> {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for KeyText<'_> {}

impl Hash for KeyText<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (*self.0).hash(state);
    }
}

impl<'a> Key<'a> {
    fn of(value: &Value<'a>) -> Result<Self, Fault> {
        Ok(match value {
            Value::None => Self::None,
            Value::Bool(value) => Self::Int(i64::from(*value)),
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => super::number::exact_int(*value)
                .map_or_else(|| Self::Float(value.to_bits()), Self::Int),
            Value::Str(text) => Self::Str(KeyText(text.clone())),
            Value::Tuple(items) => Self::Tuple(
                items
                    .iter()
                    .map(|item| Self::of(&item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::List(_) | Value::Set(_) | Value::Dict(_) => {
                let name = value.a_type();
                return Err(Fault::type_error(format!(
                    "{name} cannot be a key of a dict or an element of a set"
                )));
            }
        })
    }
}

/// The entries of a dict that an evaluation makes, in the order in which keys were added.
#[derive(Clone, Debug, Default)]
pub struct Map<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key<'a>, usize>,
}

impl<'a> Map<'a> {
    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry, or replaces the value of one.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), Fault> {
        let place = self.entries.len();
        let place = *self.index.entry(Key::of(&key)?).or_insert(place);
        match self.entries.get_mut(place) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    fn get(&self, key: &Value<'a>) -> Result<Option<&Value<'a>>, Fault> {
        let place = self.index.get(&Key::of(key)?);
        Ok(place.and_then(|&place| self.entries.get(place).map(|entry| &entry.1)))
    }

    fn get_str<'k>(&'k self, key: &'k str) -> Option<&'k Value<'a>> {
        // Seen as a map whose keys live no longer than this one, it can be asked for it.
        let index: &'k HashMap<Key<'k>, usize> = &self.index;
        let place = *index.get(&Key::Str(KeyText(Text::Borrowed(key))))?;
        self.entries.get(place).map(|entry| &entry.1)
    }
}

/// The elements of a set, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Set<'a> {
    map: Map<'a>,
}

impl<'a> Set<'a> {
    /// How many elements.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// All elements.
    pub fn iter(&self) -> impl Iterator<Item = &Value<'a>> {
        self.map.entries.iter().map(|(key, _)| key)
    }

    pub(crate) fn insert(&mut self, value: Value<'a>) -> Result<(), Fault> {
        let known = self.map.get(&value)?.is_some();
        if !known {
            self.map.insert(value, Value::None)?;
        }
        Ok(())
    }

    pub(crate) fn contains(&self, value: &Value<'a>) -> Result<bool, Fault> {
        Ok(self.map.get(value)?.is_some())
    }

    pub(crate) fn of(items: impl IntoIterator<Item = Value<'a>>) -> Result<Self, Fault> {
        let mut set = Self::default();
        for item in items {
            set.insert(item)?;
        }
        Ok(set)
    }
}
