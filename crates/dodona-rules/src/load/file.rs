//! One file.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};
use std::sync::Arc;

use dodona_plugin::reading;
use dodona_script::Script;

use crate::Problem;
use crate::compile::{CompiledRule, Origin, ScriptSource};
use crate::format::{self, Condition};
use crate::identity::Scope;

/// The largest file of a rule, in bytes.
pub const LARGEST: usize = 256 * 1024;

/// What a file came to.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The rule, if it can run.
    pub rule: Option<Arc<CompiledRule>>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// The script that it names, whether or not that can be used.
    pub script: Option<String>,
}

/// Loads a rule from its text.
pub fn load_text(origin: Origin, text: &str, scripts: &ScriptSource<'_>) -> Loaded {
    let (rule, mut problems) = format::parse(&origin.path, text);
    let Some(rule) = rule else {
        return Loaded {
            problems,
            ..Loaded::default()
        };
    };
    let script = match &rule.condition {
        Condition::Script(path) => Some(path.clone()),
        Condition::Expression(_) => None,
    };
    let (compiled, more) = CompiledRule::compile(rule, text, origin, scripts);
    problems.extend(more);
    Loaded {
        rule: compiled.map(Arc::new),
        problems,
        script,
    }
}

/// Loads a rule from its file. Scripts are found below the file's directory.
pub fn load_file(path: &Path, scope: Scope) -> Loaded {
    let shown = path.display().to_string();
    let text = match read_text(path, LARGEST) {
        Ok(text) => text,
        Err(why) => {
            let problem = Problem::error(reading::Problem::of_file(shown, why));
            return Loaded {
                problems: vec![problem],
                ..Loaded::default()
            };
        }
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    let origin = Origin { scope, path: shown };
    load_text(origin, &text, &|script| script_below(directory, script))
}

/// The text of a file that is one, is not too large and is UTF-8.
pub(crate) fn read_text(path: &Path, largest: usize) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    let too_large = |bytes: u64| format!("it has {bytes} bytes; {largest} are allowed");
    if metadata.len() > largest as u64 {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // It may have grown since.
    let read = file.take(largest as u64 + 1).read_to_end(&mut bytes);
    read.map_err(failed)?;
    if bytes.len() > largest {
        return Err(too_large(bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        format!("it is not UTF-8: line {line} has a byte that is no text")
    })
}

/// The source of a script below a directory. No path leads out of it.
pub(crate) fn script_below(directory: &Path, script: &str) -> Result<String, String> {
    let path = directory.join(relative(script)?);
    let real = |path: &Path| path.canonicalize();
    let found =
        real(&path).map_err(|error| format!("the script `{script}` cannot be read: {error}"))?;
    let root = real(directory).map_err(|error| format!("the directory cannot be read: {error}"))?;
    if !found.starts_with(root) {
        return Err(outside(script));
    }
    read_text(&found, Script::SOURCE_BYTES).map_err(|why| format!("the script `{script}`: {why}"))
}

/// A path that goes down only.
pub(crate) fn relative(script: &str) -> Result<&Path, String> {
    let path = Path::new(script);
    let down = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    match path.components().all(down) {
        true => Ok(path),
        false => Err(outside(script)),
    }
}

fn outside(script: &str) -> String {
    format!("the script `{script}` is outside of the directory of its rule")
}
