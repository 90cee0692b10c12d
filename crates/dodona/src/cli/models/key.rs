//! Keys that the user types or pipes in, and the files they are kept in.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use dodona_llm::ApiKey;
use dodona_proto::ExitKind;

use crate::failure::Failure;
use crate::home::Home;
use crate::shell::Shell;

/// Reads a key: from whatever is piped in, or from the terminal without showing it.
pub(super) async fn read(shell: &Shell, name: &str) -> Result<String, Failure> {
    let is_terminal = io::stdin().is_terminal();
    // It puts the terminal back, also when the user would rather not.
    let _silence = match is_terminal {
        true => Some(Silence::begin(name)?),
        false => None,
    };
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = tokio::select! {
        line = reading => line,
        () = shell.interrupt.requested() => return Err(shell.cancelled(None)),
    };
    let line = line
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| Failure::usage(format!("the key cannot be read: {error}")))?;
    match ApiKey::new(&line) {
        Ok(_) => Ok(line.trim().to_owned()),
        Err(error) => {
            let failure = Failure::usage(format!("invalid key: {error}"));
            Err(failure.hint("pipe it in, such as with `dodona models set NAME --key < key.txt`"))
        }
    }
}

/// Keeps a key in a file that only its owner can read.
pub(super) fn store(home: &Home, name: &str, key: &str) -> Result<PathBuf, Failure> {
    let folder = home.config.join("keys");
    let path = folder.join(name);
    let failed = |error: io::Error| {
        Failure::new(
            ExitKind::Storage,
            format!("the key cannot be stored in `{}`: {error}", path.display()),
        )
    };
    home.create()?;
    make_private(&folder).map_err(failed)?;
    let new = folder.join(format!(".{name}.new"));
    write_private(&new, &format!("{key}\n")).map_err(failed)?;
    fs::rename(&new, &path).map_err(failed)?;
    Ok(path)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The mode is set when the file is made: at no moment can another user read it.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The terminal, while it does not show what is typed.
#[cfg(unix)]
struct Silence {
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Silence {
    fn begin(name: &str) -> Result<Self, Failure> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let failed =
            |error| Failure::usage(format!("could not read a key from the terminal: {error}"));
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).map_err(failed)?;
        let mut stderr = io::stderr();
        let _ = write!(stderr, "key for {name} (it is not shown): ").and_then(|()| stderr.flush());
        Ok(Self { before })
    }
}

#[cfg(unix)]
impl Drop for Silence {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
        // The line break that the user typed was not shown either.
        let _ = writeln!(io::stderr());
    }
}

#[cfg(not(unix))]
struct Silence;

#[cfg(not(unix))]
impl Silence {
    fn begin(_: &str) -> Result<Self, Failure> {
        let failure = Failure::usage("on this system a key cannot be typed without being shown");
        Err(failure.hint("pipe it in, such as with `dodona models set NAME --key < key.txt`"))
    }
}
