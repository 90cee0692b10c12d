//! What is true of every stream.

use std::collections::HashSet;

use dodona_proto::{CallId, HubStreamItem, ItemBody};
use dodona_store::journal::StoredItem;

/// Panics unless the items of a finished stream are numbered from 1 without a hole, every call
/// has exactly one terminal with nothing of it or below it afterwards, and the root's is the
/// last item of all.
///
/// # Panics
///
/// With what is wrong, and the items.
#[track_caller]
pub fn assert_well_formed(items: &[HubStreamItem]) {
    if let Some(fault) = fault(items) {
        panic!("{fault}, in {items:#?}");
    }
}

/// What is wrong with the items of a finished stream, if anything is.
pub fn fault(items: &[HubStreamItem]) -> Option<String> {
    let mut ended: HashSet<CallId> = HashSet::new();
    let mut seen: HashSet<CallId> = HashSet::new();
    for (item, expected) in items.iter().zip(1..) {
        let HubStreamItem { call_id, seq, .. } = item;
        if *seq != expected {
            return Some(format!("item {expected} has the number {seq}"));
        }
        let mut above = Some(*call_id);
        while let Some(call) = above {
            if ended.contains(&call) {
                return Some(format!("item {seq} follows the terminal of {call}"));
            }
            above = call.parent();
        }
        seen.insert(*call_id);
        if matches!(item.body, ItemBody::Done { .. }) {
            ended.insert(*call_id);
        }
    }
    if let Some(call) = seen.difference(&ended).next() {
        return Some(format!("call {call} has no terminal"));
    }
    match items.last() {
        Some(last) if last.call_id.depth() == 0 => None,
        Some(_) => Some("the root has no terminal".to_owned()),
        None => Some("a finished stream has at least its terminal".to_owned()),
    }
}

/// A short hash of everything a stored item says (FNV-1a), to compare it across processes.
pub fn fingerprint(item: &StoredItem) -> u64 {
    let mut text = String::new();
    item.write_json(&mut text);
    text.push_str(item.kind.as_str());
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dodona_proto::{DoneStatus, PluginPath, StreamId};

    fn items(calls: &[(CallId, bool)]) -> Vec<HubStreamItem> {
        let numbered = calls.iter().zip(1..);
        let item = |(&(call_id, done), seq): (&(CallId, bool), u64)| HubStreamItem {
            call_id,
            seq,
            plugin_path: "echo".parse::<PluginPath>().unwrap(),
            body: if done {
                ItemBody::Done {
                    status: DoneStatus::Complete,
                    reason: None,
                }
            } else {
                ItemBody::Progress {
                    message: String::new(),
                    percentage: None,
                }
            },
        };
        numbered.map(item).collect()
    }

    #[test]
    fn each_fault_is_seen() {
        let root = StreamId::random().root_call();
        let child = root.child(1).unwrap();
        let good = items(&[(root, false), (child, false), (child, true), (root, true)]);
        assert_eq!(fault(&good), None);

        let mut hole = good.clone();
        hole.remove(1);
        let cases = [
            (hole, "has the number"),
            (items(&[]), "at least its terminal"),
            (items(&[(root, false)]), "has no terminal"),
            (items(&[(child, false), (root, true)]), "has no terminal"),
            (items(&[(root, true), (root, true)]), "follows the terminal"),
            (
                items(&[(root, true), (child, true)]),
                "follows the terminal",
            ),
            (items(&[(child, true)]), "the root has no terminal"),
        ];
        for (items, expected) in cases {
            let found = fault(&items).unwrap_or_default();
            assert!(found.contains(expected), "{found:?} is not {expected:?}");
        }
    }
}
