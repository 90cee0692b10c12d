//! A script as a plugin.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{ActivationError, Contribution, Manifest, Plugin, PluginContext, Settings};
use dodona_script::Entry;

use super::code::ScriptFile;
use super::hook::hook;
use super::method::{Shared, method};
use super::program::{Facts, Program};
use super::spec;

/// What the hub activates for a directory with a script.
pub(super) struct LuauPlugin {
    manifest: Arc<Manifest>,
    version: String,
    file: Arc<ScriptFile>,
}

impl LuauPlugin {
    pub(super) fn new(manifest: Arc<Manifest>, file: ScriptFile) -> Self {
        Self {
            version: manifest.version.to_string(),
            manifest,
            file: Arc::new(file),
        }
    }
}

impl Plugin for LuauPlugin {
    fn name(&self) -> &str {
        self.manifest.id.as_str()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn description(&self) -> &str {
        &self.manifest.description
    }

    fn settings(&self) -> Settings {
        self.manifest.settings.clone()
    }

    fn activate(&self, ctx: PluginContext) -> Activating<'_> {
        Box::pin(async move {
            let shared = Shared {
                program: Arc::new(Program::new(
                    Arc::clone(&self.file),
                    Facts {
                        plugin: ctx.name.clone(),
                        version: self.version.clone(),
                        settings: ctx.settings.values().clone(),
                    },
                    ctx.log.clone(),
                )),
                settings: ctx.settings,
                state: ctx.state,
                project: ctx.project,
            };
            let work = move || contribution(&shared);
            let made = tokio::task::spawn_blocking(work).await;
            made.unwrap_or_else(|_| Err("loading the script failed".to_owned()))
                .map_err(ActivationError::Refused)
        })
    }
}

/// Everything that a script declares. What is wrong with one thing is wrong with the script.
pub(super) fn contribution(shared: &Shared) -> Result<Contribution, String> {
    let entries = shared
        .program
        .declared()
        .map_err(|error| error.to_string())?;
    let mut contribution = Contribution::new();
    for (number, entry) in entries.iter().enumerate() {
        let added = add(contribution, shared, number, entry);
        contribution = added.map_err(|why| format!("{}: {why}", shared.program.place(entry)))?;
    }
    Ok(contribution)
}

fn add(
    contribution: Contribution,
    shared: &Shared,
    number: usize,
    entry: &Entry,
) -> Result<Contribution, String> {
    match entry.kind.as_str() {
        "method" => {
            let said: spec::MethodSpec = spec::read(&entry.spec)?;
            let descriptor = said.descriptor(&shared.program.facts.plugin)?;
            Ok(contribution.methods([method(shared, number, descriptor)?]))
        }
        _ => {
            let said: spec::HookSpec = spec::read(&entry.spec)?;
            Ok(contribution.hook(hook(shared, number, said)?))
        }
    }
}
