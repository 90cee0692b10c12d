//! From a manifest to a plugin.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dodona_plugin::manifest::{Code, ProcessProtocol};
use dodona_plugin::reading::Problem;
use dodona_plugin::{Loaded, Loader, Outside, OutsideSource, content_hash, schema_hash};
use serde_json::{Value, json};

use super::declared;
use super::plugin::ProcessPlugin;
use crate::child::{GuardCommand, Program};
use crate::migrations;

/// The largest file whose contents decide whether a process must be restarted.
const MAX_SOURCE: u64 = 4 << 20;

/// Makes plugins of directories whose manifest has a `[process]` with `protocol = "dodona"`.
#[derive(Debug)]
pub struct ProcessLoader {
    guard: GuardCommand,
}

impl ProcessLoader {
    /// A loader whose processes run under a guard.
    pub fn new(guard: GuardCommand) -> Self {
        Self { guard }
    }
}

impl Loader for ProcessLoader {
    fn load(&self, outside: &Outside) -> Option<Result<Loaded, Vec<Problem>>> {
        let OutsideSource::Directory {
            path,
            code:
                Code::Process {
                    command,
                    args,
                    env,
                    cwd,
                    protocol: ProcessProtocol::Dodona(declared),
                },
        } = &outside.source
        else {
            return None;
        };
        let manifest = &outside.manifest;
        let file = path.join("manifest.toml").display().to_string();
        let brought = match declared::read(&file, manifest, declared) {
            Ok(brought) => brought,
            Err(problems) => return Some(Err(problems)),
        };
        let migrations = match migrations::read(path) {
            Ok(migrations) => migrations,
            Err(problems) => return Some(Err(problems)),
        };
        let texts: Vec<&str> = migrations.iter().map(|one| &*one.sql).collect();
        let sources = sources(path, std::iter::once(command).chain(args));
        // The manifest itself is part of what the hub compares.
        let fingerprint = schema_hash(&json!([texts, sources]));
        let plugin = ProcessPlugin::new(
            Arc::clone(manifest),
            Program::in_directory(path, command, args, cwd.as_deref()),
            env.clone().into_iter().collect(),
            self.guard.clone(),
            brought,
            declared.concurrency.unwrap_or(1),
            migrations,
        );
        Some(Ok(Loaded {
            plugin: Arc::new(plugin),
            fingerprint,
        }))
    }
}

/// The files of the plugin's directory that the command line names, with their contents: a changed
/// program is restarted.
fn sources<'a>(directory: &Path, words: impl Iterator<Item = &'a String>) -> Vec<Value> {
    let source = |word: &'a String| {
        let path = directory.join(word);
        let is_small =
            fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_SOURCE);
        let bytes = is_small.then(|| fs::read(&path).ok())??;
        Some(json!([word, content_hash(&bytes)]))
    };
    words.filter_map(source).collect()
}
