//! The permissions of new files.
//!
//! Whatever creates a file in this process, libraries included, creates it for the owner only. Two
//! things get other permissions: notes take those of their directory, and MCP servers run with the
//! mask that this program was started with.

use std::sync::OnceLock;

/// Permissions that new files do not get.
const PRIVATE: u32 = 0o077;

/// What was in force when the program was started.
static INHERITED: OnceLock<u32> = OnceLock::new();

/// Makes every file from now on readable for its owner only. Called once, before any thread.
pub(crate) fn keep_files_private() {
    let inherited = set_mask(PRIVATE);
    let _ = INHERITED.set(inherited);
}

/// The mask for programs that are started from here.
pub(crate) fn inherited_mask() -> u32 {
    INHERITED.get().copied().unwrap_or(PRIVATE)
}

/// Sets the mask and returns the one before.
#[cfg(unix)]
pub(crate) fn set_mask(mask: u32) -> u32 {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::from_bits_truncate(mask)).bits()
}

#[cfg(not(unix))]
pub(crate) fn set_mask(mask: u32) -> u32 {
    mask
}
