//! The archive: program, licences, README, shell completions and manual pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Contents, VERSION, copy, copy_documents, pack, write as write_text};
use crate::process;

/// Shells and the file names that they expect.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "dodona.bash"),
    ("elvish", "dodona.elv"),
    ("fish", "dodona.fish"),
    ("powershell", "_dodona.ps1"),
    ("zsh", "_dodona"),
];

/// Name of the archive without its ending, and of the folder in it.
pub(super) fn name(target: &str) -> String {
    format!("dodona-{VERSION}-{target}")
}

/// Collects the files of the archive in a folder.
pub(super) fn stage(contents: &Contents) -> Result<PathBuf> {
    let folder = contents.work.join("archive");
    copy(&contents.binary, &folder.join(contents.platform.program()))?;
    copy_documents(&folder)?;
    for (shell, file) in COMPLETIONS {
        let script = process::output(program(contents).args(["completions", shell]))?;
        write_text(&folder.join("completions").join(file), &script)?;
    }
    process::output(program(contents).arg("man").arg(folder.join("man/man1")))?;
    Ok(folder)
}

/// The program with a home of its own, so that the user's settings do not matter.
fn program(contents: &Contents) -> Command {
    let mut command = Command::new(&contents.binary);
    command.env("DODONA_HOME", contents.work.join("home"));
    command
}

/// Packs the folder.
pub(super) fn write(contents: &Contents, folder: &Path) -> Result<()> {
    let name = name(contents.platform.target);
    let out = contents.out.join(format!("{name}.tar.gz"));
    pack::tar(&out, folder, &name, contents.effort)
}
