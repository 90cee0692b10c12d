//! Values that are not for everybody: written down, or taken from where only the user can reach.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The most that is read of a file.
const MOST: u64 = 16 * 1024;

/// Where a value comes from. It is read when a server is started, and never shown or logged.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a value is a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`"
)]
pub(crate) enum Secret {
    /// Written down as it is.
    Plain(String),
    /// A variable of our own environment.
    Env(FromEnv),
    /// A file that only its owner can read.
    File(FromFile),
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FromEnv {
    env: String,
    #[serde(default)]
    prefix: String,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FromFile {
    file: PathBuf,
    #[serde(default)]
    prefix: String,
}

impl Secret {
    /// Reads the value. The reason why it cannot be read says nothing of what is in it.
    pub(crate) fn load(&self) -> Result<String, String> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::Env(FromEnv { env, prefix }) => match std::env::var(env) {
                Ok(value) => Ok(format!("{prefix}{value}")),
                Err(_) => Err(format!("the variable {env} is not set")),
            },
            Self::File(FromFile { file, prefix }) => {
                read(file).map(|value| format!("{prefix}{value}"))
            }
        }
    }
}

/// Values stay out of logs, wherever a setting is printed.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("(a value)"),
            Self::Env(from) => write!(f, "${}", from.env),
            Self::File(from) => write!(f, "{}", from.file.display()),
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!(
            "the file {shown} must be named in full, from `/` on"
        ));
    }
    let failed = |error: std::io::Error| format!("the file {shown} cannot be read: {error}");
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(format!("{shown} is no file"));
    }
    refuse_readable_by_others(&metadata, path)?;
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text).map_err(failed)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(unix)]
fn refuse_readable_by_others(metadata: &std::fs::Metadata, path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    let shown = path.display();
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(format!(
            "the file {shown} can be read by others (mode {mode:04o}); run `chmod 600 {shown}`"
        )),
    }
}

#[cfg(not(unix))]
fn refuse_readable_by_others(_: &std::fs::Metadata, _: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(value: serde_json::Value) -> Secret {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_value_is_taken_from_where_it_is_and_not_shown() {
        assert_eq!(secret(json!("x1")).load(), Ok("x1".to_owned()));
        let path = secret(json!({"env": "PATH", "prefix": "p "}))
            .load()
            .unwrap();
        assert_eq!(path, format!("p {}", std::env::var("PATH").unwrap()));
        let missing = secret(json!({"env": "DODONA_NO_SUCH"})).load().unwrap_err();
        assert_eq!(missing, "the variable DODONA_NO_SUCH is not set");
        assert_eq!(format!("{:?}", secret(json!("hidden"))), "(a value)");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "tok-1\n").unwrap();
        let from = secret(json!({"file": path, "prefix": "Bearer "}));
        for (mode, fits) in [(0o644, false), (0o620, false), (0o600, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let loaded = from.load();
            assert_eq!(loaded.is_ok(), fits, "{mode:o}");
            match loaded {
                Ok(value) => assert_eq!(value, "Bearer tok-1"),
                Err(why) => assert!(why.contains("chmod 600") && !why.contains("tok-1")),
            }
        }
        let elsewhere = secret(json!({"file": "token"})).load().unwrap_err();
        assert!(elsewhere.contains("in full"), "{elsewhere}");
    }
}
