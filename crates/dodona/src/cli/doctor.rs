//! `dodona doctor`.

use clap::Args;

use crate::failure::Failure;
use crate::shell::Shell;

/// Check that everything is all right, and tell what to do where it is not
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let _ = (shell, self.json);
        Ok(())
    }
}
