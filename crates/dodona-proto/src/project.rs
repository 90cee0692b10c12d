//! A directory that questions are asked about.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ProjectId, UserId};

/// A registered project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Which one.
    pub id: ProjectId,
    /// Its directory, absolute.
    pub root: PathBuf,
    /// Where its notes are, below the root; the root itself when absent.
    pub vault: Option<PathBuf>,
    /// Who may see it.
    pub members: Vec<UserId>,
}
