//! Filters: `value | name(arguments)`.
//!
//! The table is the list of what there is; the meaning of each is Jinja2's.

mod lists;
mod numbers;
mod picking;
mod sorting;
mod texts;

use crate::args::Args;
use crate::error::{ErrorKind, Fault, Result};
use crate::meter::Meter;
use crate::value::Value;

type Function = for<'m, 'v> fn(&'m mut Meter, Value<'v>, Args<'v>) -> Result<Value<'v>>;

/// A filter that exists.
#[derive(Clone, Copy)]
pub(crate) struct Filter {
    name: &'static str,
    function: Function,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({})", self.name)
    }
}

impl Filter {
    pub(crate) fn named(name: &str) -> Result<Self> {
        if let Some((name, function)) = FILTERS.iter().find(|(known, _)| *known == name) {
            return Ok(Self {
                name,
                function: *function,
            });
        }
        match REFUSED.iter().find(|(known, _)| *known == name) {
            Some((name, why)) => Err(Fault::unsupported(format!("filter `{name}`: {why}"))),
            None => Err(Fault::new(
                ErrorKind::Syntax,
                format!("there is no filter `{name}`"),
            )),
        }
    }

    pub(crate) fn exists(name: &str) -> bool {
        FILTERS.iter().any(|(known, _)| *known == name)
    }

    pub(crate) fn run<'v>(
        &self,
        meter: &mut Meter,
        value: Value<'v>,
        args: Args<'v>,
    ) -> Result<Value<'v>> {
        meter.enter()?;
        let result = (self.function)(meter, value, args)?;
        meter.leave();
        Ok(result)
    }
}

const FILTERS: &[(&str, Function)] = &[
    ("abs", numbers::abs),
    ("batch", lists::batch),
    ("capitalize", texts::capitalize),
    ("center", texts::center),
    ("count", lists::length),
    ("d", picking::default),
    ("default", picking::default),
    ("dictsort", sorting::dictsort),
    ("filesizeformat", numbers::filesizeformat),
    ("first", picking::first),
    ("float", numbers::float),
    ("format", texts::format),
    ("groupby", sorting::groupby),
    ("indent", texts::indent),
    ("int", numbers::int),
    ("items", lists::items),
    ("join", lists::join),
    ("last", picking::last),
    ("length", lists::length),
    ("list", lists::list),
    ("lower", texts::lower),
    ("map", picking::map),
    ("max", sorting::max),
    ("min", sorting::min),
    ("reject", picking::reject),
    ("rejectattr", picking::rejectattr),
    ("replace", texts::replace),
    ("reverse", lists::reverse),
    ("round", numbers::round),
    ("select", picking::select),
    ("selectattr", picking::selectattr),
    ("slice", lists::slice),
    ("sort", sorting::sort),
    ("string", texts::string),
    ("sum", numbers::sum),
    ("title", texts::title),
    ("tojson", texts::tojson),
    ("trim", texts::trim),
    ("truncate", texts::truncate),
    ("unique", sorting::unique),
    ("upper", texts::upper),
    ("urlencode", texts::urlencode),
    ("wordcount", texts::wordcount),
];

/// Filters of Jinja2 that are not here, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("attr", "write `value.name` or `value[name]`"),
    ("e", "texts are not HTML"),
    ("escape", "texts are not HTML"),
    ("forceescape", "texts are not HTML"),
    ("pprint", "use `tojson(indent=2)`"),
    (
        "random",
        "a template gives the same text for the same values",
    ),
    ("safe", "texts are not HTML"),
    ("striptags", "texts are not HTML"),
    ("urlize", "texts are not HTML"),
    ("wordwrap", "lines are broken where they are shown"),
    ("xmlattr", "texts are not HTML"),
];
