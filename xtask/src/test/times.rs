//! How long each step and each test binary took last, kept in the target folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// Seconds by name.
#[derive(Default)]
pub(super) struct Times(BTreeMap<String, f64>);

impl Times {
    /// Reads the recorded times; none where there is no record yet.
    pub(super) fn load() -> Self {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        Self(serde_json::from_str(&text).unwrap_or_default())
    }

    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    pub(super) fn set(&mut self, name: &str, time: Duration) {
        self.0.insert(name.to_owned(), time.as_secs_f64());
    }

    pub(super) fn save(&self) -> Result<()> {
        let path = path();
        let text = serde_json::to_string_pretty(&self.0)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Names and seconds, the longest first.
    pub(super) fn longest_first(&self) -> Vec<(&str, f64)> {
        let mut all: Vec<_> = self.0.iter().map(|(name, s)| (name.as_str(), *s)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

fn path() -> PathBuf {
    process::target_folder().join("xtask-times.json")
}
