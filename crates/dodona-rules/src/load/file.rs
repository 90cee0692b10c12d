//! Loading one rule file.

use std::cell::RefCell;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use dodona_plugin::{RuleTrust, content_hash, reading};
use dodona_script::Script;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Problem;
use crate::compile::{CompiledRule, Origin, ScriptSource};
use crate::format::{self, Condition};
use crate::identity::Scope;

/// Maximum size of a rule file in bytes.
pub const LARGEST: usize = 256 * 1024;

/// A loaded rule file.
#[derive(Debug, Clone, Default)]
pub struct LoadedFile {
    /// The rule, if the file has no errors.
    pub rule: Option<Arc<CompiledRule>>,
    /// The problems of the file.
    pub problems: Vec<Problem>,
    /// The path of its script, valid or not.
    pub script: Option<String>,
    /// The texts: the file, then its script.
    pub texts: Arc<Vec<SourceText>>,
    /// Why a valid rule is not evaluated.
    pub inactive: Option<Inactive>,
}

/// One text of a rule: the file or its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    pub path: PathBuf,
    pub text: String,
    /// The hash of the content; trust is granted to this hash.
    pub hash: String,
}

impl SourceText {
    /// The text of a file.
    pub fn new(path: PathBuf, text: String) -> Self {
        let hash = content_hash(text.as_bytes());
        Self { path, text, hash }
    }
}

impl LoadedFile {
    /// Whether the file and its script are trusted. Paths in `trust` are relative to `base`.
    pub(crate) fn is_trusted(&self, base: &Path, trust: &RuleTrust) -> bool {
        *trust == RuleTrust::Followed
            || self.texts.iter().all(|source| {
                let path = source.path.strip_prefix(base).ok().and_then(Path::to_str);
                path.is_some_and(|path| trust.covers(path, &source.hash))
            })
    }
}

/// Why a valid rule is not evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inactive {
    /// The project that the rule belongs to is not trusted.
    ProjectNotTrusted,
    /// The rule or its script has changed since the project was trusted.
    ChangedSinceTrusted,
}

impl Inactive {
    /// Returns why a rule of a project with this trust is inactive.
    pub(crate) fn under(trust: &RuleTrust) -> Self {
        match trust {
            RuleTrust::Untrusted => Self::ProjectNotTrusted,
            RuleTrust::Pinned(_) | RuleTrust::Followed => Self::ChangedSinceTrusted,
        }
    }
}

impl fmt::Display for Inactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProjectNotTrusted => "project not trusted",
            Self::ChangedSinceTrusted => "changed since the project was trusted",
        })
    }
}

/// Loads a rule from its text.
pub fn load_text(origin: Origin, text: &str, scripts: &ScriptSource<'_>) -> LoadedFile {
    let (rule, mut problems) = format::parse(&origin.path, text);
    let Some(rule) = rule else {
        return LoadedFile {
            problems,
            ..LoadedFile::default()
        };
    };
    let script = match &rule.condition {
        Condition::Script(path) => Some(path.clone()),
        Condition::Expression(_) => None,
    };
    let (compiled, more) = CompiledRule::compile(rule, text, origin, scripts);
    problems.extend(more);
    LoadedFile {
        rule: compiled.map(Arc::new),
        problems,
        script,
        ..LoadedFile::default()
    }
}

/// Loads a rule from its file. Scripts must be below the file's directory.
pub fn load_file(path: &Path, scope: Scope) -> LoadedFile {
    let shown = path.display().to_string();
    let directory = path.parent().unwrap_or(Path::new("."));
    // A project may be written by others: a link in it could make the server read and quote any file.
    let text = match scope {
        Scope::Project => read_inside(path, directory, LARGEST),
        _ => read_text(path, LARGEST),
    };
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            let problem = Problem::error(reading::Problem::of_file(shown, why));
            return LoadedFile {
                problems: vec![problem],
                ..LoadedFile::default()
            };
        }
    };
    let origin = Origin { scope, path: shown };
    let read = RefCell::new(vec![SourceText::new(path.to_owned(), text.clone())]);
    let script = |script: &str| {
        let text = script_below(directory, script)?;
        let path = script_path(directory, script)?;
        read.borrow_mut().push(SourceText::new(path, text.clone()));
        Ok(text)
    };
    let loaded = load_text(origin, &text, &script);
    LoadedFile {
        texts: Arc::new(read.take()),
        ..loaded
    }
}

/// Loads a rule from stored texts.
pub(crate) fn load_texts(path: &Path, scope: Scope, texts: Vec<SourceText>) -> LoadedFile {
    let origin = Origin {
        scope,
        path: path.display().to_string(),
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    let script = |script: &str| {
        let path = script_path(directory, script)?;
        let found = texts.iter().find(|known| known.path == path);
        let found = found.map(|known| known.text.clone());
        found.ok_or_else(|| format!("script `{script}` is not stored"))
    };
    let text = texts.iter().find(|known| known.path == path);
    let text = text.map(|known| known.text.clone()).unwrap_or_default();
    let loaded = load_text(origin, &text, &script);
    LoadedFile {
        texts: Arc::new(texts),
        ..loaded
    }
}

/// Reads a file in this directory. Neither the directory nor its parent may be a link.
pub(crate) fn read_inside(path: &Path, directory: &Path, largest: usize) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("failed to read the file: {error}");
    for place in [directory.parent(), Some(directory), Some(path)] {
        let Some(place) = place else { continue };
        let found = place.symlink_metadata().map_err(failed)?;
        if found.is_symlink() {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            return Err(format!(
                "`{name}` is a symbolic link; a project's files must be inside the project"
            ));
        }
    }
    let before = path.symlink_metadata().map_err(failed)?;
    if !before.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = File::open(path).map_err(failed)?;
    // Compared after opening: the file may have been replaced by a link in the meantime.
    if !is_same(&before, &file.metadata().map_err(failed)?) {
        return Err("the file was replaced while it was read".to_owned());
    }
    text_of(file, largest)
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.file_type() == other.file_type() && one.len() == other.len()
}

/// Reads a regular file. Fails if it is too large or not UTF-8.
pub(crate) fn read_text(path: &Path, largest: usize) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("failed to read the file: {error}");
    // Checked before opening, because opening a named pipe waits for a writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("it is no file".to_owned());
    }
    text_of(File::open(path).map_err(failed)?, largest)
}

fn text_of(file: File, largest: usize) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("failed to read the file: {error}");
    let metadata = file.metadata().map_err(failed)?;
    let too_large = |bytes: u64| format!("the file has {bytes} bytes; the maximum is {largest}");
    if metadata.len() > largest as u64 {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    // The file may have grown meanwhile.
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
        format!("invalid UTF-8 in line {line}")
    })
}

/// Reads a script below a directory. Fails for paths outside it.
pub(crate) fn script_below(directory: &Path, script: &str) -> Result<String, String> {
    let path = directory.join(relative(script)?);
    let real = |path: &Path| path.canonicalize();
    let found =
        real(&path).map_err(|error| format!("failed to read script `{script}`: {error}"))?;
    let root = real(directory).map_err(|error| format!("failed to read the directory: {error}"))?;
    if !found.starts_with(root) {
        return Err(outside(script));
    }
    read_text(&found, Script::SOURCE_BYTES).map_err(|why| format!("script `{script}`: {why}"))
}

/// The normalised path of a script.
pub(crate) fn script_path(directory: &Path, script: &str) -> Result<PathBuf, String> {
    let parts = relative(script)?.components();
    let down = parts.filter(|part| matches!(part, Component::Normal(_)));
    Ok(directory.join(down.collect::<PathBuf>()))
}

/// A path without `..`.
pub(crate) fn relative(script: &str) -> Result<&Path, String> {
    let path = Path::new(script);
    let down = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.components().all(down) {
        Ok(path)
    } else {
        Err(outside(script))
    }
}

fn outside(script: &str) -> String {
    format!("script `{script}` is outside the directory of its rule")
}
