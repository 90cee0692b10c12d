//! Which properties and items other keywords cover, for `unevaluated*`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::compile::{Check, NodeId};
use crate::validate::Run;

impl Run<'_> {
    /// Collects the properties that a check covers. The value is known to fit the check.
    pub(crate) fn evaluated_by_property_check<'v>(
        &self,
        check: &Check,
        value: &'v Value,
        fields: &'v Map<String, Value>,
        seen: &mut HashSet<&'v str>,
    ) {
        match check {
            Check::Properties(properties) => {
                let covered = |name: &str| {
                    properties.additional.is_some()
                        || properties.named.contains_key(name)
                        || properties.patterns.iter().any(|(p, _)| p.matches(name))
                };
                let names = fields.keys().map(String::as_str);
                seen.extend(names.filter(|name| covered(name)));
            }
            Check::UnevaluatedProperties(_) => seen.extend(fields.keys().map(String::as_str)),
            other => {
                for id in self.applied(other, value) {
                    for check in &self.nodes[id].checks {
                        self.evaluated_by_property_check(check, value, fields, seen);
                    }
                }
            }
        }
    }

    /// Collects the items that a check covers. The value is known to fit the check.
    pub(crate) fn evaluated_by_item_check(
        &self,
        check: &Check,
        value: &Value,
        items: &[Value],
        seen: &mut HashSet<usize>,
    ) {
        match check {
            Check::Items { prefix, rest } => {
                let covered = if rest.is_some() {
                    items.len()
                } else {
                    prefix.len().min(items.len())
                };
                seen.extend(0..covered);
            }
            Check::Contains { schema, .. } => {
                let fits = |index: &usize| self.accepts(*schema, &items[*index]);
                seen.extend((0..items.len()).filter(fits));
            }
            Check::UnevaluatedItems(_) => seen.extend(0..items.len()),
            other => {
                for id in self.applied(other, value) {
                    for check in &self.nodes[id].checks {
                        self.evaluated_by_item_check(check, value, items, seen);
                    }
                }
            }
        }
    }

    /// The subschemas of a check that apply to the same value and accept it.
    fn applied(&self, check: &Check, value: &Value) -> Vec<NodeId> {
        match check {
            Check::Reference(id) => vec![*id],
            Check::AllOf(ids) => ids.clone(),
            Check::AnyOf(ids) | Check::OneOf(ids) => {
                let accepted = ids.iter().copied().filter(|id| self.accepts(*id, value));
                accepted.collect()
            }
            Check::If {
                condition,
                then,
                otherwise,
            } => {
                if self.accepts(*condition, value) {
                    [Some(*condition), *then].into_iter().flatten().collect()
                } else {
                    otherwise.iter().copied().collect()
                }
            }
            Check::DependentSchemas(schemas) => {
                let present = schemas.iter().filter(|(name, _)| value.get(name).is_some());
                present.map(|(_, id)| *id).collect()
            }
            _ => Vec::new(),
        }
    }
}
