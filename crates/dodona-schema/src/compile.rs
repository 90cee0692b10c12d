//! From a schema to nodes.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use crate::Validator;
use crate::pattern::Pattern;

/// The index of a node.
pub(crate) type NodeId = usize;

/// The whole schema.
pub(crate) const ROOT: NodeId = 0;

/// Bound for the number of subschemas of one schema.
const MAX_NODES: usize = 20_000;

/// Bound for the nesting of subschemas.
const MAX_DEPTH: usize = 200;

/// Why a document is not a usable schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", at(.pointer))]
pub struct SchemaError {
    /// JSON Pointer to the offending keyword; empty for the whole schema.
    pub pointer: String,
    message: String,
}

fn at(pointer: &str) -> String {
    match pointer {
        "" => String::new(),
        pointer => format!("{pointer}: "),
    }
}

/// One subschema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// Checked in this order; `unevaluated*` come last because they depend on the others.
    pub(crate) checks: Vec<Check>,
}

/// One keyword, or a few that belong together.
#[derive(Debug)]
pub(crate) enum Check {
    /// The schema `false`.
    Never,
    Types(Vec<Type>),
    Enum(Vec<Value>),
    Const(Value),
    Minimum(Number),
    Maximum(Number),
    ExclusiveMinimum(Number),
    ExclusiveMaximum(Number),
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        schema: NodeId,
        min: u64,
        max: Option<u64>,
    },
    MinProperties(u64),
    MaxProperties(u64),
    Required(Vec<String>),
    Properties(Box<Properties>),
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, NodeId)>),
    Reference(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    UnevaluatedItems(NodeId),
    UnevaluatedProperties(NodeId),
}

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(crate) named: HashMap<String, NodeId>,
    pub(crate) patterns: Vec<(Pattern, NodeId)>,
    pub(crate) additional: Option<NodeId>,
}

/// A type of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [
            Self::Null,
            Self::Boolean,
            Self::Integer,
            Self::Number,
            Self::String,
            Self::Array,
            Self::Object,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

pub(crate) fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    let mut compiler = Compiler {
        document: schema,
        nodes: Vec::new(),
        known: HashMap::new(),
        unchecked: Vec::new(),
        depth: 0,
    };
    compiler.node(schema, "")?;
    compiler.reject_endless_references()?;
    Ok(Validator {
        nodes: compiler.nodes,
        unchecked_patterns: compiler.unchecked,
    })
}

struct Compiler<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// Nodes by the pointer of their subschema, so that each is compiled once.
    known: HashMap<String, NodeId>,
    unchecked: Vec<String>,
    depth: usize,
}

/// The keywords of one subschema while it is compiled.
struct Keywords<'a> {
    fields: &'a Map<String, Value>,
    pointer: &'a str,
}

impl<'a> Keywords<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name)
    }

    fn child(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, escape(name))
    }

    fn error(&self, name: &str, message: impl Into<String>) -> SchemaError {
        error(self.child(name), message)
    }

    fn count(&self, name: &str) -> Result<Option<u64>, SchemaError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        // `2.0` is a valid count.
        let whole = value.as_number().and_then(crate::equality::integer);
        match whole.and_then(|whole| u64::try_from(whole).ok()) {
            Some(count) => Ok(Some(count)),
            None => Err(self.error(name, "must be a non-negative integer")),
        }
    }

    fn number(&self, name: &str) -> Result<Option<Number>, SchemaError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err(self.error(name, "must be a number")),
        }
    }

    fn names(&self, name: &str, value: &Value) -> Result<Vec<String>, SchemaError> {
        let names = value.as_array().and_then(|names| {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<Vec<_>>>()
        });
        names.ok_or_else(|| self.error(name, "must be an array of strings"))
    }

    fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, SchemaError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(_) => Err(self.error(name, "must be an object")),
        }
    }
}

impl Compiler<'_> {
    fn node(&mut self, schema: &Value, pointer: &str) -> Result<NodeId, SchemaError> {
        if let Some(known) = self.known.get(pointer) {
            return Ok(*known);
        }
        let id = self.nodes.len();
        if id >= MAX_NODES {
            return Err(error(pointer, format!("more than {MAX_NODES} subschemas")));
        }
        if self.depth >= MAX_DEPTH {
            return Err(error(pointer, format!("nested deeper than {MAX_DEPTH}")));
        }
        // Reserved before the keywords are compiled: they may refer back to this node.
        self.nodes.push(Node::default());
        self.known.insert(pointer.to_owned(), id);
        self.depth += 1;
        let checks = match schema {
            Value::Bool(true) => Vec::new(),
            Value::Bool(false) => vec![Check::Never],
            Value::Object(fields) => self.keywords(&Keywords { fields, pointer })?,
            _ => return Err(error(pointer, "a schema must be an object or a boolean")),
        };
        self.depth -= 1;
        self.nodes[id].checks = checks;
        Ok(id)
    }

    fn keywords(&mut self, keywords: &Keywords<'_>) -> Result<Vec<Check>, SchemaError> {
        let mut checks = Vec::new();
        self.any_value(keywords, &mut checks)?;
        numbers(keywords, &mut checks)?;
        self.strings(keywords, &mut checks)?;
        self.arrays(keywords, &mut checks)?;
        self.objects(keywords, &mut checks)?;
        self.applicators(keywords, &mut checks)?;
        if let Some(id) = self.optional(keywords, "unevaluatedItems")? {
            checks.push(Check::UnevaluatedItems(id));
        }
        if let Some(id) = self.optional(keywords, "unevaluatedProperties")? {
            checks.push(Check::UnevaluatedProperties(id));
        }
        checks.shrink_to_fit();
        Ok(checks)
    }

    fn any_value(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        for name in ["$ref", "$dynamicRef"] {
            if let Some(reference) = keywords.get(name) {
                checks.push(Check::Reference(self.reference(keywords, name, reference)?));
            }
        }
        if let Some(types) = keywords.get("type") {
            let names = match types {
                Value::Array(names) => names.iter().collect(),
                name => vec![name],
            };
            let parse = |name: &Value| name.as_str().and_then(Type::parse);
            let parsed: Option<Vec<_>> = names.into_iter().map(parse).collect();
            let unknown = || keywords.error("type", format!("unknown type {types}"));
            checks.push(Check::Types(parsed.ok_or_else(unknown)?));
        }
        match keywords.get("enum") {
            None => {}
            Some(Value::Array(values)) => checks.push(Check::Enum(values.clone())),
            Some(_) => return Err(keywords.error("enum", "must be an array")),
        }
        if let Some(value) = keywords.get("const") {
            checks.push(Check::Const(value.clone()));
        }
        Ok(())
    }

    fn strings(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        checks.extend(keywords.count("minLength")?.map(Check::MinLength));
        checks.extend(keywords.count("maxLength")?.map(Check::MaxLength));
        match keywords.get("pattern") {
            None => {}
            Some(Value::String(source)) => {
                let pattern = self.pattern(&keywords.child("pattern"), source)?;
                checks.push(Check::Pattern(pattern));
            }
            Some(_) => return Err(keywords.error("pattern", "must be a string")),
        }
        Ok(())
    }

    fn pattern(&mut self, pointer: &str, source: &str) -> Result<Pattern, SchemaError> {
        let pattern = Pattern::new(source).map_err(|why| error(pointer, why))?;
        if !pattern.is_checked() {
            self.unchecked.push(source.to_owned());
        }
        Ok(pattern)
    }

    fn arrays(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        checks.extend(keywords.count("minItems")?.map(Check::MinItems));
        checks.extend(keywords.count("maxItems")?.map(Check::MaxItems));
        match keywords.get("uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => checks.push(Check::UniqueItems),
            Some(_) => return Err(keywords.error("uniqueItems", "must be a boolean")),
        }
        // Up to draft 2019-09 `items` could be an array, continued by `additionalItems`.
        let is_tuple = keywords.get("items").is_some_and(Value::is_array);
        let (prefix, rest) = if is_tuple {
            ("items", "additionalItems")
        } else {
            ("prefixItems", "items")
        };
        let prefix = self.list(keywords, prefix)?;
        let rest = self.optional(keywords, rest)?;
        if prefix.is_some() || rest.is_some() {
            let prefix = prefix.unwrap_or_default();
            checks.push(Check::Items { prefix, rest });
        }
        if let Some(schema) = self.optional(keywords, "contains")? {
            let min = keywords.count("minContains")?.unwrap_or(1);
            let max = keywords.count("maxContains")?;
            checks.push(Check::Contains { schema, min, max });
        }
        Ok(())
    }

    fn objects(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        checks.extend(keywords.count("minProperties")?.map(Check::MinProperties));
        checks.extend(keywords.count("maxProperties")?.map(Check::MaxProperties));
        // `required: true` on a property is draft 3 and still written by some servers.
        if let Some(required) = keywords.get("required").filter(|value| !value.is_boolean()) {
            checks.push(Check::Required(keywords.names("required", required)?));
        }
        let mut properties = Properties::default();
        for (name, schema) in keywords.object("properties")?.into_iter().flatten() {
            let pointer = format!("{}/{}", keywords.child("properties"), escape(name));
            let id = self.node(schema, &pointer)?;
            properties.named.insert(name.clone(), id);
        }
        for (source, schema) in keywords.object("patternProperties")?.into_iter().flatten() {
            let pointer = format!("{}/{}", keywords.child("patternProperties"), escape(source));
            let pattern = self.pattern(&pointer, source)?;
            properties
                .patterns
                .push((pattern, self.node(schema, &pointer)?));
        }
        properties.additional = self.optional(keywords, "additionalProperties")?;
        let Properties {
            named,
            patterns,
            additional,
        } = &properties;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() {
            checks.push(Check::Properties(Box::new(properties)));
        }
        let names = self.optional(keywords, "propertyNames")?;
        checks.extend(names.map(Check::PropertyNames));
        self.dependencies(keywords, checks)
    }

    /// `dependentRequired`, `dependentSchemas`, and draft 7's `dependencies`, which is both.
    fn dependencies(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            for (name, value) in keywords.object(keyword)?.into_iter().flatten() {
                if value.is_array() {
                    required.push((name.clone(), keywords.names(keyword, value)?));
                } else {
                    let pointer = format!("{}/{}", keywords.child(keyword), escape(name));
                    schemas.push((name.clone(), self.node(value, &pointer)?));
                }
            }
        }
        if !required.is_empty() {
            checks.push(Check::DependentRequired(required));
        }
        if !schemas.is_empty() {
            checks.push(Check::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn applicators(
        &mut self,
        keywords: &Keywords<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), SchemaError> {
        checks.extend(self.list(keywords, "allOf")?.map(Check::AllOf));
        checks.extend(self.list(keywords, "anyOf")?.map(Check::AnyOf));
        checks.extend(self.list(keywords, "oneOf")?.map(Check::OneOf));
        checks.extend(self.optional(keywords, "not")?.map(Check::Not));
        if let Some(condition) = self.optional(keywords, "if")? {
            checks.push(Check::If {
                condition,
                then: self.optional(keywords, "then")?,
                otherwise: self.optional(keywords, "else")?,
            });
        }
        Ok(())
    }

    fn optional(
        &mut self,
        keywords: &Keywords<'_>,
        name: &str,
    ) -> Result<Option<NodeId>, SchemaError> {
        let schema = keywords.get(name);
        let node = schema.map(|schema| self.node(schema, &keywords.child(name)));
        node.transpose()
    }

    fn list(
        &mut self,
        keywords: &Keywords<'_>,
        name: &str,
    ) -> Result<Option<Vec<NodeId>>, SchemaError> {
        let Some(value) = keywords.get(name) else {
            return Ok(None);
        };
        let Some(schemas) = value.as_array() else {
            return Err(keywords.error(name, "must be an array of schemas"));
        };
        let node = |(index, schema): (usize, &Value)| {
            self.node(schema, &format!("{}/{index}", keywords.child(name)))
        };
        schemas
            .iter()
            .enumerate()
            .map(node)
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    fn reference(
        &mut self,
        keywords: &Keywords<'_>,
        name: &str,
        reference: &Value,
    ) -> Result<NodeId, SchemaError> {
        let Some(reference) = reference.as_str() else {
            return Err(keywords.error(name, "must be a string"));
        };
        let unresolved = || {
            let message = format!("cannot resolve `{reference}` within this schema");
            keywords.error(name, message)
        };
        let document = self.document;
        let pointer = locate(document, reference).ok_or_else(unresolved)?;
        let schema = document.pointer(&pointer).ok_or_else(unresolved)?;
        self.node(schema, &pointer)
    }

    /// A cycle of references that all apply to the same value would never end.
    fn reject_endless_references(&self) -> Result<(), SchemaError> {
        let mut state = vec![Visit::New; self.nodes.len()];
        for start in 0..self.nodes.len() {
            // Depth first, with an explicit stack of nodes to enter and nodes to leave.
            let mut stack = vec![(start, false)];
            while let Some((id, leave)) = stack.pop() {
                match (leave, state[id]) {
                    (true, _) => state[id] = Visit::Done,
                    (false, Visit::Done) => {}
                    (false, Visit::Open) => {
                        let pointer = self.known.iter().find(|(_, known)| **known == id);
                        let pointer = pointer.map_or("", |(pointer, _)| pointer);
                        return Err(error(pointer, "the schema refers to itself without end"));
                    }
                    (false, Visit::New) => {
                        state[id] = Visit::Open;
                        stack.push((id, true));
                        let next = in_place(&self.nodes[id]);
                        stack.extend(next.into_iter().map(|next| (next, false)));
                    }
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

/// The subschemas that apply to the same value as the node itself.
fn in_place(node: &Node) -> Vec<NodeId> {
    let mut ids = Vec::new();
    for check in &node.checks {
        match check {
            Check::Reference(id) | Check::Not(id) => ids.push(*id),
            Check::AllOf(all) | Check::AnyOf(all) | Check::OneOf(all) => ids.extend(all),
            Check::If {
                condition,
                then,
                otherwise,
            } => {
                ids.push(*condition);
                ids.extend(then.iter().chain(otherwise));
            }
            Check::DependentSchemas(schemas) => ids.extend(schemas.iter().map(|(_, id)| id)),
            _ => {}
        }
    }
    ids
}

fn numbers(keywords: &Keywords<'_>, checks: &mut Vec<Check>) -> Result<(), SchemaError> {
    // In draft 4 the exclusive bounds are booleans that modify the others.
    let is_exclusive = |name| keywords.get(name) == Some(&Value::Bool(true));
    if let Some(bound) = keywords.number("minimum")? {
        checks.push(if is_exclusive("exclusiveMinimum") {
            Check::ExclusiveMinimum(bound)
        } else {
            Check::Minimum(bound)
        });
    }
    if let Some(bound) = keywords.number("maximum")? {
        checks.push(if is_exclusive("exclusiveMaximum") {
            Check::ExclusiveMaximum(bound)
        } else {
            Check::Maximum(bound)
        });
    }
    let is_flag = |name| keywords.get(name).is_some_and(Value::is_boolean);
    if !is_flag("exclusiveMinimum") {
        let bound = keywords.number("exclusiveMinimum")?;
        checks.extend(bound.map(Check::ExclusiveMinimum));
    }
    if !is_flag("exclusiveMaximum") {
        let bound = keywords.number("exclusiveMaximum")?;
        checks.extend(bound.map(Check::ExclusiveMaximum));
    }
    if let Some(of) = keywords.number("multipleOf")? {
        if !of.as_f64().is_some_and(|of| of > 0.0) {
            return Err(keywords.error("multipleOf", "must be greater than 0"));
        }
        checks.push(Check::MultipleOf(of));
    }
    Ok(())
}

/// Turns `#`, `#/a/b`, `#anchor` or the `$id` of a subschema into a pointer.
fn locate(document: &Value, reference: &str) -> Option<String> {
    let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let resource = if base.is_empty() || document["$id"] == base {
        String::new()
    } else {
        find(document, &|schema| schema["$id"] == base)?
    };
    if fragment.is_empty() {
        return Some(resource);
    }
    if fragment.starts_with('/') {
        return Some(format!("{resource}{}", percent_decode(fragment)?));
    }
    let named = |schema: &Value| {
        schema["$anchor"] == fragment
            || schema["$dynamicAnchor"] == fragment
            || schema["$id"] == format!("#{fragment}")
    };
    find(document, &named)
}

/// The pointer to the first value, in document order, with a property.
fn find(document: &Value, is_match: &dyn Fn(&Value) -> bool) -> Option<String> {
    let mut open = vec![(document, String::new())];
    while let Some((value, pointer)) = open.pop() {
        match value {
            Value::Object(fields) => {
                if is_match(value) {
                    return Some(pointer);
                }
                let children = fields.iter().rev();
                open.extend(
                    children.map(|(name, value)| (value, format!("{pointer}/{}", escape(name)))),
                );
            }
            Value::Array(values) => {
                let child = |(index, value)| (value, format!("{pointer}/{index}"));
                open.extend(values.iter().enumerate().rev().map(child));
            }
            _ => {}
        }
    }
    None
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// A name as part of a JSON Pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn error(pointer: impl Into<String>, message: impl Into<String>) -> SchemaError {
    SchemaError {
        pointer: pointer.into(),
        message: message.into(),
    }
}
