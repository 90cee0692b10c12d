//! Taking changes back.

use std::collections::BTreeMap;
use std::path::Path;

use super::change::{Change, Edit, FOUND, Planned, version_of};
use super::error::WriteError;
use super::moving::read;

/// The method of a change that takes others back.
pub(super) const UNDO: &str = "undo";

/// Whether a change can be taken back. What was there at the beginning cannot: it would be deleted.
pub(super) fn can_undo(change: &Change) -> bool {
    change.undone_by.is_none() && change.why.method != UNDO && change.why.method != FOUND
}

/// What several changes together did to notes, as what would take it back.
pub(super) struct Undoing {
    /// Edits from what is there to what was, by path.
    edits: Vec<Edit>,
}

impl Undoing {
    /// Of changes in the order they were made. Notes that somebody else changed in between cannot be
    /// taken back: that would be lost.
    pub(super) fn of(changes: &[Change]) -> Result<Self, WriteError> {
        let mut net: BTreeMap<&str, Edit> = BTreeMap::new();
        let mut torn = Vec::new();
        for edit in changes.iter().flat_map(|change| &change.edits) {
            let known = net.entry(&edit.path).or_insert_with(|| Edit {
                // Turned round: what is there now, and what was.
                before: edit.before.clone(),
                after: edit.before.clone(),
                path: edit.path.clone(),
                origin: None,
            });
            if known.before != edit.before {
                torn.push(edit.path.clone());
            }
            known.before.clone_from(&edit.after);
        }
        if !torn.is_empty() {
            torn.dedup();
            return Err(WriteError::ChangedSince { paths: torn });
        }
        let mut edits: Vec<Edit> = net.into_values().collect();
        for edit in changes.iter().flat_map(|change| &change.edits) {
            // A note that was moved comes back from where it is.
            let goes = edits
                .iter()
                .any(|back| back.path == edit.path && back.after.is_none());
            let returns = edits.iter_mut().find(|back| {
                Some(&back.path) == edit.origin.as_ref()
                    && back.before.is_none()
                    && back.after.is_some()
            });
            if let Some(returns) = returns.filter(|_| goes) {
                returns.origin = Some(edit.path.clone());
            }
        }
        edits.retain(|edit| edit.before != edit.after);
        Ok(Self { edits })
    }

    /// The versions that are needed.
    pub(super) fn versions(&self) -> Vec<String> {
        self.edits
            .iter()
            .filter_map(|edit| edit.after.clone())
            .collect()
    }

    /// What to do to which file; what changed since is not touched, and nothing else then.
    pub(super) fn plan(
        &self,
        root: &Path,
        contents: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Vec<Planned>, WriteError> {
        let mut changed = Vec::new();
        let mut plan = Vec::new();
        for edit in &self.edits {
            let before = read(root, &edit.path)?;
            if before.as_deref().map(version_of) != edit.before {
                changed.push(edit.path.clone());
            }
            let after =
                match &edit.after {
                    Some(version) => Some(contents.get(version).cloned().ok_or_else(|| {
                        WriteError::NoVersion {
                            path: edit.path.clone(),
                            version: version.clone(),
                        }
                    })?),
                    None => None,
                };
            plan.push(Planned {
                path: edit.path.clone(),
                before,
                after,
                origin: edit.origin.clone(),
            });
        }
        match changed.is_empty() {
            true => Ok(plan),
            false => Err(WriteError::ChangedSince { paths: changed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::change::Why;

    /// Path, before, after, origin.
    type Row<'r> = (&'r str, Option<&'r str>, Option<&'r str>, Option<&'r str>);

    fn change(edits: &[Row<'_>]) -> Change {
        let some = |text: &Option<&str>| text.map(str::to_owned);
        Change {
            id: 1,
            at: 0,
            why: Why::outside("write"),
            undone_by: None,
            edits: edits
                .iter()
                .map(|(path, before, after, origin)| Edit {
                    path: (*path).to_owned(),
                    before: some(before),
                    after: some(after),
                    origin: some(origin),
                })
                .collect(),
        }
    }

    #[test]
    fn changes_of_one_note_become_one_step_back() {
        let made = [
            change(&[("a", Some("1"), Some("2"), None)]),
            change(&[
                ("b", None, Some("2"), Some("a")),
                ("a", Some("2"), None, None),
            ]),
            change(&[
                ("b", Some("2"), Some("3"), None),
                ("c", None, Some("9"), None),
            ]),
            change(&[("c", Some("9"), None, None)]),
        ];
        let undoing = Undoing::of(&made).unwrap();
        let told: Vec<_> = undoing
            .edits
            .iter()
            .map(|edit| {
                (
                    edit.path.as_str(),
                    edit.before.as_deref(),
                    edit.after.as_deref(),
                    edit.origin.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("a", None, Some("1"), Some("b")),
                ("b", Some("3"), None, None)
            ]
        );
    }

    #[test]
    fn what_somebody_did_in_between_is_not_lost() {
        let made = [
            change(&[("a", Some("1"), Some("2"), None)]),
            change(&[("a", Some("theirs"), Some("3"), None)]),
        ];
        assert!(matches!(
            Undoing::of(&made),
            Err(WriteError::ChangedSince { .. })
        ));
    }
}
