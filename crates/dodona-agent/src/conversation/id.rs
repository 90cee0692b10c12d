//! The ids of conversations and of what is in them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::{ConversationError, Invalid};

/// The longest id that is accepted from outside.
const LONGEST: usize = 64;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A new one. They sort by the time they were made.
            #[expect(clippy::new_without_default, reason = "every call gives another one")]
            pub fn new() -> Self {
                Self(Uuid::now_v7().to_string())
            }

            /// One that came from outside. Ours are UUIDs; others' need not be.
            pub fn parse(text: &str) -> Result<Self, ConversationError> {
                check($field, text)?;
                Ok(Self(text.to_owned()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub(super) fn stored(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Identifies a conversation.
    ContextId,
    "context_id"
);
id!(
    /// Identifies an exchange.
    ExchangeId,
    "id"
);
id!(
    /// Identifies a query: one question of the user and all turns it took.
    QueryId,
    "query_id"
);

pub(super) fn check(field: &str, text: &str) -> Result<(), Invalid> {
    let fits = !text.is_empty() && text.len() <= LONGEST;
    if fits && text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("an id has 1 to {LONGEST} visible ASCII characters"),
    ))
}
