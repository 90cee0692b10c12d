//! What a JSON Schema lets a value be, as far as a command line has to know.

use serde_json::{Map, Value};

/// How many references in a row are followed.
const REFERENCES: usize = 16;

/// How deep alternatives may hold alternatives.
const NESTING: usize = 8;

/// A part of a schema, with the whole that its references point into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'s> {
    root: &'s Value,
    node: &'s Value,
}

/// What sort of value fits, one alternative of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'s> {
    /// One of these.
    Values(Vec<&'s Value>),
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Text.
    Text,
    /// Nothing.
    Null,
    /// A list.
    List,
    /// A table.
    Object,
    /// Anything.
    Any,
}

impl<'s> Shape<'s> {
    /// The shape of a whole schema.
    pub(crate) fn of(schema: &'s Value) -> Self {
        Self {
            root: schema,
            node: schema,
        }
        .resolved()
    }

    fn at(self, node: &'s Value) -> Self {
        Self { node, ..self }.resolved()
    }

    /// Follows references, which point below the root.
    fn resolved(mut self) -> Self {
        for _ in 0..REFERENCES {
            let target = self.node.get("$ref").and_then(Value::as_str);
            let pointer = target.and_then(|target| target.strip_prefix('#'));
            match pointer.and_then(|pointer| self.root.pointer(pointer)) {
                Some(node) => self.node = node,
                None => break,
            }
        }
        self
    }

    fn fields(self) -> Option<&'s Map<String, Value>> {
        self.node.get("properties")?.as_object()
    }

    /// The names of its fields.
    pub(crate) fn names(self) -> impl Iterator<Item = &'s str> {
        self.fields()
            .into_iter()
            .flat_map(|fields| fields.keys().map(String::as_str))
    }

    /// The shape of a field, which may be in any of the alternatives.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        self.alternatives(NESTING).into_iter().find_map(|shape| {
            if let Some(field) = shape.fields().and_then(|fields| fields.get(name)) {
                return Some(shape.at(field));
            }
            match shape.node.get("additionalProperties") {
                Some(Value::Bool(false)) => None,
                Some(others) => Some(shape.at(others)),
                // A schema that names no field at all lets every field through.
                None => {
                    let kinds = shape.own_kinds();
                    let open = kinds.contains(&Kind::Any) || kinds.contains(&Kind::Object);
                    (open && shape.fields().is_none()).then_some(shape.at(&Value::Bool(true)))
                }
            }
        })
    }

    /// Whether a field must be there.
    pub(crate) fn requires(self, name: &str) -> bool {
        let required = self.node.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// The shape of a list's elements.
    pub(crate) fn element(self) -> Self {
        let lists = self.alternatives(NESTING).into_iter();
        let items = lists.filter_map(|shape| Some(shape.at(shape.node.get("items")?)));
        items
            .into_iter()
            .next()
            .unwrap_or(self.at(&Value::Bool(true)))
    }

    /// Its description, if it has one.
    pub(crate) fn description(self) -> Option<&'s str> {
        self.node.get("description")?.as_str()
    }

    /// The value it has when none is given, if that is told.
    pub(crate) fn default(self) -> Option<&'s Value> {
        self.node.get("default")
    }

    fn alternatives(self, depth: usize) -> Vec<Self> {
        let among = ["anyOf", "oneOf", "allOf"]
            .iter()
            .find_map(|word| self.node.get(word)?.as_array());
        match among {
            Some(nodes) if depth > 0 && self.node.get("type").is_none() => nodes
                .iter()
                .flat_map(|node| self.at(node).alternatives(depth - 1))
                .collect(),
            _ => vec![self],
        }
    }

    /// Everything a value may be.
    pub(crate) fn kinds(self) -> Vec<Kind<'s>> {
        let mut kinds: Vec<Kind<'s>> = Vec::new();
        for kind in self
            .alternatives(NESTING)
            .into_iter()
            .flat_map(Self::own_kinds)
        {
            if let (Kind::Values(more), Some(Kind::Values(values))) = (&kind, kinds.last_mut()) {
                values.extend(more);
            } else if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    fn own_kinds(self) -> Vec<Kind<'s>> {
        if let Some(value) = self.node.get("const") {
            return vec![Kind::Values(vec![value])];
        }
        if let Some(values) = self.node.get("enum").and_then(Value::as_array) {
            return vec![Kind::Values(values.iter().collect())];
        }
        match self.node.get("type") {
            Some(Value::String(name)) => vec![Kind::named(name)],
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                names.map(Kind::named).collect()
            }
            _ => vec![Kind::Any],
        }
    }

    /// What it may be, in words: `integer, at most 9`, `one of a, b`, `list of text`.
    pub(crate) fn words(self) -> String {
        let kinds = self.kinds();
        let mut words: Vec<String> = kinds.iter().map(|kind| self.kind_words(kind)).collect();
        // That it may be left out is told elsewhere; `null` says no more than that.
        if words.len() > 1 {
            words.retain(|word| word != "null");
        }
        let mut text = words.join(" or ");
        text.push_str(&self.bounds());
        text
    }

    fn kind_words(self, kind: &Kind<'_>) -> String {
        match kind {
            Kind::Values(values) => {
                let shown: Vec<String> = values.iter().map(|value| plain(value)).collect();
                format!("one of {}", shown.join(", "))
            }
            Kind::List => match self.element().kinds()[..] {
                [Kind::Any] => "list".to_owned(),
                _ => format!("list of {}", self.element().words()),
            },
            Kind::Boolean => "true or false".to_owned(),
            Kind::Integer => "integer".to_owned(),
            Kind::Number => "number".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Object => "object".to_owned(),
            Kind::Any => "anything".to_owned(),
        }
    }

    fn bounds(self) -> String {
        let bound = |word| self.node.get(word).filter(|value| value.is_number());
        // Every unsigned number has the minimum 0; it says nothing.
        let least = bound("minimum").filter(|least| **least != 0);
        match (least, bound("maximum")) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" from {least}"),
            (None, Some(most)) => format!(" up to {most}"),
            (None, None) => String::new(),
        }
    }
}

impl Kind<'_> {
    fn named(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::Text,
            "null" => Self::Null,
            "array" => Self::List,
            "object" => Self::Object,
            _ => Self::Any,
        }
    }
}

/// A value as one would type it: text without quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shapes_are_told_in_words() {
        let words = |schema: Value| Shape::of(&schema).words();
        assert_eq!(words(json!({"type": "integer", "minimum": 0})), "integer");
        assert_eq!(
            words(json!({"type": "integer", "minimum": 1, "maximum": 9})),
            "integer from 1 to 9"
        );
        assert_eq!(words(json!({"type": ["string", "null"]})), "text");
        assert_eq!(words(json!({"enum": ["a", "b"]})), "one of a, b");
        assert_eq!(
            words(json!({"oneOf": [{"const": "a"}, {"const": "b"}]})),
            "one of a, b"
        );
        assert_eq!(
            words(json!({"type": "array", "items": {"type": "string"}})),
            "list of text"
        );
        assert_eq!(words(json!(true)), "anything");
    }

    #[test]
    fn references_are_followed_and_circles_end() {
        let schema = json!({
            "properties": {"p": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}},
            "$defs": {"P": {"type": "object", "properties": {"q": {"type": "boolean"}}}}
        });
        let inner = Shape::of(&schema).field("p").unwrap();
        assert_eq!(inner.field("q").unwrap().words(), "true or false");
        assert!(inner.field("r").is_none());
        let circle =
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}});
        Shape::of(&circle).words();
    }
}
