//! Token counts as providers report them.
//!
//! They arrive after the answer, so an invalid one must not fail an answer that was already shown: it
//! counts as unknown.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// More than any request has. Larger numbers are invalid, and sums of valid ones cannot overflow.
const MOST: u64 = 1_000_000_000;

/// A number of tokens, or nothing where there is none or an invalid one.
pub(crate) fn tokens<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    let count = value.as_u64().filter(|count| *count <= MOST);
    if count.is_none() && !value.is_null() {
        tracing::debug!(%value, "the provider reports an invalid number of tokens");
    }
    Ok(count)
}

/// A part of an answer without which the answer is complete; nothing where it is malformed.
pub(crate) fn optional<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok())
}
