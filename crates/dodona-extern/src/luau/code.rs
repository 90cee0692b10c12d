//! The file of a script.

use std::fs;
use std::io::Read;
use std::path::Path;

use dodona_plugin::reading::{Place, Problem};
use dodona_plugin::schema_hash;
use dodona_script::{Script, ScriptError};
use serde_json::json;

/// A script, compiled.
#[derive(Debug)]
pub(super) struct ScriptFile {
    /// Below the plugin's directory, for messages.
    pub(super) name: String,
    pub(super) script: Script,
    /// Of the source.
    pub(super) hash: String,
}

impl ScriptFile {
    /// Reads and compiles a script below a directory.
    pub(super) fn read(directory: &Path, main: &str) -> Result<Self, Problem> {
        let path = directory.join(main);
        let shown = path.display().to_string();
        let whole = |why: String| Problem::of_file(shown.clone(), why);
        let source = source(directory, &path).map_err(whole)?;
        let compiled = Script::compile(&source, main);
        let script = compiled.map_err(|error| placed(&shown, &source, &error))?;
        Ok(Self {
            name: main.to_owned(),
            script,
            hash: schema_hash(&json!(source)),
        })
    }
}

/// What is wrong in a script, with its place.
fn placed(path: &str, source: &str, error: &ScriptError) -> Problem {
    let place = error.line.map(|line| {
        let text = source
            .lines()
            .nth(line.saturating_sub(1))
            .unwrap_or_default();
        Place {
            line,
            column: 1,
            width: text.len(),
            text: text.to_owned(),
        }
    });
    Problem {
        place,
        ..Problem::of_file(path, error.message.clone())
    }
}

/// The text of a file that is really below the directory, links followed.
fn source(directory: &Path, path: &Path) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("it cannot be read: {error}");
    let real = fs::canonicalize(path).map_err(wrong)?;
    let base = fs::canonicalize(directory).map_err(wrong)?;
    if !real.starts_with(&base) {
        return Err("it leads out of the plugin's directory".to_owned());
    }
    if !fs::metadata(&real).map_err(wrong)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let most = Script::SOURCE_BYTES as u64 + 1;
    let file = fs::File::open(&real).map_err(wrong)?;
    file.take(most).read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}
