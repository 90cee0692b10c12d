//! Files and directories that only their owner can read, created durably.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and what is missing above it. What exists keeps its permissions.
pub(crate) fn create_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = parent_of(dir) {
        create_dir(parent)?;
    }
    match private_dir().create(dir) {
        // Two databases of one folder may be opened at the same moment.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => parent_of(dir).map_or(Ok(()), sync_dir),
    }
}

/// Creates an empty file, unless there is one, with its folder. The engine's own side files take
/// over the permissions given here.
pub(crate) fn create_file(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let parent = parent_of(path);
    parent.map_or(Ok(()), create_dir)?;
    private_file().open(path)?;
    parent.map_or(Ok(()), sync_dir)
}

/// Gives a finished temporary file its real name, so that a crash leaves the old file or the new
/// one and never a part.
pub(crate) fn publish(temporary: &Path, path: &Path) -> io::Result<()> {
    File::open(temporary)?.sync_all()?;
    fs::rename(temporary, path)?;
    parent_of(path).map_or(Ok(()), sync_dir)
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The folder of a path, or `None` for a bare name, whose folder is the current one.
fn parent_of(path: &Path) -> Option<&Path> {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
}

#[cfg(unix)]
fn private_dir() -> fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(not(unix))]
fn private_dir() -> fs::DirBuilder {
    fs::DirBuilder::new()
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Makes a new name in a folder durable.
#[cfg(unix)]
fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Other systems offer no way to do so, and journal their folders.
#[cfg(not(unix))]
fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}
