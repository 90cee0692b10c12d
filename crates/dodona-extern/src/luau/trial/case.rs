//! `tests/*.toml`: what is tried, and what should come of it.

use std::fs;
use std::path::{Path, PathBuf};

use dodona_plugin::reading::Problem;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The most files of tests, and the largest.
const MOST_FILES: usize = 200;
const LARGEST: u64 = 1 << 20;

/// A file of tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tests: Vec<Case>,
}

/// `[[tests]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    /// The method to call, without the plugin's name.
    #[serde(default)]
    pub(super) method: Option<String>,
    /// The point to fire, or the name of one of several hooks at it.
    #[serde(default)]
    pub(super) hook: Option<String>,
    /// The prefix of a callback for events, or its name.
    #[serde(default)]
    pub(super) on_event: Option<String>,
    /// The event that it is given.
    #[serde(default = "object")]
    pub(super) event: Value,
    #[serde(default = "object")]
    pub(super) params: Value,
    #[serde(default = "object")]
    pub(super) payload: Value,
    #[serde(default)]
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) settings: Map<String, Value>,
    #[serde(default)]
    pub(super) state: Map<String, Value>,
    /// What calls of others answer, in order.
    #[serde(default)]
    pub(super) calls: Vec<Canned>,
    /// What HTTP requests answer, in order.
    #[serde(default)]
    pub(super) http: Vec<CannedResponse>,
    /// Statements that fill the database, after the migrations.
    #[serde(default)]
    pub(super) sql: Vec<String>,
    pub(super) expect: Expect,
}

/// The answer to one HTTP request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CannedResponse {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) json: Option<Value>,
    #[serde(default)]
    pub(super) headers: Map<String, Value>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// The answer to one call of another method.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Canned {
    pub(super) method: String,
    /// With which parameters it has to be called; any, where absent.
    #[serde(default)]
    pub(super) params: Option<Value>,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// What should come of it. What is absent may be anything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) result: Option<Value>,
    /// Words of the error.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// What a hook changes; `false` for nothing.
    #[serde(default)]
    pub(super) edit: Option<Value>,
    #[serde(default)]
    pub(super) effects: Option<Value>,
    #[serde(default)]
    pub(super) state: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) emitted: Option<Vec<Value>>,
    /// Events that it publishes, each `{ type, payload }`.
    #[serde(default)]
    pub(super) published: Option<Vec<Value>>,
    /// A query of the database afterwards, and its rows.
    #[serde(default)]
    pub(super) query: Option<String>,
    #[serde(default)]
    pub(super) rows: Option<Vec<Value>>,
    /// Words of a line that it logs.
    #[serde(default)]
    pub(super) log: Option<String>,
}

fn object() -> Value {
    Value::Object(Map::new())
}

/// The tests of a directory, each with its file's name. One bad file is told and hides no other.
pub(super) fn read(directory: &Path) -> (Vec<(String, Case)>, Vec<Problem>) {
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for path in files(&directory.join("tests")) {
        let shown = path.display().to_string();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match file(&path) {
            Ok(found) => cases.extend(found.into_iter().map(|case| (name.to_string(), case))),
            Err(why) => problems.push(Problem::of_file(shown, why)),
        }
    }
    (cases, problems)
}

fn file(path: &Path) -> Result<Vec<Case>, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > LARGEST {
        return Err(format!("it is larger than {} KiB", LARGEST >> 10));
    }
    let text = fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let file: File = toml::from_str(&text).map_err(|error| error.to_string().trim().to_owned())?;
    Ok(file.tests)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .take(MOST_FILES)
        .collect();
    files.sort();
    files
}
