//! Names of plugins and methods.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest a single name may be.
const MAX_NAME: usize = 64;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("a name cannot be empty")]
    Empty,
    /// The text is too long.
    #[error("`{0}…` is longer than {MAX_NAME} characters")]
    TooLong(String),
    /// A character that names do not have.
    #[error(
        "`{name}` has `{found}`: names are lower-case letters, digits, `_` and `-`, and begin with a letter"
    )]
    Character {
        /// The text as given.
        name: String,
        /// The first character that does not fit.
        found: char,
    },
    /// A method name without its dot.
    #[error("`{0}` is not a method name: write `plugin.verb`, for example `echo.say`")]
    NoVerb(String),
}

/// Checks one segment: `[a-z][a-z0-9_-]*`, at most 64 characters.
///
/// The same rule holds for plugins, verbs and the inner parts of a path, so that a name is
/// always safe as a file name, an SQL schema and a word on the command line.
pub(crate) fn check_segment(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > MAX_NAME {
        return Err(NameError::TooLong(text.chars().take(16).collect()));
    }
    let misfit = text.chars().enumerate().find(|(i, c)| match c {
        'a'..='z' => false,
        '0'..='9' | '_' | '-' => *i == 0,
        _ => true,
    });
    match misfit {
        None => Ok(()),
        Some((_, found)) => Err(NameError::Character {
            name: text.to_owned(),
            found,
        }),
    }
}

macro_rules! text_newtype {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }

        impl TryFrom<String> for $name {
            type Error = <$name as FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}
pub(crate) use text_newtype;

/// The name of a plugin, such as `vault`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct PluginName(Arc<str>);

impl PluginName {
    /// Checks a text and makes it a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        text.parse()
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check_segment(text)?;
        Ok(Self(text.into()))
    }
}
text_newtype!(PluginName);

/// The name of a method, `plugin.verb`. Cheap to clone.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct MethodName {
    full: Arc<str>,
    dot: usize,
}

impl MethodName {
    /// Checks a text and makes it a method name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        text.parse()
    }

    /// The whole name, `vault.search`.
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// The part before the dot, `vault`.
    pub fn plugin(&self) -> &str {
        &self.full[..self.dot]
    }

    /// The part after the dot, `search`.
    pub fn verb(&self) -> &str {
        &self.full[self.dot + 1..]
    }
}

impl FromStr for MethodName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let shown = || text.chars().take(MAX_NAME).collect::<String>();
        let (plugin, verb) = text
            .split_once('.')
            .ok_or_else(|| NameError::NoVerb(shown()))?;
        check_segment(plugin)?;
        check_segment(verb)?;
        Ok(Self {
            full: text.into(),
            dot: plugin.len(),
        })
    }
}
text_newtype!(MethodName);

impl PartialEq for MethodName {
    fn eq(&self, other: &Self) -> bool {
        self.full == other.full
    }
}

impl Eq for MethodName {}

impl std::hash::Hash for MethodName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.full.hash(state);
    }
}

impl PartialOrd for MethodName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MethodName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.full.cmp(&other.full)
    }
}

/// Lets a map keyed by method names be asked with a plain `&str`.
impl std::borrow::Borrow<str> for MethodName {
    fn borrow(&self) -> &str {
        &self.full
    }
}

impl std::borrow::Borrow<str> for PluginName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
