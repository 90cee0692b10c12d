//! The source archive: the files of the last commit and the built page, so that a build needs no Node.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Contents, VERSION, copy, pack};
use crate::process;

/// Where the build script of `dodona-web` looks for a built page.
const PREBUILT: &str = "crates/dodona-web/prebuilt";

/// Whether this is a Git checkout, which the source archive is made from. An unpacked source archive is not.
pub(super) fn is_checkout() -> bool {
    process::workspace_root().join(".git").exists()
}

/// Writes `dodona-VERSION-source.tar.gz`.
pub(super) fn write(contents: &Contents, page: &Path) -> Result<()> {
    if !is_checkout() {
        println!("no source archive: this folder is not a git checkout");
        return Ok(());
    }
    let mut status = process::command("git");
    status.args(["-c", "safe.directory=*", "status", "--porcelain"]);
    if !process::output(&mut status)?.is_empty() {
        println!("warning: uncommitted changes are not in the source archive");
    }
    let folder = contents.work.join("source");
    let archive = contents.work.join("source.tar");
    fs::create_dir_all(&folder).context("cannot create a folder for the source")?;
    let mut git = process::command("git");
    git.args(["-c", "safe.directory=*", "archive", "--format=tar", "HEAD"]);
    process::run(git.arg("--output").arg(&archive))?;
    let mut tar = process::command("tar");
    process::run(tar.arg("-xf").arg(&archive).arg("-C").arg(&folder))?;
    copy_folder(page, &folder.join(PREBUILT))?;
    let name = format!("dodona-{VERSION}-source");
    let out = contents.out.join(format!("{name}.tar.gz"));
    pack::tar(&out, &folder, &name, contents.effort)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}
