//! Which of the ranked passages are shown.

use std::collections::HashMap;

use super::Hit;

/// So many passages of one file come before other files have had their chance.
pub(super) const MAX_PER_FILE: usize = 3;

/// Takes ranked passages, best first, until there are enough. Passages that overlap a better one
/// are dropped; those of a file that has had its share wait until the end.
pub(super) struct Picked {
    limit: usize,
    shown: Vec<Hit>,
    waiting: Vec<Hit>,
    per_file: HashMap<String, usize>,
}

impl Picked {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            shown: Vec::new(),
            waiting: Vec::new(),
            per_file: HashMap::new(),
        }
    }

    /// Whether nothing more can change the result.
    pub(super) fn is_full(&self) -> bool {
        self.shown.len() >= self.limit
    }

    pub(super) fn offer(&mut self, hit: Hit) {
        let known = self.shown.iter().chain(&self.waiting);
        if known.into_iter().any(|better| overlap(better, &hit)) {
            return;
        }
        let count = self.per_file.entry(hit.path.clone()).or_default();
        *count += 1;
        if *count > MAX_PER_FILE {
            self.waiting.push(hit);
        } else {
            self.shown.push(hit);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Hit> {
        self.shown.append(&mut self.waiting);
        self.shown.truncate(self.limit);
        self.shown
    }
}

fn overlap(a: &Hit, b: &Hit) -> bool {
    a.path == b.path && a.line_start <= b.line_end && b.line_start <= a.line_end
}
