//! Changing one file so that nobody ever sees half of it, and nobody's work is lost.
//!
//! What is put in place is written beside it first and made durable. Then the two change places in
//! one step, so that whatever was there is in our hands and can be compared with what was expected:
//! an editor that saved a moment ago is noticed, and its work put back.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What came of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is done and durable.
    Done,
    /// Somebody else changed the file meanwhile. It is as they left it; what had to make room for
    /// that, if anything, is here.
    Interfered(Option<Vec<u8>>),
}

/// Reads a file; `None` where there is none.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a plain file",
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A part of the path is a file: nothing can be below it.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error),
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts text in the place of what is expected there. `aside` is a name beside it that only we use.
pub(super) fn put(
    path: &Path,
    aside: &Path,
    text: &[u8],
    expected: Option<&[u8]>,
) -> io::Result<Step> {
    make_folder(path)?;
    write_aside(path, aside, text)?;
    let displaced = swap_in(path, aside)?;
    if displaced.as_deref() == expected {
        remove(aside)?;
        sync_folder(path)?;
        return Ok(Step::Done);
    }
    let lost = put_back(path, aside, text, displaced.is_some())?;
    sync_folder(path)?;
    Ok(Step::Interfered(lost))
}

/// Takes away what is expected at a place.
pub(super) fn take(path: &Path, aside: &Path, expected: &[u8]) -> io::Result<Step> {
    match fs::rename(path, aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Step::Interfered(None)),
        Err(error) => return Err(error),
    }
    let found = fs::read(aside)?;
    let step = if found == expected {
        remove(aside)?;
        Step::Done
    } else if rename_to_free(aside, path)? {
        Step::Interfered(None)
    } else {
        remove(aside)?;
        Step::Interfered(Some(found))
    };
    sync_folder(path)?;
    Ok(step)
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes what happened to the names in a file's folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        #[cfg(unix)]
        Some(folder) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Makes the folders above a file, durably.
fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.exists())
        .map(Path::to_owned)
        .collect();
    for folder in missing.iter().rev() {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
            Ok(()) => share_like_parent(folder)?,
        }
        sync_folder(folder)?;
    }
    Ok(())
}

/// Gives a new note or folder the permissions of the directory it is in: the process creates files
/// for the owner only, and notes belong to the project.
#[cfg(unix)]
fn share_like_parent(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let allowed = fs::metadata(parent)?.permissions().mode() & 0o777;
    let mode = match path.is_dir() {
        true => allowed,
        false => allowed & 0o666,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o600))
}

#[cfg(not(unix))]
fn share_like_parent(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes a text beside the file it is for, with that one's permissions. It has its name only when
/// it is complete: whoever finds it after a crash can tell.
fn write_aside(path: &Path, aside: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(aside);
    remove(&unfinished)?;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .open(&unfinished)?;
    match fs::metadata(path) {
        Ok(found) => file.set_permissions(found.permissions())?,
        Err(_) => share_like_parent(&unfinished)?,
    }
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(unfinished, aside)
}

/// The name of a file aside while it is being written.
pub(super) fn unfinished(aside: &Path) -> PathBuf {
    aside.with_extension("new")
}

/// Puts what stands aside in its place; what is there then stands aside, and is answered.
pub(super) fn restore(path: &Path, aside: &Path) -> io::Result<Option<Vec<u8>>> {
    let displaced = swap_in(path, aside)?;
    sync_folder(path)?;
    Ok(displaced)
}

/// Gives the file aside its place, and answers with what was there; that is aside then.
fn swap_in(path: &Path, aside: &Path) -> io::Result<Option<Vec<u8>>> {
    loop {
        if rename_to_free(aside, path)? {
            return Ok(None);
        }
        match exchange(aside, path) {
            Ok(()) => return fs::read(aside).map(Some),
            // It was removed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound && aside.exists() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Undoes [`swap_in`]. Whoever changed the file in between has the last word; what had to make room
/// for that is answered.
fn put_back(
    path: &Path,
    aside: &Path,
    ours: &[u8],
    was_there: bool,
) -> io::Result<Option<Vec<u8>>> {
    if !was_there {
        // Expected to be there and gone: it stays gone, if what is there now is ours.
        return match take(path, aside, ours)? {
            Step::Done => Ok(None),
            Step::Interfered(lost) => Ok(lost),
        };
    }
    exchange(aside, path)?;
    if fs::read(aside)? == ours {
        remove(aside)?;
        return Ok(None);
    }
    exchange(aside, path)?;
    let lost = fs::read(aside)?;
    remove(aside)?;
    Ok(Some(lost))
}

/// Renames where nothing is in the way; tells whether it did.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_if_free(from, to),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<bool> {
    rename_if_free(from, to)
}

/// The same where the file system cannot do it in one step.
fn rename_if_free(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(to) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::rename(from, to).map(|()| true)
        }
        Err(error) => Err(error),
    }
}

/// Lets two files change places.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => exchange_by_copy(a, b),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    exchange_by_copy(a, b)
}

/// The same where the file system cannot do it in one step. `b` is there all the time; what somebody
/// writes to it between the copy and the rename is lost, which the other way cannot happen.
fn exchange_by_copy(a: &Path, b: &Path) -> io::Result<()> {
    let found = fs::read(b)?;
    fs::rename(a, b)?;
    let mut file = File::create(a)?;
    file.write_all(&found)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("a.md"), folder.path().join(".aside"));
        (folder, path, aside)
    }

    #[test]
    fn a_file_is_made_replaced_and_taken_away() {
        let (folder, path, aside) = folder();
        assert_eq!(read(&path).unwrap(), None);
        assert_eq!(put(&path, &aside, b"one", None).unwrap(), Step::Done);
        assert_eq!(
            put(&path, &aside, b"two", Some(b"one")).unwrap(),
            Step::Done
        );
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"two"[..]));
        assert_eq!(take(&path, &aside, b"two").unwrap(), Step::Done);
        assert_eq!(read(&path).unwrap(), None);
        let deep = folder.path().join("x/y/z.md");
        assert_eq!(
            put(&deep, &deep.with_file_name(".aside"), b"deep", None).unwrap(),
            Step::Done
        );
        assert!(!aside.exists());
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let (_folder, path, aside) = folder();
        fs::write(&path, "theirs").unwrap();
        for expected in [None, Some(&b"before"[..])] {
            let step = put(&path, &aside, b"ours", expected).unwrap();
            assert_eq!(step, Step::Interfered(None));
            assert_eq!(read(&path).unwrap().as_deref(), Some(&b"theirs"[..]));
        }
        assert_eq!(
            take(&path, &aside, b"before").unwrap(),
            Step::Interfered(None)
        );
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"theirs"[..]));
        fs::remove_file(&path).unwrap();
        let step = put(&path, &aside, b"ours", Some(b"before")).unwrap();
        assert_eq!(step, Step::Interfered(None));
        assert_eq!(
            take(&path, &aside, b"before").unwrap(),
            Step::Interfered(None)
        );
        assert!(!path.exists() && !aside.exists());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay_and_a_link_is_no_file() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (folder, path, aside) = folder();
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        put(&path, &aside, b"two", Some(b"one")).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let link = folder.path().join("link.md");
        symlink(&path, &link).unwrap();
        assert!(read(&link).is_err());
    }
}
