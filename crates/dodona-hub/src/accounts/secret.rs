//! The text of a token.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use dodona_proto::{CallError, ErrorCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "dod_";

/// A token: a public id and 256 secret bits.
pub(super) struct Secret {
    text: String,
    id_end: usize,
}

impl Secret {
    pub(super) fn random() -> Result<Self, CallError> {
        let (id, secret) = (random_hex::<6>()?, random_hex::<32>()?);
        Ok(Self {
            text: format!("{PREFIX}{id}_{secret}"),
            id_end: PREFIX.len() + id.len(),
        })
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (id, secret) = rest.split_once('_')?;
        let fits = id.len() == 12
            && secret.len() == 64
            && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        fits.then(|| Self {
            text: text.to_owned(),
            id_end: PREFIX.len() + id.len(),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.text[PREFIX.len()..self.id_end]
    }

    pub(super) fn text(self) -> String {
        self.text
    }

    pub(super) fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.text.as_bytes()).into())
    }
}

/// What is stored of a token. A plain hash is enough: nobody guesses 256 random bits.
pub(super) struct SecretHash([u8; 32]);

impl SecretHash {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// In a time that does not depend on where they differ.
    pub(super) fn matches(&self, secret: &Secret) -> bool {
        self.0.ct_eq(&secret.hash().0).into()
    }
}

pub(super) fn random_hex<const N: usize>() -> Result<String, CallError> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            "failed to get random numbers from the system",
        )
        .log(error)
    })?;
    let mut hex = String::with_capacity(N * 2);
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

pub(super) fn read_file(file: &Path) -> Result<Option<String>, CallError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(file, "read", &error)),
    }
}

/// Written beside and moved into place, so that the file is never half there, and never
/// readable by others.
pub(super) fn write_file(file: &Path, text: &str) -> Result<(), CallError> {
    let draft = file.with_extension("new");
    let write = || -> std::io::Result<()> {
        let _ = fs::remove_file(&draft);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = options.open(&draft)?;
        writeln!(out, "{text}")?;
        out.sync_all()?;
        fs::rename(&draft, file)
    };
    write().map_err(|error| unusable(file, "written", &error))
}

fn unusable(file: &Path, what: &str, error: &std::io::Error) -> CallError {
    let message = format!("the token file `{}` cannot be {what}", file.display());
    CallError::new(ErrorCode::Storage, message)
        .hint("check its permissions")
        .log(error)
}
