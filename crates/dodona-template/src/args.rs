//! The arguments of a filter, test, function or method.

use crate::error::{Fault, Result};
use crate::ops::as_int;
use crate::value::Value;

/// Values in order, then values by name.
#[derive(Default)]
pub(crate) struct Args<'v> {
    positional: Vec<Value<'v>>,
    by_name: Vec<(&'v str, Value<'v>)>,
}

impl<'v> Args<'v> {
    pub(crate) fn new(positional: Vec<Value<'v>>, by_name: Vec<(&'v str, Value<'v>)>) -> Self {
        Self {
            positional,
            by_name,
        }
    }

    pub(crate) fn positional(&self) -> &[Value<'v>] {
        &self.positional
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &(&'v str, Value<'v>)> {
        self.by_name.iter()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Value<'v>> {
        let found = self.by_name.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value)
    }

    /// Gives each parameter its argument, and refuses arguments that no parameter takes.
    pub(crate) fn bind<const N: usize>(
        self,
        parameters: [&str; N],
    ) -> Result<[Option<Value<'v>>; N]> {
        if self.positional.len() > N {
            let found = self.positional.len();
            return Err(Fault::operation(format!(
                "takes at most {N} arguments, and got {found}"
            )));
        }
        let mut bound = [const { None }; N];
        for (slot, value) in bound.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.by_name {
            let Some(index) = parameters.iter().position(|known| *known == name) else {
                return Err(Fault::operation(format!("takes no argument `{name}`")));
            };
            if bound[index].replace(value).is_some() {
                return Err(Fault::operation(format!("got two arguments `{name}`")));
            }
        }
        Ok(bound)
    }

    pub(crate) fn none(self) -> Result<()> {
        self.bind([]).map(|[]| ())
    }
}

/// An argument that must be there.
pub(crate) fn needed<'v>(argument: Option<Value<'v>>, name: &str) -> Result<Value<'v>> {
    argument.ok_or_else(|| Fault::operation(format!("needs an argument `{name}`")))
}

/// A whole number, or what is usual.
pub(crate) fn int_or(argument: Option<Value<'_>>, name: &str, usual: i128) -> Result<i128> {
    match argument {
        None => Ok(usual),
        Some(value) => as_int(&value)
            .ok_or_else(|| Fault::operation(format!("`{name}` must be a whole number"))),
    }
}

/// A count of something: negative is none.
pub(crate) fn count_or(argument: Option<Value<'_>>, name: &str, usual: usize) -> Result<usize> {
    let count = int_or(argument, name, usual as i128)?;
    Ok(usize::try_from(count.max(0)).unwrap_or(usize::MAX))
}

/// A truth value, or no.
pub(crate) fn flag(argument: Option<Value<'_>>) -> bool {
    argument.is_some_and(|value| value.is_true())
}
