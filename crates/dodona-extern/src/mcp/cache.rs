//! What a server offered the last time, so that it need not be started to be known.

use std::fs;
use std::path::{Path, PathBuf};

use rmcp::model::{ServerCapabilities, Tool};
use serde::{Deserialize, Serialize};

/// The file in the plugin's data directory.
const FILE: &str = "mcp-tools.json";

/// The most that is read of it.
const MOST: u64 = 16 << 20;

/// What is known of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) tools: Vec<Tool>,
    pub(crate) capabilities: ServerCapabilities,
}

/// The file with what is known. It can be deleted at any time.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    path: PathBuf,
    /// Which server it is about.
    address: String,
}

#[derive(Serialize, Deserialize)]
struct Stored<K> {
    address: String,
    #[serde(flatten)]
    known: K,
}

impl Cache {
    pub(crate) fn new(data_dir: &Path, address: String) -> Self {
        Self {
            path: data_dir.join(FILE),
            address,
        }
    }

    /// What is known, if it is about this server.
    pub(crate) fn read(&self) -> Option<Known> {
        let size = fs::metadata(&self.path).ok()?.len();
        if size > MOST {
            return None;
        }
        let stored: Stored<Known> = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (stored.address == self.address).then_some(stored.known)
    }

    /// Notes it down. Where that fails, the server is asked again.
    pub(crate) fn write(&self, known: &Known) {
        let stored = Stored {
            address: self.address.clone(),
            known,
        };
        let written = serde_json::to_vec(&stored).map_err(std::io::Error::other);
        let written = written.and_then(|text| {
            let new = self.path.with_extension("json.new");
            fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
            fs::write(&new, text)?;
            fs::rename(&new, &self.path)
        });
        if let Err(error) = written {
            tracing::debug!(%error, "what a server offers could not be noted down");
        }
    }
}
