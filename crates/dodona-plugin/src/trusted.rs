//! What projects bring that only counts once somebody trusts them.

use std::collections::BTreeMap;

use dodona_proto::ProjectId;
use futures_util::future::BoxFuture;

/// Texts by their paths below a folder, with `/` between the parts.
pub type TrustedTexts = BTreeMap<String, String>;

/// A folder of a project's `.dodona/` that steers agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedFolder {
    /// Prompts in place of others.
    Prompts,
    /// Directory with definitions of agents.
    Agents,
}

impl TrustedFolder {
    /// Its name below `.dodona/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Agents => "agents",
        }
    }
}

/// The way to what a project brings, for a plugin that is steered by it.
pub trait TrustHost: Send + Sync {
    /// Everything in a folder of a project; nothing where there is none. What is handed out is what
    /// somebody trusted, read once and compared: it cannot have changed in between. The text says
    /// why none of it counts: nobody trusts the project, or not as it is now.
    fn texts<'a>(
        &'a self,
        project: &'a ProjectId,
        folder: TrustedFolder,
    ) -> BoxFuture<'a, Result<TrustedTexts, String>>;
}
