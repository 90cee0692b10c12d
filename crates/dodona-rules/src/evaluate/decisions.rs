//! The decisions of a rule, in order.

use std::ops::Deref;

use serde::Serialize;

use super::outcome::Decision;

/// A list that stores a single decision without an allocation: most rules have one action, and of a
/// thousand rules many may fire at one event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Decisions {
    One([Decision; 1]),
    List(Vec<Decision>),
}

impl Default for Decisions {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Decisions {
    #[inline]
    pub(crate) fn push(&mut self, decision: Decision) {
        match self {
            Self::List(none) if none.is_empty() => *self = Self::One([decision]),
            _ => self.push_another(decision),
        }
    }

    #[cold]
    fn push_another(&mut self, decision: Decision) {
        let mut list = match std::mem::take(self) {
            Self::One([first]) => vec![first],
            Self::List(list) => list,
        };
        list.push(decision);
        *self = Self::List(list);
    }
}

impl Deref for Decisions {
    type Target = [Decision];

    fn deref(&self) -> &[Decision] {
        match self {
            Self::One(one) => one,
            Self::List(some) => some,
        }
    }
}

impl<'d> IntoIterator for &'d Decisions {
    type Item = &'d Decision;
    type IntoIter = std::slice::Iter<'d, Decision>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decisions_keep_their_order() {
        let mut decisions = Decisions::default();
        for count in 0..4 {
            let told: Vec<&str> = decisions.iter().filter_map(Decision::message).collect();
            assert_eq!(told, &["0", "1", "2"][..count]);
            let written = json!(decisions);
            assert_eq!(written.as_array().map(Vec::len), Some(count));
            let message = count.to_string();
            decisions.push(Decision::Deny { message });
        }
    }
}
