//! Where a key comes from.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ModelError;
use crate::http::{ApiKey, ApiKeyError};

/// The largest file that is read for a key.
const KEY_BYTES: u64 = 16 * 1024;

/// Looks up a variable of the environment: the process's own, or a test's.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The environment of this process.
pub fn process_environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok())
}

/// Where a model's key comes from. It is read for each request, so that a new key needs no
/// restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// It needs none.
    None,
    /// A variable of the environment.
    Env(String),
    /// A file that only its owner can read.
    File(PathBuf),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Env(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl KeySource {
    /// Reads the key.
    pub fn load(&self, environment: &Environment) -> Result<Option<ApiKey>, ModelError> {
        match self {
            Self::None => Ok(None),
            Self::Env(name) => match environment(name) {
                Some(text) => ApiKey::new(&text)
                    .map(Some)
                    .map_err(|error| unusable(&format!("the key in {name}"), error)),
                None => Err(ModelError::Key {
                    reason: format!("there is no key: {name} is not set"),
                    hint: format!("set {name}, or let `dodona models set` store the key in a file"),
                }),
            },
            Self::File(path) => read(path).map(Some),
        }
    }

    /// What to do when a provider does not take the key.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::None => "name a key with `key_env` or `key_file`".to_owned(),
            Self::Env(name) => format!("check the key in {name}"),
            Self::File(path) => format!("check the key in {}", path.display()),
        }
    }
}

fn read(path: &Path) -> Result<ApiKey, ModelError> {
    let shown = path.display();
    let failed = |error: std::io::Error| ModelError::Key {
        reason: format!("the key file {shown} cannot be read: {error}"),
        hint: "let `dodona models set` store the key, or change `key_file`".to_owned(),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(std::io::Error::other("it is no file")));
    }
    refuse_readable_by_others(&metadata, path)?;
    let mut text = String::new();
    file.take(KEY_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    ApiKey::new(&text).map_err(|error| unusable(&format!("the key in {shown}"), error))
}

#[cfg(unix)]
fn refuse_readable_by_others(metadata: &std::fs::Metadata, path: &Path) -> Result<(), ModelError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(ModelError::Key {
        reason: format!(
            "the key file {} can be read by others (mode {mode:04o})",
            path.display()
        ),
        hint: format!("run `chmod 600 {}`", path.display()),
    })
}

#[cfg(not(unix))]
fn refuse_readable_by_others(_: &std::fs::Metadata, _: &Path) -> Result<(), ModelError> {
    Ok(())
}

fn unusable(what: &str, error: ApiKeyError) -> ModelError {
    ModelError::Key {
        reason: format!("{what} cannot be used: {error}"),
        hint: "store the key alone, on one line".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Arc::new(|name| (name == "GOOD").then(|| "sk-1\n".to_owned()))
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let key = KeySource::Env("GOOD".into()).load(&environment());
        assert_eq!(key, Ok(Some(ApiKey::new("sk-1").unwrap())));
        let error = KeySource::Env("BAD".into())
            .load(&environment())
            .unwrap_err();
        assert!(error.to_string().contains("BAD is not set"));
        assert!(error.hint().unwrap().contains("set BAD"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused_with_the_command_that_mends_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-2\n").unwrap();
        let source = KeySource::File(path.clone());
        for mode in [0o644, 0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = source.load(&environment()).unwrap_err();
            assert_eq!(
                error.hint().unwrap(),
                format!("run `chmod 600 {}`", path.display())
            );
            assert!(!error.to_string().contains("sk-2"));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let key = source.load(&environment());
        assert_eq!(key, Ok(Some(ApiKey::new("sk-2").unwrap())));
    }

    #[test]
    fn what_is_no_file_or_no_key_is_said() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing")] {
            let error = KeySource::File(path).load(&environment()).unwrap_err();
            assert!(matches!(error, ModelError::Key { .. }));
        }
    }
}
