//! `dodona backup`.

use std::path::PathBuf;

use clap::Args;
use dodona_proto::ExitKind;
use dodona_store::backup::{self, BackupManifest};
use jiff::Timestamp;

use crate::failure::Failure;
use crate::home::Home;
use crate::quantity::show_size;

const EXAMPLES: &str = "\
Examples:
  dodona backup                      to the directory `backups` of the data directory
  dodona backup /mnt/usb/dodona      to a new directory
  dodona restore /mnt/usb/dodona     put it back

Every database is copied as of one moment, and each copy is verified. A server may run meanwhile.
Settings, rules and prompts are plain files in the configuration directory and are not included;
nor are search indexes, which are built again.";

/// Copy all databases to a new directory and verify the copies
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    /// The directory to create [default: a new one below the data directory]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

impl Backup {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let home = Home::find()?;
        let to = self.path.unwrap_or_else(|| {
            let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
            home.data.join(backup::DIRECTORY).join(stamp)
        });
        let (data, target) = (home.data, to.clone());
        let made = tokio::task::spawn_blocking(move || backup::create(&data, &target));
        let manifest = made
            .await
            .map_err(|error| Failure::new(ExitKind::Failed, error.to_string()))??;
        super::print(&format!("{}backup {}\n", list(&manifest), to.display()))
    }
}

/// The databases with their sizes, one on a line.
pub(super) fn list(manifest: &BackupManifest) -> String {
    let line = |(file, copy): (&String, &backup::BackedUp)| {
        format!("  {file}   {}\n", show_size(copy.bytes))
    };
    manifest.databases.iter().map(line).collect()
}
