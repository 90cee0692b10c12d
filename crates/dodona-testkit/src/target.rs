//! Where cargo builds.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The directory into which cargo built the running program, whichever kind of program it is.
///
/// # Errors
///
/// If cargo did not build it.
pub fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    // Every profile has a folder of its own, in which cargo keeps what it knows of the builds.
    let profile = program
        .ancestors()
        .find(|folder| folder.join(".fingerprint").is_dir());
    let target = profile.and_then(|profile| profile.parent());
    Ok(target
        .context("this program was not built by cargo")?
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_knows_where_it_was_built() {
        let target = target_directory().unwrap();
        assert!(std::env::current_exe().unwrap().starts_with(&target));
    }
}
