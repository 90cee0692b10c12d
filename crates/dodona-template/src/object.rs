//! What a template can see of the program around it.

use serde_json::Value as Json;

/// A thing with named fields, read by templates and never changed by them.
///
/// JSON values are objects already. A program that has its data in structs implements this trait
/// instead of turning everything into JSON for a template that reads two numbers.
pub trait Object {
    /// The field of this name.
    fn field(&self, name: &str) -> Option<Field<'_>>;

    /// Calls a method, or, on the outermost object, a function. `None` says that there is none of
    /// this name; an error's text is shown to the author of the template.
    fn call(&self, name: &str, arguments: &[Json]) -> Option<Result<Json, String>> {
        let _ = (name, arguments);
        None
    }

    /// Everything, for templates that print the object or go through its fields.
    fn to_json(&self) -> Json;
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Field<'a> {
    /// Nothing, which is `None` in a template.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
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
            Self::Object(value) => write!(f, "Object({})", value.to_json()),
        }
    }
}

/// A JSON object's members are its fields; any other JSON value has none.
impl Object for Json {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.get(name).map(Field::Json)
    }

    fn to_json(&self) -> Json {
        self.clone()
    }
}

impl Object for serde_json::Map<String, Json> {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.get(name).map(Field::Json)
    }

    fn to_json(&self) -> Json {
        Json::Object(self.clone())
    }
}
