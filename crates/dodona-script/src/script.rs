//! A script, ready to run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{ErrorKind, ScriptError};
use crate::vm;

/// A compiled script. Compiling is the slow part; keep it, and share it between threads.
#[derive(Debug)]
pub struct Script {
    id: u64,
    name: Box<str>,
    bytecode: Vec<u8>,
}

impl Script {
    /// How long a source may be.
    pub const SOURCE_BYTES: usize = 64 * 1024;

    /// Compiles a script; `name` is for the reader of messages, such as a file's path.
    ///
    /// # Errors
    ///
    /// If the source is too long or no script.
    pub fn compile(source: &str, name: &str) -> Result<Self, ScriptError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if source.len() > Self::SOURCE_BYTES {
            let message = format!("the script is longer than {} bytes", Self::SOURCE_BYTES);
            return Err(ScriptError::new(ErrorKind::Syntax, message));
        }
        let bytecode = vm::compile(source).map_err(|error| ScriptError::from_lua(&error))?;
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.into(),
            bytecode,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn bytecode(&self) -> &[u8] {
        &self.bytecode
    }
}
