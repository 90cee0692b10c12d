//! Checking a value against nodes.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use crate::compile::{Check, Node, NodeId, Properties, ROOT, Type, escape};
use crate::equality::{compare, equal, integer, is_multiple};
use crate::violation::Violation;

/// Bound for the work of one validation. A schema from outside can make alternatives multiply with
/// every level; without a bound a small schema and a small value could run for hours.
const MAX_STEPS: u32 = 2_000_000;

/// One validation.
pub(crate) struct Run<'n> {
    pub(crate) nodes: &'n [Node],
    steps: Cell<u32>,
}

impl<'n> Run<'n> {
    pub(crate) fn new(nodes: &'n [Node]) -> Self {
        Self {
            nodes,
            steps: Cell::new(0),
        }
    }

    /// Whether a value fits the whole schema.
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        // The bound is checked again at the end: below a `not`, giving up looks like acceptance.
        self.accepts(ROOT, value) && self.steps.get() <= MAX_STEPS
    }

    /// Whether a node accepts a value. Always `false` once the work exceeds its bound.
    pub(crate) fn accepts(&self, node: NodeId, value: &Value) -> bool {
        let steps = self.steps.get().saturating_add(1);
        self.steps.set(steps);
        steps <= MAX_STEPS
            && self.nodes[node]
                .checks
                .iter()
                .all(|check| self.holds(node, check, value))
    }

    fn holds(&self, node: NodeId, check: &Check, value: &Value) -> bool {
        match value {
            Value::Number(number) => {
                if let Some(holds) = number_holds(check, number) {
                    return holds;
                }
            }
            Value::String(text) => {
                if let Some(holds) = string_holds(check, text) {
                    return holds;
                }
            }
            Value::Array(items) => {
                if let Some(holds) = self.array_holds(node, check, value, items) {
                    return holds;
                }
            }
            Value::Object(fields) => {
                if let Some(holds) = self.object_holds(node, check, value, fields) {
                    return holds;
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.any_holds(check, value)
    }

    /// The keywords that apply to values of every type. The others do not concern this value.
    fn any_holds(&self, check: &Check, value: &Value) -> bool {
        match check {
            Check::Never => false,
            Check::Types(types) => types.iter().any(|kind| is_type(*kind, value)),
            Check::Enum(values) => values.iter().any(|allowed| equal(allowed, value)),
            Check::Const(constant) => equal(constant, value),
            Check::Reference(id) => self.accepts(*id, value),
            Check::AllOf(ids) => ids.iter().all(|id| self.accepts(*id, value)),
            Check::AnyOf(ids) => ids.iter().any(|id| self.accepts(*id, value)),
            Check::OneOf(ids) => {
                let accepted = ids.iter().filter(|id| self.accepts(**id, value));
                accepted.take(2).count() == 1
            }
            Check::Not(id) => !self.accepts(*id, value),
            Check::If {
                condition,
                then,
                otherwise,
            } => {
                let chosen = if self.accepts(*condition, value) {
                    then
                } else {
                    otherwise
                };
                chosen.is_none_or(|id| self.accepts(id, value))
            }
            _ => true,
        }
    }

    fn array_holds(
        &self,
        node: NodeId,
        check: &Check,
        value: &Value,
        items: &[Value],
    ) -> Option<bool> {
        Some(match check {
            Check::MinItems(min) => items.len() as u64 >= *min,
            Check::MaxItems(max) => items.len() as u64 <= *max,
            Check::UniqueItems => duplicate(items).is_none(),
            Check::Items { prefix, rest } => items.iter().enumerate().all(|(index, item)| {
                let schema = prefix.get(index).or(rest.as_ref());
                schema.is_none_or(|schema| self.accepts(*schema, item))
            }),
            Check::Contains { schema, min, max } => {
                let fits = |item: &&Value| self.accepts(*schema, item);
                let count = items.iter().filter(fits).count() as u64;
                count >= *min && max.is_none_or(|max| count <= max)
            }
            Check::UnevaluatedItems(schema) => {
                let mut seen = HashSet::new();
                self.evaluated_items_beside(node, value, items, &mut seen);
                let rest = items.iter().enumerate();
                rest.filter(|(index, _)| !seen.contains(index))
                    .all(|(_, item)| self.accepts(*schema, item))
            }
            _ => return None,
        })
    }

    fn object_holds(
        &self,
        node: NodeId,
        check: &Check,
        value: &Value,
        fields: &Map<String, Value>,
    ) -> Option<bool> {
        Some(match check {
            Check::MinProperties(min) => fields.len() as u64 >= *min,
            Check::MaxProperties(max) => fields.len() as u64 <= *max,
            Check::Required(names) => names.iter().all(|name| fields.contains_key(name)),
            Check::Properties(properties) => fields.iter().all(|(name, value)| {
                schemas_of(properties, name).all(|schema| self.accepts(schema, value))
            }),
            Check::PropertyNames(schema) => fields
                .keys()
                .all(|name| self.accepts(*schema, &Value::String(name.clone()))),
            Check::DependentRequired(required) => required.iter().all(|(name, others)| {
                !fields.contains_key(name) || others.iter().all(|other| fields.contains_key(other))
            }),
            Check::DependentSchemas(schemas) => schemas
                .iter()
                .all(|(name, schema)| !fields.contains_key(name) || self.accepts(*schema, value)),
            Check::UnevaluatedProperties(schema) => self
                .unevaluated(node, value, fields)
                .all(|(_, value)| self.accepts(*schema, value)),
            _ => return None,
        })
    }

    fn unevaluated<'v>(
        &self,
        node: NodeId,
        value: &'v Value,
        fields: &'v Map<String, Value>,
    ) -> impl Iterator<Item = (&'v String, &'v Value)> {
        let mut seen = HashSet::new();
        self.evaluated_properties_beside(node, value, fields, &mut seen);
        let rest = fields.iter();
        rest.filter(move |(name, _)| !seen.contains(name.as_str()))
    }

    /// Explains why a value does not fit, with at most `limit` violations.
    pub(crate) fn explain(&self, value: &Value, limit: usize) -> Vec<Violation> {
        let mut report = Report {
            limit,
            violations: Vec::new(),
        };
        self.collect(ROOT, value, "", &mut report);
        if report.violations.is_empty() && limit > 0 {
            // `accepts` ran out of steps, and so did this run before it reached a reason.
            report.add("", None, "the schema is too complex to validate this value");
        }
        report.violations
    }

    fn collect(&self, node: NodeId, value: &Value, path: &str, report: &mut Report) {
        for check in &self.nodes[node].checks {
            if report.is_full() {
                return;
            }
            if !self.holds(node, check, value) {
                self.collect_check(node, check, value, path, report);
            }
        }
    }

    fn collect_check(
        &self,
        node: NodeId,
        check: &Check,
        value: &Value,
        path: &str,
        report: &mut Report,
    ) {
        match (check, value) {
            (Check::Reference(id), _) => self.collect(*id, value, path, report),
            (Check::AllOf(ids), _) => {
                for id in ids {
                    self.collect(*id, value, path, report);
                }
            }
            (
                Check::If {
                    condition,
                    then,
                    otherwise,
                },
                _,
            ) => {
                let chosen = if self.accepts(*condition, value) {
                    then
                } else {
                    otherwise
                };
                if let Some(id) = chosen {
                    self.collect(*id, value, path, report);
                }
            }
            (Check::DependentSchemas(schemas), Value::Object(fields)) => {
                for (_, id) in schemas.iter().filter(|(name, _)| fields.contains_key(name)) {
                    self.collect(*id, value, path, report);
                }
            }
            (Check::Items { prefix, rest }, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(id) = prefix.get(index).or(rest.as_ref()) {
                        self.collect(*id, item, &format!("{path}/{index}"), report);
                    }
                }
            }
            (Check::Properties(properties), Value::Object(fields)) => {
                self.collect_properties(properties, fields, path, report);
            }
            (Check::UnevaluatedProperties(_), Value::Object(fields)) => {
                let names = self.unevaluated(node, value, fields);
                let names = names.map(|(name, _)| name.as_str());
                report.add(path, None, unexpected("Unevaluated properties", names));
            }
            (Check::Required(names), Value::Object(fields)) => {
                for name in names.iter().filter(|name| !fields.contains_key(*name)) {
                    report.add(
                        path,
                        None,
                        format!("{} is a required property", quote(name)),
                    );
                }
            }
            _ => report.add(path, Some(value), describe(check, value)),
        }
    }

    fn collect_properties(
        &self,
        properties: &Properties,
        fields: &Map<String, Value>,
        path: &str,
        report: &mut Report,
    ) {
        let is_never = |id: NodeId| matches!(self.nodes[id].checks[..], [Check::Never]);
        if properties.additional.is_some_and(is_never) {
            let mut names = fields
                .keys()
                .map(String::as_str)
                .filter(|name| is_additional(properties, name))
                .peekable();
            if names.peek().is_some() {
                report.add(path, None, unexpected("Additional properties", names));
            }
        }
        for (name, value) in fields {
            let schemas = schemas_of(properties, name)
                .filter(|id| !(is_never(*id) && is_additional(properties, name)));
            for id in schemas {
                self.collect(id, value, &format!("{path}/{}", escape(name)), report);
            }
        }
    }

    /// What the other checks of a node cover; `unevaluatedItems` itself covers everything.
    fn evaluated_items_beside(
        &self,
        node: NodeId,
        value: &Value,
        items: &[Value],
        seen: &mut HashSet<usize>,
    ) {
        let others = self.nodes[node].checks.iter();
        let others = others.filter(|check| !matches!(check, Check::UnevaluatedItems(_)));
        for check in others {
            self.evaluated_by_item_check(check, value, items, seen);
        }
    }

    /// What the other checks of a node cover; `unevaluatedProperties` itself covers everything.
    fn evaluated_properties_beside<'v>(
        &self,
        node: NodeId,
        value: &'v Value,
        fields: &'v Map<String, Value>,
        seen: &mut HashSet<&'v str>,
    ) {
        let others = self.nodes[node].checks.iter();
        let others = others.filter(|check| !matches!(check, Check::UnevaluatedProperties(_)));
        for check in others {
            self.evaluated_by_property_check(check, value, fields, seen);
        }
    }
}

/// The violations found so far.
struct Report {
    limit: usize,
    violations: Vec<Violation>,
}

impl Report {
    fn is_full(&self) -> bool {
        self.violations.len() >= self.limit
    }

    fn add(&mut self, path: &str, value: Option<&Value>, detail: impl Into<String>) {
        if !self.is_full() {
            self.violations.push(Violation {
                path: path.to_owned(),
                value: value.map(Value::to_string),
                detail: detail.into(),
            });
        }
    }
}

fn number_holds(check: &Check, number: &Number) -> Option<bool> {
    let order = |bound| compare(number, bound);
    Some(match check {
        Check::Minimum(bound) => order(bound) != Some(Ordering::Less),
        Check::Maximum(bound) => order(bound) != Some(Ordering::Greater),
        Check::ExclusiveMinimum(bound) => order(bound) == Some(Ordering::Greater),
        Check::ExclusiveMaximum(bound) => order(bound) == Some(Ordering::Less),
        Check::MultipleOf(of) => is_multiple(number, of),
        _ => return None,
    })
}

fn string_holds(check: &Check, text: &str) -> Option<bool> {
    let length = || text.chars().count() as u64;
    Some(match check {
        Check::MinLength(min) => length() >= *min,
        Check::MaxLength(max) => length() <= *max,
        Check::Pattern(pattern) => pattern.matches(text),
        _ => return None,
    })
}

fn is_type(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Null => value.is_null(),
        Type::Boolean => value.is_boolean(),
        Type::Integer => value.as_number().is_some_and(|n| integer(n).is_some()),
        Type::Number => value.is_number(),
        Type::String => value.is_string(),
        Type::Array => value.is_array(),
        Type::Object => value.is_object(),
    }
}

/// The schemas that apply to a property.
fn schemas_of<'p>(properties: &'p Properties, name: &'p str) -> impl Iterator<Item = NodeId> + 'p {
    let named = properties.named.get(name).copied();
    let patterns = properties
        .patterns
        .iter()
        .filter(move |(pattern, _)| pattern.matches(name))
        .map(|(_, id)| *id);
    let additional = properties.additional;
    let additional = additional.filter(|_| is_additional(properties, name));
    named.into_iter().chain(patterns).chain(additional)
}

fn is_additional(properties: &Properties, name: &str) -> bool {
    !properties.named.contains_key(name)
        && !properties.patterns.iter().any(|(p, _)| p.matches(name))
}

/// The index of the first item that equals an earlier one.
fn duplicate(items: &[Value]) -> Option<usize> {
    // Texts and integers, by far the most common, are compared through a set; the rest pairwise.
    let mut texts = HashSet::new();
    let mut numbers = HashSet::new();
    let mut others: Vec<&Value> = Vec::new();
    items.iter().position(|item| match item {
        Value::String(text) => !texts.insert(text.as_str()),
        Value::Number(number) if integer(number).is_some() => !numbers.insert(integer(number)),
        item => {
            let known = others.iter().any(|other| equal(other, item));
            others.push(item);
            known
        }
    })
}

/// The message for a check that fails as a whole.
fn describe(check: &Check, value: &Value) -> String {
    let each = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
    match check {
        Check::Types(types) => {
            let names: Vec<String> = types.iter().map(|kind| quote(kind.name())).collect();
            let plural = if names.len() == 1 { "type" } else { "types" };
            format!("is not of {plural} {}", names.join(", "))
        }
        Check::Enum(values) => format!("is not one of {}", each(values).join(", ")),
        Check::Const(constant) => format!("is not {constant}"),
        Check::Minimum(bound) => format!("is less than the minimum of {bound}"),
        Check::Maximum(bound) => format!("is greater than the maximum of {bound}"),
        Check::ExclusiveMinimum(bound) => format!("is not greater than {bound}"),
        Check::ExclusiveMaximum(bound) => format!("is not less than {bound}"),
        Check::MultipleOf(of) => format!("is not a multiple of {of}"),
        Check::MinLength(min) => format!("is shorter than {}", counted(*min, "character")),
        Check::MaxLength(max) => format!("is longer than {}", counted(*max, "character")),
        Check::Pattern(pattern) => format!("does not match {}", quote(&pattern.source)),
        Check::MinItems(min) => format!("has less than {}", counted(*min, "item")),
        Check::MaxItems(max) => format!("has more than {}", counted(*max, "item")),
        Check::UniqueItems => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            let twice = duplicate(items).map_or(&Value::Null, |index| &items[index]);
            format!("has duplicate items: {twice}")
        }
        Check::Contains { .. } => "has too few or too many items that fit `contains`".to_owned(),
        Check::MinProperties(min) => format!("has less than {}", counted(*min, "property")),
        Check::MaxProperties(max) => format!("has more than {}", counted(*max, "property")),
        Check::PropertyNames(_) => "has an invalid property name".to_owned(),
        Check::DependentRequired(required) => {
            let broken = required.iter().find(|(name, others)| {
                value.get(name).is_some() && others.iter().any(|other| value.get(other).is_none())
            });
            let name = broken.map_or("", |(name, _)| name);
            format!("lacks properties that {} requires", quote(name))
        }
        Check::AnyOf(_) => "does not match any of the schemas in `anyOf`".to_owned(),
        Check::OneOf(_) => "does not match exactly one of the schemas in `oneOf`".to_owned(),
        Check::Not(_) => "matches the schema in `not`".to_owned(),
        Check::UnevaluatedItems(_) => "has unexpected items".to_owned(),
        _ => "is not allowed".to_owned(),
    }
}

fn unexpected<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.take(5).map(|name| format!("'{name}'")).collect();
    let verb = if names.len() == 1 { "was" } else { "were" };
    let names = names.join(", ");
    format!("{what} are not allowed ({names} {verb} unexpected)")
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "property") => format!("{count} properties"),
        (count, noun) => format!("{count} {noun}s"),
    }
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
