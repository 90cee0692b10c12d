//! The process between us and a server: it sees to it that nothing of the server is left.
//!
//! A program can be killed without a chance to clean up, and then its children live on. So a server
//! is started by a guard, which is this program again, in a process group of its own. The guard
//! waits for one of three things: that the server ends, that the pipe from us closes (we closed it,
//! or we are dead), or that it is told to end. Then it ends everything below it, grandchildren that
//! went their own way included, and only then itself.
//!
//! The server reads and writes the guard's own pipes. Nothing passes through the guard: it only
//! watches whether somebody is still at the other end of standard input.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a program that cannot be started ends with, as in a shell.
const NOT_STARTED: u8 = 127;

/// Runs a guard: `command` is the server's program and what it is started with. Returns when
/// nothing of it is left.
pub fn run(command: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut words = command.into_iter();
    let Some(program) = words.next() else {
        report("there is no program to start");
        return ExitCode::from(2);
    };
    let args: Vec<OsString> = words.collect();
    match watch::run(&program, &args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report(&format!(
                "`{}` could not be started: {error}",
                program.display()
            ));
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn report(message: &str) {
    // The exit code says the same where standard error cannot be written.
    let _ = writeln!(io::stderr(), "{message}");
}

#[cfg(unix)]
mod watch {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::process::{Child, Command};
    use tokio::signal::unix::{SignalKind, signal};
    use tokio::sync::oneshot;

    /// How long a server that has lost its input may take to end by itself.
    const FAREWELL: Duration = Duration::from_millis(1_000);
    /// How long it may take once it was asked to.
    const ASKED: Duration = Duration::from_millis(500);

    pub(super) fn run(program: &OsStr, args: &[OsString]) -> io::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(guard(program, args))
    }

    async fn guard(program: &OsStr, args: &[OsString]) -> io::Result<u8> {
        super::tree::adopt();
        let mut told = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ];
        let mut child = Command::new(program).args(args).spawn()?;
        let_go_of_output()?;
        let [terminate, interrupt, hangup] = &mut told;
        tokio::select! {
            _ = child.wait() => {}
            _ = abandoned() => farewell(&mut child).await,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        let ended = child.try_wait()?;
        super::tree::end_all().await;
        Ok(code(ended))
    }

    /// The server alone shall hold its output: who reads it must see when the server closes it.
    fn let_go_of_output() -> io::Result<()> {
        let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        Ok(())
    }

    /// Completes when nobody is left at the other end of our standard input. Nothing is read: the
    /// input is the server's.
    async fn abandoned() {
        let (tell, told) = oneshot::channel();
        std::thread::spawn(move || {
            let stdin = rustix::stdio::stdin();
            loop {
                let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
                let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
                match poll(&mut fds, None) {
                    Ok(_) if fds[0].revents().intersects(gone) => break,
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            let _ = tell.send(());
        });
        let _ = told.await;
    }

    /// Gives the server a moment to end by itself, then asks it to.
    async fn farewell(child: &mut Child) {
        if tokio::time::timeout(FAREWELL, child.wait()).await.is_ok() {
            return;
        }
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = tokio::time::timeout(ASKED, child.wait()).await;
    }

    fn code(ended: Option<ExitStatus>) -> u8 {
        let Some(status) = ended else { return 137 };
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

/// Everything below a guard.
#[cfg(target_os = "linux")]
mod tree {
    use std::collections::{HashMap, HashSet};
    use std::fs;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

    /// How often it is looked for what is left, and how long is waited in between.
    const ROUNDS: u32 = 1_000;
    const PAUSE: Duration = Duration::from_millis(5);

    /// Whatever loses its parent below us becomes our own child, also what detached itself.
    pub(super) fn adopt() {
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
    }

    /// Kills everything below us until nothing is left.
    pub(super) async fn end_all() {
        for _ in 0..ROUNDS {
            let left = below(getpid());
            // What has ended is waited for, so that it is not looked at again.
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The processes below one, but for those that have ended.
    fn below(root: Pid) -> Vec<Pid> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let mut ended = HashSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let stat = fs::read_to_string(entry.path().join("stat"));
            if let Some((state, parent)) = stat.ok().as_deref().and_then(parse) {
                children.entry(parent).or_default().push(pid);
                if state == 'Z' || state == 'X' {
                    ended.insert(pid);
                }
            }
        }
        let mut open = vec![root.as_raw_nonzero().get()];
        let mut found = Vec::new();
        while let Some(parent) = open.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                open.push(child);
                if !ended.contains(&child) {
                    found.extend(Pid::from_raw(child));
                }
            }
        }
        found
    }

    /// State and parent. The program's name stands before them in brackets, and may have brackets.
    fn parse(stat: &str) -> Option<(char, i32)> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((state, fields.next()?.parse().ok()?))
    }

    #[cfg(test)]
    #[test]
    fn a_name_with_brackets_does_not_mislead() {
        assert_eq!(parse("7 (a) R 1) (b) S 42 7 7"), Some(('S', 42)));
        assert_eq!(parse("7 (x"), None);
    }
}

/// Elsewhere there is the process group, which the guard leads.
#[cfg(all(unix, not(target_os = "linux")))]
mod tree {
    use rustix::process::{Signal, getpgrp, getpid, kill_process_group};

    pub(super) fn adopt() {}

    /// Kills the group, and with it the guard.
    pub(super) async fn end_all() {
        // Not a group that somebody else leads: a shell's, say.
        if getpgrp() == getpid() {
            let _ = kill_process_group(getpgrp(), Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
mod watch {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::process::{Command, Stdio};

    /// Passes the input on, and ends the server when it ends.
    pub(super) fn run(program: &OsStr, args: &[OsString]) -> io::Result<u8> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take();
        if let Some(input) = input.as_mut() {
            let _ = io::copy(&mut io::stdin().lock(), input);
        }
        drop(input);
        let _ = child.kill();
        let code = child.wait()?.code();
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
