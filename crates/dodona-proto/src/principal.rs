//! Who is asking, from where, and what they may do.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{NameError, check_segment, text_newtype};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text and makes it an id.
            pub fn new(text: &str) -> Result<Self, NameError> {
                text.parse()
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                check_segment(text)?;
                Ok(Self(text.into()))
            }
        }
        text_newtype!($name);
    };
}

text_id!(
    /// Identifies a user. Cheap to clone.
    UserId
);
text_id!(
    /// Identifies a registered project. Cheap to clone.
    ProjectId
);

/// Where a root call came in. Threads take their author from it, approvals whether somebody can
/// answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// The command line.
    Cli,
    /// JSON-RPC over HTTP or WebSocket.
    Rpc,
    /// The page.
    Web,
    /// An MCP client.
    Mcp,
    /// The process itself: timers, start-up work.
    Internal,
}

/// Why a text is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// No colon.
    #[error(
        "`{0}` is not a scope: write `plugin:access`, for example `vault:read`, `vault:*` or `*`"
    )]
    Form(String),
    /// A part is not a name.
    #[error("not a scope")]
    Part(#[from] NameError),
}

/// A right, `plugin:access`: what a method asks for. In a grant, either part may be `*`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Scope(Arc<str>);

impl Scope {
    /// Everything.
    pub fn all() -> Self {
        Self("*".into())
    }

    /// The scope as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a grant of this scope covers what a method asks for.
    pub fn covers(&self, asked: &Scope) -> bool {
        if &*self.0 == "*" || self.0 == asked.0 {
            return true;
        }
        match self.0.strip_suffix('*') {
            Some(prefix) => prefix.ends_with(':') && asked.0.starts_with(prefix),
            None => false,
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        if text != "*" {
            let form = || ScopeError::Form(text.chars().take(80).collect());
            let (plugin, access) = text.split_once(':').ok_or_else(form)?;
            check_segment(plugin)?;
            if access != "*" {
                check_segment(access)?;
            }
        }
        Ok(Self(text.into()))
    }
}
text_newtype!(Scope);

/// What a principal was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// A set from its members.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().collect())
    }

    /// Every right there is.
    pub fn all() -> Self {
        Self(vec![Scope::all()])
    }

    /// Whether one of the grants covers what a method asks for.
    pub fn allow(&self, asked: &Scope) -> bool {
        self.0.iter().any(|granted| granted.covers(asked))
    }

    /// The grants.
    pub fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.0.iter()
    }
}

/// Who is asking. Made by the hub's authentication, carried by every call, never changed on the
/// way down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The user.
    pub user: UserId,
    /// What the credential grants.
    pub scopes: Scopes,
    /// Where the call came in.
    pub surface: Surface,
}
