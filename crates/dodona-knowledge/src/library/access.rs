//! Which files of a project may be read, listed, indexed and written.
//!
//! Closed to every method: `.git` and `.dodona`, the directories of Dodona's home where a project
//! contains them, files that the project ignores, and files that are known to hold secrets. The
//! user's setting `files.allow` opens ignored and secret files by name.

use std::path::{Component, Path, PathBuf};

use dodona_plugin::{CallError, ErrorCode};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Directories that are closed in every project, whatever the settings say.
const CLOSED: [&str; 2] = [".git", ".dodona"];

/// Directories whose files are keys and credentials.
const SECRET_DIRECTORIES: [&str; 5] = [".ssh", ".gnupg", ".aws", ".azure", ".gcloud"];

/// Names of files that hold keys, passwords or tokens.
const SECRET_NAMES: [&str; 44] = [
    ".boto",
    ".docker/config.json",
    ".dockercfg",
    ".dockerconfigjson",
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".kube/config",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".terraformrc",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "credentials",
    "credentials.csv",
    "credentials.ini",
    "credentials.json",
    "credentials.toml",
    "credentials.yaml",
    "credentials.yml",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
    "kubeconfig",
    "secret.json",
    "secret.toml",
    "secret.yaml",
    "secret.yml",
    "secrets.env",
    "secrets.ini",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "terraform.tfstate",
];

/// Endings of files that hold keys.
const SECRET_ENDINGS: [&str; 13] = [
    ".env",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".ppk",
    ".tfstate",
    ".tfstate.backup",
    ".tfvars",
];

/// Templates of `.env` that projects check in without values.
const TEMPLATES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// Which files of projects are open to methods.
#[derive(Debug, Clone, Default)]
pub struct FileAccess {
    private: Vec<PathBuf>,
    allow: Vec<PathBuf>,
}

/// Why a file is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Closed {
    #[error("it belongs to Dodona's home directory")]
    Home,
    #[error("`.git` and `.dodona` are closed")]
    Internal,
    #[error("it is known to hold secrets")]
    Secret,
    #[error("the project ignores it")]
    Ignored,
}

impl Closed {
    /// The error of a method that was called with this path.
    pub(crate) fn error(self, path: &str) -> CallError {
        let shown: String = path.chars().take(80).collect();
        let message = format!("`{}` cannot be used: {self}", shown.escape_debug());
        let error = CallError::new(ErrorCode::Forbidden, message);
        match self {
            Self::Home | Self::Internal => error,
            Self::Secret | Self::Ignored => {
                error.hint("the user can allow it with the setting `files.allow`")
            }
        }
    }
}

impl FileAccess {
    /// `private` are the directories of the home, which no method shows. `allow` are paths from a
    /// project's root that are open although they are ignored or look like secrets.
    pub fn new(private: &[PathBuf], allow: &[String]) -> Self {
        let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        Self {
            private: private.iter().map(canonical).collect(),
            allow: allow.iter().map(|path| plain(Path::new(path))).collect(),
        }
    }

    /// Checks a path from the root of a project. The file need not exist.
    pub(crate) fn check(&self, root: &Path, path: &Path) -> Result<(), Closed> {
        let path = plain(path);
        self.check_name(root, &path)?;
        match self.is_allowed(&path) || !is_ignored(root, &path) {
            true => Ok(()),
            false => Err(Closed::Ignored),
        }
    }

    /// The same for a path that a walk found: a walk passes over what is ignored by itself.
    pub(crate) fn check_name(&self, root: &Path, path: &Path) -> Result<(), Closed> {
        let full = root.join(path);
        if self.private.iter().any(|private| full.starts_with(private)) {
            return Err(Closed::Home);
        }
        let names = || {
            path.components()
                .filter_map(|part| part.as_os_str().to_str())
        };
        let is_one_of = |names: &[&str], name: &str| {
            names.iter().any(|closed| name.eq_ignore_ascii_case(closed))
        };
        if names().any(|name| is_one_of(&CLOSED, name)) {
            return Err(Closed::Internal);
        }
        let is_secret = names().any(|name| is_one_of(&SECRET_DIRECTORIES, name)) || is_secret(path);
        match is_secret && !self.is_allowed(path) {
            true => Err(Closed::Secret),
            false => Ok(()),
        }
    }

    fn is_allowed(&self, path: &Path) -> bool {
        self.allow.iter().any(|allowed| path.starts_with(allowed))
    }
}

/// A path without `.` parts.
fn plain(path: &Path) -> PathBuf {
    let named = |part: &Component<'_>| !matches!(part, Component::CurDir);
    path.components().filter(named).collect()
}

/// Whether a file's name is one of a secret.
fn is_secret(path: &Path) -> bool {
    // Compared in lower case: on many systems `.ENV` names the same file.
    let path = path.to_string_lossy().to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    if let Some(variant) = name.strip_prefix(".env.") {
        return !TEMPLATES.contains(&variant);
    }
    let is_named = |secret: &str| match secret.contains('/') {
        true => path == secret || path.ends_with(&format!("/{secret}")),
        false => name == secret,
    };
    let is_account = name.ends_with(".json")
        && ["client_secret", "service-account", "service_account"]
            .iter()
            .any(|start| name.starts_with(start));
    let is_history = name.starts_with('.') && name.ends_with("_history");
    SECRET_NAMES.iter().any(|secret| is_named(secret))
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || is_account
        || is_history
}

/// The ignore files of one directory.
struct Level {
    plain: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
}

impl Level {
    fn read(dir: &Path) -> Self {
        let of = |file: &str| {
            let mut builder = GitignoreBuilder::new(dir);
            // A file that is missing or has a wrong line ignores nothing by it, as in a walk.
            let _ = builder.add(dir.join(file));
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        };
        Self {
            plain: of(".ignore"),
            git: of(".gitignore"),
            exclude: of(".git/info/exclude"),
        }
    }
}

/// Whether a walk of the project passes over a path because of ignore files, the user's global one
/// included. The path, or a part of it, need not exist: nothing ignored can be created either.
fn is_ignored(root: &Path, path: &Path) -> bool {
    let mut levels: Vec<Level> = root.ancestors().map(Level::read).collect();
    levels.reverse();
    let (global, _) = Gitignore::global();
    let mut place = root.to_owned();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        let is_dir = parts.peek().is_some() || place.is_dir();
        if is_matched(&levels, &global, &place, is_dir) {
            return true;
        }
        if is_dir {
            levels.push(Level::read(&place));
        }
    }
    false
}

/// The nearest file that has a word about the path decides. `.ignore` goes before `.gitignore`, and
/// that before git's exclude file, wherever they are: a walk that does not require a repository does
/// the same.
fn is_matched(levels: &[Level], global: &Gitignore, place: &Path, is_dir: bool) -> bool {
    let plain = levels.iter().rev().map(|level| &level.plain);
    let git = levels.iter().rev().map(|level| &level.git);
    let exclude = levels.iter().rev().map(|level| &level.exclude);
    let mut decided = plain
        .chain(git)
        .chain(exclude)
        .chain(std::iter::once(global))
        .map(|ignore| ignore.matched(place, is_dir))
        .filter(|found| !found.is_none());
    matches!(decided.next(), Some(Match::Ignore(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &str) {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn closed(access: &FileAccess, root: &Path, path: &str) -> Option<Closed> {
        access.check(root, Path::new(path)).err()
    }

    #[test]
    fn closes_internal_and_secret_files_in_every_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let access = FileAccess::default();
        for path in [
            ".git/config",
            "sub/.GIT/HEAD",
            ".dodona/config.toml",
            "./.git",
        ] {
            assert_eq!(
                closed(&access, root, path),
                Some(Closed::Internal),
                "{path}"
            );
        }
        for path in [
            ".env",
            "sub/.ENV",
            ".env.production",
            "prod.env",
            "deploy/server.PEM",
            "id_rsa",
            ".ssh/config",
            ".aws/credentials",
            "app/credentials.json",
            "client_secret_123.json",
            ".docker/config.json",
            "x/.kube/config",
            ".bash_history",
            "terraform.tfstate.backup",
        ] {
            assert_eq!(closed(&access, root, path), Some(Closed::Secret), "{path}");
        }
        for path in [
            ".env.example",
            ".github/workflows/ci.yml",
            ".cargo/config.toml",
            "src/credentials.rs",
            "environment.md",
            "id_rsa.pub",
            "keys.md",
        ] {
            assert_eq!(closed(&access, root, path), None, "{path}");
        }
    }

    #[test]
    fn the_setting_opens_ignored_and_secret_files_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, ".gitignore", "build/\n*.log\n");
        write(root, "build/out.txt", "x");
        let allow = [".env.test", "./build/", ".git", ".dodona"].map(str::to_owned);
        let access = FileAccess::new(&[], &allow);
        assert_eq!(closed(&access, root, ".env.test"), None);
        assert_eq!(closed(&access, root, "build/out.txt"), None);
        assert_eq!(closed(&access, root, "build/new/x.md"), None);
        assert_eq!(closed(&access, root, "x.log"), Some(Closed::Ignored));
        assert_eq!(closed(&access, root, ".git/config"), Some(Closed::Internal));
        assert_eq!(
            closed(&access, root, ".dodona/a.md"),
            Some(Closed::Internal)
        );
        assert_eq!(closed(&access, root, ".env"), Some(Closed::Secret));
    }

    #[test]
    fn the_home_in_a_project_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("state")).unwrap();
        let access = FileAccess::new(&[root.join("state")], &["state".to_owned()]);
        assert_eq!(closed(&access, &root, "state/token"), Some(Closed::Home));
        assert_eq!(closed(&access, &root, "states/a.md"), None);
    }

    /// What a walk passes over is closed, and nothing else: both read the same ignore files.
    #[test]
    fn agrees_with_a_walk_about_what_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let outer = folder.path().canonicalize().unwrap();
        let root = outer.join("project");
        write(&outer, ".gitignore", "outer.md\n");
        write(
            &root,
            ".gitignore",
            "target/\n*.log\n/top.md\n!keep.log\nnested/deep/\n",
        );
        write(&root, "sub/.gitignore", "!again.log\nlocal.md\n");
        write(&root, "sub/.ignore", "!plain.log\nhidden-by-ignore.md\n");
        let files = [
            "a.md",
            "outer.md",
            "top.md",
            "sub/top.md",
            "x.log",
            "keep.log",
            "sub/again.log",
            "sub/plain.log",
            "sub/other.log",
            "sub/local.md",
            "local.md",
            "target/a.md",
            "sub/target/b.md",
            "nested/deep/c.md",
            "nested/c.md",
            "sub/hidden-by-ignore.md",
            "sub/inner/hidden-by-ignore.md",
            "excluded.md",
        ];
        for file in files {
            write(&root, file, "x");
        }
        let access = FileAccess::default();
        let compare = || {
            let seen = super::super::scan::walk(&root, &access);
            for file in files {
                let is_seen = seen.files.iter().any(|found| found.path == file);
                let is_open = access.check(&root, Path::new(file)).is_ok();
                assert_eq!(is_seen, is_open, "{file}");
            }
        };
        compare();
        write(&root, ".git/info/exclude", "excluded.md\n");
        write(&root, ".git/HEAD", "ref: refs/heads/main\n");
        compare();
    }
}
