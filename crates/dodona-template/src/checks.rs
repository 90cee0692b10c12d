//! Tests: `value is name(arguments)`.

use crate::args::Args;
use crate::error::{ErrorKind, Fault, Result};
use crate::filters::Filter;
use crate::meter::Meter;
use crate::ops::{self, BinOp, CompareOp, as_int};
use crate::value::{Text, Value};

/// A test that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Boolean,
    Callable,
    Defined,
    DivisibleBy,
    Even,
    False,
    FilterName,
    Float,
    Integer,
    Iterable,
    Lower,
    Mapping,
    None,
    Number,
    Odd,
    SameAs,
    Sequence,
    String,
    TestName,
    True,
    Undefined,
    Upper,
    Compare(CompareOp),
}

impl Check {
    pub(crate) fn named(name: &str) -> Result<Self> {
        let missing = || Fault::new(ErrorKind::Syntax, format!("there is no test `{name}`"));
        Self::find(name).ok_or_else(missing)
    }

    fn find(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Boolean,
            "callable" => Self::Callable,
            "defined" => Self::Defined,
            "divisibleby" => Self::DivisibleBy,
            "even" => Self::Even,
            "false" => Self::False,
            "filter" => Self::FilterName,
            "float" => Self::Float,
            "integer" => Self::Integer,
            "iterable" => Self::Iterable,
            "lower" => Self::Lower,
            "mapping" => Self::Mapping,
            "none" => Self::None,
            "number" => Self::Number,
            "odd" => Self::Odd,
            "sameas" => Self::SameAs,
            "sequence" => Self::Sequence,
            "string" => Self::String,
            "test" => Self::TestName,
            "true" => Self::True,
            "undefined" => Self::Undefined,
            "upper" => Self::Upper,
            "eq" | "equalto" | "==" => Self::Compare(CompareOp::Eq),
            "ne" | "!=" => Self::Compare(CompareOp::Ne),
            "lt" | "lessthan" | "<" => Self::Compare(CompareOp::Lt),
            "le" | "<=" => Self::Compare(CompareOp::Lte),
            "gt" | "greaterthan" | ">" => Self::Compare(CompareOp::Gt),
            "ge" | ">=" => Self::Compare(CompareOp::Gte),
            "in" => Self::Compare(CompareOp::In),
            _ => return None,
        })
    }

    pub(crate) fn run<'v>(
        self,
        meter: &mut Meter,
        value: &Value<'v>,
        args: Args<'v>,
    ) -> Result<bool> {
        if let Self::Compare(op) = self {
            return ops::compare(meter, op, value, &one(args)?);
        }
        match self {
            Self::DivisibleBy => remainder_is(meter, value, &one(args)?, 0),
            Self::SameAs => same(meter, value, &one(args)?),
            _ => {
                args.none()?;
                self.plain(meter, value)
            }
        }
    }

    fn plain(self, meter: &mut Meter, value: &Value<'_>) -> Result<bool> {
        Ok(match self {
            Self::Boolean => matches!(value, Value::Bool(_)),
            // In Python a value that is not there can be called, and fails.
            Self::Callable => matches!(value, Value::Macro(_) | Value::Undefined(_)),
            Self::Defined => !value.is_undefined(),
            Self::Even => remainder_is(meter, value, &Value::Int(2), 0)?,
            Self::Odd => remainder_is(meter, value, &Value::Int(2), 1)?,
            Self::False => matches!(value, Value::Bool(false)),
            Self::True => matches!(value, Value::Bool(true)),
            Self::FilterName => value.as_str().is_some_and(Filter::exists),
            Self::TestName => value
                .as_str()
                .is_some_and(|name| Self::find(name).is_some()),
            Self::Float => matches!(value, Value::Float(_)),
            Self::Integer => matches!(value, Value::Int(_)),
            Self::Number => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
            Self::String => matches!(value, Value::Str(_)),
            Self::Mapping => matches!(value, Value::Dict(_)),
            Self::None => matches!(value, Value::None),
            Self::Undefined => value.is_undefined(),
            Self::Iterable | Self::Sequence => matches!(
                value,
                Value::Str(_)
                    | Value::List(_)
                    | Value::Tuple(_)
                    | Value::Dict(_)
                    | Value::Undefined(_)
            ),
            Self::Lower | Self::Upper => {
                let text = crate::show::text_of(meter, value)?;
                let text = Value::Str(Text::Shared(text.into()));
                crate::methods::is_case(&text, self == Self::Upper)
            }
            Self::DivisibleBy | Self::SameAs | Self::Compare(_) => {
                unreachable!("`run` has done those with an argument")
            }
        })
    }
}

fn one<'v>(args: Args<'v>) -> Result<Value<'v>> {
    let [argument] = args.bind(["other"])?;
    crate::args::needed(argument, "other")
}

fn remainder_is<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    by: &Value<'v>,
    expected: i128,
) -> Result<bool> {
    if matches!(value, Value::Str(_)) {
        return Err(ops::mismatch("%", value, by));
    }
    let rest = ops::binary(meter, BinOp::Rem, value, by)?;
    ops::equal(meter, &rest, &Value::Int(expected))
}

/// The same object, as far as that can be told: equal values of the same type.
fn same(meter: &mut Meter, value: &Value<'_>, other: &Value<'_>) -> Result<bool> {
    let same_type = value.type_name() == other.type_name();
    let whole = as_int(value).is_some() == as_int(other).is_some();
    Ok(same_type && whole && ops::equal(meter, value, other)?)
}
