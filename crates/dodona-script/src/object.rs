//! What a script can see of the program around it.

use serde_json::{Map, Value as Json};

/// A thing with named fields, read by scripts and never changed by them.
///
/// Fields are asked for when a script touches them and not before. JSON values are objects already.
pub trait Object: Send + Sync {
    /// The field of this name.
    fn field(&self, name: &str) -> Option<Field<'_>>;

    /// The names of all fields, in order, for scripts that go through them.
    fn names(&self) -> Vec<String>;

    /// The names of what can be called, as in `context.state.get("key")`.
    fn methods(&self) -> &[&'static str] {
        &[]
    }

    /// Calls a method; an error's text is an error of the script.
    ///
    /// # Errors
    ///
    /// If it fails, or there is none of this name.
    fn call(&self, name: &str, arguments: &[Json]) -> Result<Json, String> {
        let _ = arguments;
        Err(format!("there is no `{name}`"))
    }
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Field<'a> {
    /// Nothing, which is `nil` in a script.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; scripts have floats, so beyond 2⁵³ it loses digits.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Str(&'a str),
    /// Any JSON.
    Json(&'a Json),
    /// A further object.
    Object(&'a dyn Object),
}

impl std::fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(value) => write!(f, "Bool({value})"),
            Self::Int(value) => write!(f, "Int({value})"),
            Self::Float(value) => write!(f, "Float({value})"),
            Self::Str(value) => write!(f, "Str({value:?})"),
            Self::Json(value) => write!(f, "Json({value})"),
            Self::Object(value) => write!(f, "Object({:?})", value.names()),
        }
    }
}

/// A JSON object's members are its fields; any other JSON value has none.
impl Object for Json {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.get(name).map(Field::Json)
    }

    fn names(&self) -> Vec<String> {
        self.as_object()
            .map_or_else(Vec::new, |map| map.keys().cloned().collect())
    }
}

impl Object for Map<String, Json> {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.get(name).map(Field::Json)
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}
