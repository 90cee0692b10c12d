//! The test of the packages: each is installed into a new environment from a server on this machine, and
//! what it installed must answer a question with a citation and serve the page.

mod archives;
mod installed;
mod npm;
mod python;
mod script;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::build::{self, Build};
use super::pack::Effort;
use super::{Contents, package, platform};
use site::Site;

/// The longest that any single program may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What all parts of the test share.
struct Bench {
    folder: TempDir,
    site: Site,
    /// Whether the program contains the real page.
    has_page: bool,
}

/// Installs every package and runs what it installed. Uses the program that the other tests have built.
pub(crate) fn check() -> Result<()> {
    check_build(&build::for_tests()?)
}

/// The same with a given program.
pub(super) fn check_build(build: &Build) -> Result<()> {
    let bench = &Bench::prepare(build)?;
    let parts: [fn(&Bench) -> Result<()>; 4] =
        [archives::check, python::check, npm::check, script::check];
    // Side by side: each waits for other programs most of the time.
    thread::scope(|scope| {
        let running = parts.map(|part| scope.spawn(move || part(bench)));
        let ended = running.map(|part| part.join().expect("a part of the check panicked"));
        ended.into_iter().collect()
    })
}

impl Bench {
    /// Builds the packages and serves them.
    fn prepare(build: &Build) -> Result<Self> {
        // Not in the system's temporary folder, which is often in memory: this takes about 1 GB.
        let target = build::target_directory()?;
        let folder = tempfile::Builder::new()
            .prefix("dist-check-")
            .tempdir_in(target)
            .context("cannot create a temporary folder")?;
        let at = |name: &str| folder.path().join(name);
        let binary = at("dodona");
        super::copy(&build.binary, &binary)?;
        // Symbols are most of a debug build, and every package would be packed and unpacked with them.
        run(Command::new("strip").arg(&binary)).ok();
        package(&Contents {
            platform: platform::host()?,
            page: build.page.clone(),
            base_url: String::new(),
            effort: Effort::Fast,
            work: at("work"),
            out: at("site/files"),
            binary,
        })?;
        Ok(Self {
            site: Site::start(at("site"))?,
            has_page: build::has_page(&build.binary)?,
            folder,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the packages are.
    fn packages(&self) -> PathBuf {
        self.path("site/files")
    }

    /// The one package whose name has this beginning and this ending.
    fn find(&self, start: &str, end: &str) -> Result<PathBuf> {
        let files = super::listing(&self.packages())?;
        let mut names = files.into_iter().map(|(name, _)| name);
        let name = names.find(|name| name.starts_with(start) && name.ends_with(end));
        let name = name.with_context(|| format!("no package `{start}…{end}`"))?;
        Ok(self.packages().join(name))
    }

    /// A program that neither uses a proxy nor the user's home.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .env("HOME", self.path("user"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }
}

/// Runs a program to its end and returns its standard output. A failure shows everything it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = finish(command)?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} ended with {}\n{stdout}{stderr}", output.status);
    }
    Ok(stdout)
}

/// Runs a program that must fail, and returns its standard error.
fn run_failing(command: &mut Command) -> Result<String> {
    let output = finish(command)?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        bail!("{command:?} succeeded\n{stderr}");
    }
    Ok(stderr)
}

/// Runs a program to its end, and kills it if that takes too long.
fn finish(command: &mut Command) -> Result<Output> {
    // Files instead of pipes: a program whose output is not read must not block.
    let (out, err) = (
        tempfile::NamedTempFile::new()?,
        tempfile::NamedTempFile::new()?,
    );
    let mut child = command
        .stdout(out.reopen()?)
        .stderr(err.reopen()?)
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let ended = wait_for("a program to end", || Ok(child.try_wait()?.is_some()));
    if ended.is_err() {
        child.kill().ok();
    }
    let status = child.wait()?;
    ended.with_context(|| format!("{command:?} did not end"))?;
    Ok(Output {
        status,
        stdout: fs::read(out.path())?,
        stderr: fs::read(err.path())?,
    })
}

/// Waits until a condition holds, and fails if it does not in time.
fn wait_for(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !holds()? {
        if start.elapsed() > PATIENCE {
            bail!("waited {} s for {what}", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Fails unless the text contains the expected part.
fn expect(text: &str, part: &str) -> Result<()> {
    if !text.contains(part) {
        bail!("expected `{part}` in:\n{text}");
    }
    Ok(())
}

/// Fails if there is anything at a path.
fn expect_absent(path: &Path) -> Result<()> {
    if path.exists() {
        bail!("{} must not exist", path.display());
    }
    Ok(())
}
