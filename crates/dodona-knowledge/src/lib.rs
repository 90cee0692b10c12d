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
//! let names: Vec<String> = dodona_knowledge::plugins().iter().map(|plugin| plugin.name().to_owned()).collect();
//! assert_eq!(names, ["code", "search", "vault"]);
//! ```
//!
//! # What it does not do
//!
//! It writes no file of a project and runs no command. It knows nothing of agents: they call its
//! methods like anybody else.

mod code;
mod index;
mod library;
mod parse;
mod passage;
mod search;
mod vault;

use std::sync::Arc;

use dodona_plugin::Plugin;

use library::Library;

/// The plugins `code`, `search` and `vault`, on one library.
pub fn plugins() -> Vec<Arc<dyn Plugin>> {
    let library = Arc::new(Library::default());
    vec![
        Arc::new(code::CodePlugin::new(Arc::clone(&library))),
        Arc::new(index::SearchPlugin::new(Arc::clone(&library))),
        Arc::new(vault::VaultPlugin::new(library)),
    ]
}
