//! `dodona restore`.

use std::path::PathBuf;

use clap::Args;
use dodona_proto::ExitKind;
use dodona_store::backup;

use crate::failure::Failure;
use crate::home::Home;
use crate::owner::Ownership;

const EXAMPLES: &str = "\
Examples:
  dodona restore /mnt/usb/dodona

The backup is verified first. The databases that are there are moved to `backups/replaced-…` below
the data directory. Stop a running server before.";

/// Replace all databases with those of a backup
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restore {
    /// The directory that `dodona backup` created
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

impl Restore {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let home = Home::find()?;
        home.create()?;
        let ownership = Ownership::take(&home.data)?;
        let (data, from) = (home.data.clone(), self.path.clone());
        let restored = tokio::task::spawn_blocking(move || {
            let aside = backup::restore(&data, &from)?;
            Ok::<_, backup::BackupError>((backup::read_manifest(&from)?, aside))
        });
        let (manifest, aside) = restored
            .await
            .map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))??;
        drop(ownership);
        let mut text = super::backup::list(&manifest);
        text.push_str(&format!("restored {}\n", self.path.display()));
        if aside.exists() {
            text.push_str(&format!("replaced databases: {}\n", aside.display()));
        }
        super::print(&text)
    }
}
