//! What plugins say, kept over their lives.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dodona_plugin::PluginLog;
use dodona_proto::PluginName;

/// The log of each plugin that ever was.
#[derive(Default)]
pub(super) struct Logs(Mutex<BTreeMap<PluginName, PluginLog>>);

impl Logs {
    /// A plugin's log, which is the same each time.
    pub(super) fn of(&self, name: &PluginName) -> PluginLog {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(name.clone()).or_default().clone()
    }
}
