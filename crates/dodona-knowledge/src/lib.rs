//! What a project knows: its notes, its threads and its code, searchable.
//!
//! Four plugins share one index for each project: `search` keeps it and answers over all of it,
//! `code` knows definitions and references, `vault` knows notes, links and tags and changes them,
//! `thread` keeps what was thought and decided. `web` brings pages from elsewhere. Start from
//! [`plugins`]; a call's project says what is searched.
//!
//! The files are the truth. Index and catalogue are made from them, are brought in step with the
//! disk before a question is answered, and can be deleted at any time; what notes were, and threads,
//! are in databases of their own.
//!
//! ```
//! use dodona_knowledge::Options;
//!
//! let plugins = dodona_knowledge::plugins(Options::default());
//! let names: Vec<String> = plugins.iter().map(|plugin| plugin.name().to_owned()).collect();
//! assert_eq!(names, ["code", "search", "thread", "vault", "web"]);
//! ```
//!
//! # What it does not do
//!
//! It writes no file of a project but notes, and runs no command but git, which it asks about history.
//! It knows nothing of agents: they call its methods like anybody else.

mod author;
mod code;
mod index;
mod library;
mod parse;
mod passage;
mod resolve;
pub mod search;
mod thread;
mod vault;
mod web;

use std::path::Path;
use std::sync::Arc;

use dodona_llm::Embedder;
use dodona_plugin::{CallError, Plugin};

pub use library::FileAccess;
use library::Library;
pub use web::WebOptions;

/// The databases of this crate and their newest schema versions.
pub const SCHEMAS: &[(&str, usize)] = &[
    ("plugins/search/search.db", library::MIGRATIONS.len()),
    ("plugins/thread/thread.db", thread::MIGRATIONS.len()),
    ("plugins/vault/vault.db", vault::MIGRATIONS.len()),
    ("plugins/web/web.db", web::MIGRATIONS.len()),
];

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
    /// What of the web may be asked.
    pub web: WebOptions,
    /// Which files of projects may be read and written.
    pub files: FileAccess,
}

impl Default for Options {
    /// Every Markdown file is a note, and words alone decide.
    fn default() -> Self {
        Self {
            vault_root: Arc::new(|_| Ok(None)),
            embedder: None,
            web: WebOptions::default(),
            files: FileAccess::default(),
        }
    }
}

/// The plugins `code`, `search`, `thread` and `vault`, on one library, and `web`.
pub fn plugins(options: Options) -> Vec<Arc<dyn Plugin>> {
    let web = Arc::new(web::WebPlugin::new(options.web.clone()));
    let library = Arc::new(Library::new(options));
    vec![
        Arc::new(code::CodePlugin::new(Arc::clone(&library))),
        Arc::new(index::SearchPlugin::new(Arc::clone(&library))),
        Arc::new(thread::ThreadPlugin::new(Arc::clone(&library))),
        Arc::new(vault::VaultPlugin::new(library)),
        web,
    ]
}
