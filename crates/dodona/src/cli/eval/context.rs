//! A rule's context from JSON, as scripts and templates see it.

use std::sync::Arc;

use serde_json::Value as Json;

use super::functions;

/// A part of the document: its fields, and what can be called on it.
pub(super) struct Node {
    json: Json,
    /// Parts that have something to call.
    parts: Vec<(&'static str, Node)>,
    methods: &'static [&'static str],
    /// What stands before the names of its methods.
    prefix: &'static str,
    document: Arc<Json>,
}

impl Node {
    /// The whole document: `context` and `settings`.
    pub(super) fn root(document: Json) -> Self {
        let document = Arc::new(document);
        let context = Self::of_context(&document);
        Self {
            json: (*document).clone(),
            parts: vec![("context", context)],
            methods: functions::GLOBAL,
            prefix: "",
            document,
        }
    }

    /// What a script calls `context`; the settings are in it.
    pub(super) fn context(document: Json) -> Self {
        let document = Arc::new(document);
        let mut context = Self::of_context(&document);
        context.json["settings"] = document["settings"].clone();
        context
    }

    fn of_context(document: &Arc<Json>) -> Self {
        let part = |name: &str, methods, prefix| Self {
            json: document["context"][name].clone(),
            parts: Vec::new(),
            methods,
            prefix,
            document: Arc::clone(document),
        };
        let history = part("history", functions::HISTORY, "context.history.");
        let state = part("state", functions::STATE, "context.state.");
        Self {
            json: document["context"].clone(),
            parts: vec![("history", history), ("state", state)],
            methods: functions::CONTEXT,
            prefix: "context.",
            document: Arc::clone(document),
        }
    }

    fn part(&self, name: &str) -> Option<&Self> {
        let found = self.parts.iter().find(|(known, _)| *known == name);
        found.map(|(_, part)| part)
    }

    fn run(&self, name: &str, arguments: &[Json]) -> Option<Result<Json, String>> {
        self.methods
            .contains(&name)
            .then(|| functions::call(&self.document, &format!("{}{name}", self.prefix), arguments))
    }
}

impl dodona_template::Object for Node {
    fn field(&self, name: &str) -> Option<dodona_template::Field<'_>> {
        use dodona_template::Field;
        match self.part(name) {
            Some(part) => Some(Field::Object(part)),
            None => self.json.get(name).map(Field::Json),
        }
    }

    fn call(&self, name: &str, arguments: &[Json]) -> Option<Result<Json, String>> {
        self.run(name, arguments)
    }

    fn to_json(&self) -> Json {
        self.json.clone()
    }
}

impl dodona_script::Object for Node {
    fn field(&self, name: &str) -> Option<dodona_script::Field<'_>> {
        use dodona_script::Field;
        match self.part(name) {
            Some(part) => Some(Field::Object(part)),
            None => self.json.get(name).map(Field::Json),
        }
    }

    fn names(&self) -> Vec<String> {
        let fields = self.json.as_object();
        fields
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn methods(&self) -> &[&'static str] {
        self.methods
    }

    fn call(&self, name: &str, arguments: &[Json]) -> Result<Json, String> {
        self.run(name, arguments)
            .unwrap_or_else(|| Err(format!("unknown name `{name}`")))
    }
}
