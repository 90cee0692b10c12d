//! `dodona methods`.

use clap::Args;

use crate::failure::Failure;
use crate::shell::Shell;

/// List what can be called, or tell all about one method
#[derive(Debug, Args)]
pub(crate) struct Methods {
    /// Only this plugin's methods, or one method in full
    name: Option<String>,
}

impl Methods {
    pub(crate) async fn run(self, shell: &Shell) -> Result<(), Failure> {
        let _ = (shell, self.name);
        Ok(())
    }
}
