//! Attributes, indices, slices and membership.

use super::Machine;
use crate::error::{ErrorKind, Fault};
use crate::ir::{Id, Op};
use crate::value::{List, Text, Value, equals};

impl<'a> Machine<'a> {
    /// `value.name`: the entry of a dict, the field of a record.
    pub(super) fn attribute(&mut self, value: Id, name: &str) -> Result<Value<'a>, Fault> {
        // The variable of a loop is looked at where it is.
        if let Op::Local(at) = self.program.op(value)
            && let Some(Value::Dict(dict)) = self.locals.get(usize::from(*at))
            && self.trace.is_none()
            && let Some(found) = dict.get_str(name)
        {
            return Ok(found);
        }
        match self.eval(value)? {
            Value::Dict(dict) => dict
                .get_str(name)
                .ok_or_else(|| Fault::new(ErrorKind::Key, format!("there is no `{name}`"))),
            Value::None => Err(Fault::new(
                ErrorKind::None,
                format!("None has no field `{name}`"),
            )),
            other => Err(Fault::type_error(format!(
                "{} has no field `{name}`",
                other.a_type()
            ))),
        }
    }

    /// `value[index]`.
    pub(super) fn index(&mut self, value: Id, index: Id) -> Result<Value<'a>, Fault> {
        let value = self.eval(value)?;
        let index = self.eval(index)?;
        match &value {
            Value::Dict(dict) => dict.get(&index)?.ok_or_else(|| {
                let message = format!("there is no key {}", index.short_repr());
                Fault::new(ErrorKind::Key, message)
            }),
            Value::List(list) | Value::Tuple(list) => {
                let place = place(&value, &index, list.len())?;
                list.get(place).ok_or_else(|| beyond(&value, list.len()))
            }
            Value::Str(text) => {
                self.meter.read(text)?;
                self.character(&value, text, &index)
            }
            Value::None => Err(Fault::new(ErrorKind::None, "None has no elements")),
            other => Err(Fault::type_error(format!(
                "{} has no elements to index",
                other.a_type()
            ))),
        }
    }

    fn character(
        &mut self,
        value: &Value<'a>,
        text: &Text<'a>,
        index: &Value<'a>,
    ) -> Result<Value<'a>, Fault> {
        let length = text.chars().count();
        let place = place(value, index, length)?;
        let (at, character) = text
            .char_indices()
            .nth(place)
            .ok_or_else(|| beyond(value, length))?;
        Ok(part(text, at, at + character.len_utf8()))
    }

    /// `value[lower:upper:step]`.
    pub(super) fn slice(&mut self, value: Id, bounds: [Option<Id>; 3]) -> Result<Value<'a>, Fault> {
        let value = self.eval(value)?;
        let mut given = [None; 3];
        for (place, bound) in given.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                *place = self.bound(bound)?;
            }
        }
        let [lower, upper, step] = given;
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(Fault::value_error("a slice by steps of zero"));
        }
        match &value {
            Value::List(list) => self.slice_list(list, lower, upper, step).map(Value::list),
            Value::Tuple(list) => self.slice_list(list, lower, upper, step).map(Value::tuple),
            Value::Str(text) => self.slice_text(text, lower, upper, step),
            Value::None => Err(Fault::new(ErrorKind::None, "None has no elements")),
            other => Err(Fault::type_error(format!(
                "{} cannot be sliced",
                other.a_type()
            ))),
        }
    }

    fn bound(&mut self, id: Id) -> Result<Option<i64>, Fault> {
        match self.eval(id)? {
            Value::None => Ok(None),
            value => value.as_int().map(Some).ok_or_else(|| {
                Fault::type_error(format!(
                    "a slice wants ints or None, not {}",
                    value.a_type()
                ))
            }),
        }
    }

    fn slice_list(
        &mut self,
        list: &List<'a>,
        lower: Option<i64>,
        upper: Option<i64>,
        step: i64,
    ) -> Result<Vec<Value<'a>>, Fault> {
        let places = Places::of(lower, upper, step, list.len());
        self.meter.elements(places.count())?;
        Ok(places.filter_map(|place| list.get(place)).collect())
    }

    fn slice_text(
        &mut self,
        text: &Text<'a>,
        lower: Option<i64>,
        upper: Option<i64>,
        step: i64,
    ) -> Result<Value<'a>, Fault> {
        self.meter.read(text)?;
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let places = Places::of(lower, upper, step, starts.len());
        let byte = |place: usize| starts.get(place).copied().unwrap_or(text.len());
        if step == 1 {
            let count = places.count();
            let from = byte(places.first());
            let to = byte(places.first() + count);
            if matches!(text, Text::Shared(_)) {
                self.meter.text(to.saturating_sub(from))?;
            }
            return Ok(if count == 0 {
                Value::str("")
            } else {
                part(text, from, to)
            });
        }
        self.meter
            .text(places.count().saturating_mul(4).min(text.len()))?;
        let picked: String = places
            .filter_map(|place| text.get(byte(place)..byte(place + 1)))
            .collect();
        Ok(Value::text(picked))
    }

    /// `item in container`.
    pub(super) fn contains(
        &mut self,
        container: &Value<'a>,
        item: &Value<'a>,
    ) -> Result<bool, Fault> {
        match container {
            Value::List(list) | Value::Tuple(list) => {
                for element in list.iter() {
                    self.meter.work(1)?;
                    if equals(&element, item, &mut self.meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Str(text) => match item {
                Value::Str(part) => {
                    self.meter.read(text)?;
                    Ok(text.contains(&**part))
                }
                other => Err(Fault::type_error(format!(
                    "`in` looks for a text in a text, not for {}",
                    other.a_type()
                ))),
            },
            Value::Dict(dict) => Ok(dict.get(item)?.is_some()),
            Value::Set(set) => set.contains(item),
            Value::None => Err(Fault::new(
                ErrorKind::None,
                "`in` looks into None, which has no elements",
            )),
            other => Err(Fault::type_error(format!(
                "`in` looks into {}, which has no elements",
                other.a_type()
            ))),
        }
    }
}

/// A part of a text, by bytes: borrowed from one that is.
fn part<'a>(text: &Text<'a>, start: usize, end: usize) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::str(text.get(start..end).unwrap_or_default()),
        Text::Shared(text) => Value::text(text.get(start..end).unwrap_or_default()),
    }
}

/// The place that an index means; one below zero counts from the end.
fn place(value: &Value<'_>, index: &Value<'_>, length: usize) -> Result<usize, Fault> {
    let Some(index) = index.as_int() else {
        return Err(Fault::type_error(format!(
            "{} is indexed by an int, not by {}",
            value.a_type(),
            index.a_type()
        )));
    };
    let place = if index < 0 {
        i64::try_from(length)
            .unwrap_or(i64::MAX)
            .saturating_add(index)
    } else {
        index
    };
    usize::try_from(place).map_err(|_| beyond(value, length))
}

#[cold]
fn beyond(value: &Value<'_>, length: usize) -> Fault {
    Fault::new(
        ErrorKind::Index,
        format!("the {} has {length} elements only", value.type_name()),
    )
}

/// The places of a slice, one after the other.
#[derive(Clone, Copy)]
struct Places {
    next: i64,
    end: i64,
    step: i64,
}

impl Places {
    /// Bounds beyond the ends mean the ends, as in Python.
    fn of(lower: Option<i64>, upper: Option<i64>, step: i64, length: usize) -> Self {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let (least, most) = if step < 0 {
            (-1, length - 1)
        } else {
            (0, length)
        };
        let clamp = |bound: i64| {
            let bound = if bound < 0 {
                bound.saturating_add(length)
            } else {
                bound
            };
            bound.clamp(least, most)
        };
        let (first, last) = if step < 0 {
            (most, least)
        } else {
            (least, most)
        };
        Self {
            next: lower.map_or(first, clamp),
            end: upper.map_or(last, clamp),
            step,
        }
    }

    fn first(self) -> usize {
        usize::try_from(self.next).unwrap_or_default()
    }

    fn count(self) -> usize {
        let distance = if self.step < 0 {
            self.next - self.end
        } else {
            self.end - self.next
        };
        if distance <= 0 {
            return 0;
        }
        usize::try_from((distance - 1) / self.step.saturating_abs() + 1).unwrap_or_default()
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let more = if self.step < 0 {
            self.next > self.end
        } else {
            self.next < self.end
        };
        let place = usize::try_from(self.next).ok().filter(|_| more)?;
        self.next = self.next.saturating_add(self.step);
        Some(place)
    }
}
