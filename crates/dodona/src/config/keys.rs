//! Every key there is.

use std::collections::HashMap;
use std::time::Duration;

use dodona_hub::{HubConfig, Limit};
use dodona_proto::PluginName;
use toml::de::DeValue;

use super::article;
use crate::quantity;

/// One key: adding a setting is adding a row to [`KEYS`] and to the reference.
pub(super) struct Key {
    /// Its dotted name; a part `*` stands for a plugin's name.
    pub(super) name: &'static str,
    kind: Kind,
}

/// What a key takes, and where it goes.
enum Kind {
    Time(fn(&mut HubConfig) -> &mut Duration),
    Size(fn(&mut HubConfig) -> &mut u64),
    MemorySize(fn(&mut HubConfig) -> &mut usize),
    Count(fn(&mut HubConfig) -> &mut u32),
    Depth(fn(&mut HubConfig) -> &mut usize),
    PluginLimit(Limits, fn(&mut Limit) -> &mut u32),
}

type Limits = fn(&mut HubConfig) -> &mut HashMap<PluginName, Limit>;

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, kind }
}

/// The keys, in the order of the reference.
pub(super) const KEYS: &[Key] = {
    use Kind::{Count, Depth, MemorySize, PluginLimit, Size, Time};
    const PLUGIN: Limits = |config| &mut config.limits.plugin;
    const USER_AND_PLUGIN: Limits = |config| &mut config.limits.user_and_plugin;
    &[
        key("calls.unary_timeout", Time(|c| &mut c.unary_timeout)),
        key("calls.stream_timeout", Time(|c| &mut c.stream_timeout)),
        key("calls.stream_grace", Time(|c| &mut c.stream_grace)),
        key(
            "calls.activation_timeout",
            Time(|c| &mut c.activation_timeout),
        ),
        key("limits.nested", Count(|c| &mut c.limits.nested)),
        key(
            "limits.params_size",
            MemorySize(|c| &mut c.limits.params_bytes),
        ),
        key("limits.params_depth", Depth(|c| &mut c.limits.params_depth)),
        key(
            "limits.user.per_second",
            Count(|c| &mut c.limits.user.per_second),
        ),
        key("limits.user.burst", Count(|c| &mut c.limits.user.burst)),
        key(
            "limits.user.concurrent",
            Count(|c| &mut c.limits.user.concurrent),
        ),
        key(
            "limits.plugin.*.per_second",
            PluginLimit(PLUGIN, |limit| &mut limit.per_second),
        ),
        key(
            "limits.plugin.*.burst",
            PluginLimit(PLUGIN, |limit| &mut limit.burst),
        ),
        key(
            "limits.plugin.*.concurrent",
            PluginLimit(PLUGIN, |limit| &mut limit.concurrent),
        ),
        key(
            "limits.user_and_plugin.*.per_second",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.per_second),
        ),
        key(
            "limits.user_and_plugin.*.burst",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.burst),
        ),
        key(
            "limits.user_and_plugin.*.concurrent",
            PluginLimit(USER_AND_PLUGIN, |limit| &mut limit.concurrent),
        ),
        key("journal.max_age", Time(|c| &mut c.retention.max_age)),
        key("journal.max_size", Size(|c| &mut c.retention.max_bytes)),
    ]
};

impl Key {
    /// Whether this is the key at a path.
    pub(super) fn matches(&self, path: &[&str]) -> bool {
        self.name.split('.').count() == path.len() && self.begins(path)
    }

    /// Whether the key lies below a path.
    pub(super) fn is_below(&self, path: &[&str]) -> bool {
        self.name.split('.').count() > path.len() && self.begins(path)
    }

    fn begins(&self, path: &[&str]) -> bool {
        let mut parts = path.iter().zip(self.name.split('.'));
        parts.all(|(asked, known)| known == *asked || known == "*")
    }

    /// The part of its name that comes next after a path.
    pub(super) fn child_of(&self, path: &[&str]) -> Option<&'static str> {
        let next = self.name.split('.').nth(path.len());
        next.filter(|_| self.begins(path))
    }

    /// The last part of its name.
    pub(super) fn last(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Takes a value over, or tells what would have been one.
    pub(super) fn set(
        &self,
        config: &mut HubConfig,
        path: &[&str],
        value: &DeValue<'_>,
    ) -> Result<(), String> {
        match &self.kind {
            Kind::Time(field) => *field(config) = time(value)?,
            Kind::Size(field) => *field(config) = size(value)?,
            Kind::MemorySize(field) => {
                *field(config) = usize::try_from(size(value)?)
                    .map_err(|_| "more than this machine can hold".to_owned())?;
            }
            Kind::Count(field) => *field(config) = count(value)?,
            Kind::Depth(field) => *field(config) = count(value)? as usize,
            Kind::PluginLimit(limits, field) => {
                let name = path.get(2).copied().unwrap_or_default();
                let plugin = PluginName::new(name).map_err(|error| error.to_string())?;
                let unbounded = Limit {
                    per_second: 0,
                    burst: 0,
                    concurrent: 0,
                };
                *field(limits(config).entry(plugin).or_insert(unbounded)) = count(value)?;
            }
        }
        Ok(())
    }

    /// The default, as it would be written.
    #[cfg(test)]
    pub(super) fn default(&self) -> String {
        let mut config = HubConfig::default();
        match &self.kind {
            Kind::Time(field) => format!("{:?}", quantity::show_duration(*field(&mut config))),
            Kind::Size(field) => format!("{:?}", quantity::show_size(*field(&mut config))),
            Kind::MemorySize(field) => {
                format!("{:?}", quantity::show_size(*field(&mut config) as u64))
            }
            Kind::Count(field) => field(&mut config).to_string(),
            Kind::Depth(field) => field(&mut config).to_string(),
            Kind::PluginLimit(..) => "0".to_owned(),
        }
    }
}

fn time(value: &DeValue<'_>) -> Result<Duration, String> {
    match value.as_str() {
        Some(text) => quantity::duration(text),
        None => Err(format!(
            "expected a time such as \"5s\", not {}",
            article(value)
        )),
    }
}

fn size(value: &DeValue<'_>) -> Result<u64, String> {
    match value.as_str() {
        Some(text) => quantity::size(text),
        None => Err(format!(
            "expected a size such as \"64 MiB\", not {}",
            article(value)
        )),
    }
}

fn count(value: &DeValue<'_>) -> Result<u32, String> {
    let Some(number) = value.as_integer() else {
        return Err(format!("expected a whole number, not {}", article(value)));
    };
    u32::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
        format!(
            "expected a whole number from 0 to {}, not {}",
            u32::MAX,
            number.as_str()
        )
    })
}
