//! What an expression may name: fields with types, and functions of the host.
//!
//! A [`Schema`] is written as text, so that a host's vocabulary is data that can be read, printed
//! and compared:
//!
//! ```
//! use dodona_expr::Schema;
//!
//! let schema = Schema::parse(
//!     "context: {
//!          turn: { number: int, token_usage: float }
//!          ## None everywhere but where a tool has ended.
//!          result: { tool_name: str, error: str? }? @on_tool_complete
//!      }
//!      failure_count(name: str) -> int",
//! )?;
//! assert!(schema.slot("context.turn.number").is_some());
//! # Ok::<(), dodona_expr::SchemaError>(())
//! ```
//!
//! `?` marks what may be `None`; `@tag` names a situation in which it never is, chosen with
//! [`Schema::at`]. Types are `bool int float str any`, `list[…]`, `dict[…]` and records in braces.

mod fill;
mod text;

use std::fmt;
use std::sync::Arc;

pub use text::SchemaError;

/// A field of the schema, as the host is asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u16);

impl Slot {
    /// Its number: slots are counted from 0 in the order of the text.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A function of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u16);

impl FunctionId {
    /// Its number: functions are counted from 0 in the order of the text.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a value is, and whether it may be `None` instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// Whether it may be `None`.
    pub nullable: bool,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing is known.
    Any,
    /// Only `None`.
    None,
    /// A bool.
    Bool,
    /// An integer.
    Int,
    /// A float; integers are welcome too.
    Float,
    /// A text.
    Str,
    /// A list of something.
    List(Arc<Type>),
    /// A tuple.
    Tuple,
    /// A set.
    Set,
    /// A dict from texts to something.
    Dict(Arc<Type>),
    /// Named fields and methods.
    Record(Arc<Record>),
}

impl Type {
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            kind,
            nullable: false,
        }
    }

    pub(crate) fn any() -> Self {
        Self::of(Kind::Any)
    }

    /// With its article, in messages.
    pub(crate) fn a_type(&self) -> String {
        let name = self.to_string();
        format!("{} {name}", crate::value::article(&name))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Any => f.write_str("any")?,
            Kind::None => f.write_str("None")?,
            Kind::Bool => f.write_str("bool")?,
            Kind::Int => f.write_str("int")?,
            Kind::Float => f.write_str("float")?,
            Kind::Str => f.write_str("str")?,
            Kind::List(item) => write!(f, "list[{item}]")?,
            Kind::Tuple => f.write_str("tuple")?,
            Kind::Set => f.write_str("set")?,
            Kind::Dict(value) => write!(f, "dict[{value}]")?,
            Kind::Record(_) => f.write_str("record")?,
        }
        if self.nullable {
            f.write_str("?")?;
        }
        Ok(())
    }
}

/// Named fields and methods.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// In the order of the text.
    pub fields: Vec<Field>,
    /// In the order of the text.
    pub methods: Vec<Function>,
}

impl Record {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    pub(crate) fn method(&self, name: &str) -> Option<&Function> {
        self.methods.iter().find(|method| &*method.name == name)
    }
}

/// A named field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its last name.
    pub name: Box<str>,
    /// What it holds.
    pub ty: Type,
    /// Its slot; fields of a list's elements have none.
    pub slot: Option<Slot>,
    /// Where it is never `None` although its type says that it may be.
    pub tags: Vec<Box<str>>,
}

/// A function or method that the host provides.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its last name.
    pub name: Box<str>,
    /// By what the host is asked to call it.
    pub id: FunctionId,
    /// In order; those with a default come last.
    pub parameters: Vec<Parameter>,
    /// What it returns.
    pub returns: Type,
}

/// A parameter of a function of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name, for messages and keyword arguments.
    pub name: Box<str>,
    /// What it takes.
    pub ty: Type,
    /// Whether it may be left out.
    pub optional: bool,
}

/// Everything that an expression may name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    root: Arc<Record>,
    slots: Vec<SlotInfo>,
    /// Full names, by number.
    functions: Vec<Box<str>>,
}

/// What is known of a slot.
#[derive(Debug, Clone, PartialEq)]
struct SlotInfo {
    path: Box<str>,
    ty: Type,
    parent: Option<Slot>,
}

impl Schema {
    /// Reads a schema; the form is described with the [module](self).
    ///
    /// # Errors
    ///
    /// With the line, if the text is no schema.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        Ok(Self::of(text::parse(text)?))
    }

    fn of(mut root: Record) -> Self {
        let mut schema = Self::default();
        schema.number(&mut root, "", None);
        schema.root = Arc::new(root);
        schema
    }

    /// Gives fields and functions their numbers.
    fn number(&mut self, record: &mut Record, prefix: &str, parent: Option<Slot>) {
        for method in &mut record.methods {
            method.id = FunctionId(u16::try_from(self.functions.len()).unwrap_or(u16::MAX));
            self.functions
                .push(format!("{prefix}{}", method.name).into());
        }
        for field in &mut record.fields {
            let slot = Slot(u16::try_from(self.slots.len()).unwrap_or(u16::MAX));
            let path = format!("{prefix}{}", field.name);
            field.slot = Some(slot);
            self.slots.push(SlotInfo {
                path: path.clone().into(),
                ty: field.ty.clone(),
                parent,
            });
            if let Kind::Record(inner) = &mut field.ty.kind {
                let mut numbered = Record::clone(inner);
                self.number(&mut numbered, &format!("{path}."), Some(slot));
                *inner = Arc::new(numbered);
                self.slots[slot.index()].ty = field.ty.clone();
            }
        }
    }

    /// The schema in a situation: fields with this tag are never `None`. Slots and functions keep
    /// their numbers.
    #[must_use]
    pub fn at(&self, tag: &str) -> Self {
        let mut root = Record::clone(&self.root);
        settle(&mut root, tag);
        Self::of(root)
    }

    /// The slot of a dotted path, such as `context.turn.number`.
    pub fn slot(&self, path: &str) -> Option<Slot> {
        let at = self.slots.iter().position(|info| &*info.path == path)?;
        u16::try_from(at).ok().map(Slot)
    }

    /// The function of a dotted path, such as `failure_count` or `context.history.get`.
    pub fn function(&self, path: &str) -> Option<FunctionId> {
        let at = self.functions.iter().position(|name| &**name == path)?;
        u16::try_from(at).ok().map(FunctionId)
    }

    /// Every path that has a slot, in the order of the slots.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|info| &*info.path)
    }

    /// Every function's full name, in the order of their numbers.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|name| &**name)
    }

    /// What a slot holds.
    pub fn slot_type(&self, slot: Slot) -> Option<&Type> {
        self.slots.get(slot.index()).map(|info| &info.ty)
    }

    /// The path of a slot.
    pub fn slot_path(&self, slot: Slot) -> Option<&str> {
        self.slots.get(slot.index()).map(|info| &*info.path)
    }

    /// The full name of a function.
    pub fn function_path(&self, function: FunctionId) -> Option<&str> {
        self.functions.get(function.index()).map(|name| &**name)
    }

    pub(crate) fn parent(&self, slot: Slot) -> Option<Slot> {
        self.slots.get(slot.index())?.parent
    }

    pub(crate) fn root(&self) -> &Record {
        &self.root
    }

    pub(crate) fn find_function(&self, id: FunctionId) -> Option<&Function> {
        find_function(&self.root, id)
    }
}

fn find_function(record: &Record, id: FunctionId) -> Option<&Function> {
    let here = record.methods.iter().find(|method| method.id == id);
    here.or_else(|| {
        record.fields.iter().find_map(|field| match &field.ty.kind {
            Kind::Record(inner) => find_function(inner, id),
            _ => None,
        })
    })
}

fn settle(record: &mut Record, tag: &str) {
    for field in &mut record.fields {
        if field.tags.iter().any(|own| &**own == tag) {
            field.ty.nullable = false;
        }
        if let Kind::Record(inner) = &mut field.ty.kind {
            let mut settled = Record::clone(inner);
            settle(&mut settled, tag);
            *inner = Arc::new(settled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_functions_are_numbered_in_the_order_of_the_text() {
        let schema =
            Schema::parse("a: { b: int, f() -> int }\nc: str\ng(x: any = None) -> any").unwrap();
        let paths: Vec<&str> = schema.paths().collect();
        assert_eq!(paths, ["a", "a.b", "c"]);
        let functions: Vec<&str> = schema.functions().collect();
        assert_eq!(functions, ["g", "a.f"]);
        assert_eq!(schema.slot("a.b").map(Slot::index), Some(1));
    }

    #[test]
    fn a_tag_settles_what_may_be_none() {
        let schema = Schema::parse("r: { x: int }? @done").unwrap();
        let nullable = |schema: &Schema| {
            let slot = schema.slot("r").unwrap();
            schema.slot_type(slot).unwrap().nullable
        };
        assert!(nullable(&schema));
        assert!(nullable(&schema.at("other")));
        assert!(!nullable(&schema.at("done")));
    }
}
