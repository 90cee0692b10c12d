//! The resources that a client wants to hear about, and how they were when it was last told.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dodona_proto::{CallError, ErrorCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalogue::Catalogue;
use super::desk::Desk;
use super::{notes, resources};

/// How many resources one client can hear about.
pub(super) const MOST: usize = 100;

/// What tells one state of a resource from another; `None` while it is not there.
pub(super) type Version = Option<String>;

/// The resources of a client, by their addresses.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<BTreeMap<String, Version>>);

impl Subscriptions {
    /// From now on, a change of this is told. `false` if there are too many already.
    pub(super) fn add(&self, uri: &str, version: Version) -> bool {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(uri) {
            return false;
        }
        all.insert(uri.to_owned(), version);
        true
    }

    pub(super) fn remove(&self, uri: &str) {
        self.all().remove(uri);
    }

    /// Which there are.
    pub(super) fn uris(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Notes how they are now, and says which are other than before.
    pub(super) fn renew(&self, now: BTreeMap<String, Version>) -> Vec<String> {
        let mut all = self.all();
        let mut other = Vec::new();
        for (uri, version) in now {
            // One that is not wanted any more stays that way.
            if let Some(before) = all.get_mut(&uri)
                && *before != version
            {
                *before = version;
                other.push(uri);
            }
        }
        other
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Version>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the vault says of its notes.
#[derive(Deserialize)]
struct Versions {
    list: String,
    versions: BTreeMap<String, String>,
}

/// How resources are now, and what tells one list of notes from another. One of a plugin has to be
/// read for that; none of these is a tool's call, and no gate hears of them.
pub(super) async fn look(
    desk: &Desk,
    catalogue: &Catalogue,
    uris: &[String],
) -> (BTreeMap<String, Version>, Option<String>) {
    let paths: BTreeMap<String, &String> = uris
        .iter()
        .filter_map(|uri| Some((notes::path(uri)?, uri)))
        .collect();
    let named: Vec<&String> = paths.keys().collect();
    let answer = desk.call("vault.versions", json!({ "paths": named })).await;
    let read = |answer: Value| {
        Versions::deserialize(answer)
            .map_err(|error| CallError::new(ErrorCode::Internal, error.to_string()))
    };
    let mut now = BTreeMap::new();
    let mut list = None;
    // A vault that cannot say has not changed.
    if let Ok(mut versions) = answer.and_then(read) {
        for (path, uri) in paths {
            now.insert(uri.clone(), versions.versions.remove(&path));
        }
        list = Some(versions.list);
    }
    for uri in uris.iter().filter(|uri| notes::path(uri).is_none()) {
        let Some(found) = resources::find(desk, catalogue, uri).await else {
            now.insert(uri.clone(), None);
            continue;
        };
        if let Ok(value) = desk.call(&found.method, found.params).await {
            now.insert(uri.clone(), Some(value.to_string()));
        }
    }
    (now, list)
}
