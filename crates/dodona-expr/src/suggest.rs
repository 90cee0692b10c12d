//! "Did you mean": the nearest name to one that is not there.

use std::sync::Arc;

use crate::builtins::Builtin;
use crate::error::{ErrorKind, Fault};
use crate::schema::{Record, Schema};

/// A name that is neither a variable nor a root of the schema.
pub(crate) fn name(schema: &Schema, locals: &[Arc<str>], name: &str) -> Fault {
    let fault = Fault::new(ErrorKind::Unknown, format!("unknown name `{name}`"));
    // A field that was written without what it belongs to is the most likely mistake.
    let whole = schema
        .paths()
        .find(|path| path.rsplit('.').next() == Some(name));
    if let Some(path) = whole {
        return fault.hint(format!("did you mean `{path}`?"));
    }
    let roots = schema.root().fields.iter().map(|field| &*field.name);
    let locals = locals.iter().map(|local| &**local);
    let constants = ["True", "False", "None"];
    let lower = match name {
        "true" => Some("True"),
        "false" => Some("False"),
        "null" | "nil" | "none" => Some("None"),
        _ => None,
    };
    let near = lower.or_else(|| nearest(name, roots.chain(locals).chain(constants)));
    hinted(fault, near)
}

/// A function that neither the language nor the host has.
pub(crate) fn function(schema: &Schema, name: &str) -> Fault {
    let host = schema.root().methods.iter().map(|method| &*method.name);
    among(
        format!("unknown function `{name}`"),
        name,
        host.chain(Builtin::names().map(|name| -> &str { name })),
    )
}

/// A field that a record does not have.
pub(crate) fn field(record: &Record, owner: &str, name: &str) -> Fault {
    if record.method(name).is_some() {
        return Fault::new(
            ErrorKind::Unknown,
            format!("`{owner}.{name}` is a method, and no value"),
        )
        .hint(format!("call it: `{owner}.{name}(…)`"));
    }
    let fields = record.fields.iter().map(|field| &*field.name);
    let fault = Fault::new(
        ErrorKind::Unknown,
        format!("`{owner}` has no field `{name}`"),
    );
    match nearest(name, fields) {
        Some(near) => fault.hint(format!("did you mean `{owner}.{near}`?")),
        None => fault,
    }
}

/// A method that a record does not have.
pub(crate) fn method(record: &Record, owner: &str, name: &str) -> Fault {
    if record.field(name).is_some() {
        return Fault::new(
            ErrorKind::Unknown,
            format!("`{owner}.{name}` is a field, and cannot be called"),
        );
    }
    let methods = record.methods.iter().map(|method| &*method.name);
    among(format!("`{owner}` has no method `{name}`"), name, methods)
}

/// A fault that suggests the nearest of these, if one is near.
pub(crate) fn among<'a>(
    message: String,
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Fault {
    hinted(
        Fault::new(ErrorKind::Unknown, message),
        nearest(name, candidates),
    )
}

fn hinted(fault: Fault, near: Option<&str>) -> Fault {
    match near {
        Some(near) => fault.hint(format!("did you mean `{near}`?")),
        None => fault,
    }
}

/// The nearest candidate, if it is nearer than a third of the name.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing costs the product of both lengths.
    if name.len() > 64 {
        return None;
    }
    let allowed = name.chars().count().div_ceil(3).max(1);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
