//! A scope over a JSON document.

use serde_json::Value as Json;

use crate::schema::{FunctionId, Schema, Slot};
use crate::scope::{CallError, Scope};
use crate::value::Value;

/// What answers the host's functions, by their full names.
pub type Functions<'j> =
    dyn for<'a> Fn(&'a Json, &str, &[Value<'a>]) -> Result<Value<'a>, CallError> + Send + Sync + 'j;

/// A scope that reads a JSON document, as the schema [fills](Schema::fill) it.
///
/// ```
/// use dodona_expr::{Expr, JsonScope, Schema};
/// use serde_json::json;
///
/// let schema = Schema::parse("context: { turn: { number: int } }")?;
/// let document = schema.fill(&json!({"context": {"turn": {"number": 7}}}));
/// let expr = Expr::compile("context.turn.number * 6", &schema)?;
/// let scope = JsonScope::new(&schema, &document);
/// assert_eq!(expr.eval(&scope)?.to_json(), json!(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JsonScope<'j> {
    document: &'j Json,
    slots: Vec<Option<&'j Json>>,
    names: Vec<String>,
    functions: Option<&'j Functions<'j>>,
}

impl<'j> JsonScope<'j> {
    /// A scope over a document that holds every root name of the schema.
    pub fn new(schema: &Schema, document: &'j Json) -> Self {
        let find = |path: &str| {
            path.split('.')
                .try_fold(document, |inside, name| inside.get(name))
        };
        Self {
            document,
            slots: schema.paths().map(find).collect(),
            names: schema.functions().map(str::to_owned).collect(),
            functions: None,
        }
    }

    /// With functions: they get the document, the full name, and the arguments.
    #[must_use]
    pub fn with_functions(mut self, functions: &'j Functions<'j>) -> Self {
        self.functions = Some(functions);
        self
    }
}

impl Scope for JsonScope<'_> {
    fn field(&self, slot: Slot) -> Option<Value<'_>> {
        let json = self.slots.get(slot.index()).copied().flatten();
        json.map(Value::from)
    }

    fn call<'a>(
        &'a self,
        function: FunctionId,
        arguments: &[Value<'a>],
    ) -> Result<Value<'a>, CallError> {
        let name = self.names.get(function.index()).map_or("", String::as_str);
        match self.functions {
            Some(functions) => functions(self.document, name, arguments),
            None => Err(CallError::new(format!("`{name}` cannot be called here"))),
        }
    }
}
