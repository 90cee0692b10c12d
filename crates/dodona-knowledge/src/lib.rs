//! What a project knows: its notes and its code, searchable.
//!
//! Three plugins share one index for each project: `search` keeps it and answers over all of it,
//! `code` knows definitions and references, `vault` knows notes, links and tags. Start from
//! [`plugins`]; a call's project says what is searched.
//!
//! The files are the truth. Index and catalogue are made from them, are brought in step with the
//! disk before a question is answered, and can be deleted at any time.
//!
//! ```
//! use dodona_knowledge::Options;
//!
//! let plugins = dodona_knowledge::plugins(Options::default());
//! let names: Vec<String> = plugins.iter().map(|plugin| plugin.name().to_owned()).collect();
//! assert_eq!(names, ["code", "search", "vault"]);
//! ```
//!
//! # What it does not do
//!
//! It writes no file of a project and runs no command but git, which it asks about history. It knows nothing of agents: they call its
//! methods like anybody else.

mod author;
mod code;
mod index;
mod library;
mod parse;
mod passage;
pub mod search;
mod vault;

use std::path::Path;
use std::sync::Arc;

use dodona_llm::Embedder;
use dodona_plugin::{CallError, Plugin};

use library::Library;

/// Asked with the root of a project, tells which folder of it holds the notes; `None` for all.
pub type VaultRoot = Arc<dyn Fn(&Path) -> Result<Option<String>, CallError> + Send + Sync>;

/// What the plugins are told by whoever starts them.
pub struct Options {
    /// Where a project's notes are. Asked before each look at the disk, so that a changed setting
    /// counts from the next question on.
    pub vault_root: VaultRoot,
    /// Turns passages into vectors, so that search knows what is near in meaning. Without one
    /// words alone decide, and nothing leaves the machine.
    pub embedder: Option<Arc<Embedder>>,
}

impl Default for Options {
    /// Every Markdown file is a note, and words alone decide.
    fn default() -> Self {
        Self {
            vault_root: Arc::new(|_| Ok(None)),
            embedder: None,
        }
    }
}

/// The plugins `code`, `search` and `vault`, on one library.
pub fn plugins(options: Options) -> Vec<Arc<dyn Plugin>> {
    let library = Arc::new(Library::new(options));
    vec![
        Arc::new(code::CodePlugin::new(Arc::clone(&library))),
        Arc::new(index::SearchPlugin::new(Arc::clone(&library))),
        Arc::new(vault::VaultPlugin::new(library)),
    ]
}
