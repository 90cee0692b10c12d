//! Plugins that are a directory with a manifest and a script in Luau.
//!
//! The script is run once to learn what it declares, and again from its beginning, in a virtual
//! machine of its own, for every call of a method and every firing of a hook. So nothing that a call
//! does can be seen by another, the limits of a call are those of its machine, and a reload is no
//! more than another script for the calls to come. What has to last is in the plugin's state.

mod code;
mod event;
mod hook;
mod method;
mod plugin;
mod program;
pub mod trial;

use std::path::Path;
use std::sync::Arc;

use dodona_plugin::manifest::Code;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Loaded, Loader, Outside, OutsideSource, schema_hash};
use serde_json::json;

use crate::migrations;
use code::ScriptFile;
use plugin::LuauPlugin;

/// Makes plugins of directories whose manifest has a `[script]`.
#[derive(Debug, Default)]
pub struct LuauLoader;

impl LuauLoader {
    /// A loader.
    pub fn new() -> Self {
        Self
    }
}

impl Loader for LuauLoader {
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        let OutsideSource::Directory { path, code } = &outside.source else {
            return None;
        };
        let Code::Script { main } = code else {
            return None;
        };
        Some(load(outside, path, main))
    }
}

fn load(outside: &Outside, path: &Path, main: &str) -> Result<Loaded, Vec<Problem>> {
    let file = ScriptFile::read(path, main).map_err(|problem| vec![problem])?;
    let migrations = migrations::read(path)?;
    let texts: Vec<&str> = migrations.iter().map(|one| &*one.sql).collect();
    let fingerprint = schema_hash(&json!([file.hash, texts]));
    let manifest = Arc::clone(&outside.manifest);
    Ok(Loaded {
        plugin: Arc::new(LuauPlugin::new(manifest, file, migrations)),
        fingerprint,
    })
}
