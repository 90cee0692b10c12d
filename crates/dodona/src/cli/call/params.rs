//! Parameters from the command line: `key=value`, made to fit the method's schema.

use dodona_proto::{ExitKind, MethodDescriptor};
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::failure::Failure;
use crate::nearest::nearest;
use crate::shape::{Kind, Shape, plain};

/// Parameters that make no sense.
#[derive(Debug, Error, PartialEq)]
pub(super) enum ParamError {
    /// No equals sign.
    #[error("`{argument}` is not a parameter")]
    Form {
        /// What was written.
        argument: String,
        /// The method's fields.
        known: Vec<String>,
    },
    /// A key the method does not have.
    #[error("unknown parameter `{key}`")]
    Unknown {
        /// What was written.
        key: String,
        /// What was probably meant.
        near: Option<String>,
        /// The fields there are.
        known: Vec<String>,
    },
    /// A value of another kind.
    #[error("`{key}`: expected {expected}, got `{got}`")]
    Value {
        /// The key.
        key: String,
        /// What fits.
        expected: String,
        /// What was written.
        got: String,
    },
    /// `key:=` with something that is not JSON.
    #[error("`{key}`: {problem}")]
    Json {
        /// The key.
        key: String,
        /// What the parser says.
        problem: String,
    },
    /// A key that takes one value has two.
    #[error("`{key}` is given twice")]
    Twice {
        /// The key.
        key: String,
    },
}

impl ParamError {
    fn hint(&self, method: &str) -> String {
        let takes = |known: &[String]| match known {
            [] => format!("{method} takes no parameters"),
            _ => format!("{method} takes {}", known.join(", ")),
        };
        match self {
            Self::Form { argument, known } => match &known[..] {
                [] => takes(known),
                [first, ..] => format!("write `{first}={argument}`"),
            },
            Self::Unknown {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::Unknown { known, .. } => takes(known),
            Self::Json { .. } => "after `:=` comes JSON; text is written with `=`".to_owned(),
            Self::Value { .. } | Self::Twice { .. } => {
                format!("run `dodona methods {method}` to see what it takes")
            }
        }
    }

    /// The failure of a call of this method.
    pub(super) fn of(self, method: &MethodDescriptor) -> Failure {
        let hint = self.hint(method.name.as_str());
        Failure::new(ExitKind::Usage, self.to_string()).hint(hint)
    }
}

/// Makes one object of all the pairs.
pub(super) fn assemble(schema: &Value, pairs: &[String]) -> Result<Value, ParamError> {
    let mut object = Map::new();
    let shape = Shape::of(schema);
    for pair in pairs {
        let (key, text) = Text::of(pair).ok_or_else(|| ParamError::Form {
            argument: pair.clone(),
            known: shape.names().map(str::to_owned).collect(),
        })?;
        Pair { key, text }.insert(shape, key, &mut object)?;
    }
    Ok(Value::Object(object))
}

/// The right side of a pair.
#[derive(Clone, Copy)]
enum Text<'a> {
    /// After `=`: as the schema has it.
    Plain(&'a str),
    /// After `:=`: JSON.
    Json(&'a str),
}

impl<'a> Text<'a> {
    fn of(pair: &'a str) -> Option<(&'a str, Self)> {
        let (key, text) = pair.split_once('=')?;
        let (key, text) = match key.strip_suffix(':') {
            Some(key) => (key, Self::Json(text)),
            None => (key, Self::Plain(text)),
        };
        (!key.is_empty()).then_some((key, text))
    }
}

struct Pair<'a> {
    key: &'a str,
    text: Text<'a>,
}

impl Pair<'_> {
    /// Puts the value where `rest`, the key or its last parts, says.
    fn insert(
        &self,
        shape: Shape<'_>,
        rest: &str,
        object: &mut Map<String, Value>,
    ) -> Result<(), ParamError> {
        // A field may have a dot in its name, so the whole is tried first.
        let (name, below) = match (shape.field(rest), rest.split_once('.')) {
            (None, Some((name, below))) => (name, Some(below)),
            _ => (rest, None),
        };
        let field = shape.field(name).ok_or_else(|| self.unknown(shape, name))?;
        let Some(below) = below else {
            return self.place(field, name, object);
        };
        let inner = object
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()));
        match inner {
            Value::Object(inner) => self.insert(field, below, inner),
            _ => Err(self.twice()),
        }
    }

    fn place(
        &self,
        field: Shape<'_>,
        name: &str,
        object: &mut Map<String, Value>,
    ) -> Result<(), ParamError> {
        let value = self.value(field)?;
        match (object.get_mut(name), value) {
            (None, value) => {
                object.insert(name.to_owned(), value);
                Ok(())
            }
            // A list is written by repeating its key.
            (Some(Value::Array(list)), Value::Array(more)) => {
                list.extend(more);
                Ok(())
            }
            (Some(_), _) => Err(self.twice()),
        }
    }

    fn value(&self, shape: Shape<'_>) -> Result<Value, ParamError> {
        match self.text {
            Text::Json(text) => serde_json::from_str(text).map_err(|error| ParamError::Json {
                key: self.key.to_owned(),
                problem: error.to_string(),
            }),
            Text::Plain(text) => coerce(shape, text).ok_or_else(|| ParamError::Value {
                key: self.key.to_owned(),
                expected: shape.words(),
                got: text.to_owned(),
            }),
        }
    }

    fn unknown(&self, shape: Shape<'_>, name: &str) -> ParamError {
        let before = &self.key[..self.key.rfind(name).unwrap_or(0)];
        let near = nearest(name, shape.names()).map(|near| format!("{before}{near}"));
        ParamError::Unknown {
            key: self.key.to_owned(),
            near,
            known: shape.names().map(str::to_owned).collect(),
        }
    }

    fn twice(&self) -> ParamError {
        let key = self.key.to_owned();
        ParamError::Twice { key }
    }
}

/// The value that a text stands for, if the shape has one. Text takes what nothing else does.
fn coerce(shape: Shape<'_>, text: &str) -> Option<Value> {
    let kinds = shape.kinds();
    let narrow = kinds
        .iter()
        .filter(|kind| !matches!(kind, Kind::Text | Kind::Null | Kind::Any));
    let wide = kinds.iter().filter(|kind| matches!(kind, Kind::Text));
    let last = kinds
        .iter()
        .filter(|kind| matches!(kind, Kind::Null | Kind::Any));
    narrow
        .chain(wide)
        .chain(last)
        .find_map(|kind| coerce_to(kind, shape, text))
}

fn coerce_to(kind: &Kind<'_>, shape: Shape<'_>, text: &str) -> Option<Value> {
    match kind {
        Kind::Values(values) => values
            .iter()
            .find(|value| plain(value) == text)
            .map(|value| (*value).clone()),
        Kind::Boolean => text.parse().ok().map(Value::Bool),
        Kind::Integer => integer(text),
        Kind::Number => integer(text).or_else(|| number(text)),
        Kind::Text => Some(Value::String(text.to_owned())),
        Kind::Null => (text == "null").then_some(Value::Null),
        Kind::List => list(shape.element(), text),
        Kind::Object => serde_json::from_str(text).ok().filter(Value::is_object),
        Kind::Any => {
            Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
        }
    }
}

fn integer(text: &str) -> Option<Value> {
    let positive = text.parse::<u64>().ok().map(Number::from);
    let number = positive.or_else(|| text.parse::<i64>().ok().map(Number::from));
    number.map(Value::Number)
}

fn number(text: &str) -> Option<Value> {
    Number::from_f64(text.parse().ok()?).map(Value::Number)
}

/// A whole list as JSON, or one element of it.
fn list(element: Shape<'_>, text: &str) -> Option<Value> {
    if text.starts_with('[')
        && let Ok(list @ Value::Array(_)) = serde_json::from_str(text)
    {
        return Some(list);
    }
    coerce(element, text).map(|value| Value::Array(vec![value]))
}

#[cfg(test)]
#[path = "params_tests.rs"]
mod tests;
