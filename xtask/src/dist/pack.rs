//! Archives, written by `files/pack.py`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// `pack.py` with these arguments.
fn command(arguments: &[&str]) -> Command {
    let python = if cfg!(windows) { "python" } else { "python3" };
    let mut command = process::command(python);
    // Isolated, so that neither the user's packages nor variables change the result.
    command.args(["-I", "xtask/src/dist/files/pack.py"]);
    command.args(arguments);
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none()
        && let Some(epoch) = commit_time()
    {
        command.env("SOURCE_DATE_EPOCH", epoch);
    }
    command
}

/// Seconds since 1970 of the last commit. An unpacked source archive has none.
fn commit_time() -> Option<String> {
    let mut git = process::command("git");
    git.args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]);
    git.stderr(std::process::Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}

/// How much time to spend on compression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effort {
    /// For tests.
    Fast,
    /// For releases.
    Best,
}

impl Effort {
    fn level(self) -> &'static str {
        match self {
            Self::Fast => "1",
            Self::Best => "9",
        }
    }
}

/// Packs a folder as `tar.gz`, with every path below `prefix`.
pub(super) fn tar(out: &Path, folder: &Path, prefix: &str, effort: Effort) -> Result<()> {
    let mut command = command(&["tar"]);
    command.arg(out).arg(folder).arg(prefix);
    process::run(command.env("PACK_LEVEL", effort.level()))
}

/// Packs a folder as a wheel and adds its `RECORD`.
pub(super) fn wheel(out: &Path, folder: &Path, effort: Effort) -> Result<()> {
    let mut command = command(&["wheel"]);
    command.arg(out).arg(folder);
    process::run(command.env("PACK_LEVEL", effort.level()))
}

/// The text of `SHA256SUMS` for these files of a folder.
pub(super) fn sums(folder: &Path, names: &[String]) -> Result<String> {
    process::output(command(&["sums"]).arg(folder).args(names))
}

/// The newest glibc version that the program needs, such as `2.34`.
pub(super) fn glibc(program: &Path) -> Result<String> {
    let version = process::output(command(&["glibc"]).arg(program))?;
    Ok(version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;

    /// The packed bytes of a folder whose files were changed at the given time.
    fn packed(age: Duration, pack: impl Fn(&Path, &Path) -> Result<()>) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let content = folder.path().join("content");
        let info = content.join("oak-1.0.dist-info");
        fs::create_dir_all(&info).unwrap();
        for path in [
            content.join("b.txt"),
            content.join("a.txt"),
            info.join("WHEEL"),
        ] {
            fs::write(&path, "leaf").unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        let out = folder.path().join("out");
        pack(&out, &content).unwrap();
        fs::read(out).unwrap()
    }

    #[test]
    fn archives_depend_only_on_their_contents() {
        let day = Duration::from_secs(86_400);
        let as_tar = |out: &Path, folder: &Path| tar(out, folder, "oak", Effort::Best);
        assert_eq!(packed(day, as_tar), packed(2 * day, as_tar));
        let as_wheel = |out: &Path, folder: &Path| wheel(out, folder, Effort::Best);
        assert_eq!(packed(day, as_wheel), packed(2 * day, as_wheel));
    }

    #[test]
    fn sums_have_the_form_that_sha256sum_reads() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("leaf"), "").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let sums = sums(folder.path(), &["leaf".to_owned()]).unwrap();
        assert_eq!(sums.replace("\r\n", "\n"), format!("{empty}  leaf\n"));
    }
}
