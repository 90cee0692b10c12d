//! A citation turned back into text.

use dodona_proto::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResolveParams {
    pub(crate) source: Source,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Resolved {
    /// The text that stands there now.
    pub(crate) text: String,
    /// Whether it is another than was cited.
    pub(crate) stale: bool,
}

impl Resolved {
    /// What was cited is not there any more.
    pub(crate) fn gone() -> Self {
        Self {
            text: String::new(),
            stale: true,
        }
    }
}
