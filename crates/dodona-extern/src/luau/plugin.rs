//! A script as a plugin.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::store::Migration;
use dodona_plugin::{ActivationError, Contribution, Manifest, Plugin, PluginContext, Settings};
use dodona_script::Entry;

use super::code::ScriptFile;
use super::event::event_handler;
use super::hook::hook;
use super::method::method;
use super::program::{Facts, Program};
use crate::declare::{self, EventSpec, HookSpec, MethodSpec};
use crate::services::Services;

/// What everything that a script declares shares.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) program: Arc<Program>,
    pub(super) services: Services,
}

/// What the hub activates for a directory with a script.
pub(super) struct LuauPlugin {
    manifest: Arc<Manifest>,
    version: String,
    file: Arc<ScriptFile>,
    migrations: Vec<Migration>,
}

impl LuauPlugin {
    pub(super) fn new(
        manifest: Arc<Manifest>,
        file: ScriptFile,
        migrations: Vec<Migration>,
    ) -> Self {
        Self {
            version: manifest.version.to_string(),
            manifest,
            file: Arc::new(file),
            migrations,
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
            let services = Services::new(&ctx);
            let facts = Facts {
                plugin: ctx.name.clone(),
                version: self.version.clone(),
                settings: ctx.settings.values().clone(),
            };
            let file = Arc::clone(&self.file);
            let program = Program::new(file, facts, ctx.log.clone(), Some(services.clone()));
            let program = Arc::new(program);
            let shared = Shared { program, services };
            let work = move || contribution(&shared);
            let made = tokio::task::spawn_blocking(work).await;
            made.unwrap_or_else(|_| Err("loading the script failed".to_owned()))
                .map(|contribution| contribution.migrations(self.migrations.clone()))
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
            let spec: MethodSpec = declare::read(&entry.spec)?;
            let descriptor = spec.descriptor(&shared.program.facts.plugin)?;
            Ok(contribution.methods([method(shared, number, descriptor)?]))
        }
        "event" => {
            let spec: EventSpec = declare::read(&entry.spec)?;
            Ok(contribution.on_event(event_handler(shared, number, &spec)?))
        }
        _ => {
            let spec: HookSpec = declare::read(&entry.spec)?;
            Ok(contribution.hook(hook(shared, number, spec)?))
        }
    }
}
