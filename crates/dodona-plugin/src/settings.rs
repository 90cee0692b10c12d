//! What a user may set for a plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use dodona_proto::{PluginName, UserId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// An integer of 64 bits.
    Integer,
    /// A number with floating point.
    Float,
    /// A string, optionally one of a list.
    String,
    /// A boolean: true or false.
    Boolean,
}

impl SettingKind {
    /// Every kind by its name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("integer", Self::Integer),
        ("float", Self::Float),
        ("string", Self::String),
        ("boolean", Self::Boolean),
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Integer => "a whole number",
            Self::Float => "a number",
            Self::String => "a text",
            Self::Boolean => "true or false",
        }
    }
}

/// One thing that can be set.
#[doc(alias = "PluginSetting")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: SettingKind,
    /// What holds where nobody sets it.
    pub default: Value,
    /// Minimum value of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Maximum value of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The only texts there are; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What it is for.
    pub description: String,
}

/// Everything that can be set for a plugin, by name.
pub type Settings = BTreeMap<String, Setting>;

impl Setting {
    /// A setting without bounds.
    pub fn new(
        kind: SettingKind,
        default: impl Into<Value>,
        description: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            default: default.into(),
            min: None,
            max: None,
            options: Vec::new(),
            description: description.into(),
        }
    }

    /// Sets the minimum and maximum of a number.
    #[must_use]
    pub fn within(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// The value as it counts, or what would have been right.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        let wrong = || format!("must be {}, not {}", self.kind.words(), shown(value));
        match self.kind {
            SettingKind::Boolean if value.is_boolean() => Ok(value.clone()),
            SettingKind::String => {
                let text = value.as_str().ok_or_else(wrong)?;
                let known = self.options.is_empty() || self.options.iter().any(|o| o == text);
                if known {
                    Ok(value.clone())
                } else {
                    Err(format!(
                        "must be one of {}, not {}",
                        self.options.join(", "),
                        shown(value)
                    ))
                }
            }
            SettingKind::Integer if value.is_i64() => self.bounded(value, value.as_f64()),
            SettingKind::Float if value.is_number() => {
                let number = value.as_f64();
                self.bounded(&number.map_or(Value::Null, Value::from), number)
            }
            _ => Err(wrong()),
        }
    }

    fn bounded(&self, value: &Value, number: Option<f64>) -> Result<Value, String> {
        let number = number.unwrap_or(f64::NAN);
        let low = self.min.filter(|min| number < *min);
        let high = self.max.filter(|max| number > *max);
        match (low, high) {
            (Some(min), _) => Err(format!("must be at least {min}, not {number}")),
            (_, Some(max)) => Err(format!("must be at most {max}, not {number}")),
            _ => Ok(value.clone()),
        }
    }
}

fn shown(value: &Value) -> String {
    let text: String = value.to_string().chars().take(60).collect();
    text
}

/// What users chose for themselves. The hub keeps it.
pub trait Overrides: Send + Sync {
    /// One user's choices for one plugin.
    fn of(&self, plugin: &PluginName, user: &UserId) -> Option<Arc<Map<String, Value>>>;
}

/// The settings of a plugin, as they hold.
#[derive(Clone)]
pub struct PluginSettings {
    plugin: PluginName,
    declared: Arc<Settings>,
    values: Arc<Map<String, Value>>,
    overrides: Arc<dyn Overrides>,
}

impl PluginSettings {
    /// Settings with values that were checked. What is not among the values has its default.
    pub fn new(
        plugin: PluginName,
        declared: Arc<Settings>,
        given: &Map<String, Value>,
        overrides: Arc<dyn Overrides>,
    ) -> Self {
        let value = |(name, setting): (&String, &Setting)| {
            let value = given.get(name).unwrap_or(&setting.default);
            (name.clone(), value.clone())
        };
        Self {
            values: Arc::new(declared.iter().map(value).collect()),
            plugin,
            declared,
            overrides,
        }
    }

    /// What can be set.
    pub fn declared(&self) -> &Settings {
        &self.declared
    }

    /// What holds for everybody who did not choose for themselves.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// What holds for a user. A choice that does not fit the setting any more does not count.
    pub fn of(&self, user: &UserId) -> Map<String, Value> {
        let mut values = Map::clone(&self.values);
        let Some(chosen) = self.overrides.of(&self.plugin, user) else {
            return values;
        };
        for (name, setting) in self.declared.iter() {
            let fitting = chosen.get(name).and_then(|value| setting.check(value).ok());
            if let Some(value) = fitting {
                values.insert(name.clone(), value);
            }
        }
        values
    }

    /// One value as it holds for a user, read as a type.
    pub fn get<T: DeserializeOwned>(&self, user: &UserId, name: &str) -> Option<T> {
        let value = self.of(user).remove(name)?;
        serde_json::from_value(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_checked_by_kind_bound_and_choice() {
        let number = Setting::new(SettingKind::Integer, 10, "").within(1.0, 50.0);
        assert_eq!(number.check(&json!(50)), Ok(json!(50)));
        for (value, why) in [
            (json!(0), "at least 1"),
            (json!(51), "at most 50"),
            (json!(1.5), "a whole number"),
            (json!("10"), "a whole number"),
        ] {
            assert!(number.check(&value).unwrap_err().contains(why), "{value}");
        }
        let ratio = Setting::new(SettingKind::Float, 0.5, "");
        assert_eq!(ratio.check(&json!(1)), Ok(json!(1.0)));
        let truth = Setting::new(SettingKind::Boolean, true, "");
        assert!(truth.check(&json!("true")).is_err());
        let mut choice = Setting::new(SettingKind::String, "a", "");
        choice.options = vec!["a".to_owned(), "b".to_owned()];
        assert!(choice.check(&json!("b")).is_ok());
        let why = choice.check(&json!("c")).unwrap_err();
        assert_eq!(why, "must be one of a, b, not \"c\"");
    }

    struct Chosen(Map<String, Value>);

    impl Overrides for Chosen {
        fn of(&self, _: &PluginName, user: &UserId) -> Option<Arc<Map<String, Value>>> {
            (user.as_str() == "ada").then(|| Arc::new(self.0.clone()))
        }
    }

    #[test]
    fn a_users_choice_wins_where_it_still_fits() {
        let declared = Settings::from([
            (
                "most".to_owned(),
                Setting::new(SettingKind::Integer, 10, "").within(1.0, 50.0),
            ),
            (
                "loud".to_owned(),
                Setting::new(SettingKind::Boolean, false, ""),
            ),
        ]);
        let chosen = json!({"most": 99, "loud": true, "gone": 1});
        let chosen = Chosen(chosen.as_object().unwrap().clone());
        let given = json!({"most": 20});
        let settings = PluginSettings::new(
            PluginName::new("x").unwrap(),
            Arc::new(declared),
            given.as_object().unwrap(),
            Arc::new(chosen),
        );
        let user = |name| UserId::new(name).unwrap();
        assert_eq!(
            json!(settings.of(&user("ada"))),
            json!({"most": 20, "loud": true})
        );
        assert_eq!(settings.get::<bool>(&user("bob"), "loud"), Some(false));
        assert_eq!(settings.values()["most"], 20);
    }
}
