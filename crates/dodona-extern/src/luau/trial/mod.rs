//! Trying a plugin without a server: what it declares, and the tests it brings.
//!
//! A test asks for one method or fires one hook, with everything around the script written down: what
//! calls of others answer, what is in the state, what is set. So it is the same on every machine.

mod case;
mod run;

use std::path::Path;
use std::sync::Arc;

use dodona_hooks::Hook;
use dodona_plugin::manifest::Code;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Capabilities, Capability, Manifest, PluginLog};
use dodona_proto::{HookPoint, MethodDescriptor};
use serde::Serialize;
use serde_json::Value;

use super::code::ScriptFile;
use super::program::{Facts, Program};
use super::spec;

pub use run::{Tested, Verdict, test};

/// What a script declares.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Declared {
    /// Its methods.
    pub methods: Vec<MethodDescriptor>,
    /// The points at which it has hooks.
    pub hooks: Vec<HookPoint>,
}

/// Loads a directory's script and tells what it declares; nothing of it is asked for.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn inspect(directory: &Path, manifest: &Manifest) -> Result<Declared, Vec<Problem>> {
    let Some(program) = program(directory, manifest)? else {
        return Ok(Declared::default());
    };
    let shown = directory.join(program.file_name()).display().to_string();
    let whole = |why: String| vec![Problem::of_file(shown.clone(), why)];
    let entries = program
        .declared()
        .map_err(|error| whole(error.to_string()))?;
    let (mut declared, mut problems) = (Declared::default(), Vec::new());
    for entry in &entries {
        let read = match entry.kind.as_str() {
            "method" => spec::read::<spec::MethodSpec>(&entry.spec)
                .and_then(|said| said.descriptor(&manifest.id))
                .and_then(|method| schemas(&method).map(|()| declared.methods.push(method))),
            _ => spec::read::<spec::HookSpec>(&entry.spec)
                .and_then(|said| said.point())
                .and_then(|point| {
                    declared.hooks.push(point);
                    covered(manifest, point)
                }),
        };
        if let Err(why) = read {
            problems.extend(whole(format!("{}: {why}", program.place(entry))));
        }
    }
    match problems.is_empty() {
        true => Ok(declared),
        false => Err(problems),
    }
}

fn schemas(method: &MethodDescriptor) -> Result<(), String> {
    for (part, schema) in [("params", &method.params), ("result", &method.result)] {
        jsonschema::validator_for(schema).map_err(|error| {
            format!(
                "`{part}` of `{}` is not a JSON Schema: {error}",
                method.name
            )
        })?;
    }
    Ok(())
}

/// A hook needs a capability, and the manifest has to ask for it.
fn covered(manifest: &Manifest, point: HookPoint) -> Result<(), String> {
    let uses = manifest.uses.iter().map(|used| used.capability.clone());
    let needed = Capability::for_hook(point);
    match Capabilities::Only(uses.collect()).allow(&needed) {
        true => Ok(()),
        false => Err(format!(
            "a hook at {point} needs the capability `{needed}`: write `uses = [\"{needed}\"]` \
             below `[capabilities]`"
        )),
    }
}

/// The script of a directory, ready to be asked; none if its manifest has none.
fn program(directory: &Path, manifest: &Manifest) -> Result<Option<Arc<Program>>, Vec<Problem>> {
    let Some(Code::Script { main }) = &manifest.code else {
        return Ok(None);
    };
    let file = ScriptFile::read(directory, main).map_err(|problem| vec![problem])?;
    let defaults = manifest.settings.iter();
    let facts = Facts {
        plugin: manifest.id.clone(),
        version: manifest.version.to_string(),
        settings: defaults
            .map(|(name, setting)| (name.clone(), setting.default.clone()))
            .collect(),
    };
    let program = Program::new(Arc::new(file), facts, PluginLog::new());
    Ok(Some(Arc::new(program)))
}

/// Whether a hook's answer is one that its point takes.
fn fits(point: HookPoint, answer: &Value) -> Result<(), String> {
    Hook::check_answer(point, answer).map_err(|failure| failure.0)
}
