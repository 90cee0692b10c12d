//! `install.sh`: an installation, and every way in which one can fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::super::write;
use super::{Bench, expect, expect_absent, installed, run, run_failing, wait_for};

pub(super) fn check(bench: &Bench) -> Result<()> {
    let script = Script::new(bench)?;
    script.check_install()?;
    script.check_other_tools()?;
    script.check_rejected_downloads()?;
    script.check_missing_tools()?;
    script.check_interrupt()
}

struct Script<'b> {
    bench: &'b Bench,
    /// Where temporary files go; empty after every run.
    temporary: PathBuf,
}

impl<'b> Script<'b> {
    fn new(bench: &'b Bench) -> Result<Self> {
        let temporary = bench.path("script-tmp");
        fs::create_dir_all(&temporary)?;
        Ok(Self { bench, temporary })
    }

    fn command(&self, from: &str, to: &Path) -> Command {
        // By its path, so that tests can replace PATH.
        let mut command = self.bench.command("/bin/sh");
        self.add_arguments(&mut command, from, to);
        command
    }

    /// A shell cannot trap a signal that was ignored when it started, and background jobs of a shell
    /// start with SIGINT ignored. So the signals are reset first.
    fn interruptible_command(&self, from: &str, to: &Path) -> Command {
        if !cfg!(target_os = "linux") {
            return self.command(from, to);
        }
        let mut command = self.bench.command("/usr/bin/env");
        command.args(["--default-signal=INT,TERM", "/bin/sh"]);
        self.add_arguments(&mut command, from, to);
        command
    }

    fn add_arguments(&self, command: &mut Command, from: &str, to: &Path) {
        command.arg(self.bench.packages().join("install.sh"));
        command.arg("--from").arg(from).arg("--to").arg(to);
        command.env("TMPDIR", &self.temporary);
    }

    fn check_install(&self) -> Result<()> {
        let to = self.bench.path("installed/deep/bin");
        let printed = run(&mut self.command(&self.bench.site.url("files"), &to))?;
        expect(&printed, &format!("installed {}/dodona", to.display()))?;
        self.expect_clean()?;
        installed::check(self.bench, "install.sh", &to.join("dodona"))?;

        // Without --to, and with the address in the environment.
        let mut command = self.bench.command("/bin/sh");
        command.arg(self.bench.packages().join("install.sh"));
        command.env("DODONA_BASE_URL", self.bench.site.url("files"));
        run(command.env("TMPDIR", &self.temporary))?;
        let program = self.bench.path("user/.local/bin/dodona");
        run(self.bench.command(program).arg("--version")).map(drop)
    }

    /// The same with the other downloaders and checksum programs that this machine has.
    fn check_other_tools(&self) -> Result<()> {
        for (downloader, sums) in [("wget", "shasum"), ("curl", "openssl")] {
            let tools = self.bench.path(&format!("only-{downloader}"));
            fs::create_dir_all(&tools)?;
            let needed = [downloader, sums]
                .into_iter()
                .chain(COMMON_TOOLS.iter().copied());
            let paths: Option<Vec<PathBuf>> = needed.map(on_path).collect();
            let Some(paths) = paths else {
                println!("not checking install.sh with {downloader} and {sums}: not installed");
                continue;
            };
            for path in paths {
                let name = path.file_name().context("a program has a name")?;
                let text = format!("exec '{}' \"$@\"", path.display());
                fake(&tools, &name.to_string_lossy(), &text)?;
            }
            let to = tools.join("installed");
            let mut command = self.command(&self.bench.site.url("files"), &to);
            run(command.env("PATH", &tools))?;
            let mut command = self.command(&self.bench.site.url("tampered"), &to);
            let printed = run_failing(command.env("PATH", &tools))?;
            expect(&printed, "error: checksum mismatch")?;
            self.expect_clean()?;
        }
        Ok(())
    }

    fn check_rejected_downloads(&self) -> Result<()> {
        let tampered = self.bench.site.url("tampered");
        self.expect_failure(&tampered, "checksum mismatch")?;
        self.expect_failure(&self.bench.site.url("nowhere"), "cannot download")?;
        // Port 1 of loopback: a network where no server answers.
        self.expect_failure("http://127.0.0.1:1", "cannot download")?;

        // An older program stays in place, byte for byte.
        let to = self.bench.path("upgraded");
        write(&to.join("dodona"), "the older program")?;
        run_failing(&mut self.command(&tampered, &to))?;
        let kept = fs::read_to_string(to.join("dodona"))?;
        if kept != "the older program" || fs::read_dir(&to)?.count() != 1 {
            bail!("a rejected archive changed {}", to.display());
        }
        Ok(())
    }

    fn check_missing_tools(&self) -> Result<()> {
        let url = self.bench.site.url("files");
        let to = self.bench.path("unsupported");
        let tools = self.bench.path("tools");
        fs::create_dir_all(&tools)?;
        let attempt = |path: String, message: &str| {
            let mut command = self.command(&url, &to);
            expect(&run_failing(command.env("PATH", path))?, message)?;
            expect_absent(&to)
        };
        let alone = tools.display().to_string();
        attempt(alone.clone(), "error: neither curl nor wget is installed\n")?;
        fake(&tools, "curl", "exit 1")?;
        attempt(
            alone.clone(),
            "error: no program for SHA-256 checksums is installed\n",
        )?;
        fake(&tools, "sha256sum", "exit 1")?;
        attempt(alone.clone(), "error: tar is not installed\n")?;
        fake(&tools, "uname", "echo Plan9")?;
        let path = std::env::var("PATH").context("PATH is not set")?;
        attempt(
            format!("{alone}:{path}"),
            "error: this platform is not supported: Plan9-Plan9\n",
        )
    }

    /// Stops the script in the middle of a download.
    fn check_interrupt(&self) -> Result<()> {
        for (signal, code) in [("TERM", 143), ("INT", 130)] {
            let to = self.bench.path("interrupted/bin");
            let before = self.bench.site.stalled();
            let mut command = self.interruptible_command(&self.bench.site.url("stalled"), &to);
            let mut child = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context("cannot start install.sh")?;
            wait_for("half of the download", || {
                Ok(self.bench.site.stalled() > before)
            })?;
            run(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]))?;
            let ended = wait_for("install.sh to stop", || Ok(child.try_wait()?.is_some()));
            if ended.is_err() {
                child.kill().ok();
            }
            let status = child.wait()?;
            ended?;
            if status.code() != Some(code) {
                bail!("install.sh ended with {status} after SIG{signal}, expected {code}");
            }
            expect_absent(&self.bench.path("interrupted"))?;
            self.expect_clean()?;
        }
        Ok(())
    }

    fn expect_failure(&self, from: &str, message: &str) -> Result<()> {
        let to = self.bench.path("failed/bin");
        let printed = run_failing(&mut self.command(from, &to))?;
        expect(&printed, &format!("error: {message}"))?;
        expect_absent(&self.bench.path("failed"))?;
        self.expect_clean()
    }

    fn expect_clean(&self) -> Result<()> {
        match fs::read_dir(&self.temporary)?.next() {
            None => Ok(()),
            Some(left) => bail!("install.sh left {}", left?.path().display()),
        }
    }
}

/// What the script needs besides a downloader and a checksum program. The last ones are for scripts among
/// those programs, such as `shasum`.
const COMMON_TOOLS: &[&str] = &[
    "chmod", "cp", "cut", "gzip", "head", "ldd", "mkdir", "mktemp", "mv", "rm", "rmdir", "tar",
    "uname", "env", "perl", "bash",
];

/// Where a program is.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// A program of the test in a folder.
pub(super) fn fake(folder: &Path, name: &str, commands: &str) -> Result<()> {
    let path = folder.join(name);
    write(&path, &format!("#!/bin/sh\n{commands}\n"))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
