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

/// The instructions that a project has for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectInstructions {
    /// The name of the file in the project's root: `AGENTS.md` or `CLAUDE.md`.
    pub file: &'static str,
    /// Its text, truncated after [`MAX_BYTES`](Self::MAX_BYTES).
    pub text: String,
    /// The size of the whole file in bytes.
    pub bytes: u64,
}

impl ProjectInstructions {
    /// The most bytes of a file that are used.
    pub const MAX_BYTES: usize = 16 * 1024;
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

    /// `AGENTS.md` in the root of a project, else `CLAUDE.md`. `None` if the project has
    /// neither or is not trusted. Unlike the files in `.dodona/`, a changed file needs
    /// no second review: it steers what a model says, and every call of the model is gated.
    fn instructions<'a>(
        &'a self,
        project: &'a ProjectId,
    ) -> BoxFuture<'a, Option<ProjectInstructions>>;
}
