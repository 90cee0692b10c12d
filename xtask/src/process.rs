//! Child processes, all started alike: from the workspace root and without standard input.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder that holds the workspace's `Cargo.toml`.
///
/// Cargo tells it to the program it runs. What the compiler was told can be another checkout, if
/// several share a target folder, and serves only when the program is started by hand.
pub(crate) fn workspace_root() -> PathBuf {
    let ours = env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    Path::new(&ours)
        .parent()
        .expect("xtask is a folder inside the workspace")
        .to_owned()
}

/// The folder that cargo builds into.
pub(crate) fn target_folder() -> PathBuf {
    // Cargo starts us from `<target>/<profile>/xtask`.
    let program = env::current_exe().unwrap_or_default();
    match program.ancestors().nth(2) {
        Some(target) if target.is_dir() => target.to_owned(),
        _ => workspace_root().join("target"),
    }
}

/// A command that starts in the workspace root and can never wait for someone to type.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace_root()).stdin(Stdio::null());
    command
}

/// The cargo that runs us, so that a `+toolchain` on the command line reaches every step.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = command(&program);
    command.args(arguments);
    command
}

/// Runs a command with its output visible, after printing it so that it can be repeated by hand.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = display(command);
    println!("$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed; its complaints stay visible.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = display(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// Whether a command starts and succeeds, its output unseen: a probe for optional tools.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it: cargo by its name and not by its path.
pub(crate) fn display(command: &Command) -> String {
    let mut shown = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(shown, "{}={value:?} ", name.display());
        }
    }
    let program = Path::new(command.get_program());
    shown.push_str(
        &program
            .file_stem()
            .unwrap_or(program.as_os_str())
            .to_string_lossy(),
    );
    for argument in command.get_args() {
        let _ = write!(shown, " {}", argument.display());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command
            .args(["doc", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            display(&command),
            r#"RUSTDOCFLAGS="-D warnings" cargo doc --no-deps"#
        );
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = run(&mut command("no-such-program-here")).unwrap_err();
        assert!(
            error.to_string().contains("no-such-program-here"),
            "{error}"
        );
    }
}
