//! What a manifest declares for a process, checked.

use std::path::Path;

use dodona_plugin::manifest::{Code, Declaration, Declarations, ProcessProtocol};
use dodona_plugin::reading::Problem;
use dodona_plugin::{Manifest, reading};
use dodona_proto::{HookPoint, MethodDescriptor};

use crate::declare::{
    self, Declared, EventSpec, HookSpec, MethodSpec, covered, may_listen, schemas,
};
use crate::migrations;

/// What a process brings.
#[derive(Clone, Default)]
pub(super) struct Brought {
    pub(super) methods: Vec<MethodDescriptor>,
    pub(super) hooks: Vec<(HookPoint, HookSpec)>,
    pub(super) events: Vec<EventSpec>,
}

/// Reads declarations. Every fault is reported with its place in the manifest.
pub(super) fn read(
    file: &str,
    manifest: &Manifest,
    declared: &Declarations,
) -> Result<Brought, Vec<Problem>> {
    let mut brought = Brought::default();
    let mut problems = Vec::new();
    let mut note = |declaration: &Declaration, why: String| {
        problems.push(Problem {
            place: Some(reading::Place::clone(&declaration.place)),
            ..Problem::of_file(file, why)
        });
    };
    for declaration in &declared.methods {
        let read = declare::read::<MethodSpec>(&declaration.spec)
            .and_then(|spec| spec.descriptor(&manifest.id))
            .and_then(|method| schemas(&method).map(|()| method));
        match read {
            Ok(method) => brought.methods.push(method),
            Err(why) => note(declaration, why),
        }
    }
    for declaration in &declared.hooks {
        let read = declare::read::<HookSpec>(&declaration.spec).and_then(|spec| {
            let point = spec.point()?;
            covered(manifest, point)?;
            Ok((point, spec))
        });
        match read {
            Ok(hook) => brought.hooks.push(hook),
            Err(why) => note(declaration, why),
        }
    }
    for declaration in &declared.events {
        let read = declare::read::<EventSpec>(&declaration.spec).and_then(|spec| {
            may_listen(manifest, spec.prefix()?)?;
            Ok(spec)
        });
        match read {
            Ok(spec) => brought.events.push(spec),
            Err(why) => note(declaration, why),
        }
    }
    match problems.is_empty() {
        true => Ok(brought),
        false => Err(problems),
    }
}

/// Checks what a directory's process declares, without starting it. Nothing is declared by a directory
/// that has no such process.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn inspect(directory: &Path, manifest: &Manifest) -> Result<Declared, Vec<Problem>> {
    let Some(Code::Process {
        protocol: ProcessProtocol::Dodona(declared),
        ..
    }) = &manifest.code
    else {
        return Ok(Declared::default());
    };
    let file = directory.join("manifest.toml").display().to_string();
    let brought = read(&file, manifest, declared);
    let migrations = migrations::read(directory);
    match (brought, migrations) {
        (Ok(brought), Ok(_)) => Ok(Declared {
            methods: brought.methods,
            hooks: brought.hooks.iter().map(|(point, _)| *point).collect(),
            events: brought
                .events
                .iter()
                .filter_map(|spec| Some(spec.prefix().ok()?.to_owned()))
                .collect(),
        }),
        (brought, migrations) => {
            let mut problems = brought.err().unwrap_or_default();
            problems.extend(migrations.err().unwrap_or_default());
            Err(problems)
        }
    }
}
