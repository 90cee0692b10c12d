//! Where Dodona keeps its things.
//!
//! With `DODONA_HOME` set, everything is below it; otherwise where the system keeps such things for
//! each user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use dodona_hub::HubPaths;
use thiserror::Error;

/// The variable that puts everything into one directory.
pub(crate) const VARIABLE: &str = "DODONA_HOME";

/// A home that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum HomeError {
    /// The variable is there and says nothing.
    #[error("{VARIABLE} is set and empty")]
    Empty,
    /// The user has no home directory.
    #[error("could not find your home directory")]
    NoHome,
    /// The current directory is gone, so a relative path means nothing.
    #[error("could not resolve the path `{}`", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else is in its place.
    #[error("`{}` is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// A directory could not be made.
    #[error("could not create the directory `{}`", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Where everything is. None of it need exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    /// Settings, rules, prompts: what the user writes.
    pub(crate) config: PathBuf,
    /// Databases: what Dodona writes.
    pub(crate) data: PathBuf,
    /// The local user's token.
    pub(crate) token: PathBuf,
}

impl Home {
    /// The home that the environment names.
    pub(crate) fn find() -> Result<Self, HomeError> {
        Self::from_variables(|name| std::env::var_os(name), std::env::home_dir())
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        user: Option<PathBuf>,
    ) -> Result<Self, HomeError> {
        if let Some(home) = variable(VARIABLE) {
            if home.is_empty() {
                return Err(HomeError::Empty);
            }
            return Self::below(Path::new(&home));
        }
        // The standard says that a relative path in these variables is to be ignored.
        let named = |name| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let below_user = |relative: &str| user.as_ref().map(|user| user.join(relative));
        let (config, data) = if cfg!(windows) {
            (named("APPDATA"), named("LOCALAPPDATA"))
        } else {
            (
                named("XDG_CONFIG_HOME").or_else(|| below_user(".config")),
                named("XDG_DATA_HOME").or_else(|| below_user(".local/share")),
            )
        };
        let config = config.ok_or(HomeError::NoHome)?.join("dodona");
        let data = data.ok_or(HomeError::NoHome)?.join("dodona");
        Ok(Self {
            token: config.join("token"),
            config,
            data,
        })
    }

    /// Everything below one directory.
    pub(crate) fn below(home: &Path) -> Result<Self, HomeError> {
        let home = std::path::absolute(home).map_err(|source| HomeError::Relative {
            path: home.to_owned(),
            source,
        })?;
        Ok(Self {
            config: home.join("config"),
            data: home.join("data"),
            token: home.join("token"),
        })
    }

    /// The directories, the settings first.
    pub(crate) fn directories(&self) -> [&Path; 2] {
        [&self.config, &self.data]
    }

    /// What no project may show: the settings, the data, and the directory of the token.
    pub(crate) fn private(&self) -> Vec<PathBuf> {
        let parent = self.token.parent().map(Path::to_owned);
        let mut paths = vec![self.config.clone(), self.data.clone()];
        paths.extend(parent);
        paths
    }

    /// Where the hub finds things.
    pub(crate) fn paths(&self) -> HubPaths {
        HubPaths {
            data: self.data.clone(),
            config: Some(self.config.clone()),
        }
    }

    /// The file with the settings.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Creates the directories that are missing, for their owner's eyes only.
    pub(crate) fn create(&self) -> Result<(), HomeError> {
        self.directories().into_iter().try_for_each(create_private)
    }
}

fn create_private(dir: &Path) -> Result<(), HomeError> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // Another process may make it at the same time, which is as well.
    builder.create(dir).map_err(|source| {
        let path = dir.to_owned();
        match dir.exists() && !dir.is_dir() {
            true => HomeError::NotADirectory { path },
            false => HomeError::Create { path, source },
        }
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn home(variables: &[(&str, &str)]) -> Result<Home, HomeError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Home::from_variables(variable, Some("/people/ada".into()))
    }

    #[test]
    fn one_variable_holds_everything() {
        let home = home(&[("DODONA_HOME", "/srv/d"), ("XDG_DATA_HOME", "/x")]).unwrap();
        assert_eq!(home.config, Path::new("/srv/d/config"));
        assert_eq!(home.data, Path::new("/srv/d/data"));
        assert_eq!(home.token, Path::new("/srv/d/token"));
    }

    #[test]
    fn without_it_the_usual_places_are_used() {
        let usual = home(&[]).unwrap();
        assert_eq!(usual.config, Path::new("/people/ada/.config/dodona"));
        assert_eq!(usual.data, Path::new("/people/ada/.local/share/dodona"));
        assert_eq!(usual.token, Path::new("/people/ada/.config/dodona/token"));
        let moved = home(&[("XDG_DATA_HOME", "/big"), ("XDG_CONFIG_HOME", "relative")]).unwrap();
        assert_eq!(moved.data, Path::new("/big/dodona"));
        assert_eq!(moved.config, usual.config, "a relative path is ignored");
    }

    #[test]
    fn an_empty_variable_and_a_missing_home_are_errors() {
        assert!(matches!(
            home(&[("DODONA_HOME", "")]),
            Err(HomeError::Empty)
        ));
        let nobody = Home::from_variables(|_| None, None);
        assert!(matches!(nobody, Err(HomeError::NoHome)));
    }

    #[test]
    fn directories_are_created_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::below(&folder.path().join("new")).unwrap();
        home.create().unwrap();
        home.create().unwrap();
        for dir in home.directories() {
            let mode = dir.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", dir.display());
        }
        fs::remove_dir(&home.config).unwrap();
        fs::write(&home.config, "").unwrap();
        assert!(matches!(
            home.create(),
            Err(HomeError::NotADirectory { .. })
        ));
    }
}
