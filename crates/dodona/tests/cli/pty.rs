//! The program in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{DODONA, Home, wait_until};

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";
pub(crate) const UP: &str = "\u{1b}[A";

/// A terminal of 80 columns with the program in it.
pub(crate) struct Terminal {
    keyboard: File,
    child: Child,
    screen: Arc<Mutex<Vec<u8>>>,
    /// How far the screen has been read.
    read: usize,
}

impl Terminal {
    /// Starts the program as the leader of the terminal's session, so that Ctrl-C reaches it.
    pub(crate) fn run(home: &Home, arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let controller = openpt(flags).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&controller, size).unwrap();
        let terminal = File::from(ioctl_tiocgptpeer(&controller, flags).unwrap());
        let child = Command::new("setsid")
            .args(["--ctty", DODONA])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TERM", "xterm")
            .env("DODONA_HOME", home.path())
            .current_dir(home.path().parent().unwrap())
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        let keyboard = File::from(controller);
        let screen = Arc::default();
        watch(keyboard.try_clone().unwrap(), Arc::clone(&screen));
        Self {
            keyboard,
            child,
            screen,
            read: 0,
        }
    }

    /// The process.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is shown after what was waited for before.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        let mut end = None;
        wait_until(&format!("{text:?} is shown"), || {
            let screen = self.screen.lock().unwrap();
            let rest = &screen[self.read..];
            let found = rest
                .windows(text.len())
                .position(|seen| seen == text.as_bytes());
            end = found.map(|at| self.read + at + text.len());
            end.is_some()
        });
        self.read = end.unwrap_or(self.read);
    }

    /// Everything that was shown so far.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    /// Whether the terminal shows what is typed and collects lines, as a shell wants to find it.
    pub(crate) fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Waits for the end.
    pub(crate) fn ends(mut self) -> Option<i32> {
        wait_until("the program ends", || {
            self.child.try_wait().unwrap().is_some()
        });
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects what is shown until the terminal is gone.
fn watch(mut controller: File, screen: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count) = controller.read(&mut piece) {
            if count == 0 {
                break;
            }
            screen.lock().unwrap().extend_from_slice(&piece[..count]);
        }
    });
}
