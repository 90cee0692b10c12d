//! Trying a plugin without a server: what it declares, and the tests it brings.
//!
//! A test asks for one method or fires one hook, with everything around the script written down: what
//! calls of others answer, what is in the state, what is set. So it is the same on every machine.

mod case;
mod run;
mod scratch;

use std::path::Path;
use std::sync::Arc;

use dodona_hooks::Hook;
use dodona_plugin::manifest::Code;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Manifest, PluginLog};
use dodona_proto::HookPoint;
use serde_json::Value;

use super::code::ScriptFile;
use super::program::{Facts, Program};
use crate::declare::{
    self, Declared, EventSpec, HookSpec, MethodSpec, covered, may_listen, schemas,
};
use crate::migrations;

pub use run::{Tested, Verdict, test};

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
            "method" => declare::read::<MethodSpec>(&entry.spec)
                .and_then(|spec| spec.descriptor(&manifest.id))
                .and_then(|method| schemas(&method).map(|()| declared.methods.push(method))),
            "event" => declare::read::<EventSpec>(&entry.spec)
                .and_then(|spec| Ok(spec.prefix()?.to_owned()))
                .and_then(|prefix| {
                    declared.events.push(prefix.clone());
                    may_listen(manifest, &prefix)
                }),
            _ => declare::read::<HookSpec>(&entry.spec)
                .and_then(|spec| spec.point())
                .and_then(|point| {
                    declared.hooks.push(point);
                    covered(manifest, point)
                }),
        };
        if let Err(why) = read {
            problems.extend(whole(format!("{}: {why}", program.place(entry))));
        }
    }
    if let Err(faults) = migrations::read(directory) {
        problems.extend(faults);
    }
    match problems.is_empty() {
        true => Ok(declared),
        false => Err(problems),
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
    let program = Program::new(Arc::new(file), facts, PluginLog::new(), None);
    Ok(Some(Arc::new(program)))
}

/// Whether a hook's answer is one that its point takes.
fn fits(point: HookPoint, answer: &Value) -> Result<(), String> {
    Hook::check_answer(point, answer).map_err(|failure| failure.0)
}
