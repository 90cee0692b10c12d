//! What a plugin measures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dodona_proto::PluginName;

/// Names that one plugin may use. A metric is never removed, so names from data would fill memory.
const MAX_NAMES: usize = 64;

/// The names in use, over all activations of the process.
static NAMES: Mutex<BTreeMap<PluginName, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// Counters, latencies and spans that carry the plugin's name. `GET /metrics` shows the numbers as
/// `dodona_plugin_events_total{plugin="tally",name="words"}` and
/// `dodona_plugin_seconds{plugin="tally",name="count"}`.
#[derive(Debug, Clone)]
pub struct Telemetry {
    plugin: PluginName,
}

/// Why a number was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// The name cannot be used.
    #[error("`{0}` is not a metric's name: use 1 to 40 lower-case letters, digits and `_`")]
    Name(String),
    /// The plugin has too many names.
    #[error("a plugin has at most {MAX_NAMES} metrics; `{0}` would be one more")]
    TooMany(String),
}

impl Telemetry {
    /// For one plugin. The hub creates it.
    pub fn new(plugin: PluginName) -> Self {
        Self { plugin }
    }

    /// Adds to a counter.
    ///
    /// # Errors
    ///
    /// If the name is invalid, or one too many.
    pub fn count(&self, name: &str, by: u64) -> Result<(), MetricError> {
        self.admit(name)?;
        let (plugin, name) = (self.plugin.to_string(), name.to_owned());
        metrics::counter!("dodona_plugin_events_total", "plugin" => plugin, "name" => name)
            .increment(by);
        Ok(())
    }

    /// Records how long something took.
    ///
    /// # Errors
    ///
    /// If the name is invalid, or one too many.
    pub fn record(&self, name: &str, took: Duration) -> Result<(), MetricError> {
        self.admit(name)?;
        let (plugin, name) = (self.plugin.to_string(), name.to_owned());
        metrics::histogram!("dodona_plugin_seconds", "plugin" => plugin, "name" => name)
            .record(took.as_secs_f64());
        Ok(())
    }

    /// A span for log lines, with the plugin's name.
    pub fn span(&self, name: &str) -> tracing::Span {
        tracing::info_span!("plugin", plugin = %self.plugin, name)
    }

    fn admit(&self, name: &str) -> Result<(), MetricError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > 40 || !name.chars().all(fits) {
            let shown = name.chars().take(60).collect();
            return Err(MetricError::Name(shown));
        }
        let mut all = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let names = all.entry(self.plugin.clone()).or_default();
        if names.contains(name) {
            return Ok(());
        }
        if names.len() >= MAX_NAMES {
            return Err(MetricError::TooMany(name.to_owned()));
        }
        names.insert(name.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_few() {
        let telemetry = Telemetry::new(PluginName::new("telemetry-test").unwrap());
        for number in 0..MAX_NAMES {
            telemetry.count(&format!("n{number}"), 1).unwrap();
        }
        telemetry.record("n0", Duration::from_millis(3)).unwrap();
        let one_more = telemetry.count("one_more", 1).unwrap_err();
        assert_eq!(one_more, MetricError::TooMany("one_more".to_owned()));
        for wrong in ["", "Words", "a b", "é", &"x".repeat(41)] {
            assert!(matches!(
                telemetry.count(wrong, 1),
                Err(MetricError::Name(_))
            ));
        }
    }
}
